"""A `VariedPass` reads one sentence and its translation many times in a batch, each time with something else hidden or put in its place.

Pieces of both sides are numbered as one row: those of the source, then those that the decoder reads. A batch has at most `CELLS` of them
and `LOGITS` of what they predict, so memory has a bound; hooks are on the twin only while a batch runs.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from limelight.decoding.steps import IsOver
from limelight.errors import DeadlineError
from limelight.inspection.analysis.importance import CELLS, LOGITS
from limelight.model.transformer import Batch, Transformer


class VariedPass:
    """`ids`: of the source with its end, and of what the decoder reads from the start on; the last rows should predict `wanted`."""

    def __init__(self, model: Transformer, ids: tuple[Sequence[int], Sequence[int]], wanted: Sequence[int], is_over: IsOver) -> None:
        self.model, self.is_over = model, is_over
        device = next(model.parameters()).device
        self.source, self.inputs, self.wanted = (torch.tensor([list(side)], device=device) for side in (*ids, wanted))
        self.split, self.size = len(ids[0]), len(ids[0]) + len(ids[1])
        self.at_once = max(1, min(CELLS // self.size, LOGITS // (len(wanted) * model.config.vocab_size)))
        self.seen = [piece for piece in range(self.split) if piece not in model.hidden]
        # What may be varied: the source that is seen, and the translation between its start and the first wanted piece.
        self.pieces = [*self.seen, *range(self.split + 1, self.size - len(wanted) + 1)]

    @torch.inference_mode()
    def without(self, groups: Sequence[Sequence[int]], zero_values: bool = False) -> Tensor:
        """Log-probabilities of the wanted pieces (len(groups), K), each with these pieces hidden: nobody looks at them, and they stand for
        a blank. With `zero_values` they are looked at as before and give nothing."""
        gone_BP, found = torch.zeros(len(groups), self.size, dtype=torch.bool, device=self.source.device), []
        for row, group in enumerate(groups):
            gone_BP[row, list(group)] = True
        for some_BP in gone_BP.split(self.at_once):  # type: ignore[no-untyped-call]
            with self._zero_values(some_BP) if zero_values else self._hide(some_BP):
                found.append(self.run(len(some_BP), alike=not bool(some_BP[:, : self.split].any())))
        return torch.cat(found)

    def gradients(self, lights: Sequence[float]) -> tuple[Tensor, Tensor]:
        """At embeddings blank + light * (own - blank), for each light: the gradient of the log-probability of all that is wanted by the
        light of each piece (B, P), and that log-probability (B,)."""
        varied_P, found, totals = torch.zeros(self.size, device=self.source.device), [], []
        varied_P[self.pieces] = 1.0
        for some_B in torch.tensor(lights, device=varied_P.device).split(self.at_once):  # type: ignore[no-untyped-call]
            with torch.inference_mode(False), torch.enable_grad():
                light_BP = (1.0 - varied_P * (1.0 - some_B[:, None])).requires_grad_()
                with self._dim(light_BP):
                    total_B = self.run(len(some_B)).sum(dim=1)
                found.append(torch.autograd.grad(total_B.sum(), light_BP)[0].cpu().double() * varied_P.cpu())
            totals.append(total_B.detach())
        return torch.cat(found), torch.cat(totals)

    def run(self, rows: int, alike: bool = False) -> Tensor:
        """Log-probabilities of the wanted pieces (rows, K), under whatever hooks there are; `alike`: one memory serves all rows."""
        if self.is_over():
            raise DeadlineError("what caused a word was not found in time; give it more time, or a shorter sentence")
        source, target = self.source.expand(rows, -1), self.inputs.expand(rows, -1)
        memory = self.model.encode(source[:1]).expand(rows, -1, -1) if alike else self.model.encode(source)
        decoded = self.model.decode(Batch.padded(source, target, target), memory)[:, -self.wanted.shape[1] :]
        log_probs_BKV = torch.log_softmax(self.model.logits(decoded), dim=-1, dtype=torch.float32)
        return log_probs_BKV.gather(2, self.wanted.expand(rows, -1)[..., None]).squeeze(-1).cpu().double()

    def _dim(self, light_BP: Tensor) -> ExitStack:
        """Embeddings go from a blank, which is the mean of the vocabulary, at light 0, to their own, at light 1."""

        def place(light_BT: Tensor, blank_D: Tensor, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return blank_D + light_BT[: len(args[0]), :, None].to(args[0]) * (args[0] - blank_D), *args[1:]

        model, hooks = self.model, ExitStack()
        sides = (model.source_embedding or model.target_embedding, model.source_positions), (model.target_embedding, model.target_positions)
        for light_BT, (table, positions) in zip(light_BP.tensor_split([self.split], dim=1), sides, strict=True):
            blank_D = table.weight.detach().mean(dim=0) * table.scale
            hooks.callback(positions.register_forward_pre_hook(partial(place, light_BT, blank_D)).remove)
        return hooks

    def _hide(self, gone_BP: Tensor) -> ExitStack:
        """Where nothing else is left to look at, a blank piece stays visible, so that each softmax has a sum."""
        source_BS, target_BT = gone_BP.tensor_split([self.split], dim=1)
        source_BS = source_BS & ~source_BS[:, self.seen].all(dim=1, keepdim=True)

        def encoder(block: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return args[0], args[1].without(source_BS[: len(args[0])]), *args[2:]

        def decoder(block: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
            return args[0], args[1].without(target_BT), *args[2:4], args[4].without(source_BS), *args[5:]

        hooks = self._dim((~gone_BP).float())
        for stack, hook in ((self.model.encoder, encoder), (self.model.decoder, decoder)):
            for block in stack.blocks:
                hooks.callback(block.register_forward_pre_hook(hook).remove)
        return hooks

    def _zero_values(self, gone_BP: Tensor) -> ExitStack:
        def look(kept_BT: Tensor, stage: str, value: Tensor) -> Tensor | None:
            return value * kept_BT[: len(value), None, :, None] if stage == "v" else None

        (source_BS, target_BT), hooks = (~gone_BP).tensor_split([self.split], dim=1), ExitStack()
        for light in self.model.spotlights():
            light.attention.looks.insert(0, partial(look, target_BT if light.kind == "decoder" else source_BS))  # before the dimmers
            hooks.callback(partial(light.attention.looks.pop, 0))
        return hooks
