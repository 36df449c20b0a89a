"""A forecast says what a run will cost before it begins."""
