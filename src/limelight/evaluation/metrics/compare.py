"""`compare` tests whether the difference between two systems is more than chance. See docs/metrics.md."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from limelight.errors import ConfigError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.metrics import MetricCounts, bootstrap, bounds, swap_pairs

SIGNIFICANT = 0.05
SAME = 1e-9  # two scores this close differ by rounding
DRAWS = ("bs", "seed")  # parts of a signature that move the bounds of a score, and not the score


@dataclass(frozen=True)
class Difference:
    """A difference is that of one metric between two systems. `difference` is other minus system, whichever direction is better."""

    metric: str
    system: float
    other: float
    difference: float
    low: float | None  # of the difference: 95 % of the paired resamples
    high: float | None
    p: float
    p_bootstrap: float | None
    better: str | None  # its name, if one is
    significant: bool
    verdict: str


def compare(
    names: tuple[str, str], system: Sequence[MetricCounts], other: Sequence[MetricCounts], settings: EvaluateSettings
) -> list[Difference]:
    """Both counted with the same settings against the same references: one difference for each metric."""
    problems = [
        f"{a.name} of {names[0]} has {a.signature}, {b.name} of {names[1]} has {b.signature}"
        for a, b in zip(system, other, strict=True)
        if (a.name, _measure(a)) != (b.name, _measure(b))
    ]
    if problems:
        raise ConfigError("scores that were counted in two ways cannot be compared; count both alike:", problems)
    return [_difference(names, a, b, settings) for a, b in zip(system, other, strict=True)]


def summary(differences: Sequence[Difference]) -> str | None:
    """A warning when metrics contradict each other, which no single p value shows."""
    winners = {each.better: each.metric for each in differences if each.significant}
    if len(winners) < 2:
        return None
    (one, metric), (two, other) = list(winners.items())[:2]
    return f"the metrics disagree: {metric} prefers {one}, {other} prefers {two}; read the sentences before you choose"


def _measure(counts: MetricCounts) -> list[str]:
    """All of a signature that decides the score: nrefs:1|bs:1000|seed:12345|tok:13a -> [nrefs:1, tok:13a]."""
    return [part for part in counts.signature.split("|") if part.partition(":")[0] not in DRAWS]


def _difference(names: tuple[str, str], a: MetricCounts, b: MetricCounts, settings: EvaluateSettings) -> Difference:
    difference = b.value - a.value
    p = _randomization(a, b, abs(difference), settings)
    low, high, p_bootstrap = _bootstrap(a, b, abs(difference), settings)
    better = names[(difference > 0) == a.higher_is_better] if abs(difference) > SAME else None
    significant = better is not None and p < SIGNIFICANT
    verdict = _verdict(a, np.array_equal(a.rows, b.rows), abs(difference), p, better, significant)
    return Difference(a.name, a.value, b.value, difference, low, high, p, p_bootstrap, better, significant, verdict)


def _randomization(a: MetricCounts, b: MetricCounts, distance: float, settings: EvaluateSettings) -> float:
    """p = (1 + trials at least as far apart) / (1 + trials).

    sacreBLEU counts only trials that are farther apart. Where all are equally far, as for two outputs that are the same or differ
    in one sentence, it finds p = 0.0001; that is no proof of anything, and here p is 1.
    """
    as_far = 0
    for sums_a, sums_b in swap_pairs(a.rows, b.rows, settings.trials, settings.seed):
        apart = np.abs([a.score_of(x) - a.score_of(y) for x, y in zip(sums_a, sums_b, strict=True)])
        as_far += int((apart >= distance - SAME).sum())
    return (as_far + 1) / (settings.trials + 1)


def _bootstrap(
    a: MetricCounts, b: MetricCounts, distance: float, settings: EvaluateSettings
) -> tuple[float, float, float] | tuple[None, None, None]:
    """Bounds of the difference, and the p value of sacreBLEU's `--paired-bs`."""
    if settings.resamples is None:
        return None, None, None
    width = a.rows.shape[1]
    sums = bootstrap(np.hstack([a.rows, b.rows]), settings.resamples, settings.seed)
    apart = np.array([a.score_of(row[width:]) - a.score_of(row[:width]) for row in sums])
    distances = np.abs(apart)
    as_far = int((distances - distances.mean() >= distance - SAME).sum())
    low, high = bounds(apart.tolist())
    return low, high, (as_far + 1) / (settings.resamples + 1)


def _verdict(a: MetricCounts, equal: bool, distance: float, p: float, better: str | None, significant: bool) -> str:
    if equal:
        return f"both have the same {a.name} in every sentence"
    chance = "p < 0.001" if p < 0.001 else f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"
    if significant:
        return f"{better} is better by {distance:.1f} {a.name} ({chance}): unlikely to be chance"
    return f"the difference of {distance:.1f} {a.name} may be chance ({chance})"
