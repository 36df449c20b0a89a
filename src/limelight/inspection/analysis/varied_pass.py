"""A `VariedPass` reads one sentence and its translation many times in a batch, each time with something else hidden or put in its place.

Pieces of both sides are numbered as one row: those of the source, then those that the decoder reads. Every batch is made of at most
`CELLS` of them, so memory has a bound; hooks are on the twin only while a batch runs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from limelight.decoding.steps import IsOver, never
from limelight.errors import DeadlineError
from limelight.inspection.analysis.importance import CELLS
from limelight.model.transformer import Batch, Transformer

Undo = list[Callable[[], None]]


class VariedPass:
    """`source` with its end, `inputs` from the start piece on; the last rows should predict `wanted`. The model may have changes in it."""

    def __init__(
        self, model: Transformer, source: Sequence[int], inputs: Sequence[int], wanted: Sequence[int], is_over: IsOver = never
    ) -> None:
        self.model, self.is_over = model, is_over
        device = next(model.parameters()).device
        self.source, self.inputs, self.wanted = (torch.tensor([list(ids)], device=device) for ids in (source, inputs, wanted))
        self.size, self.split = len(source) + len(inputs), len(source)
        shown = [i for i in range(self.split) if i not in model.hidden]
        # Changeable: source pieces that are seen, and what stands between the start and the first wanted piece.
        self.pieces = [*shown, *range(self.split + 1, self.size - len(wanted) + 1)]

    def own(self) -> Tensor:
        """Log-probabilities of the wanted pieces (1, K), nothing varied."""
        return self.scores(torch.zeros(1, self.size, dtype=torch.bool, device=self.source.device), _no_hooks)

    def without(self, groups: Sequence[Sequence[int]], zero_values: bool = False) -> Tensor:
        """(len(groups), K), each with these pieces hidden: nobody looks at them, and where they stand is a blank. With `zero_values` they
        are looked at as before and give nothing (Mohebbi et al. 2023)."""
        gone_BP = torch.zeros(len(groups), self.size, dtype=torch.bool, device=self.source.device)
        for row, group in enumerate(groups):
            gone_BP[row, list(group)] = True
        return self.scores(gone_BP, self._zero_values if zero_values else self._hide)

    @torch.inference_mode()
    def scores(self, varied_BP: Tensor, hooks: Callable[[Tensor], Undo]) -> Tensor:
        """Rows in which the source is as it is share one memory."""
        found = []
        for some_BP in varied_BP.split(max(1, CELLS // self.size)):
            self.check_time()
            with hooked(hooks(some_BP)):
                found.append(self.run(len(some_BP), alike=not bool(some_BP[:, : self.split].any())))
        return torch.cat(found)

    def run(self, rows: int, alike: bool = False) -> Tensor:
        """Log-probabilities of the wanted pieces (rows, K), in float64, under whatever hooks there are."""
        source, target = self.source.expand(rows, -1), self.inputs.expand(rows, -1)
        memory = self.model.encode(source[:1]).expand(rows, -1, -1) if alike else self.model.encode(source)
        decoded = self.model.decode(Batch.padded(source, target, target), memory)[:, -self.wanted.shape[1] :]
        log_probs_BKV = torch.log_softmax(self.model.logits(decoded), dim=-1, dtype=torch.float32)
        return log_probs_BKV.gather(2, self.wanted.expand(rows, -1)[..., None]).squeeze(-1).double()

    def gradients(self, lights: Sequence[float]) -> tuple[Tensor, Tensor]:
        """At embeddings blank + light * (own - blank), for each light: the gradient of the log-probability of all that is wanted by the
        light of each piece (B, P), and that log-probability (B,)."""
        changed_P = torch.zeros(self.size, device=self.source.device)
        changed_P[self.pieces] = 1.0
        found, totals = [], []
        for some_B in torch.tensor(lights, device=changed_P.device).split(max(1, CELLS // self.size)):
            self.check_time()
            with torch.inference_mode(False), torch.enable_grad():
                light_BP = (1.0 - changed_P * (1.0 - some_B[:, None])).requires_grad_()
                with hooked(self._dim(light_BP)):
                    total_B = self.run(len(some_B)).sum(dim=1)
                found.append(torch.autograd.grad(total_B.sum(), light_BP)[0].double() * changed_P)
            totals.append(total_B.detach())
        return torch.cat(found), torch.cat(totals)

    def check_time(self) -> None:
        if self.is_over():
            raise DeadlineError("the causes of a word were not found in time; give it more time, or a shorter sentence")

    def _dim(self, light_BP: Tensor) -> Undo:
        """Embeddings go from a blank, which is the mean of the vocabulary, at light 0, to their own, at light 1."""
        model, undo = self.model, Undo()
        sides = light_BP[:, : self.split], light_BP[:, self.split :]
        tables = (
            (model.source_embedding or model.target_embedding, model.source_positions),
            (model.target_embedding, model.target_positions),
        )
        for light_BT, (embedding, positions) in zip(sides, tables, strict=True):
            blank_D = embedding.weight.detach().mean(dim=0) * embedding.scale

            def place(module: nn.Module, args: tuple[Any, ...], light_BT: Tensor = light_BT, blank_D: Tensor = blank_D) -> tuple[Any, ...]:
                light_BT1 = light_BT[: len(args[0]), :, None].to(args[0])
                return blank_D + light_BT1 * (args[0] - blank_D), *args[1:]

            undo.append(positions.register_forward_pre_hook(place).remove)
        return undo

    def _hide(self, gone_BP: Tensor) -> Undo:
        """Where nothing else is left to look at, a blank piece stays visible, so that each softmax has a sum."""
        seen_BP = gone_BP.clone()
        rest = [i for i in range(self.split) if i not in self.model.hidden]
        seen_BP[:, : self.split] &= ~gone_BP[:, rest].all(dim=1, keepdim=True)
        source_BS, target_BT = seen_BP[:, : self.split], seen_BP[:, self.split :]

        def encoder(block: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return args[0], args[1].without(source_BS[: len(args[0])]), *args[2:]

        def decoder(block: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            x, visible, grid, memory, source_visible, *rest = args
            return x, visible.without(target_BT), grid, memory, source_visible.without(source_BS), *rest

        undo = self._dim((~gone_BP).float())
        undo += [block.register_forward_pre_hook(encoder).remove for block in self.model.encoder.blocks]
        return undo + [block.register_forward_pre_hook(decoder).remove for block in self.model.decoder.blocks]

    def _zero_values(self, gone_BP: Tensor) -> Undo:
        undo = Undo()
        for light in self.model.spotlights():
            kept_BT = ~(gone_BP[:, self.split :] if light.kind == "decoder" else gone_BP[:, : self.split])

            def look(stage: str, value: Tensor, kept_BT: Tensor = kept_BT) -> Tensor | None:
                return value * kept_BT[: len(value), None, :, None] if stage == "v" else None

            looks = light.attention.looks
            looks.append(look)
            undo.append(lambda looks=looks, look=look: looks.remove(look))  # type: ignore[misc]
        return undo


@contextmanager
def hooked(undo: Undo) -> Iterator[None]:
    try:
        yield
    finally:
        for each in undo:
            each()


def _no_hooks(varied_BP: Tensor) -> Undo:
    return []
