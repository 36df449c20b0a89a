"""The entropy of piece frequencies is the loss of a run after tens of steps, before it looks at any source.

frequencies(PreparedCorpus.open(Path("en-de/prepared"))) -> 6.14
"""

from pathlib import Path
from typing import Final

import numpy as np

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import LimelightError

COUNTED: Final = 20_000  # pairs; more move the entropy by less than a hundredth


def frequencies(prepared: PreparedCorpus) -> float | None:
    """Entropy of the target pieces of the training text, with their ends, in nats: -sum p ln p. None of a text without pairs."""
    pairs = prepared.split("train")
    if not pairs.rows:
        return None
    rows = np.unique(np.linspace(0, pairs.rows - 1, min(COUNTED, pairs.rows)).astype(np.int64))
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
