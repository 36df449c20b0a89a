"""The small translator that traces are made of: it reads digits as English words and writes them as German ones."""

from pathlib import Path

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXT = "two seven nine four"
