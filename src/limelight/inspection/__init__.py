"""Inspection shows every stage of a translation by name, what changes when a head is dimmed, and what caused a word.

Read in this order: head_names (of heads and stages), interventions (what is changed), one_weight (one attention weight written out),
trace (all of it as data), causes (why a word is there, as data); then the sub-packages `tracing` (a sentence in, a trace out), `analysis`
(statistics, alignments, importance, attribution, omissions, patching), `drawing`, `wire` (as JSON) and `saving`.
"""
