"""Checks find the mistakes that people make with files before hours are spent on them. They look for sides swapped, another language,
another encoding, lines that do not belong together; and in the end, too much that was dropped.

    mistakes(parts, settings)   the first pairs of each corpus are looked at,
                                and whether its lines slip further on              -> sentences, each with its cause and its fix
    losses(corpora)             all that was read, kept and dropped is looked at   -> the same
"""

from collections import Counter
from collections.abc import Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from limelight.corpus.cleaning.clean import languages_of
from limelight.corpus.cleaning.reasons import EXPLAINED, Reason
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.manifest import SIDES, CorpusEntry
from limelight.corpus.readers import read
from limelight.corpus.reading.finding import LINES
from limelight.corpus.reading.raw import CorpusPart, RowFault
from limelight.errors import DataError
from limelight.text.language_names import name
from limelight.text.languages import base

LOOKED_AT = 2_000  # pairs of a corpus
FEWEST = 100  # pairs, below which chance decides
BROKEN = 0.1  # of the lines that are no UTF-8: a single one is an accident
OTHER = 0.5  # of the texts of one side that are surely in another language
# Correlations of the logarithms of lengths: text that belongs together has 0.8 to 0.95 (`reading.drift`), dictionaries less.
RELATED = 0.5  # is not suspected
FURTHER = 5  # lines up and down that are compared: chapters and lists have a rhythm, so even wrong lines may correlate
BETTER = 0.1  # than wrong lines, at least
SHIFTED = 0.3  # better than it is: a line is lost
WINDOW, WINDOWS = 500, 4_000  # pairs that are compared at a time, and how many times: two million pairs
IN_A_ROW = 3  # windows that must agree: what slips stays so
# Times as many words on both sides as with shuffled lines: names and numbers tell that lines belong together.
SHARED = 1.5
MOST_DROPPED, MOST_FOR_A_REASON = 1 / 2, 1 / 3
ON = "go on all the same with --anyway"
# Pairs that occurred before say nothing against a file, nor what its own translators marked.
HARMLESS = {why.label for why in (Reason.DUPLICATE, Reason.NEAR_DUPLICATE, Reason.CONFLICT, Reason.FUZZY)}
# In which files of a language usually are, where they are not in UTF-8.
_ENCODINGS = {
    "WINDOWS-1250": "bs cs hr hu pl ro sk sl sq", "WINDOWS-1251": "be bg kk mk ru sr tg uk", "WINDOWS-1253": "el",
    "WINDOWS-1254": "az tr", "WINDOWS-1255": "he yi", "WINDOWS-1256": "ar fa ur", "WINDOWS-1257": "et lt lv", "SHIFT_JIS": "ja",
    "GB18030": "zh", "EUC-KR": "ko",
}  # fmt: skip


def refuse(problems: Sequence[str], anyway: bool) -> None:
    if problems and not anyway:
        look = "`limelight prepare ... --check-only` shows the first lines that are dropped"
        raise DataError("\n  - ".join(["the text does not look as it should:", *problems]) + f"\nMend it ({look}), or {ON}.")


def mistakes(parts: Sequence[CorpusPart], settings: PrepareSettings) -> list[str]:
    """What is wrong with each corpus, by its first pairs."""
    found: list[str] = []
    for number, corpus in enumerate(settings.corpora):
        mine = [part for part in parts if part.corpus == number]
        rows = _first(mine)
        if rows.height < FEWEST:
            continue
        languages = settings.stored[number]
        problem = _encoding(mine, rows, settings, languages) or _language(corpus, rows, settings, languages)
        problem = problem or _alignment(corpus.name, rows) or _find_slip(corpus.name, mine)
        found += [problem] if problem else []
    return found


