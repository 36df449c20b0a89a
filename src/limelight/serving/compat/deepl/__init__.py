"""The DeepL-compatible API translates texts and documents, and keeps glossaries."""
