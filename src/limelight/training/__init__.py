"""A training run turns text into a translator: recipe, steps, validation, checkpoints and report.

Its sub-packages, in the order in which a run meets them: `forecast` (the cost, beforehand), `run` (phases and loop), `processes` (the
ranks), `recipe` (from a request to settings), `step` (one change of the weights), `validation`, `checkpoints` and `report`.
"""
