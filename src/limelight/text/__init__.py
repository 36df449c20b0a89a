"""Text is normalized, identified by language, split into sentences, cut into pieces and protected.

`pieces` turns words into ids and back, in the best way or by chance. `careful` finds what must survive a translation, terms of a
glossary and numbers among it. The files beside them know languages, normalization and where sentences end.
"""
