"""`differ` compares the numbers of a translation with those of its source, and `localize` rewrites a number.

Both texts are read as figures: runs of digits, those of one number joined where separators part thousands. Equal figures cancel. What is
left is explained, if it can be, by the ways in which people write the same number differently; what then remains is a fault.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Final

from limelight.text.careful.number_words import MAGNITUDE, count_numbers, knows, magnitude, months
from limelight.text.careful.spans import find
from limelight.text.languages import base, lower_code

_NUMBER: Final = re.compile(r"\d+(?:[.,'\u2019\u066b\u066c]\d+)*")
_SEPARATOR: Final = re.compile(r"[.,'\u2019\u066b\u066c]")
_NARROW_GROUPS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)")
_SPACED_GROUPS: Final = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)")
_HALF_DAY: Final = re.compile(r"(\d{1,2})(?:[:.]\d\d)?\s?(?:[ap]\.?\s?m\b|uhr)", re.IGNORECASE)
_CLOCK: Final = re.compile(r"\d:\d\d|\d\s?(?:[ap]\.?\s?m\b|uhr|h\b)", re.IGNORECASE)
_ENTITY: Final = re.compile(r"&#x?[0-9A-Fa-f]{1,7};")  # those of letters and quotes are text to `find`
_LONGEST_VALUE = 18  # digits; what is longer is an identifier

# Units that are written alike in every language. Metres and grams are left out: "m" is a million too.
_UNIT: Final = re.compile(r"\s?(?:(°\s?[CF]|km|cm|mm|kg|mg|kB|KB|MB|GB|TB|kHz|MHz|GHz|kW|MW|GW|kWh|MWh)\b|(%))")

# CLDR: what parts thousands and what comes before the decimals.
_STYLES: Final = {
    ",.": "en zh ja ko th he hi bn ta te ur fil ms mt ga cy sw zu",
    ".,": "de nl da es it pt id is tr el ro hr sl sr bs mk ca gl eu vi fo lb az fy",
    "\u202f,": "fr",
    "\u00a0,": "sv nb nn no fi pl cs sk hu ru uk be bg et lv lt kk ka hy sq af eo",
    "\u2019.": "de-ch",
}  # fmt: skip
_STYLE_OF: Final = {code: (style[0], style[1]) for style, codes in _STYLES.items() for code in codes.split()}
_FOUR_TOGETHER: Final = ("es", "pl", "bg", "et", "lv")  # 1234, but 12 345
_ROUND: Final = ("10", "11", "12", "20", "100", "1000")  # may be words in a language whose words are not known


@dataclass(frozen=True)
class _Figures:
    """The numbers of a text: digits of each figure, and of each number its value with the figures it is made of."""

    text: str
    language: str
    counts: Counter[str] = field(default_factory=Counter)
    values: dict[Fraction, list[tuple[str, ...]]] = field(default_factory=dict)
    alone: Counter[str] = field(default_factory=Counter)  # figures that are a number by themselves


def differ(source: str, translation: str, languages: tuple[str, str] = ("", "")) -> str | None:
    """What is wrong with the numbers of a translation, or None. The sentence counts; it does not quote.

    Equal are: 1,234.5 and 1.234,5 and 1 234,5; 3 pm and 15 Uhr; May 3 and 3. Mai and 3.5.; 1.5 billion and 1,5 Mrd.; XVI and 16; a number
    in figures and in words. Where the words of a language are not known, a number of one digit may be missing on one side.
    """
    if not any(map(str.isdigit, source + translation)):
        return None
    # "3 100" is one number in French and may be two in a list: the reading in which the sides agree best.
    readings = product(_readings(source, languages[0]), _readings(translation, languages[1]))
    a, b = min(readings, key=lambda ab: (ab[0].counts - ab[1].counts).total() + (ab[1].counts - ab[0].counts).total())
    missing, added = a.counts - b.counts, b.counts - a.counts
    _explain(a, b, missing, added)
    if not missing and not added:
        # The same figures with other units: 5 km is not 5 kg. Only where a figure has one unit on each side.
        units, others = _units(a.text), _units(b.text)
        wrong = [figure for figure, unit in units.items() if unit and others.get(figure) and others[figure] != unit]
        return f"{len(wrong)} of the units differ" if wrong else None
    faults = [f"{_count(missing)} of the source missing"] if missing else []
    faults += [f"{_count(added)} not from the source"] if added else []
    return " and ".join(faults)


def localize(number: str, source: str, target: str) -> str:
    """A number in the style of the target language: localize("1,234.5", "en", "de") -> "1.234,5".

    What the style of the source language does not explain whole (a version 2.13.0, a date, an address) stays as it is, and so does every
    number between languages whose style is not known.
    """
    here, there = _style(source), _style(target)
    if here is None or there is None or here == there:
        return number
    group, decimal = (re.escape(sign) for sign in here)
    group = r"[ \u00a0\u2009\u202f]" if here[0].isspace() else "['\u2019]" if here[0] == "\u2019" else group
    match = re.fullmatch(rf"([+\-\u2212]?)(\d{{1,3}}(?:{group}\d{{3}})+|\d+)(?:{decimal}(\d+))?", number)
    if match is None:
        return number
    sign, whole, decimals = match.groups()
    groups = re.split(group, whole)
    together = len(groups) == 2 and len(groups[0]) == 1 and base(target) in _FOUR_TOGETHER
    whole = ("" if together else there[0]).join(groups)
    return f"{sign}{whole}" + (f"{there[1]}{decimals}" if decimals else "")


def _style(language: str) -> tuple[str, str] | None:
    return _STYLE_OF.get(lower_code(language)) or _STYLE_OF.get(base(language))


def _bare(text: str) -> str:
    """Leave out what is compared elsewhere: the 1 of %1$s is no number."""
    pieces, reached = list[str](), 0
    for start, end, kind in find(text):
        if kind != "number":
            pieces += [text[reached:start], " "]
            reached = end
    return _ENTITY.sub(" ", "".join([*pieces, text[reached:]]))


def _readings(text: str, language: str) -> list[_Figures]:
    """A space that may part thousands is read both ways."""
    text = _NARROW_GROUPS.sub(_without_spaces, _bare(text))
    joined = _SPACED_GROUPS.sub(_without_spaces, text)
    return [_read(each, language) for each in dict.fromkeys((text, joined))]


def _read(text: str, language: str) -> _Figures:
    figures = _Figures(text, language)
    for match in _NUMBER.finditer(text):
        parts = tuple(_parts(match.group()))
        figures.counts.update(parts)
        figures.alone.update(parts if len(parts) == 1 else ())
        if sum(map(len, parts)) <= _LONGEST_VALUE and len(parts) <= 2:
            scale = MAGNITUDE.match(text, match.end())
            power = magnitude(scale, language) if scale else 0
            value = Fraction(".".join(part.lstrip(".") for part in parts)) * 10**power
            figures.values.setdefault(value, []).append(parts)
    return figures


def _without_spaces(match: re.Match[str]) -> str:
    return re.sub(r"\s", "", match.group())


def _parts(number: str) -> Iterator[str]:
    """A number as figures: 1,234.5 -> 1234 5; 1.234 -> 1234; 2.13.0 -> 2 13 0; 03.05. -> 3 5; 1.05 -> 1 .05"""
    runs, signs = _SEPARATOR.split(number), _SEPARATOR.findall(number)
    if not number.isascii():
        runs = ["".join(str(unicodedata.decimal(digit)) for digit in run) for run in runs]
    if len(set(signs)) == 2 and signs.count(signs[-1]) == 1 and _is_grouped(runs[:-1]):
        yield "".join(runs[:-1])
        yield _decimals(runs[-1])
    elif len(set(signs)) == 1 and _is_grouped(runs):
        yield "".join(runs)
    elif len(runs) == 2:
        yield runs[0].lstrip("0") or "0"
        yield _decimals(runs[1])
    else:
        yield from (run.lstrip("0") or "0" for run in runs)


def _decimals(run: str) -> str:
    """Zeros count after a decimal sign: 1.05 is not 1.5."""
    return f".{run}" if run.startswith("0") else run


def _is_grouped(runs: list[str]) -> bool:
    """Are these the thousands of one number? In India the last three digits are a group, those before them go by two."""
    if not 1 <= len(runs[0]) <= 3 or runs[0].startswith("0"):
        return len(runs) == 1
    middle = {len(run) for run in runs[1:-1]}
    return len(runs) == 1 or (len(runs[-1]) == 3 and (middle <= {3} or middle == {2}))


def _explain(a: _Figures, b: _Figures, missing: Counter[str], added: Counter[str]) -> None:
    """Take away what is the same number written another way."""
    _explain_clock(a.text, missing, added)
    _explain_clock(b.text, added, missing)
    _explain_values(a, b, missing, added)
    _explain_months(months(a.text) - months(b.text), added)
    _explain_months(months(b.text) - months(a.text), missing)
    _explain_years(missing, added)
    _explain_years(added, missing)
    _explain_words(a, b, missing, added)
    _explain_words(b, a, added, missing)


def _explain_clock(text: str, here: Counter[str], there: Counter[str]) -> None:
    """3 pm is 15 Uhr; 15.05 Uhr is 15:05; minutes of zero may be left out."""
    if not _CLOCK.search(text):
        return
    for match in _HALF_DAY.finditer(text):
        hour = str(int(match[1]))
        _cancel(hour, here, str(int(hour) % 12 + 12), there)
        _cancel(hour, here, str(int(hour) % 12), there)
    for side in (here, there):
        for zero in [figure for figure in side if not figure.strip(".0")]:
            del side[zero]
    for figure in [*here, *there]:
        if figure.startswith("."):
            _cancel(figure, here, figure.lstrip(".0"), there)
            _cancel(figure, there, figure.lstrip(".0"), here)


def _explain_values(a: _Figures, b: _Figures, missing: Counter[str], added: Counter[str]) -> None:
    """1.5 billion is 1,500 Mio.; 250 thousand is 250.000."""
    for value in a.values.keys() & b.values.keys():
        for here, there in zip(a.values[value], b.values[value], strict=False):
            if here != there and _holds(missing, here) and _holds(added, there):
                missing.subtract(here)
                added.subtract(there)
    for side in (missing, added):
        for figure in [figure for figure, count in side.items() if count <= 0]:
            del side[figure]


def _explain_months(spare: Counter[int], figures: Counter[str]) -> None:
    """May 3 is 3.5."""
    for month, count in spare.items():
        for _ in range(count):
            _take(str(month), figures)


def _explain_years(long: Counter[str], short: Counter[str]) -> None:
    """The 1980s are die 80er; 2008/09 is 2008/2009."""
    for year in [figure for figure in long if len(figure) == 4 and "1000" <= figure < "2100"]:
        _cancel(year, long, year[2:].lstrip("0") or "0", short)


def _explain_words(here: _Figures, other: _Figures, figures: Counter[str], facing: Counter[str]) -> None:
    """What stands in figures on one side only may be a word on the other. Figures on both sides that differ are no words, and neither
    are parts of a number: 0.5 mg is not 5 mg."""
    if facing:
        return
    words = count_numbers(other.text, other.language)
    for figure in [figure for figure in figures if figure.isdigit() and len(figure) <= 4]:
        decade = re.fullmatch(r"(?:19|20)([0-9]0)", figure)
        # In a language whose words are not known, any digit may be one. In the others nought and one: "a man" says one, too.
        may_be = figure in ("0", "1") if knows(other.language) else len(figure) == 1 or figure in _ROUND
        if words[int(figure)] or (decade and words[int(decade[1])]) or (may_be and figures[figure] <= here.alone[figure]):
            del figures[figure]


def _holds(counts: Counter[str], figures: tuple[str, ...]) -> bool:
    """Whether all figures are counted, without the look at what else there is as a difference of Counters takes."""
    return all(counts[figure] >= figures.count(figure) for figure in figures)


def _cancel(one: str, here: Counter[str], other: str, there: Counter[str]) -> None:
    if here[one] > 0 and there[other] > 0:
        _take(one, here)
        _take(other, there)


def _take(figure: str, figures: Counter[str]) -> None:
    figures[figure] -= 1
    if figures[figure] <= 0:
        del figures[figure]


def _units(text: str) -> dict[str, str | None]:
    """The unit behind each number; None where a number occurs twice."""
    found: dict[str, str | None] = {}
    for match in _NUMBER.finditer(text):
        unit = _UNIT.match(text, match.end())
        key = " ".join(_parts(match.group()))
        found[key] = None if key in found else re.sub(r"\s", "", unit[0]).lower() if unit else ""
    return found


def _count(figures: Counter[str]) -> str:
    total = sum(figures.values())
    return "1 number" if total == 1 else f"{total} numbers"
