"""Monolingual text becomes synthetic pairs by back-translation (Sennrich et al. 2016): lines are targets, their translations sources."""

import json
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import xxhash

from limelight.bundle.card import find_warning
from limelight.bundle.layout import MANIFEST
from limelight.corpus.cleaning.clean import Cleaner, hash_texts
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.engine import Progress
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.readers import read
from limelight.corpus.reading.finding import LINES
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.raw_batches import assemble
from limelight.errors import DataError
from limelight.files import sha256_of, write_whole
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.recipe.replay import write_pairs
from limelight.training.run_folder import BUNDLE, SYNTHETIC_FOLDER
from limelight.translator import Translation, Translator

MOST_LINES: Final = 2_000_000  # that are held in memory, and more than a budget translates
FOREIGN: Final = 0.5  # of the lines in another language: then it is another file than was meant
CHUNK: Final = 1_000  # lines between two files
LEAST_SURE: Final = 0.1  # of a chunk, by confidence, that is dropped
PAIRS, COUNTS, PARTS = "synthetic.parquet", "synthetic.json", "synthetic-parts"  # in the run whose translator makes them
DEGENERATE, UNSURE, NO_TIME, NO_ROOM = "degenerate", "unsure", "no_time", "no_room"  # beside the reasons of a corpus


@dataclass(frozen=True)
class MonoText:
    target: list[str]
    source: list[str]
    rounds: int = 1
    weight: float | None = None  # of a synthetic pair in an epoch; None: chosen


@dataclass
class SyntheticCounts:
    """Counts tell what became of monolingual lines (`synthetic.json`): read = kept + the sum of dropped."""

    languages: tuple[str, str]  # of the pairs
    before: float = 0.0  # seconds of the run that made the translator
    seconds: float = 0.0  # of translating
    read: int = 0
    translated: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    warning: str | None = None  # what its training said of a translator that nobody should use

    @classmethod
    def load(cls, run: Path) -> "SyntheticCounts":
        return cls(**json.loads((run / COUNTS).read_bytes()))

    def __str__(self) -> str:
        why = ", ".join(f"{label.replace('_', ' ')} {count:,}" for label, count in Counter(self.dropped).most_common())
        return f"{self.read:,} lines read, {self.translated:,} translated, {self.kept:,} kept; dropped: {why or 'none'}"


def list_counts(run: Path) -> list[SyntheticCounts]:
    """Of every translator that made synthetic pairs for a run, in their order; the last pairs are in its own training text."""
    return [SyntheticCounts.load(path.parent) for path in sorted((run / SYNTHETIC_FOLDER).glob(f"*/{COUNTS}"))]


def describe_synthetic(run: Path, manifest: CorpusManifest) -> dict[str, int | str]:
    """Facts for the card of a translator: how many of its pairs are synthetic, and what became of the lines."""
    tagged = [number for number, names in enumerate(manifest.names) if SYNTHETIC in names]
    pairs = sum(shard.rows_by_corpus[number] for shard in manifest.splits["train"] for number in tagged)
    counts = list_counts(run)[-1:]
    return ({"synthetic pairs among them": pairs} if tagged else {}) | ({"monolingual text": str(counts[0])} if counts else {})


def draw_lines(
    paths: Sequence[str], settings: PrepareSettings, anyway: bool, counts: SyntheticCounts, batches: int | None = None
) -> list[str]:
    """Each clean line once, by the hash of its text: what a budget leaves out is a random part. `counts` hears of all lines, or of those in
    the first `batches` of each file.

    A line is read as a pair with itself, so that all filters of the corpus look at it but the one against copies.
    """
    both = counts.languages[1], counts.languages[1]
    alone = CorpusSettings(name="monolingual", paths=list(paths))
    filters = settings.filters.changed(copied="off")
    cleaner = Cleaner(PrepareSettings(languages=both, corpora=[alone], filters=filters, normalize=settings.normalize), 1)
    drawn, dropped, read_of, foreign_of = dict[int, str](), Counter[str](), Counter[str](), Counter[str]()
    parts = ((path, batch) for path in paths for batch in islice(read(CorpusPart(0, 0, LINES, (path, path), both)), batches))
    for path, batch in parts:
        rows = cleaner.judge_rows(batch)
        counts.read += rows.height
        read_of[path] += rows.height
        reasons = [Reason(reason) for reason in rows["reason"].to_list() if reason != Reason.KEPT]
        foreign_of[path] += sum(reason in (Reason.WRONG_LANGUAGE, Reason.WRONG_SCRIPT) for reason in reasons)
        dropped.update(reason.label for reason in reasons)
        texts = rows.filter(pl.col("reason") == Reason.KEPT)["target"]
        for key, text in zip(hash_texts("key", texts).to_list(), texts.to_list(), strict=True):
            if key in drawn or len(drawn) == MOST_LINES:
                dropped[Reason.DUPLICATE.label if key in drawn else NO_ROOM] += 1
            else:
                drawn[key] = text
    counts.dropped = dict(dropped)
    foreign = [path for path in paths if foreign_of[path] > FOREIGN * read_of[path]]
    if not drawn or (foreign and not anyway):
        raise DataError(
            f"{', '.join(foreign or paths)}: there is too little text in {both[0]}: {counts}; give clean text in this language, "
            "one sentence on a line" + (", or go on with what is left by --anyway" if drawn else "")
        )
    return [drawn[key] for key in sorted(drawn)]


