"""A corpus is fed in its own direction, and turned round where both directions are learnt. Directions get their share by a temperature.

With temperature T a direction of n pairs is seen in proportion to n ** (1 / T) (Arivazhagan et al. 2019): T = 1 leaves the corpora as they
are, and a high T shows all directions equally often. The pairs of an epoch stay as many as they are.
"""

from collections.abc import Sequence
from typing import Final

from limelight.corpus.manifest import CorpusManifest
from limelight.text.languages import Direction

ABOUT_EQUAL, FAR_APART = 2.0, 10.0  # largest to smallest direction
TEMPERED, HOT = 3.0, 5.0
DIGITS: Final = 6  # of a weight: a power may differ in the last bit between machines, and a run must not


def list_fed(manifest: CorpusManifest, turns: bool) -> tuple[Direction, ...]:
    """The direction of each corpus, then of each again if all are fed turned round too."""
    turned = tuple((target, source) for source, target in manifest.stored) if turns else ()
    return (*manifest.stored, *turned)


def temper(counts: Sequence[int], weights: Sequence[float], fed: Sequence[Direction], temperature: float) -> tuple[float, ...]:
    """Weights of the corpora under which each direction has its share."""
    seen = count_by_direction(counts, weights, fed)
    shares = {direction: pairs ** (1 / temperature) for direction, pairs in seen.items() if pairs}
    if temperature == 1 or len(shares) < 2:
        return tuple(weights)
    whole = sum(seen.values()) / sum(shares.values())
    factors = {direction: share * whole / seen[direction] for direction, share in shares.items()}
    return tuple(float(f"{weight * factors.get(way, 1.0):.{DIGITS}g}") for weight, way in zip(weights, fed, strict=True))


def count_by_direction(counts: Sequence[int], weights: Sequence[float], fed: Sequence[Direction]) -> dict[Direction, float]:
    """Pairs of each direction that an epoch sees."""
    seen: dict[Direction, float] = {}
    for count, weight, direction in zip(counts, weights, fed, strict=True):
        seen[direction] = seen.get(direction, 0.0) + count * weight
    return seen


def suggest_temperature(seen: dict[Direction, float]) -> float:
    """By how far the directions are apart: small ones are learnt, and large ones do not suffer much."""
    filled = [pairs for pairs in seen.values() if pairs]
    apart = max(filled) / min(filled) if filled else 1.0
    return 1.0 if apart <= ABOUT_EQUAL else TEMPERED if apart <= FAR_APART else HOT
