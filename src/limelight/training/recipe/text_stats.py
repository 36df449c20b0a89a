"""The statistics of a prepared text say how much there is to learn from, how often its pieces occur, and how directions are mixed."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from limelight.corpus.feeding.directions import count_by_direction, list_fed, suggest_temperature, temper
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.errors import LimelightError
from limelight.planning.sizing_rules import TextStats
from limelight.training.run_folder import RunChoice

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


def choose_temperature(prepared: PreparedCorpus, asked: Mapping[str, Any]) -> tuple[float, RunChoice | None]:
    """`asked` is what a person gave for the batches. Nothing is said of one direction."""
    manifest, pairs = prepared.manifest, prepared.split("train")
    if len(manifest.directions) == 1:
        return 1.0, None
    weights, fed = [corpus.weight for corpus in manifest.corpora] * (2 if pairs.turns else 1), list_fed(manifest, pairs.turns)
    seen = {direction: count for direction, count in count_by_direction(pairs.counts, weights, fed).items() if count}
    temperature = float(asked.get("temperature") or suggest_temperature(seen))
    tempered = count_by_direction(pairs.counts, temper(pairs.counts, weights, fed, temperature), fed)
    least, most = min(seen, key=lambda each: seen[each]), max(seen.values())
    why = "asked for; " if "temperature" in asked else ""
    why += f"the largest has {most / seen[least]:.1f} times the pairs of the smallest, {'-'.join(least)}"
    if temperature == 1:
        why += ": each is seen in proportion"
    else:
        why += f", whose {seen[least]:,.0f} are seen {tempered[least] / seen[least]:.1f} times in an epoch"
    return temperature, RunChoice("directions", f"{len(seen)}, temperature {temperature:g}", why)
