"""Limelight: train, look inside and serve your own Transformer translator."""

__version__ = "0.1.0.dev0"
