"""The attention of an engine becomes links between words, and places for tags."""
