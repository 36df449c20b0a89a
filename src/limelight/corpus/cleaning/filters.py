"""Each filter looks at a column of sources and one of targets, and marks the pairs that it objects to.

A filter is a pure function of the normalized source and target columns; it returns a boolean column, True where it objects.
They are written for columns because that is twenty times faster than for strings; expensive looks are kept for the few rows that need them.
"""

from collections.abc import Callable

import polars as pl

from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import FilterSettings
from limelight.text import patterns
from limelight.text.languages import UNSPACED_LETTER, density, scripts_of
from limelight.text.normalize import where
from limelight.text.pair_checks import LETTERS_FOR_A_WORD, REPEATED_WORDS, has_repeats

Languages = tuple[str, str]
Filter = Callable[[pl.Series, pl.Series], pl.Series]

RATIO_FLOOR = 15  # characters added to both lengths: "OK" may well be "In Ordnung"
PERCENTAGE = r"(?:^|[^%\d.,\p{L}])\d[\d.,]*(?:%| % )"  # "20 % der", "20%ige": no placeholder begins here
NO_LETTERS = r"[^\p{L}\p{M}]+|[\x{300}-\x{36F}]+"
LETTERS = r"\p{L}"


def filters(settings: FilterSettings, languages: Languages) -> dict[Reason, Filter]:
    """All that look at text alone, in the order of their reasons. Language identification, which is slow, stands apart."""
    from_scripts, to_scripts = (scripts_of(code) for code in languages)
    expected = density(languages[1]) / density(languages[0])
    return {
        Reason.EMPTY: lambda source, target: (source == "") | (target == ""),
        Reason.TOO_LONG: either(lambda text: text.str.len_chars() > settings.longest),
        Reason.BROKEN_TEXT: either(lambda t: t.str.contains(patterns.CONTROL) | t.str.contains(patterns.MOJIBAKE)),
        Reason.LENGTH_RATIO: lambda source, target: is_lopsided(source, target, expected, settings.largest_ratio),
        Reason.COPIED: lambda source, target: is_copied(source, target, settings.copied_words),
        Reason.WRONG_SCRIPT: lambda source, target: (
            is_foreign(source, target, from_scripts, settings.foreign_letters)
            | is_foreign(target, source, to_scripts, settings.foreign_letters)
            | (source.str.contains(LETTERS) != target.str.contains(LETTERS))
        ),
        Reason.PLACEHOLDERS: placeholders_differ,
        Reason.MARKUP: tags_differ,
        Reason.NUMBERS: numbers_differ,
        Reason.REPETITION: either(lambda text: is_repetitive(text, settings.repetition_share)),
    }


def either(look: Callable[[pl.Series], pl.Series]) -> Filter:
    return lambda source, target: look(source) | look(target)


def is_lopsided(source: pl.Series, target: pl.Series, expected: float, largest: float) -> pl.Series:
    """(|target| + 15) / (expected |source| + 15) outside [1 / largest, largest]."""
    ratio = (target.str.len_chars() + RATIO_FLOOR) / (source.str.len_chars() * expected + RATIO_FLOOR)
    return (ratio > largest) | (ratio < 1 / largest)


def loose(text: pl.Series) -> pl.Series:
    """Letters alone, without case and accents: the same for "Öffnen ..." and "offnen". Empty when there is no letter.

    Only the accents of European scripts go. The vowel signs of Hindi or Thai and the marks of Japanese kana make other words.
    """
    apart = where(text, text.str.len_bytes() != text.str.len_chars(), lambda some: some.str.normalize("NFD"))
    return apart.str.to_lowercase().str.replace_all(NO_LETTERS, "")


def loose_key(text: pl.Series) -> pl.Series:
    """What makes texts the same when they are compared loosely. Text without letters is its own key."""
    letters = loose(text)
    return letters.zip_with(letters != "", text)


