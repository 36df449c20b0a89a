"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), one idea per file.

Read in this order: attention, multi_head, positions, feedforward, layers, encoder, decoder, transformer.
"""
