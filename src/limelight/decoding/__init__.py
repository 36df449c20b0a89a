"""A search goes from probabilities of the next piece to whole translations. It knows no model, only the two methods of
`steps.Steppable`.

Read in this order: config, steps (what a search sees and gives), task (requests as tensors), rules (what may come next), select, paths,
greedy, sampling, lengths, coverage, finished, beam, then the beam's two other ways to choose (groups, constraints) and marks, record
(what was cut), search (which of them runs), and ensemble, risk and guards.
"""
