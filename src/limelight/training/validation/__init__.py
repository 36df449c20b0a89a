"""A model is scored here while it trains, and its final weights are chosen."""
