"""`suspicions` says in words what is visibly wrong with each translation, whatever its score.

A suspicion needs two witnesses: a number that the source has and the translation has not is none if a reference lost it too.
"""

import operator
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from itertools import pairwise

import polars as pl

from limelight.corpus.cleaning.filters import is_copied, is_repetitive, numbers_differ, on_rows, placeholders_differ
from limelight.corpus.config import FilterSettings
from limelight.text import patterns

SHORT, LONG = 0.4, 2.5  # of the length of the shortest and the longest reference
LEEWAY = 20  # characters that a length must be off by besides: "OK" may well be "In Ordnung"
SAME = 3  # sentences that mean different things and are translated alike: two may be chance
SHOWN = 3  # numbers or placeholders named in a reason
LOOKED_AT = 5_000  # characters in which a loop is looked for: the search takes sixty times as many steps

_ESCAPE = (
    r"&(?:quot|apos|amp|lt|gt|nbsp|#\d{1,6}|#x[0-9a-fA-F]{1,6});"  # BLEU's tokenizer undoes them, readers see them
)
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


DEGENERATE = frozenset(
    {SuspicionKind.EMPTY, SuspicionKind.COPIED, SuspicionKind.LOOP, SuspicionKind.SAME}
)  # no translation at all, whatever the source says


@dataclass(frozen=True)
class Suspicion:
    kind: SuspicionKind
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}" if self.detail else str(self.kind)


def suspicions(
    system: Sequence[str], references: Sequence[Sequence[str]], source: Sequence[str] | None
) -> list[list[Suspicion]]:
    """For each sentence what is suspected, most telling first; nothing for most."""
    given = pl.Series(system, dtype=pl.String)
    ours = given.str.replace_all(_ESCAPE, " ")  # the 39 of &#39; is no number
    right = [pl.Series(each, dtype=pl.String) for each in references]
    before = None if source is None else pl.Series(source, dtype=pl.String)
    witnesses = right if before is None else [before, *right]
    flags = {
        SuspicionKind.PLACEHOLDERS: _all(placeholders_differ(other, ours) for other in witnesses),
        SuspicionKind.NUMBERS: _all(numbers_differ(other, ours) for other in witnesses),
        SuspicionKind.COPIED: _copies(ours, before, right),
        SuspicionKind.LOOP: _loops(ours, right),
        SuspicionKind.SAME: _same(system, references),
        SuspicionKind.ESCAPED: _all(
            [given.str.contains(_ESCAPE), *(~other.str.contains(_ESCAPE) for other in witnesses)]
        ),
    }
    found: list[list[Suspicion]] = [_of_length(system[i], [each[i] for each in references]) for i in range(len(ours))]
    for kind, column in flags.items():
        for i in column.arg_true().to_list():
            if ours[i].strip():  # of an empty translation all has been said
                found[i].append(Suspicion(kind, _detail(kind, witnesses[0][i], ours[i])))
    order = {kind: place for place, kind in enumerate(SuspicionKind)}
    return [sorted(each, key=lambda suspicion: order[suspicion.kind]) for each in found]


def tally(found: Sequence[Sequence[Suspicion]]) -> dict[str, int]:
    """Sentences of each kind, most frequent first."""
    return dict(Counter(str(suspicion.kind) for each in found for suspicion in each).most_common())


def is_degenerate(found: Sequence[Suspicion]) -> bool:
    return any(suspicion.kind in DEGENERATE for suspicion in found)


def _same(system: Sequence[str], references: Sequence[Sequence[str]]) -> pl.Series:
    """Translations that SAME or more sentences share although their references all differ; but not where it is what the reference says."""
    meant: dict[str, set[str]] = {}
    for text, reference in zip(system, references[0], strict=True):
        meant.setdefault(text.strip(), set()).add(reference.strip())
    told = zip(system, zip(*references, strict=True), strict=True)
    same = [len(meant[text.strip()]) >= SAME and text.strip() not in map(str.strip, right) for text, right in told]
    return pl.Series(same, dtype=pl.Boolean)


def _of_length(text: str, references: Sequence[str]) -> list[Suspicion]:
    mine, lengths = len(text.strip()), [len(reference.strip()) for reference in references]
    shortest, longest = min(lengths), max(lengths)
    if not mine:
        return [Suspicion(SuspicionKind.EMPTY)] if shortest else []
    if mine < SHORT * shortest and mine + LEEWAY <= shortest:
        return [Suspicion(SuspicionKind.SHORT, f"{mine} characters where the reference has {shortest}")]
    if mine > LONG * longest and mine >= longest + LEEWAY:
        return [Suspicion(SuspicionKind.LONG, f"{mine} characters where the reference has {longest}")]
    return []


def _copies(ours: pl.Series, source: pl.Series | None, references: Sequence[pl.Series]) -> pl.Series:
    if source is None:
        return pl.repeat(False, len(ours), dtype=pl.Boolean, eager=True)
    words = FilterSettings().copied_words
    return _all([is_copied(source, ours, words), *(~is_copied(source, each, words) for each in references)])


def _loops(ours: pl.Series, references: Sequence[pl.Series]) -> pl.Series:
    """Only what looks like one is compared with the references: "He laughed: ha ha ha ha!" is right if they say so too."""
    found = _in_a_row(ours) | is_repetitive(ours, FilterSettings().repetition_share)
    for each in references:
        found = on_rows(found, ours, each, lambda _, right: ~_in_a_row(right))
        found = on_rows(found, ours, each, lambda _, right: ~is_repetitive(right, FilterSettings().repetition_share))
    return found


def _in_a_row(texts: pl.Series) -> pl.Series:
    return pl.Series([_repeats_in_a_row(text[:LOOKED_AT]) for text in texts.to_list()], dtype=pl.Boolean)


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
    lost, new = (
        [mark for key, mark in some.items() if key not in others] for some, others in ((there, here), (here, there))
    )
    parts = [_list_marks(lost, "lost"), _list_marks(new, "new")]
    return ", ".join(part for part in parts if part) or "not as often as before"


def _marks(kind: SuspicionKind, text: str) -> dict[str, str]:
    """The numbers or placeholders of a text, by what makes them equal: 1,000 and 1.000 are, and %1$s and %s."""
    if kind == SuspicionKind.NUMBERS:
        found = pl.Series([text]).str.extract_all(patterns.NUMBER).to_list()[0]
        keyed = [(re.sub(r"\D", "", each), each.rstrip(".,'\u2019")) for each in found]
        return {key: each for key, each in keyed if len(key) >= 2}
    found = pl.Series([text]).str.extract_all(patterns.PLACEHOLDER).to_list()[0]
    return {re.sub(r"^%\d+\$", "%", each): each for each in found}


def _list_marks(marks: Sequence[str], word: str) -> str:
    more = f" and {len(marks) - SHOWN} more" if len(marks) > SHOWN else ""
    return f"{', '.join(marks[:SHOWN])}{more} {word}" if marks else ""


def _all(columns: Iterable[pl.Series]) -> pl.Series:
    return reduce(operator.and_, columns)