def is_copied(source: pl.Series, target: pl.Series, words: int) -> pl.Series:
    """As `text.pair_checks.is_copied` says of one pair."""

    def same_ends(s: pl.Series, t: pl.Series) -> pl.Series:  # a cheap look that most pairs do not pass
        heads = s.str.head(2).str.to_lowercase() == t.str.head(2).str.to_lowercase()
        return heads | (s.str.tail(2).str.to_lowercase() == t.str.tail(2).str.to_lowercase())

    def same(s: pl.Series, t: pl.Series) -> pl.Series:
        spoken = (s.str.count_matches(" ", literal=True) >= words - 1) & (s.str.count_matches(r"\p{L}+") >= words)
        spoken |= s.str.count_matches(UNSPACED_LETTER) >= LETTERS_FOR_A_WORD * words
        return spoken & (loose(s) == loose(t))

    a, b = source.str.len_chars().cast(pl.Int64), target.str.len_chars().cast(pl.Int64)
    suspects = on_rows((a - b).abs() <= 4 + a // 8, source, target, same_ends)
    return on_rows(suspects, source, target, same)


def is_foreign(text: pl.Series, other: pl.Series, scripts: tuple[str, ...], share: float) -> pl.Series:
    """More than `share` of the letters belong to none of the scripts. Common letters (ª, modifier letters) belong to all.

    Words that stand on the other side too are names, not foreign text: "Открыть Firefox".
    """
    if not scripts:
        return none_of(text)
    others = r"[\p{L}--[\p{Common}\p{Inherited}" + "".join(rf"\p{{{script}}}" for script in scripts) + "]]"

    def too_many(some: pl.Series) -> pl.Series:
        return some.str.count_matches(others) > share * some.str.count_matches(LETTERS)

    def without_names(some: pl.Series, beside: pl.Series) -> pl.Series:
        pairs = zip(some.to_list(), beside.to_list(), strict=True)
        return too_many(pl.Series([_without_words_of(*pair) for pair in pairs], dtype=pl.String))

    suspects = on_rows(text.str.contains(others), text, other, lambda some, _: too_many(some))
    return on_rows(suspects, text, other, without_names)


def _without_words_of(text: str, other: str) -> str:
    """_without_words_of("Открыть Firefox", "Open Firefox") -> "Открыть"; a text that is the other again stays whole."""
    there, words = set(other.split(" ")), text.split(" ")
    return " ".join([word for word in words if word not in there] or words)


def placeholders_differ(source: pl.Series, target: pl.Series) -> pl.Series:
    """%s %1$s %(name)s {0} ${x} and the like, as multisets; numbering (%1$s) may come with a new order."""

    def differ(s: pl.Series, t: pl.Series) -> pl.Series:
        return (_placeholders(s) != _placeholders(t)) & ~_either_has(patterns.MESSAGE_FORMAT, s, t)

    return on_rows(_either_has(patterns.ANY_PLACEHOLDER_SIGN, source, target), source, target, differ)


def _placeholders(text: pl.Series) -> pl.Series:
    bare = text.str.replace_all(PERCENTAGE, "")
    return _join_sorted(bare.str.extract_all(patterns.PLACEHOLDER), pl.element().str.replace(r"^%\d+\$", "%"))


def tags_differ(source: pl.Series, target: pl.Series) -> pl.Series:
    """Names of opening and closing tags, as multisets; attributes may be translated."""
    return on_rows(_either_has("<", source, target), source, target, lambda s, t: _tags(s) != _tags(t))


def _tags(text: pl.Series) -> pl.Series:
    name = pl.element().str.extract(f"({patterns.TAG_NAME})").str.to_lowercase()
    return _join_sorted(text.str.extract_all(patterns.TAG), name)


def numbers_differ(source: pl.Series, target: pl.Series) -> pl.Series:
    """Numbers of two or more digits, without their separators, as multisets. One digit may be a word on the other side."""
    return on_rows(_either_has(r"\d\d", source, target), source, target, lambda s, t: _numbers(s) != _numbers(t))


def _numbers(text: pl.Series) -> pl.Series:
    digits = patterns.digits()
    bare = pl.element().str.replace_all(r"\D", "").str.replace_many(list(digits), list(digits.values()))
    return _join_sorted(text.str.extract_all(patterns.NUMBER), bare.filter(bare.str.len_bytes() >= 2))


def _either_has(pattern: str, source: pl.Series, target: pl.Series) -> pl.Series:
    return source.str.contains(pattern) | target.str.contains(pattern)


def _join_sorted(found: pl.Series, shape: pl.Expr) -> pl.Series:
    """Lists as one string each, in sorted order, so that multisets can be compared as columns."""
    return found.list.eval(shape).list.sort().list.join("\x00")


def is_repetitive(text: pl.Series, share: float) -> pl.Series:
    """Repeats of one three-word phrase cover more than `share` of the words: what broken decoders and spam leave behind."""
    long = text.str.count_matches(" ", literal=True) >= REPEATED_WORDS - 1

    def look(some: pl.Series, _: pl.Series) -> pl.Series:
        words = some.str.to_lowercase().str.split(" ")
        distinct, length = words.list.n_unique(), words.list.len()
        # The three words stay when their repeats go, and four times "na na na" is at least "na na na na na na".
        suspects = (distinct <= (1 - share) * length + 3) & (distinct + 5 <= length)
        found = words.gather(suspects.arg_true()).to_list()
        repeats = pl.Series([has_repeats(one, share) for one in found], dtype=pl.Boolean)
        return none_of(some).scatter(suspects.arg_true(), repeats)

    return on_rows(long, text, text, look)


def on_rows(wanted: pl.Series, a: pl.Series, b: pl.Series, look: Filter) -> pl.Series:
    """`look` at the wanted rows only; the others are fine."""
    rows, result = wanted.arg_true(), none_of(wanted)
    return result if rows.is_empty() else result.scatter(rows, look(a.gather(rows), b.gather(rows)).fill_null(False))


def none_of(rows: pl.Series) -> pl.Series:
    return pl.repeat(False, len(rows), dtype=pl.Boolean, eager=True)