def losses(corpora: Sequence[CorpusEntry]) -> list[str]:
    """Too much of all that was read is gone, or too much for one reason."""
    dropped = _count_dropped(corpora)
    # A New Testament beside a whole Bible: lines without a translation yet are no mistake, and the others are judged by themselves.
    serious = {label: pairs for label, pairs in dropped.items() if label not in HARMLESS | {Reason.EMPTY.label}}
    read = sum(corpus.read for corpus in corpora) - sum(dropped.values()) + sum(serious.values())
    gone = sum(serious.values())
    most = max(serious, key=lambda label: serious[label], default="")
    if read < FEWEST or not most or (gone <= MOST_DROPPED * read and serious[most] <= MOST_FOR_A_REASON * read):
        return []
    why = Reason[most.upper()]
    return [f"{summary(corpora)}. Most are gone for this: {EXPLAINED[why]} ({why.setting}=off keeps them)"]


def summary(corpora: Sequence[CorpusEntry]) -> str:
    """5,178 pairs read, 1,308 kept: 3,100 too long, 770 duplicate"""
    read = sum(corpus.read for corpus in corpora)
    dropped = _count_dropped(corpora)
    reasons = ", ".join(f"{pairs:,} {label.replace('_', ' ')}" for label, pairs in dropped.items())
    return f"{read:,} pairs read, {read - sum(dropped.values()):,} kept" + (f": {reasons}" if reasons else "")


def _count_dropped(corpora: Sequence[CorpusEntry]) -> dict[str, int]:
    return dict(sum((Counter(corpus.dropped) for corpus in corpora), Counter[str]()).most_common())


