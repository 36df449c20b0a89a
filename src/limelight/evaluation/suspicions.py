"""`suspicions` says in words what is visibly wrong with each translation, whatever its score.

A suspicion needs two witnesses: a number that the source has and the translation has not is none if a reference lost it too.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import pairwise

from limelight.corpus.config import FilterSettings
from limelight.text.pair_checks import (
    find_numbers,
    find_placeholders,
    is_copied,
    is_repetitive,
    numbers_differ,
    placeholders_differ,
)

SHORT, LONG = 0.4, 2.5  # of the length of the shortest and the longest reference
LEEWAY = 20  # characters that a length must be off by besides: "OK" may well be "In Ordnung"
SAME = 3  # sentences that mean different things and are translated alike: two may be chance
SHOWN = 3  # numbers or placeholders named in a reason
LOOKED_AT = 5_000  # characters in which a loop is looked for: the search takes sixty times as many steps

# BLEU's tokenizer undoes them, readers see them.
_ESCAPE = re.compile(r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});")
# Four times the same in a row: "na na na na", and "很很很很" where there are no spaces.
_LOOP = re.compile(r"(?s)(\S.{0,60}?)\1{3,}")
_LOOP_SHARE = 0.25  # of the text; less may be style
_TWICE, _TWICE_SHARE = 3, 0.25  # words that are the one before again, "der der in in", and their share of all
_DISTINCT = 0.85  # of three letters in a row: a text with such a loop has fewer different ones, most others have more


class SuspicionKind(StrEnum):
    """The kinds stand in the order in which they are said: the first explains most."""

    EMPTY = "empty"
    COPIED = "source copied"
    LOOP = "repeats itself"
    SAME = "same for several"
    SHORT = "too short"
    LONG = "too long"
    PLACEHOLDERS = "placeholders differ"
    NUMBERS = "numbers differ"
    ESCAPED = "HTML escapes"


# No translation at all, whatever the source says.
DEGENERATE = frozenset({SuspicionKind.EMPTY, SuspicionKind.COPIED, SuspicionKind.LOOP, SuspicionKind.SAME})


@dataclass(frozen=True)
class Suspicion:
    kind: SuspicionKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)


def suspicions(system: Sequence[str], references: Sequence[Sequence[str]], source: Sequence[str] | None) -> list[list[Suspicion]]:
    """For each sentence what is suspected, most telling first; nothing for most."""
    same = _find_same(system, references)
    return [
        _suspect(text, None if source is None else source[i], [each[i] for each in references], same[i]) for i, text in enumerate(system)
    ]


def _suspect(given: str, source: str | None, references: Sequence[str], same: bool) -> list[Suspicion]:
    ours = _ESCAPE.sub(" ", given)  # the 39 of &#39; is no number
    if not ours.strip():  # of an empty translation all is said
        return _judge_length(given, references)
    witnesses = [*([] if source is None else [source]), *references]
    copies = partial(is_copied, source or "", words=FilterSettings().copied_words)
    flags = {
        SuspicionKind.COPIED: source is not None and copies(ours) and not any(map(copies, references)),
        SuspicionKind.LOOP: _repeats(ours) and not any(map(_repeats, references)),
        SuspicionKind.SAME: same,
        SuspicionKind.PLACEHOLDERS: all(placeholders_differ(other, ours) for other in witnesses),
        SuspicionKind.NUMBERS: all(numbers_differ(other, ours) for other in witnesses),
        SuspicionKind.ESCAPED: bool(_ESCAPE.search(given)) and not any(map(_ESCAPE.search, witnesses)),
    }
    found = [Suspicion(kind, _detail(kind, witnesses[0], ours)) for kind, flag in flags.items() if flag]
    order = {kind: place for place, kind in enumerate(SuspicionKind)}
    return sorted([*_judge_length(given, references), *found], key=lambda suspicion: order[suspicion.kind])


def tally(found: Sequence[Sequence[Suspicion]]) -> dict[str, int]:
    return dict(Counter(str(suspicion.kind) for each in found for suspicion in each).most_common())


def is_degenerate(found: Sequence[Suspicion]) -> bool:
    return any(suspicion.kind in DEGENERATE for suspicion in found)


def _find_same(system: Sequence[str], references: Sequence[Sequence[str]]) -> list[bool]:
    """Translations that SAME or more sentences share although their references all differ; but not where it is what the reference says."""
    meant: dict[str, set[str]] = {}
    for text, reference in zip(system, references[0], strict=True):
        meant.setdefault(text.strip(), set()).add(reference.strip())
    told = zip(system, zip(*references, strict=True), strict=True)
    return [len(meant[text.strip()]) >= SAME and text.strip() not in map(str.strip, right) for text, right in told]


def _judge_length(text: str, references: Sequence[str]) -> list[Suspicion]:
    mine, lengths = len(text.strip()), [len(reference.strip()) for reference in references]
    shortest, longest = min(lengths), max(lengths)
    if not mine:
        return [Suspicion(SuspicionKind.EMPTY)] if shortest else []
    if mine < SHORT * shortest and mine + LEEWAY <= shortest:
        return [Suspicion(SuspicionKind.SHORT, f"{mine} characters where the reference has {shortest}")]
    if mine > LONG * longest and mine >= longest + LEEWAY:
        return [Suspicion(SuspicionKind.LONG, f"{mine} characters where the reference has {longest}")]
    return []


def _repeats(text: str) -> bool:
    """ "He laughed: ha ha ha ha!" is right if a reference says so too."""
    return _repeats_in_a_row(text[:LOOKED_AT]) or is_repetitive(text, FilterSettings().repetition_share)


def _repeats_in_a_row(text: str) -> bool:
    words = text.split()
    twice = sum(a == b and a.isalpha() for a, b in pairwise(words))
    if twice >= _TWICE and twice >= _TWICE_SHARE * len(words):
        return True
    if len({text[i : i + 3] for i in range(len(text) - 2)}) > _DISTINCT * len(text):
        return False
    long_enough = (match[0] for match in _LOOP.finditer(text) if len(match[0]) >= _LOOP_SHARE * len(text))
    return any(any(letter.isalpha() for letter in each) for each in long_enough)  # "........" is a table of contents


def _detail(kind: SuspicionKind, before: str, after: str) -> str:
    """What went and what came: "1984 lost, 1948 new"."""
    if kind not in (SuspicionKind.NUMBERS, SuspicionKind.PLACEHOLDERS):
        return ""
    there, here = _marks(kind, before), _marks(kind, after)
    lost = _list_marks([mark for key, mark in there.items() if key not in here], "lost")
    new = _list_marks([mark for key, mark in here.items() if key not in there], "new")
    return ", ".join(filter(None, (lost, new))) or "not as often as before"


def _marks(kind: SuspicionKind, text: str) -> dict[str, str]:
    """The numbers or placeholders of a text, by what makes them equal: 1,000 and 1.000 are, and %1$s and %s."""
    if kind == SuspicionKind.PLACEHOLDERS:
        return dict(find_placeholders(text))
    return {key: each.rstrip(".,'\u2019") for key, each in find_numbers(text)}


def _list_marks(marks: Sequence[str], word: str) -> str:
    more = f" and {len(marks) - SHOWN} more" if len(marks) > SHOWN else ""
    return f"{', '.join(marks[:SHOWN])}{more} {word}" if marks else ""
