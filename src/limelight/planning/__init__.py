"""What a model costs, from its shape alone."""
