"""`learn_names` finds the names of a text with their translations, and `swap_name` puts a rare one in the place of another.

    ("Der Zug nach Boston ist voll.", "The train to Boston is full.")   ->   ("Der Zug nach Wien ...", "The train to Vienna ...")

A model learns a word from some hundred sentences, and a place that a text names four times is lost. A name is a word with a capital inside
sentences of both sides that hardly occurs without it; its translation is the name with which it occurs, and hardly without (Dice). A name
takes the place of another only after words after which both sides have it, so that the sentence stays one (Fadaee et al. 2017 ask a
language model).
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import polars as pl

from limelight.chance import draws, key_of
from limelight.corpus.feeding.order import Purpose
from limelight.corpus.feeding.pieces import Integers
from limelight.corpus.feeding.shards import Pairs

MOST_PIECES: Final = 4_000_000  # of a side, learnt from: 2 to 5 s
MOST_PAIRS: Final = 400_000
LEAST_TOGETHER: Final = 2  # pairs
LEAST_DICE: Final = 0.6
RIVAL_DICE: Final = 0.5  # another translation as likely as that: parts of a longer name, "New" of "York"
MOST_SMALL: Final = 0.1  # of a word's occurrences, without its capital
MOST_BESIDE: Final = 0.5  # of a name's occurrences, beside another word with a capital: parts of a longer name, "San" of "Francisco"
MOST_IN_A_TEXT: Final = 30  # each is held against each of the other side
MOST_COMBINATIONS: Final = 4_000_000  # of a name with one of the other side: a third of a gigabyte
DRAW: Final = key_of(1, Purpose.CHANGE)
NAME: Final = r"^\p{Lu}[\p{L}\p{M}'\u2019-]{2,}$"
_LETTER: Final = r"[\w\u0300-\u036f]"  # with accents of its own
TOKEN: Final = rf"{_LETTER}+(?:[-'\u2019.@:/]{_LETTER}+)*|[^\w\s]"  # an address is one word, and no name
TOKENS: Final = re.compile(TOKEN)
Name = tuple[str, str]  # in the source, and in the target
Before = tuple[str, str]  # the words before it; nothing at the beginning


@dataclass(frozen=True)
class NameLexicon:
    """A lexicon knows the names of one direction, and which may stand after two words."""

    translations: Mapping[str, str] = field(default_factory=dict)
    after: Mapping[Before, Sequence[Name]] = field(default_factory=dict)


_LEARNT: Final[dict[tuple[str, bool], list[NameLexicon]]] = {}  # of the last text: a run measures, trains and goes on with the same


def learn_names(pairs: Pairs, find_ways: Callable[[Integers], Integers], directions: int) -> list[NameLexicon]:
    """The names of each direction; `find_ways` gives that of samples. Text at an address is not fetched for it."""
    if pairs.cache is not None:
        return [NameLexicon()] * directions
    text = pairs.prepared.manifest.address, pairs.turns
    if text not in _LEARNT:
        _LEARNT.clear()
        _LEARNT[text] = _learn(pairs, find_ways, directions)
    return _LEARNT[text]


def _learn(pairs: Pairs, find_ways: Callable[[Integers], Integers], directions: int) -> list[NameLexicon]:
    drawn = draws(DRAW, np.arange(min(pairs.fed, MOST_PAIRS), dtype=np.int64))
    order = np.argsort(drawn, kind="stable") if pairs.fed <= MOST_PAIRS else (drawn % np.uint64(pairs.fed)).astype(np.int64)
    source, target = pairs.lengths(order)  # of pairs all over the text, whatever its size
    samples = np.unique(order[np.cumsum(np.maximum(source, target)) <= MOST_PIECES])
    texts = [pl.Series(pl.from_arrow(side)) for side in pairs.texts(samples)]
    ways = find_ways(samples)
    return [find_names(*(side.filter(pl.Series(ways == way)) for side in texts)) for way in range(directions)]


def find_names(sources: pl.Series, targets: pl.Series) -> NameLexicon:
    """Of texts side by side."""
    words = [_list_words(texts) for texts in (sources, targets)]
    source, target = (_keep_names(side).select("row", pl.col("word").cast(pl.Categorical)).unique() for side in words)
    combinations = source.group_by("row").len().join(target.group_by("row").len(), on="row")
    # From everywhere, as many as are held against each other.
    drawn = combinations.sort(pl.Series(draws(DRAW, combinations["row"].to_numpy())))
    drawn = drawn.filter((pl.col("len") * pl.col("len_right")).cum_sum() <= MOST_COMBINATIONS)
    source, target = (side.join(drawn, on="row", how="semi") for side in (source, target))
    found = source.join(target, on="row", suffix="_target").group_by("word", "word_target").len("together")
    for side, column in ((source, "word"), (target, "word_target")):
        counts = side.group_by("word").len(f"{column}_rows")
        found = found.join(counts, left_on=column, right_on="word")
    found = found.with_columns(dice=2 * pl.col("together") / (pl.col("word_rows") + pl.col("word_target_rows")))
    found = found.filter((pl.col("together") >= LEAST_TOGETHER) & (pl.col("dice") >= RIVAL_DICE))
    found = found.filter(pl.len().over("word") == 1, pl.len().over("word_target") == 1, pl.col("dice") >= LEAST_DICE)
    names = found.select(pl.col("word", "word_target").cast(pl.String)).sort("word")
    # At the beginning of a sentence, too, now that they are known.
    first, second = (side.filter(pl.len().over("row", "word") == 1) for side in words)
    places = first.join(names, on="word").join(second, left_on=["row", "word_target"], right_on=["row", "word"], suffix="_target")
    after: dict[Before, list[Name]] = {}
    for row in places.select("before", "before_target", "word", "word_target").unique().sort(pl.all()).rows():
        after.setdefault(row[:2], []).append(row[2:])
    return NameLexicon(dict(names.rows()), {before: some for before, some in after.items() if len(some) > 1})


def _list_words(texts: pl.Series) -> pl.DataFrame:
    """Every word and sign with the one before it."""
    table = pl.DataFrame({"row": np.arange(len(texts)), "word": texts.str.extract_all(TOKEN)}).explode("word").drop_nulls("word")
    same = pl.col("row").shift(1) == pl.col("row")
    return table.with_columns(before=pl.when(same).then(pl.col("word").shift(1)).otherwise(pl.lit("")))


def _keep_names(words: pl.DataFrame) -> pl.DataFrame:
    """Words with a capital that they do not have from the beginning of a sentence, a quotation or a title, and that stand alone."""
    capital = pl.col("word").str.contains(r"^\p{Lu}") & pl.col("before").str.contains(r"^[\w,]")
    sides = [capital.shift(step) & (pl.col("row").shift(step) == pl.col("row")) for step in (1, -1)]
    words = words.with_columns(beside=pl.any_horizontal(sides).fill_null(value=False))
    small = words["word"].filter(words["word"].str.contains(r"^\p{Ll}")).value_counts(name="small").rename({"word": "key"})
    inside = words.filter(pl.col("word").str.contains(NAME) & pl.col("before").str.contains(r"^[\w,]"))
    inside = inside.filter(pl.len().over("row") <= MOST_IN_A_TEXT)
    inside = inside.with_columns(key=pl.col("word").str.to_lowercase()).join(small, on="key", how="left")
    inside = inside.filter(pl.col("beside").mean().over("word") <= MOST_BESIDE)
    return inside.filter(pl.col("small").fill_null(0) <= MOST_SMALL * pl.len().over("word"))


def swap_name(texts: tuple[str, str], draw: int, names: NameLexicon) -> tuple[str, str]:
    """The pair with another name in the place of one; as it was where it has none, or none that may be exchanged."""
    found = [[(each.group(), each.span()) for each in TOKENS.finditer(text)] for text in texts]
    counts = [Counter(word for word, _ in side) for side in found]
    places_of = {word: at for at, (word, _) in enumerate(found[1])}
    places: list[tuple[int, int, Sequence[Name]]] = []
    for at, (word, _) in enumerate(found[0]):
        translation = names.translations.get(word)
        if translation is None or (counts[0][word], counts[1][translation]) != (1, 1):
            continue
        there = places_of[translation]
        before = (found[0][at - 1][0] if at else "", found[1][there - 1][0] if there else "")
        some = names.after.get(before, ())
        if any(each[0] != word for each in some[:2]):
            places.append((at, there, some))
    if not places:
        return texts
    draw, which = divmod(draw, len(places))
    at, there, some = places[which]
    others = [each for each in some if each[0] != found[0][at][0]]
    name = others[draw % len(others)]
    spans = found[0][at][1], found[1][there][1]
    source, target = (text[:begin] + new + text[end:] for text, (begin, end), new in zip(texts, spans, name, strict=True))
    return source, target
