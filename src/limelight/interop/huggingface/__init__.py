"""Models of Hugging Face are imported, and bundles are exported to their format."""
