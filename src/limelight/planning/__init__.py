"""A plan says, before anything runs, what a model costs, how long it takes and what loss to expect.

The sub-package `cost` follows from the shape of a model alone; `time` from machines that are described or measured; scaling, corpus_work
and serving_load from what was measured here. sizing_rules, parallel_rule and options choose; budget and shortfall answer a person.
"""
