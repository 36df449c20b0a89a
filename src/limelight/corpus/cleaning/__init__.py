"""Pairs that would do harm are dropped, each for a reason that is counted."""
