"""One head of the cross-attention is guided: it learns to look where word statistics say (Garg et al. 2019).

The statistics are those of IBM model 1, learnt once from some of the training text. To the loss of a batch comes

    weight * sum over target pieces of  - sum_s P(s | t) log w(t, s)

where w are the attention weights of the head while piece t is foretold. Pieces that the statistics do not know do not count: the end, tags,
and what a change of the text put there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.engines.torch import usual_heads
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.text.pieces.model_one import ModelOne

MOST_PAIRS, MOST_CELLS = 100_000, 16_000_000  # learnt from: source times target pieces
LONGEST = 10_000  # cells of a pair
LEAST = 1e-4  # probability that is remembered
SMALLEST = 1e-9  # attention: its logarithm is finite


def find_guided_head(config: ModelConfig) -> tuple[int, int]:
    """Layer and number of the first of the heads that a translator which names none would ask."""
    return usual_heads(config)[0]


@dataclass(frozen=True)
class AlignmentGuide:
    """A guide knows where the guided head should look."""

    weight: float
    keys: Tensor  # sorted, see `ModelOne`
    probabilities: Tensor
    stride: int

    @classmethod
    def learn(cls, prepared: PreparedCorpus, weight: float) -> Self:
        """From pairs all over the text; where that is at an address, from its first shard."""
        pairs = prepared.split("train")
        reach = pairs.fed if pairs.cache is None else pairs.shards[0].rows
        samples = np.unique(np.linspace(0, reach - 1, min(reach, MOST_PAIRS)).astype(np.int64))
        source, target = pairs.lengths(samples)
        samples = samples[source * target <= LONGEST]
        order = np.random.default_rng(1).permutation(len(samples))  # else the last corpora would be what is left out
        source, target = pairs.lengths(samples[order])
        samples = np.sort(samples[order][np.cumsum(source * target) <= MOST_CELLS])
        rows = [np.split(side.values, side.offsets[1:-1]) for side in pairs.ids(samples)]
        return cls.of(ModelOne.learn(*rows), weight)

    @classmethod
    def of(cls, learnt: ModelOne, weight: float) -> Self:
        likely = learnt.keep_likely(LEAST)
        return cls(weight, torch.from_numpy(likely.keys), torch.from_numpy(likely.probabilities).float(), learnt.stride)

    def to(self, device: torch.device) -> "AlignmentGuide":
        return AlignmentGuide(self.weight, self.keys.to(device), self.probabilities.to(device), self.stride)

    def find_posterior(self, source_BS: Tensor, target_BT: Tensor) -> Tensor:
        """(B, T, S): rows sum to 1, or to 0 where nothing is known."""
        if not len(self.keys):
            return torch.zeros(*target_BT.shape, source_BS.shape[1], device=source_BS.device)
        keys_BTS = source_BS[:, None, :] * self.stride + target_BT[:, :, None]
        place_BTS = torch.searchsorted(self.keys, keys_BTS).clamp_max(len(self.keys) - 1)
        known_BTS = (self.keys[place_BTS] == keys_BTS) & (target_BT < self.stride)[:, :, None]
        share_BTS = torch.where(known_BTS, self.probabilities[place_BTS], 0.0)
        return share_BTS / share_BTS.sum(-1, keepdim=True).clamp_min(SMALLEST)

    def measure(self, weights_BTS: Tensor, batch: Batch) -> Tensor:
        """What comes to the loss, summed over the target pieces."""
        wanted_BTS = self.find_posterior(batch.source, batch.target_out)
        return -self.weight * (wanted_BTS * weights_BTS.float().clamp_min(SMALLEST).log()).sum()


@contextmanager
def watch_guided(model: Transformer) -> Iterator[list[Tensor]]:
    """Within it, the attention weights of the guided head are kept, pass by pass: (B, T, S)."""
    layer, head = find_guided_head(model.config)
    [attention] = [each.attention for each in model.spotlights() if (each.kind, each.layer) == ("cross", layer)]
    looks, seen = attention.looks, list[Tensor]()

    def keep(stage: str, value: Tensor) -> None:
        if stage == "weights":
            seen.append(value[:, head])

    looks.append(keep)
    try:
        yield seen
    finally:
        looks.remove(keep)
