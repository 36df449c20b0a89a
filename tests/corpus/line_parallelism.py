"""Line i of one side must meet line i of the other, whatever the lines hold, from the files to the batches of training.

Corpora are drawn over all of Unicode with a weight on everything that some reader takes for the end of a line. Line i carries the tag #i#
on both sides. `shifts` counts the rows that are missing, too many, altered or beside another tag at any stage: the readers of line files
(plain, gzip, zstd) and of TSV, the text and the ids of the shards, the batches of the loader.
"""

import gzip
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from limelight.corpus.config import CorpusSettings, DedupSettings, FilterSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus, Provenance
from limelight.corpus.prepare import prepare
from limelight.corpus.readers import CorpusPart, read
from limelight.errors import LimelightError
from limelight.text.pieces.tokenizer import END, PieceSettings, Tokenizer, learn

Corpus = tuple[tuple[str, str], ...]

LANGUAGES = ("en", "de")
LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0"  # what is not \n and yet ends a line, or a text, for someone
KINDS = ("plain", "gz", "zst", "tsv")
ROWS_AT_ONCE = 3  # few, so that most corpora are read in several batches
TOGETHER = 1_000  # corpora in one run of prepare
ALL_OFF = {name: "off" for name, field in FilterSettings.model_fields.items() if field.default in ("drop", "warn")}


