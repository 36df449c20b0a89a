"""A request for a run becomes a complete recipe."""
