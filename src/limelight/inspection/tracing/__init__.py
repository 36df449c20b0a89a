"""A sentence runs through the model with its interventions, and every head is recorded."""
