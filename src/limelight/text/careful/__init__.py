"""Placeholders, tags, numbers, terms and capitals of a text are found here, so that they survive a translation."""