def with_line_ends(text: str) -> str:
    """About every second letter becomes one of them. A weighted alphabet would do it too, four times as slowly."""
    return "".join(
        LINE_ENDS[ord(letter) // 2 % len(LINE_ENDS)] if (ord(letter) + place) % 2 else letter for place, letter in enumerate(text)
    )


# A surrogate is no character; # and @ belong to the tags.
_letters = st.characters(exclude_categories=["Cs"], exclude_characters="\n#@")
_text = st.text(_letters, min_size=2, max_size=8).map(with_line_ends)


@st.composite
def corpora(draw: st.DrawFn) -> Corpus:
    """One to six pairs of lines; the tag stands anywhere in the line."""
    pieces = draw(st.lists(st.tuples(_text, _text, _text, _text), min_size=1, max_size=6))
    return tuple((f"{a}#{i}#{b}", f"{c}#{i}#{d}") for i, (a, b, c, d) in enumerate(pieces))


def drawn(number: int, chance: int) -> list[Corpus]:
    """So many corpora, the same for the same seed."""
    found: list[Corpus] = []

    @seed(chance)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(corpora())
    def draw(corpus: Corpus) -> None:
        found.append(corpus)

    draw()
    return found[:number]


def shifts(number_of_corpora: int, seed: int) -> int:
    """Rows that are not where they belong, over all stages. An error counts too: such a corpus was not delivered."""
    total = count = 0
    while count < number_of_corpora:
        drawn_now = drawn(number_of_corpora - count, seed + count)
        for begin in range(0, len(drawn_now), TOGETHER):
            with tempfile.TemporaryDirectory() as folder:
                total += shifts_of(drawn_now[begin : begin + TOGETHER], Path(folder))
        count += len(drawn_now)
    return total


def shifts_of(some: Sequence[Corpus], folder: Path) -> int:
    """Every corpus through every reader; then all of them, each in one of the kinds, through prepare and the loader."""
    inputs, rest = folder / "inputs", folder / "rest"
    inputs.mkdir()
    rest.mkdir()
    written: dict[str, Corpus] = {}
    total = 0
    for number, untold in enumerate(some):
        corpus = tuple((f"{source}@{number}@", f"{target}@{number}@") for source, target in untold)  # so that corpora are told apart
        total_before = total
        for kind in KINDS:
            chosen = kind == KINDS[number % len(KINDS)]
            as_written = without_tabs(corpus) if kind == "tsv" else corpus
            paths = write(as_written, inputs if chosen else rest, f"{number:05d}", kind)
            total += shifts_in_reader(as_written, kind, paths)
            if chosen:
                written[str(paths[0])] = as_written
        if total > total_before:  # prepare would stop at it, and say less
            for path in inputs.glob(f"{number:05d}.*"):
                written.pop(str(path), None)
                path.unlink()
    return total + (shifts_in_prepared(written, inputs, folder / "prepared") if written else 0)


def without_tabs(corpus: Corpus) -> Corpus:
    return tuple((source.replace("\t", " "), target.replace("\t", " ")) for source, target in corpus)


def write(corpus: Corpus, folder: Path, name: str, kind: str) -> tuple[Path, ...]:
    """Each line, then one 0x0A."""
    if kind == "tsv":
        texts = {".tsv": [f"{source}\t{target}" for source, target in corpus]}
    else:
        ending = "" if kind == "plain" else f".{kind}"
        texts = {f".{code}{ending}": [pair[side] for pair in corpus] for side, code in enumerate(LANGUAGES)}
    paths = []
    for suffix, lines in texts.items():
        content = "".join(f"{line}\n" for line in lines).encode()
        assert content.count(b"\n") == len(corpus)
        paths.append(folder / f"{name}{suffix}")
        paths[-1].write_bytes(_PACK.get(kind, bytes)(content))
    return tuple(paths)


_PACK: dict[str, Callable[[bytes], bytes]] = {
    "gz": lambda content: gzip.compress(content, 1),
    "zst": lambda content: bytes(pa.Codec("zstd").compress(content, asbytes=True)),
}


def shifts_in_reader(corpus: Corpus, kind: str, paths: Sequence[Path]) -> int:
    part = CorpusPart(0, 0, "tsv" if kind == "tsv" else "lines", tuple(map(str, paths)), LANGUAGES)
    try:
        rows = [row for batch in read(part, ROWS_AT_ONCE) for row in batch.to_pylist()]
    except LimelightError:
        return 1
    wrong = abs(len(rows) - len(corpus))
    for i, (row, pair) in enumerate(zip(rows, corpus, strict=False)):
        texts = [pair[0], pair[1]]
        if i == 0:  # a byte order mark at the beginning of a file is none of its text
            texts = [text.removeprefix("\ufeff") if side == 0 or kind != "tsv" else text for side, text in enumerate(texts)]
        wrong += [row["source"], row["target"], row["line"], row["fault"]] != [*texts, i + 1, 0]
    return wrong


def shifts_in_prepared(written: dict[str, Corpus], inputs: Path, folder: Path) -> int:
    """Text and ids of the shards, and the batches of one epoch, against (file, line) of each pair."""
    model = folder.with_name("given.model")
    model.write_bytes(pieces())
    chosen = PrepareSettings(
        languages=LANGUAGES,
        corpora=[CorpusSettings(name="all", paths=[str(inputs)])],
        filters=FilterSettings(**ALL_OFF),
        dedup=DedupSettings(exact=False, targets_per_source=None),
        held_out=HeldOutSettings(valid_pairs=0, test_pairs=0),
        given_pieces=[str(model)],
    )
    try:
        prepare(chosen, folder, LocalEngine(0), lambda _: None)
        prepared = PreparedCorpus.open(folder)
        pairs = prepared.split("train")
        samples = np.arange(pairs.rows)
        origins = [pairs.provenance(sample) for sample in range(pairs.rows)]
        places = [(origin.paths[0], origin.line) for origin in origins]
        expected = {(path, i + 1) for path, corpus in written.items() for i in range(len(corpus))}
        wrong = len(expected.symmetric_difference(places)) + len(places) - len(set(places))
        wrong += _apart(origins, ((origin.source, origin.target) for origin in origins))
        wrong += _apart(origins, zip(*(texts.to_pylist() for texts in pairs.texts(samples)), strict=True))
        decode = Tokenizer.load(folder / "pieces.model").decode
        sides = [
            decode(np.split(side.values, side.offsets[1:-1])) for side in pairs.ids(samples)
        ]  # offsets begin with 0 and end with the length
        wrong += _apart(origins, zip(*sides, strict=True))
        seen, texts = _one_epoch(prepared, decode)
        wrong += len(set(samples.tolist()).symmetric_difference(seen)) + len(seen) - len(set(seen))
        return wrong + _apart((origins[sample] for sample in seen), texts)
    except LimelightError:
        return 1


def _one_epoch(prepared: PreparedCorpus, decode: Callable[[Any], list[str]]) -> tuple[list[int], list[tuple[str, str]]]:
    seen: list[int] = []
    texts: list[tuple[str, str]] = []
    with Loader(prepared, BatchSettings(budget=2048)) as loader:
        for batch in loader.epoch(0):
            seen += batch.samples.tolist()
            sides = [decode([_up_to_end(row) for row in side.tolist()]) for side in (batch.source, batch.target)]
            texts += zip(*sides, strict=True)
    return seen, texts


def _up_to_end(row: list[int]) -> list[int]:
    return row[: row.index(END)]


def _apart(origins: Iterable[Provenance], texts: Iterable[tuple[str, str]]) -> int:
    """Pairs of which either side has other tags than those of its line and its corpus, or several, or none."""
    return sum(
        any(re.findall("[#@][0-9]+[#@]", text) != [f"#{origin.line - 1}#", f"@{_number(origin)}@"] for text in pair)
        for origin, pair in zip(origins, texts, strict=True)
    )


def _number(origin: Provenance) -> int:
    return int(Path(origin.paths[0]).name.split(".")[0])


@cache
def pieces() -> bytes:
    """A tiny model that spells in bytes what it does not know."""
    return learn(_tags(), PieceSettings(size=320, placeholders=0, tags=0))


def _tags() -> Iterator[str]:
    return (f"#{i}# some letters" for i in range(50))
