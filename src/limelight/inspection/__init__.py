"""A translation under the lamp: every stage of it by name, every head with a dimmer, and what changes when one is turned.

Read in this order: names (of heads and stages), changes (what is turned), lit (a twin of the model under these changes), stages (what one
pass through it shows), trace (all of it as data), tracing (a sentence in, a trace out); head_stats, aligning_heads, verdict, explaining.
"""
