"""Stand-ins for a translator: what it gives is known beforehand, with every tag kept, or with some of them harmed on purpose."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from limelight.decoding.guards import Notice

Translate = Callable[[list[str]], list["Answer"]]
TAGS = re.compile(r'(<g id="\d+">|</g>|<x id="\d+"/>)')  # as the documents show theirs


class Answer(NamedTuple):
    text: str
    warnings: Sequence[Notice] = ()
    confidence: float = 1.0
    protected: bool = True


def each(change: Callable[[str], str]) -> Translate:
    """A translator that changes every text in the same way."""
    return lambda texts: [Answer(change(text)) for text in texts]


def unchanged(text: str) -> str:
    return text


def upper(text: str) -> str:
    """Capital letters, except in tags."""
    return "".join(piece if TAGS.fullmatch(piece) else piece.upper() for piece in TAGS.split(text))


def reversed_words(text: str) -> str:
    """Words and tags from back to front at every depth, as in a language with another order: every tag stays inside its parent."""
    stack: list[list[str]] = [[]]
    for piece in TAGS.split(text):
        if piece == "</g>":
            inner, opening = stack.pop(), stack[-1].pop()
            stack[-1].append(opening + " ".join(reversed(inner)) + piece)
        elif piece.startswith("<g id="):
            stack[-1].append(piece)
            stack.append([])
        elif TAGS.fullmatch(piece):
            stack[-1].append(piece)
        else:
            stack[-1] += piece.split()
    return " ".join(reversed(stack[0]))


def without_tags(text: str) -> str:
    return TAGS.sub("", text).upper()


def doubled_tags(text: str) -> str:
    return TAGS.sub(r"\1\1", upper(text))


def tags_first(text: str) -> str:
    """All tags at the beginning: complete, well nested, and every pair empty."""
    return "".join(TAGS.findall(text)) + " " + TAGS.sub("", text).upper()


HARMS = (without_tags, tags_first)
