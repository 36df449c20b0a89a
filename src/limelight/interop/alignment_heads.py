"""The heads of the cross-attention that align best are measured: they look where word statistics say.

The statistics are IBM model 1 (Brown et al. 1993): how probable each target piece is as the translation of each source piece, learnt from
the pairs themselves. A head's score is the probability, on average over target pieces, of the source piece that it looks at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from limelight.decoding.steps import Specials
from limelight.decoding.task import pad_rows
from limelight.engines.torch import WatchedModel
from limelight.model.transformer import Batch, Transformer
from limelight.text.pieces.model_one import ModelOne

Numbers = npt.NDArray[np.float64]
Ids = Sequence[Sequence[int]]
AT_ONCE = 32  # pairs in a batch: all attention matrices of it are held


@dataclass(frozen=True)
class BestHeads:
    """Best heads are `chosen` of one layer, together at least as good as any alone. `scores` (layers, heads): what each would get alone."""

    chosen: tuple[tuple[int, int], ...]
    score: float
    scores: list[list[float]]


def best_heads(model: Transformer, sources: Ids, targets: Ids, special: Specials, begin: tuple[int, int] = (0, 0)) -> BestHeads:
    """The heads of one layer, since an engine averages heads of one layer: the best, and those that make it better.

    `begin`: the number of first ids of each source and of each target that are a language and no word.
    """
    first, second = begin
    wanted = posteriors([ids[first:] for ids in sources], [ids[second:] for ids in targets])
    seen = record_attention(model, sources, targets, special)
    weights = [[w[:, second:, first:] for w in layer] for _, layer in sorted(seen.items())]
    scores = [[agreement([w[head] for w in layer], wanted) for head in range(len(layer[0]))] for layer in weights]
    top = max(range(len(scores)), key=lambda number: max(scores[number]))
    order = sorted(range(len(scores[top])), key=lambda head: -scores[top][head])
    chosen, best = [order[0]], scores[top][order[0]]
    for head in order[1:]:
        together = agreement([w[[*chosen, head]].mean(axis=0) for w in weights[top]], wanted)
        if together > best:
            chosen, best = [*chosen, head], together
    return BestHeads(tuple((top, head) for head in sorted(chosen)), best, scores)


def posteriors(sources: Ids, targets: Ids) -> list[Numbers]:
    """For each pair, how probable it is that target piece t comes from source piece s: (T, S), rows sum to 1."""
    learnt = ModelOne.learn(sources, targets)
    return [learnt.find_posterior(source, target) for source, target in zip(sources, targets, strict=True)]


def agreement(weights: Sequence[npt.NDArray[np.float32]], wanted: Sequence[Numbers]) -> float:
    """The mean probability of the source piece that is looked at most, (T, S) each."""
    found = [rows[np.arange(len(rows)), w.argmax(axis=1)] for w, rows in zip(weights, wanted, strict=True)]
    return float(np.concatenate(found).mean())


@torch.inference_mode()
def record_attention(model: Transformer, sources: Ids, targets: Ids, special: Specials) -> dict[int, list[npt.NDArray[np.float32]]]:
    """By layer, for each pair: (H, T, S), the ends of both sides left out."""
    config, device = model.config, next(model.parameters()).device
    watched = WatchedModel(model, [(layer, 0) for layer in range(config.decoder_layers)])
    kept: dict[int, list[npt.NDArray[np.float32]]] = {layer: [] for layer in range(config.decoder_layers)}
    for at in range(0, len(sources), AT_ONCE):
        some = slice(at, at + AT_ONCE)
        source = torch.from_numpy(pad_rows([special.add_end(ids) for ids in sources[some]], special.pad)).to(device)
        target = torch.from_numpy(pad_rows([[special.start, *ids] for ids in targets[some]], special.pad)).to(device)
        watched.model.decode(Batch.padded(source, target, target), watched.model.encode(source))
        for layer, weights in watched.seen.items():
            whole = weights.float().cpu().numpy()
            kept[layer] += [w[:, : len(t), : len(s)] for w, s, t in zip(whole, sources[some], targets[some], strict=True)]
    return kept