def _first(parts: Sequence[CorpusPart]) -> pl.DataFrame:
    """Return the first pairs; of many files some of each."""
    share, batches = max(FEWEST, LOOKED_AT // max(1, len(parts))), list[pa.RecordBatch]()
    for part in parts:
        batches += islice(read(part, share), 1)
        if sum(map(len, batches)) >= LOOKED_AT:
            break
    return pl.DataFrame(pa.Table.from_batches(batches)) if batches else pl.DataFrame()


def _encoding(parts: Sequence[CorpusPart], rows: pl.DataFrame, settings: PrepareSettings, languages: tuple[str, str]) -> str | None:
    if settings.filters.broken_text == "off":
        return None
    for side, language in zip(SIDES, languages, strict=True):
        broken = rows.filter((pl.col("fault") == RowFault.BROKEN_ENCODING) & pl.col(side).str.contains("\ufffd"))
        if broken.height <= BROKEN * rows.height:
            continue
        part = next(part for part in parts if part.file == broken["file"][0])
        path = part.paths[-1 if (side == "target") != part.swapped else 0]
        codes = (encoding for encoding, written in _ENCODINGS.items() if base(language) in written.split())
        likely = next(codes, "WINDOWS-1252")
        return (
            f"{path}: {broken.height:,} of the first {rows.height:,} lines are no UTF-8, line {broken['line'][0]:,} first; "
            f"convert it, likely from {likely}: iconv -f {likely} -t UTF-8 {path} > utf8.txt"
        )
    return None


def _language(corpus: CorpusSettings, rows: pl.DataFrame, settings: PrepareSettings, languages: tuple[str, str]) -> str | None:
    if settings.filters.wrong_language == "off":
        return None
    source, target = languages
    heard = [_identify_side(rows[side], code, settings) for side, code in zip(SIDES, languages, strict=True)]
    said, wrong = [language for language, _ in heard], [other > OTHER for _, other in heard]
    if all(wrong) and [base(target), base(source)] == said:
        return (
            f"{corpus.name}: the source side is {_format_language(said[0])} and the target side {_format_language(said[1])}, but they "
            f"should be {source} and {target}: they are swapped; "
            + ("leave out --swap" if corpus.swapped else "--swap reads them the other way round")
        )
    sides = zip(SIDES, languages, said, wrong, strict=True)
    problems = [
        f"the {side} side is {_format_language(is_)}, but it should be {_format_language(asked)}; give another file, or --{side} {is_}"
        for side, asked, is_, is_wrong in sides
        if is_wrong
    ]
    return f"{corpus.name}: {'; '.join(problems)}" if problems else None


def _format_language(code: str) -> str:
    return f"{name(code)} ({code})"


def _identify_side(texts: pl.Series, code: str, settings: PrepareSettings) -> tuple[str, float]:
    """The most frequent language, and the part of the texts that are surely not in the one asked for; "", 0 when nobody can tell."""
    looked = languages_of(texts, code, settings.filters)
    if looked is None or len(looked.best) < FEWEST // 2:
        return "", 0.0
    return Counter(looked.best).most_common(1)[0][0], float(looked.other.mean())


def _alignment(corpus: str, rows: pl.DataFrame) -> str | None:
    """Lengths that have no more to do with each other than those of other lines, and no more words in common than shuffled lines."""
    both = _fill_missing(rows)
    related = _relate(both)
    if not related:
        return None
    here = related.pop(0)
    best = max(related, key=lambda by: related[by])
    if related[best] > here + SHIFTED:
        return (
            f"{corpus}: source and target are {abs(best)} lines apart: line n of the source belongs to line n{best:+d} of the target; "
            f"look for lines that are lost or doubled, among the first on the {'source' if best > 0 else 'target'} side"
        )
    if here >= RELATED or here >= related[best] + max(BETTER, 4 / np.sqrt(both.height)) or _share_words(both):
        return None
    return (
        f"{corpus}: its lines do not seem to belong together: the lengths of both sides have as little to do with each other "
        f"(correlation {here:.2f}) as if they were shuffled; compare some lines by eye, and look for lines that are lost or doubled"
    )


def _find_slip(corpus: str, parts: Sequence[CorpusPart]) -> str | None:
    """A line lost further on moves all that follow by as many lines: windows in a row, each better related with lines up or down."""
    for part in (part for part in parts if part.format == LINES):
        moved: list[int] = []
        for number, batch in enumerate(islice(read(part, WINDOW), WINDOWS)):
            related = _relate(_fill_missing(pl.DataFrame(batch)))
            best = max(related, key=lambda by: related[by], default=0)
            moved.append(best if related and related[best] > related[0] + SHIFTED else 0)
            if best and moved[-IN_A_ROW:] == [best] * IN_A_ROW:
                line = (number - IN_A_ROW + 1) * WINDOW + 1
                return (
                    f"{corpus}: from about line {line:,} of {part.paths[0]} on, source and target are {abs(best)} lines apart: line n of "
                    f"the source belongs to line n{best:+d} of the target; look before it for a line that is lost or doubled on one side"
                )
    return None


def _fill_missing(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.filter((pl.col("source") != "") & (pl.col("target") != ""))


def _relate(both: pl.DataFrame) -> dict[int, float]:
    """Correlate lengths of lines with those so many lines away, and in their place; nothing where there is too little to tell."""
    source, target = (np.log1p(both[side].str.len_chars().to_numpy()) for side in SIDES)
    if both.height < FEWEST or min(source[FURTHER:-FURTHER].std(), target[FURTHER:-FURTHER].std()) == 0:
        return {}
    return {by: _correlation(source, target, by) for by in range(-FURTHER, FURTHER + 1)}


def _correlation(source: npt.NDArray[np.float64], target: npt.NDArray[np.float64], by: int) -> float:
    """Correlate line n with line n + by."""
    count = len(source) - abs(by)
    return float(np.corrcoef(source[max(0, -by) :][:count], target[max(0, by) :][:count])[0, 1])


def _share_words(pairs: pl.DataFrame) -> bool:
    """Names and numbers stand on both sides of what belongs together, more often than by chance."""
    sources, targets = ([set(text.split()) for text in pairs[side].to_list()] for side in SIDES)
    shuffled = np.random.default_rng(17).permutation(len(targets))
    shared = sum(len(a & b) for a, b in zip(sources, targets, strict=True))
    by_chance = sum(len(a & targets[i]) for a, i in zip(sources, shuffled, strict=True))
    return shared > SHARED * by_chance + FEWEST // 10
