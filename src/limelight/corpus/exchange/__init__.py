"""Pairs are read by many processes and gathered by their source, so that duplicates meet."""
