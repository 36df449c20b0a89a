"""`bootstrap` and `swap_pairs` draw resampled sets, to tell what chance alone could have done:

    bootstrap      draw as many sentences as there are, with replacement, and add up their counts (Koehn 2004)
    randomization  let each sentence's two translations swap sides by the toss of a coin (Riezler and Maxwell 2005)

The draws are those of sacreBLEU for the same seed, made a few million at a time: it makes all at once, which for 100,000 lines
takes gigabytes. So `sacrebleu --confidence` and `--paired-ar` give the numbers that we give. numpy may change its draws in a later
version, as it may for sacreBLEU; bounds then move in their last digit, and scores do not.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

DRAWS_AT_ONCE = 4_000_000


def bootstrap(rows: Numbers, resamples: int, seed: int) -> Numbers:
    """Counts of N sentences (N, k) -> their sums in each resample (resamples, k)."""
    sentences = len(rows)
    generator = np.random.default_rng(seed)
    sums = []
    for size in _blocks(resamples, sentences, 1):
        drawn = generator.choice(sentences, size=(size, sentences), replace=True)
        drawn += np.arange(size)[:, None] * sentences
        times = np.bincount(drawn.ravel(), minlength=size * sentences).reshape(size, sentences)
        sums.append(times.astype(np.float64) @ rows)
    return np.concatenate(sums)


def swap_pairs(a: Numbers, b: Numbers, trials: int, seed: int) -> Iterator[tuple[Numbers, Numbers]]:
    """Counts of two systems (N, k) -> their sums in each trial, some trials at a time, (some, k) twice.

    In a trial each sentence's pair of rows is swapped or not; the two sums always add up to all there is.
    """
    generator = np.random.default_rng(seed)
    rows, own, both = a - b, b.sum(axis=0), a.sum(axis=0) + b.sum(axis=0)
    # numpy takes coins from words of 32 bits and throws the rest of the last away, so blocks are cut where none is left.
    for size in _blocks(trials, len(a), 32):
        coins = generator.integers(2, size=(size, len(a)), dtype=bool)
        first = coins.astype(np.float64) @ rows + own
        yield first, both - first


def _blocks(total: int, width: int, multiple: int) -> Iterator[int]:
    """Sizes that add up to `total`, each a multiple but the last."""
    most = max(1, DRAWS_AT_ONCE // max(1, width) // multiple) * multiple
    for start in range(0, total, most):
        yield min(most, total - start)
