"""Statistics of a head say what kind of spotlight it is, from where it looked in one sentence.
Weights are w[t, s], T rows that look and S columns.

    entropy    H(t) = - sum_s w[t, s] log2 w[t, s], the mean over t, in bits: 0 looks at one piece, log2 S at all alike
    diagonal   1 - mean over t of sum_s w[t, s] |s / (S - 1) - t / (T - 1)|: 1 looks at its own relative place, as a monotone
               translation would; 1 - 1/3 looks everywhere alike, in a long sentence
    end mass   mean over t of the weight on the piece where heads rest that have nothing to look at: the end of the source, and for the
               decoder, which reads no end, its start

Of the translation as a whole, from one head of the cross-attention (Tu et al. 2016; Rikters, Fishel and Bojar 2017):

    coverage[s]           = sum_t w[t, s]: about 1 for a piece that was translated once
    coverage deviation    = mean over source pieces of log(1 + (1 - coverage[s])^2)
    absent-minded, out    = mean over t of H(t); in: the same of the columns, each brought to the sum 1; in bits
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from limelight.inspection.head_names import KINDS, Gates, Head, Kind
from limelight.inspection.trace import Array, HeadStats


def head_stats(attention: Mapping[Kind, Array], gates: Mapping[Kind, Gates], source_ends: bool) -> list[HeadStats]:
    """Of every head, in the order of `head_names.heads_of`."""
    found = []
    for kind in KINDS:
        weights_LHTS = attention[kind]
        bits_LH = entropy(weights_LHTS).mean(axis=-1)
        places_LH = diagonality(weights_LHTS)
        rest_LHT = weights_LHTS[..., 0] if kind == "dec" else weights_LHTS[..., -1] * source_ends
        ends_LH = rest_LHT.mean(axis=-1)
        found += [
            HeadStats(str(Head(kind, *at)), *(float(of[at]) for of in (bits_LH, places_LH, ends_LH, gates[kind])))
            for at in np.ndindex(*bits_LH.shape)
        ]
    return found


def entropy(weights: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """In bits, over the last axis. 0 log 0 is 0."""
    exact = weights.astype(np.float64)
    terms: npt.NDArray[np.float64] = exact * np.log2(np.where(exact > 0, exact, 1))
    bits: npt.NDArray[np.float64] = -terms.sum(axis=-1) + 0.0  # and no -0
    return bits


def diagonality(weights: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """(..., T, S) -> (...)"""
    rows, columns = weights.shape[-2:]
    own = np.arange(rows)[:, None] / max(rows - 1, 1)
    distance = np.abs(np.arange(columns) / max(columns - 1, 1) - own)
    away: npt.NDArray[np.float64] = (weights * distance).sum(axis=-1).mean(axis=-1)
    return 1 - away


def coverage(weights_TS: Array, rows: Sequence[int], columns: Sequence[int]) -> dict[str, Any]:
    """By the names that a trace has for them. `rows` and `columns` are pieces of text: the ends are looked at and are looked for, but
    they are not translated."""
    found = {
        "coverage": weights_TS.sum(axis=0).tolist(),
        "coverage_deviation": 0.0,
        "absent_in": 0.0,
        "absent_out": 0.0,
    }
    text = weights_TS[np.ix_(rows, columns)].astype(np.float64)
    if text.size:
        looked_at = text.sum(axis=0)
        shares = text / np.where(looked_at > 0, looked_at, 1)
        found["coverage_deviation"] = float(np.log1p((1 - looked_at) ** 2).mean())
        found["absent_in"] = float(entropy(shares.T).mean())
        found["absent_out"] = float(entropy(weights_TS[rows]).mean())
    return found
