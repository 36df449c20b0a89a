"""The LibreTranslate-compatible API translates texts and files, detects languages, and takes suggestions."""
