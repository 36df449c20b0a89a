"""A training run turns text into a translator: recipe, steps, validation, checkpoints and report."""
