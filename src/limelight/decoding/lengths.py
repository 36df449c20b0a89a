"""Length normalization divides a sum of log-probabilities, since a search without it prefers short texts."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from limelight.decoding.config import SearchSettings
    from limelight.decoding.steps import Floats

Number = TypeVar("Number", int, float, "Floats")


def length_penalty(pieces: Number, settings: "SearchSettings") -> Number:
    """What the sum of log-probabilities of so many pieces, the end counted, is divided by.

        lp(n) = ((5 + n) / 6)^alpha      gnmt (Wu et al. 2016, equation 14), alpha = 0.6 in the paper
        lp(n) = n^alpha                  power

    It grows with n, so a sum that can only fall has its best score, from here on, at the greatest length: the bound of `beam`.
    """
    base = (5 + pieces) / 6 if settings.length_norm == "gnmt" else pieces
    result: Number = base**settings.length_penalty
    return result
