"""Text is normalized, identified by language, split into sentences, cut into pieces and protected."""
