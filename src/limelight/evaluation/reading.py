"""`read_parallel` reads files of lines to score, and `read_split` reads a split of a prepared corpus. Files may be packed, and every
problem with them is in one error.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import NAME as MANIFEST
from limelight.corpus.manifest import Split
from limelight.corpus.reading.drift import describe_drift
from limelight.corpus.reading.language_tags import is_language
from limelight.corpus.reading.lines import read_lines
from limelight.corpus.reading.raw import RowFault
from limelight.corpus.reading.streams import without_packing
from limelight.errors import DataError

_SAID = {RowFault.BROKEN_ENCODING: "is not UTF-8", RowFault.TOO_LONG: "is too long to be a sentence"}


def read_parallel(paths: Sequence[str]) -> list[list[str]]:
    """The lines of each file, which must be as many in all. A line ends at the byte 0x0A only, so no other sign shifts it."""
    problems: list[str] = []
    texts: dict[str, list[str]] = {}
    for path in paths:
        try:
            texts[path] = _lines(path, problems)
        except DataError as error:
            problems.append(str(error))
    counts = {path: len(each) for path, each in texts.items() if each}
    if len(set(counts.values())) > 1:
        problems.append(_counts_differ(counts))
    if problems:
        raise DataError(
            problems[0] if len(problems) == 1 else "\n  - ".join(["these texts cannot be scored:", *problems])
        )
    return [texts[path] for path in paths]


def read_split(folder: Path, split: Split) -> tuple[list[str], list[str], tuple[str, str]]:
    """Sources, targets and languages of a split of a prepared corpus."""
    prepared = PreparedCorpus.open(folder)
    pairs = prepared.split(split)
    if not pairs.rows:
        raise DataError(f"the {split} split of {folder} is empty; name two files instead, or prepare with --{split}")
    source, target = pairs.texts(np.arange(pairs.rows, dtype=np.int64))
    return source.to_pylist(), target.to_pylist(), prepared.manifest.languages


def is_prepared(path: Path) -> bool:
    return (path / MANIFEST).is_file() and (path / "shards").is_dir()


def language_of(path: str) -> str | None:
    """language_of("newstest2018.de-en.de.gz") -> "de"; None when the ending is no language."""
    suffix = Path(without_packing(path)).suffix.removeprefix(".")
    return suffix if suffix and is_language(suffix) else None


def _lines(path: str, problems: list[str]) -> list[str]:
    """The lines, and the first of each kind that cannot be read among the problems."""
    texts: list[str] = []
    unsaid = dict(_SAID)
    for lines in read_lines(path):
        for kind in [kind for kind in unsaid if (lines.faults == kind).any()]:
            number = len(texts) + int(np.argmax(lines.faults == kind)) + 1
            problems.append(f"{path}: line {number:,} {unsaid.pop(kind)}")
        texts += [text.removesuffix("\r") for text in lines.texts.to_pylist()]
    if not texts:
        problems.append(f"{path} is empty")
    return texts


def _counts_differ(counts: dict[str, int]) -> str:
    listed = ", ".join(f"{path} has {lines:,}" for path, lines in counts.items())
    first = next(iter(counts))
    other = next(path for path, lines in counts.items() if lines != counts[first])
    return f"the files have different numbers of lines: {listed}. {describe_drift(first, other)}"
