"""One verb per file; the only room that prints."""