@dataclass(frozen=True)
class BackTranslator:
    run: Path
    settings: PrepareSettings
    device: str | None
    threads: int | None

    @cached_property
    def _bundle_hash(self) -> str:
        """Whose translations they are: a run that was given more time has another translator."""
        manifest = self.run / BUNDLE / MANIFEST
        return sha256_of(manifest) if manifest.exists() else ""

    def make_pairs(self, lines: Sequence[str], counts: SyntheticCounts, seconds: float | None, watch: Callable[[Progress], None]) -> None:
        """Translate as many lines as `seconds` allow, one chunk at least. The counts are written last: it is done then."""
        dropped, pairs = Counter(counts.dropped), list[tuple[str, str]]()
        (self.run / PARTS).mkdir(exist_ok=True)
        with Translator.load(self.run, self.device, threads=self.threads) as translator:
            counts.warning = find_warning(translator.settings)
            for start in range(0, len(lines), CHUNK):
                if start and seconds is not None and counts.seconds >= seconds:
                    dropped[NO_TIME] = len(lines) - start
                    break
                watch(Progress("translate back", start, len(lines)))
                made = self._make_part(translator, lines[start : start + CHUNK])
                pairs += made["pairs"]
                dropped.update(made["dropped"])
                counts.seconds += made["seconds"]
                counts.translated += min(CHUNK, len(lines) - start)
        watch(Progress("translate back", len(lines), len(lines)))
        counts.kept, counts.dropped = len(pairs), dict(dropped)
        write_pairs(self.run / PAIRS, *(pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1)))
        write_whole(self.run / COUNTS, json.dumps(asdict(counts), indent=1).encode() + b"\n")
        shutil.rmtree(self.run / PARTS)

    def _make_part(self, translator: Translator, lines: Sequence[str]) -> dict[str, Any]:
        """What an earlier start has written of these lines, or what is written now."""
        path = self.run / PARTS / f"{xxhash.xxh3_64_hexdigest(f'{self._bundle_hash} {lines}'.encode())}.json"
        if not path.exists():
            began = time.monotonic()
            search = translator.settings.search.changed(beam=1)  # more lines in the time: as good for this as a beam (Edunov et al. 2018)
            pairs, dropped = self._judge(lines, translator.translate(lines, search, guards=False))  # what loops is dropped
            write_whole(path, json.dumps({"seconds": time.monotonic() - began, "dropped": dropped, "pairs": pairs}).encode())
        return dict(json.loads(path.read_bytes()))

    def _judge(self, lines: Sequence[str], made: Sequence[Translation]) -> tuple[list[tuple[str, str]], dict[str, int]]:
        """Pairs, and why the others are dropped: a broken translation, a filter of the corpus, or less confidence than the others have."""
        part = CorpusPart(0, 0, LINES, ("", ""), self.settings.languages)
        source, target = (pa.array(side, pa.string()) for side in ([each.text for each in made], lines))
        raw = assemble(part, source, target, np.arange(1, len(lines) + 1), np.zeros(len(lines), np.uint8))
        reasons = Cleaner(self.settings, 1).judge_rows(raw)["reason"].to_list()
        least = sorted(each.confidence for each in made)[int(LEAST_SURE * len(made))]
        pairs, dropped = [], Counter[str]()
        for line, translation, reason in zip(lines, made, reasons, strict=True):
            if translation.finish != "eos":
                dropped[DEGENERATE] += 1
            elif reason != Reason.KEPT:
                dropped[Reason(reason).label] += 1
            elif translation.confidence < least:
                dropped[UNSURE] += 1
            else:
                pairs.append((translation.text, line))
        return pairs, dict(dropped)
