"""The importance of a head is what muting it costs given translations (Michel et al. 2019, Voita et al. 2019).

delta_logp(head) = mean over sentences of  log p(translation, head muted) - log p(translation)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from limelight.decoding.steps import Specials
from limelight.decoding.task import pad_rows
from limelight.engines.torch import WatchedModel
from limelight.errors import ConfigError
from limelight.inspection.head_names import KIND_OF, Head, heads_of
from limelight.model.transformer import Batch, Spotlight, Transformer

CELLS = 4096  # ids of both sides that go through the model together
LOGITS = 2**24  # numbers at once: 64 MB

Pair = tuple[Sequence[int], Sequence[int]]  # source and target ids, without start and end
Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class HeadImportance:
    id: str  # cross.5.2
    delta_logp: float  # of a sentence, on average
    per_piece: float  # the same of a target piece, the end counted
    delta_chrf: float | None = None  # of translations made anew, where somebody made them


def importance(
    model: Transformer,
    pairs: Sequence[Pair],
    specials: Specials,
    progress: Watch = lambda done, total: None,
    given: int = 0,
) -> list[HeadImportance]:
    """Of every head, in the order of `heads_of`. The first `given` ids of a target were never a choice and do not count.

    The work is that of scoring the pairs 1 + (number of heads) times. `progress(done, total)` is called before each pass and at the
    end; whatever it raises ends the work there. The model is not touched: others may use it meanwhile.
    """
    if not pairs:
        raise ConfigError("heads are judged by translations, and there are none; give some sentences")
    device, heads = next(model.parameters()).device, heads_of(model.config)
    twin = WatchedModel(model, ()).model.eval()
    chunks = list(_chunks(pairs, specials, device, given))
    changed, done, total = dict.fromkeys(heads, 0.0), 0, len(chunks) * (1 + len(heads))
    for chunk in chunks:
        progress(done, total)
        muting = _Muting(twin, chunk)
        done += 1
        for light in twin.spotlights():
            for first in range(0, model.config.num_heads, muting.copies):
                progress(done, total)
                muted = range(first, first + muting.copies)
                for head, delta in zip(muted, muting.deltas(light, muted), strict=True):
                    changed[Head(KIND_OF[light.kind], light.layer, head)] += delta
                done += muting.copies
    progress(total, total)
    pieces = sum(len(target) + 1 - given for _, target in pairs)
    return [HeadImportance(str(head), delta / len(pairs), delta / pieces) for head, delta in changed.items()]


@dataclass(frozen=True)
class _Chunk:
    """Sentences of like length, padded: source (C, S), target before and after each piece (C, T), and which pieces count."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    counted: Tensor


def _chunks(pairs: Sequence[Pair], specials: Specials, device: torch.device, given: int) -> Iterator[_Chunk]:
    order = sorted(pairs, key=lambda pair: len(pair[0]) + len(pair[1]))
    at = 0
    while at < len(order):
        size = 1
        while at + size < len(order) and (size + 1) * _cells(order[at : at + size + 1]) <= CELLS:
            size += 1
        some = order[at : at + size]
        target_out = pad_rows([[*target, specials.end] for _, target in some], specials.pad)
        counted = np.array([[given <= i <= len(target) for i in range(target_out.shape[1])] for _, target in some])
        sides = (
            pad_rows([specials.add_end(source) for source, _ in some], specials.pad),
            pad_rows([[specials.start, *target] for _, target in some], specials.pad),
            target_out,
            counted,
        )
        yield _Chunk(*(torch.as_tensor(side, device=device) for side in sides))
        at += size


def _cells(pairs: Sequence[Pair]) -> int:
    return max(len(source) + 1 for source, _ in pairs) + max(len(target) + 1 for _, target in pairs)


class _Muting:
    """A chunk, several times side by side, so that several heads of a layer are muted in one pass: copy i without head i.

    The unchanged score is taken in the same shape: another one would be rounded otherwise, and a head without effect would seem to
    have some.
    """

    @torch.inference_mode()
    def __init__(self, twin: Transformer, chunk: _Chunk) -> None:
        self.twin, self.chunk = twin, chunk
        cells = len(chunk.source) * (chunk.source.shape[1] + chunk.target_in.shape[1])
        heads = twin.config.num_heads
        self.copies = max(n for n in range(1, heads + 1) if heads % n == 0 and (n == 1 or n * cells <= CELLS))
        side_by_side = [side.repeat(self.copies, 1) for side in (chunk.source, chunk.target_in, chunk.target_out)]
        self.batch = Batch.padded(*side_by_side)
        self.memory = self.twin.encode(self.batch.source)
        self.unchanged = self._scores(self.memory)

    @torch.inference_mode()
    def deltas(self, light: Spotlight, heads: Sequence[int]) -> list[float]:
        """What muting each of them adds to the log-probability of the whole chunk."""
        sentences = len(self.chunk.source)
        gate_BH = torch.ones(len(self.batch.source), self.twin.config.num_heads, device=self.batch.source.device)
        for copy, head in enumerate(heads):
            gate_BH[copy * sentences : (copy + 1) * sentences, head] = 0.0
        light.attention.gate = gate_BH
        try:
            memory = self.twin.encode(self.batch.source) if light.kind == "encoder" else self.memory
            delta_B = self._scores(memory) - self.unchanged
        finally:
            light.attention.gate = None
        found: list[float] = delta_B.view(self.copies, sentences).sum(dim=1).tolist()
        return found

    def _scores(self, memory: Tensor) -> Tensor:
        """Log-probability of each row's target (B,), in float64."""
        x_BTD = self.twin.decode(self.batch, memory)
        rows = max(1, LOGITS // (x_BTD.shape[1] * self.twin.config.vocab_size))
        found = []
        for at in range(0, len(x_BTD), rows):
            log_probs_BTV = torch.log_softmax(self.twin.logits(x_BTD[at : at + rows]), dim=-1, dtype=torch.float32)
            wanted_BT1 = self.batch.target_out[at : at + rows, :, None]
            found.append(log_probs_BTV.gather(2, wanted_BT1).squeeze(-1).cpu().double())
        counted_BT = self.chunk.counted.cpu().repeat(self.copies, 1)
        return torch.cat(found).masked_fill(~counted_BT, 0.0).sum(dim=1)
