"""A system is scored by metrics with intervals, compared with another, and shown where it is weak."""
