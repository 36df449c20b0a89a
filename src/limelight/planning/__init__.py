"""A plan says, before anything runs, what a model costs, how long it takes and what loss to expect."""
