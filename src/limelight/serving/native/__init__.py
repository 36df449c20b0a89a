"""The native API under /api/v1 translates, tokenizes and scores; the desk has a package of its own."""
