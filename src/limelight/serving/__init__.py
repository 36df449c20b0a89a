"""The server offers translators over HTTP: two public dialects, an API of our own, the lighting desk, and a page."""
