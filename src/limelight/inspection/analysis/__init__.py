"""Attention is summed up here: statistics of heads, alignments, importance, the tree of a search."""
