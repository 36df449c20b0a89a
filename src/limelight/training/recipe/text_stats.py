"""The statistics of a prepared text say how much there is to learn from, and how often its pieces occur."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.errors import LimelightError
from limelight.planning.sizing_rules import TextStats

COUNTED: Final = 20_000  # pairs; more move the entropy by less than a hundredth


@dataclass(frozen=True)
class PreparedText(TextStats):
    @classmethod
    def of(cls, manifest: CorpusManifest) -> "PreparedText":
        """Corpora are seen as often as their weights say."""
        rows = [0.0] * len(manifest.corpora)
        for shard in manifest.splits["train"]:
            rows = [a + b for a, b in zip(rows, shard.rows_by_corpus, strict=True)]
        pairs = sum(count * corpus.weight for count, corpus in zip(rows, manifest.corpora, strict=True))
        pairs *= 2 if manifest.both_directions else 1
        fed = FedText.of(manifest)
        source, target = ((pieces + around * fed.rows) * pairs / fed.rows for pieces, around in zip(fed.pieces, fed.around, strict=True))
        return cls(pairs, source, target)


@dataclass(frozen=True)
class FedText:
    """The training text as it is fed: where both directions are learnt, every pair twice."""

    rows: int
    pieces: tuple[int, int]  # of source and target
    around: tuple[int, int]  # ids around the pieces of each

    @classmethod
    def of(cls, manifest: CorpusManifest) -> "FedText":
        rows = sum(shard.rows for shard in manifest.splits["train"])
        source, target = (manifest.statistics["pieces"]["train"][side]["pieces"] for side in ("source", "target"))
        before, after = manifest.marks.around
        around = before + bool(manifest.tag_set.languages), after
        return cls(2 * rows, (source + target,) * 2, around) if manifest.both_directions else cls(rows, (source, target), around)


def frequencies(prepared: PreparedCorpus) -> float | None:
    """Entropy of the target pieces of the training text, with their ends, in nats: -sum p ln p. None of a text without pairs. Of the
    validation set, where the shards of training are at an address: all of them would have to be fetched."""
    pairs = prepared.split("train" if prepared.cache is None else "valid")
    if not pairs.rows:
        return None
    rows = np.unique(np.linspace(0, pairs.fed - 1, min(COUNTED, pairs.fed)).astype(np.int64))
    counts = np.bincount(pairs.ids(rows)[1].values, minlength=prepared.manifest.vocab_sizes[1]).astype(np.float64)
    counts[prepared.manifest.marks.end] += len(rows)
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def frequencies_in(folder: Path) -> float | None:
    """The same of a prepared corpus that may be gone; None then."""
    try:
        return frequencies(PreparedCorpus.open(folder, verify=False))
    except (OSError, ValueError, LimelightError):
        return None
