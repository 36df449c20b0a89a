"""Corrections of people become a better translator: what is taken, whether it helps, and which version is in use."""
