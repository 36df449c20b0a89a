"""Each target piece is linked to the source piece it comes from, by the head that says it best.

The head: one that was measured over a corpus, if the bundle names such; else the one with the best score in this sentence. A head that
aligns is sure of its place, and turns to each source piece once. Not the most diagonal one: where two languages order their words
differently, it must cross.

    score = sharpness * coverage,    sharpness = mean_t max_s w[t, s],    coverage = mean_s min(1, sum_t w[t, s])

over the pieces of the two texts, without their ends. The links: as in `translator.alignment`, a target piece is linked to the piece that
it looks at most, and to none if it looks at the source's end with more than `IDLE`.
"""

from collections.abc import Sequence

import numpy as np

from limelight.inspection.head_names import Head
from limelight.inspection.trace import Align, Array, Link

IDLE = 0.9


def best_head(cross_LHTS: Array, rows: Sequence[int], columns: Sequence[int], measured: Sequence[tuple[int, int]]) -> Head:
    """Of those that were measured, or else of all, the one with the best score in this sentence."""
    scores_LH = scores(cross_LHTS, rows, columns)
    candidates = list(measured) or list(np.ndindex(*scores_LH.shape))
    layer, head = max(candidates, key=lambda at: float(scores_LH[at[0], at[1]]))
    return Head("cross", int(layer), int(head))


def scores(cross_LHTS: Array, rows: Sequence[int], columns: Sequence[int]) -> Array:
    """(layers, heads)"""
    if not rows or not columns:
        return np.zeros(cross_LHTS.shape[:2], np.float32)
    text = cross_LHTS[:, :, list(rows)][..., list(columns)]
    sharpness = text.max(axis=-1).mean(axis=-1)
    coverage = np.minimum(1, text.sum(axis=-2)).mean(axis=-1)
    found: Array = sharpness * coverage
    return found


def align(weights_TS: Array, head: Head, source_words: Sequence[int | None], target_words: Sequence[int | None], ends: bool) -> Align:
    """`source_words` and `target_words`: the word of each piece, None where a piece is no text. `ends`: the last column is an end."""
    columns = [s for s, word in enumerate(source_words) if word is not None]
    rows = [t for t, word in enumerate(target_words) if word is not None]
    awake = [t for t in rows if columns and not (ends and weights_TS[t, -1] > IDLE)]
    links: list[Link] = []
    for t in awake:
        s = columns[int(weights_TS[t, columns].argmax())]
        links.append((s, t, float(weights_TS[t, s])))
    return Align(f"head:{head}", str(head), links, _words(weights_TS, awake, columns, source_words, target_words))


def _words(
    weights_TS: Array,
    rows: Sequence[int],
    columns: Sequence[int],
    source_words: Sequence[int | None],
    target_words: Sequence[int | None],
) -> list[Link]:
    """Each target word with the source word that it looks at most: the sum over the pieces there, the mean over the pieces here."""
    links = []
    for word in sorted({w for t in rows if (w := target_words[t]) is not None}):
        mean_S = weights_TS[[t for t in rows if target_words[t] == word]].mean(axis=0)
        sums: dict[int, float] = {}
        for s in columns:
            owner = source_words[s]
            if owner is not None:
                sums[owner] = sums.get(owner, 0.0) + float(mean_S[s])
        best = max(sums, key=lambda owner: sums[owner])
        links.append((best, word, sums[best]))
    return links
