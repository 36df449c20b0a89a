"""Monolingual text is text in one language without a translation. Its lines are cleaned, drawn, and counted until they are synthetic pairs.

read = kept + dropped, where `translated` of them met the translator
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Final

import polars as pl

from limelight.corpus.cleaning.clean import Cleaner, hash_texts
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.exchange.engine import Progress
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.readers import read
from limelight.corpus.reading.finding import LINES
from limelight.corpus.reading.language_tags import closeness
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.streams import without_packing
from limelight.errors import ConfigError, DataError
from limelight.files import write_whole
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.run_folder import SYNTHETIC_FOLDER

MOST_ROUNDS: Final = 3
MOST_LINES: Final = 2_000_000  # held in memory, and more than a budget translates; of more text these are drawn
FOREIGN: Final = 0.5  # of the lines in another language: then it is another file than was meant
PAIRS, COUNTS = "synthetic.parquet", "synthetic.json"  # in the run whose translator made them


@dataclass(frozen=True)
class MonoText:
    """Monolingual text has files of the target language, and for further rounds of the source language."""

    target: list[str]
    source: list[str]
    rounds: int = 1
    weight: float | None = None  # of a synthetic pair in an epoch; None: chosen

    @classmethod
    def of(cls, paths: Sequence[str], languages: tuple[str, str], rounds: int, weight: float | None) -> "MonoText":
        """Files are of the target language, unless their names end with the code of the source."""
        source = [path for path in paths if _ends_with(path, languages[0]) and not _ends_with(path, languages[1])]
        target = [path for path in paths if path not in source]
        problems = []
        if not target:
            problems.append(f"--mono: give text in {languages[1]}, the target: a model learns to write from it")
        if source and rounds == 1:
            problems.append(
                f"--mono {source[0]}: text in {languages[0]}, the source, teaches the other direction, from the second round on; leave it "
                "out, or give --rounds 2"
            )
        if not 1 <= rounds <= MOST_ROUNDS:
            problems.append(f"--rounds {rounds}: give 1 to {MOST_ROUNDS}; more rounds share the same time, and hardly differ")
        if problems:
            raise ConfigError("the monolingual text cannot be used:", problems)
        return cls(target, source, rounds, weight)


def _ends_with(path: str, language: str) -> bool:
    """_ends_with("news.de.gz", "de") -> True"""
    ending = PurePath(without_packing(path)).suffix[1:]
    return bool(ending) and closeness(language, ending) is not None


@dataclass
class SyntheticCounts:
    """Counts tell what became of monolingual lines (`synthetic.json`): read = kept + the sum of dropped."""

    languages: tuple[str, str]  # of the pairs
    read: int = 0
    translated: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0  # of translating
    before: float = 0.0  # seconds of the run that made the translator

    def save(self, run: Path) -> None:
        write_whole(run / COUNTS, json.dumps(asdict(self), indent=1).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> "SyntheticCounts":
        return cls(**json.loads(path.read_bytes()))

    def __str__(self) -> str:
        why = ", ".join(f"{label.replace('_', ' ')} {count:,}" for label, count in sorted(self.dropped.items(), key=lambda each: -each[1]))
        return f"{self.read:,} lines read, {self.translated:,} translated, {self.kept:,} kept; dropped: {why or 'none'}"


def list_counts(run: Path) -> list[SyntheticCounts]:
    """Of every translator that a run made synthetic pairs with, in their order; the last ones are in its own training text."""
    return [SyntheticCounts.load(path) for path in sorted((run / SYNTHETIC_FOLDER).glob(f"*/{COUNTS}"))]


def describe_synthetic(run: Path, manifest: CorpusManifest) -> dict[str, int | str]:
    """Facts for the card of a translator: how many of its pairs are synthetic, and what became of the lines."""
    tagged = [number for number, names in enumerate(manifest.names) if SYNTHETIC in names]
    pairs = sum(shard.rows_by_corpus[number] for shard in manifest.splits["train"] for number in tagged)
    counts = list_counts(run)[-1:]
    return ({"synthetic pairs among them": pairs} if tagged else {}) | ({"monolingual text": str(counts[0])} if counts else {})


@dataclass(frozen=True)
class LineDrawing:
    """A drawing takes each clean line once, in an order by the hash of its text: what a budget leaves out is a random part of it."""

    language: str
    settings: PrepareSettings
    anyway: bool = False
    most: int = MOST_LINES

    def draw(self, paths: Sequence[str], counts: SyntheticCounts, watch: Callable[[Progress], None]) -> list[str]:
        """The lines to translate; `counts` hears of all that are read and dropped."""
        cleaner, drawn, dropped = self._build_cleaner(), dict[int, str](), Counter[str]()
        for number, path in enumerate(paths):
            watch(Progress("monolingual", number, len(paths)))
            for batch in read(CorpusPart(0, number, LINES, (path, path), (self.language, self.language))):
                rows = cleaner.judge_rows(batch)
                counts.read += rows.height
                dropped.update(Reason(reason).label for reason in rows["reason"].to_list() if reason != Reason.KEPT)
                texts = rows.filter(pl.col("reason") == Reason.KEPT)["target"]
                for key, text in zip(hash_texts("key", texts).to_list(), texts.to_list(), strict=True):
                    dropped[Reason.DUPLICATE.label] += key in drawn
                    drawn.setdefault(key, text)
                if len(drawn) > 2 * self.most:
                    dropped["not_drawn"] += _keep_first(drawn, self.most)
        dropped["not_drawn"] += _keep_first(drawn, self.most)
        watch(Progress("monolingual", len(paths), len(paths)))
        counts.dropped = {label: count for label, count in dropped.items() if count}
        self._refuse_foreign(paths, counts, bool(drawn))
        return [drawn[key] for key in sorted(drawn)]

    def _build_cleaner(self) -> Cleaner:
        """A line is read as a pair with itself, so that all filters of the corpus look at it but the one against copies."""
        alone = CorpusSettings(name="monolingual", paths=["lines"])
        filters = self.settings.filters.changed(copied="off")
        both = (self.language, self.language)
        return Cleaner(PrepareSettings(languages=both, corpora=[alone], filters=filters, held_out=HeldOutSettings(),
                                       normalize=self.settings.normalize), 1)  # fmt: skip

    def _refuse_foreign(self, paths: Sequence[str], counts: SyntheticCounts, found: bool) -> None:
        foreign = sum(counts.dropped.get(reason.label, 0) for reason in (Reason.WRONG_LANGUAGE, Reason.WRONG_SCRIPT))
        if not found or (foreign > FOREIGN * counts.read and not self.anyway):
            raise DataError(
                f"{', '.join(paths)}: there is too little text in {self.language}: {counts}; give clean text in this language, one "
                "sentence on a line" + (", or go on with what is left by --anyway" if found else "")
            )


def _keep_first(drawn: dict[int, str], most: int) -> int:
    """How many were left out."""
    beyond = sorted(drawn)[most:]
    for key in beyond:
        del drawn[key]
    return len(beyond)
