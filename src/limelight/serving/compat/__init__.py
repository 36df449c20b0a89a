"""Dialects that ready-made clients speak."""
