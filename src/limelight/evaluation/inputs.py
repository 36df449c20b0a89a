"""`read_inputs` reads the systems, sources and references that were named on the command line. Files may be packed, and every problem with
them is in one error. See docs/metrics.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from limelight.corpus.manifest import NAME as MANIFEST
from limelight.corpus.manifest import Split
from limelight.corpus.reading.drift import describe_drift
from limelight.corpus.reading.finding import holds_lines
from limelight.corpus.reading.language_tags import find_nearest, is_language
from limelight.corpus.reading.lines import read_strings
from limelight.corpus.reading.raw import RowFault
from limelight.corpus.reading.streams import without_packing
from limelight.errors import ConfigError, DataError
from limelight.text.languages import Direction

USAGE = (
    "name a translator with its source and reference (en-de test.en test.de), a translator with a prepared corpus (en-de prepared), "
    "or translations with their reference (output.de reference.de)"
)
_SAID = {RowFault.BROKEN_ENCODING: "is not UTF-8", RowFault.TOO_LONG: "is too long to be a sentence"}


@dataclass(frozen=True)
class System:
    name: str
    folder: Path | None
    texts: list[str] | None


@dataclass(frozen=True)
class EvaluationInputs:
    system: System
    other: System | None
    source: list[str] | None
    references: list[list[str]]
    language: str | None  # of the target, as far as names tell
    direction: Direction | None  # of the pairs of a prepared corpus
    paths: tuple[str, str] | None  # of source and reference, if these are files


def read_inputs(
    targets: Sequence[str],
    references: Sequence[str] = (),
    source: str | None = None,
    other: str | None = None,
    split: Split = "test",
    wanted: tuple[str | None, str | None] = (None, None),
) -> EvaluationInputs:
    """All files are read and compared before anything is translated; all that is wrong with them is in one error. `wanted`: the languages
    of the pairs that are taken of a prepared corpus of several."""
    translator, source, reference, prepared = _roles(targets, source)
    files = [path for path in (None if translator else targets[0], source, reference, *references) if path]
    if other is not None and not Path(other).is_dir():
        files.append(other)
    texts = dict(zip(files, read_parallel(files), strict=True))
    names = _names(targets[0], other)
    sources, language, direction = texts[source] if source else None, None, None
    if prepared is not None:
        sources, first, direction = read_split(prepared, split, wanted)
        language = direction[1]
    else:
        assert reference is not None  # _roles gives one or the other
        first = texts[reference]
        language = language_of(reference) or (None if translator else language_of(targets[0]))
    if sources is None and other is not None and other not in texts:
        raise ConfigError(f"--compare {other} has to translate the source, and there is none; name it: --source test.en")
    return EvaluationInputs(
        system=System(names[0], translator, None if translator else texts[targets[0]]),
        other=None if other is None else System(names[1], None if other in texts else Path(other), texts.get(other)),
        source=sources,
        references=[first, *(texts[path] for path in references)],
        language=language,
        direction=direction,
        paths=(source, reference) if source and reference else None,
    )


def _roles(targets: Sequence[str], source: str | None) -> tuple[Path | None, str | None, str | None, Path | None]:
    first = Path(targets[0]) if targets else None
    if first is None or len(targets) > 3:
        raise ConfigError(f"{len(targets)} names are not understood; {USAGE}")
    if len(targets) == 1:
        raise ConfigError(f"{first} is all that was named; {USAGE}")
    if not first.is_dir():
        if len(targets) == 3 or Path(targets[1]).is_dir():
            there = "is a file" if first.exists() else "does not exist"
            raise ConfigError(f"{first} {there}, and a folder with a translator is needed here; {USAGE}")
        return None, source, targets[1], None
    if is_prepared(first):
        raise DataError(f"{first} is a prepared corpus and no translator; the translator comes first: en-de {first}")
    if source is not None:
        raise ConfigError("--source goes with translations that exist; after a translator, the source is the second name")
    if len(targets) == 3:
        return first, targets[1], targets[2], None
    if not Path(targets[1]).is_dir():
        raise ConfigError(f"{first} is a translator, and {targets[1]} alone is no test set; name source and reference")
    return first, None, None, Path(targets[1])


def _names(system: str, other: str | None) -> tuple[str, str]:
    """As short as keeps them apart: newstest.google.de.gz and newstest.nllb.de.gz are google and nllb."""
    if other is None:
        return Path(system).name, ""
    a, b = (Path(without_packing(path)).name.split(".") for path in (system, other))
    while a and b and a[0] == b[0]:
        a, b = a[1:], b[1:]
    while a and b and a[-1] == b[-1]:
        a, b = a[:-1], b[:-1]
    if a and b:
        return ".".join(a), ".".join(b)
    names = Path(system).name, Path(other).name
    return names if names[0] != names[1] else (system, other)


def read_parallel(paths: Sequence[str]) -> list[list[str]]:
    """The lines of each file, which must be as many in all. A line ends at the byte 0x0A only, so no other sign shifts it."""
    problems: list[str] = []
    texts: dict[str, list[str]] = {}
    for path in paths:
        if not holds_lines(path):
            instead = f"what limelight prepare CORPUS --test {path} -o prepared makes, in place of both"
            problems.append(f"{path} is no file with a sentence in each line; give source and reference as such files, or {instead}")
            continue
        try:
            texts[path] = _lines(path, problems)
        except DataError as error:
            problems.append(str(error))
    counts = {path: len(each) for path, each in texts.items() if each}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{path} has {lines:,}" for path, lines in counts.items())
        first = next(iter(counts))
        other = next(path for path, lines in counts.items() if lines != counts[first])
        drift = describe_drift(first, other)
        problems.append(f"the files have different numbers of lines: {listed}. {drift}")
    if problems:
        many = ["these texts cannot be scored:"] if len(problems) > 1 else []
        raise DataError("\n  - ".join([*many, *problems]))
    return [texts[path] for path in paths]


def read_split(folder: Path, split: Split, wanted: tuple[str | None, str | None] = (None, None)) -> tuple[list[str], list[str], Direction]:
    """The pairs of one direction, the first of those whose languages are `wanted`; None is any."""
    from limelight.corpus.feeding.shards import PreparedCorpus  # by Arrow, which files of text do not need

    prepared = PreparedCorpus.open(folder)
    pairs, known = prepared.split(split), prepared.manifest
    first = [known.languages] if known.languages in known.directions else []
    if (direction := find_nearest(wanted, [*first, *known.directions])) is None:
        raise ConfigError(
            f"{folder} has {known.described}, and nothing from {wanted[0] or 'any language'} to {wanted[1] or 'any language'}"
        )
    stored = direction if direction in known.stored else direction[::-1]
    rows = pairs.list_samples(stored)
    if not len(rows):
        lacks = "is empty" if not pairs.rows else f"has no pair of {' and '.join(direction)}"
        raise DataError(f"the {split} split of {folder} {lacks}; name two files instead, or prepare with --{split}")
    source, target = (side.to_pylist() for side in pairs.texts(rows))
    return (source, target, direction) if stored == direction else (target, source, direction)


def is_prepared(path: Path) -> bool:
    return (path / MANIFEST).is_file() and (path / "shards").is_dir()


def language_of(path: str) -> str | None:
    """language_of("newstest2018.de-en.de.gz") -> "de"; None when the ending is no language."""
    suffix = Path(without_packing(path)).suffix.removeprefix(".")
    return suffix if suffix and is_language(suffix) else None


def _lines(path: str, problems: list[str]) -> list[str]:
    texts: list[str] = []
    unsaid = dict(_SAID)
    for lines, faults in read_strings(path):
        for kind in [kind for kind in unsaid if (faults == kind).any()]:
            number = len(texts) + int(np.argmax(faults == kind)) + 1
            problems.append(f"{path}: line {number:,} {unsaid.pop(kind)}")
        texts += [text.removesuffix("\r") for text in lines]
    if not texts:
        problems.append(f"{path} is empty")
    return texts
