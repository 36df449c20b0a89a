"""The gradient of a step is divided by the pieces of all its batches, so that how they are cut does not matter."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from limelight.corpus.feeding.batches import BatchShare
from limelight.errors import ConfigError
from limelight.model.transformer import Batch
from limelight.training.step.trained_model import TrainedModel


@dataclass(frozen=True)
class Losses:
    """Losses are summed over the target pieces of this process's shares; `pieces` are those of all processes."""

    total: float
    total_nll: float
    pieces: int

    @property
    def loss(self) -> float:
        return self.total / self.pieces

    @property
    def nll(self) -> float:
        return self.total_nll / self.pieces


def batch_of(share: BatchShare, device: torch.device, pad_token: int, rows: slice = slice(None)) -> Batch:
    source, target_in, target_out = (
        torch.from_numpy(np.ascontiguousarray(side[rows], np.int64)) for side in (share.source, share.target_in, share.target_out)
    )
    return Batch.packed(source, target_in, target_out, pad_token).to(device)


def gradients(
    numbers: TrainedModel,
    shares: Sequence[BatchShare],
    smoothing: float,
    r_drop: float | None,
    notice: Callable[[str], None] = lambda text: None,
    least: int = 0,
) -> Losses:
    """Leaves d loss / d weight in the weights that the optimizer sees. A batch that does not fit into memory is halved, and again.

    With fewer than `least` target pieces the sum is divided by `least`: the longest pair of a corpus is often a batch of its own, and
    its pieces should not count for a hundred times as much as others.
    """
    parts = 1
    while True:
        try:
            return _in_parts(numbers, shares, smoothing, r_drop, parts, least)
        except torch.OutOfMemoryError:
            # Where each pass is made together, one process cannot make more of them than the others.
            if parts >= max(len(share.source) for share in shares) or numbers.same_passes:
                raise
        # Here and not above: an exception that is being handled holds all that the failed pass held.
        numbers.drop_gradients()
        parts *= 2
        if numbers.device.type == "cuda":
            torch.cuda.empty_cache()
        notice(f"out of memory: the batch of {shares[0].rows} pairs is computed in {parts} parts")


def _in_parts(
    numbers: TrainedModel, shares: Sequence[BatchShare], smoothing: float, r_drop: float | None, parts: int, least: int
) -> Losses:
    pieces, pad = sum(share.targets for share in shares), numbers.model.config.pad_token
    total = torch.zeros((), device=numbers.device)
    nll = torch.zeros((), device=numbers.device)
    passes = [(share, part) for share in shares for part in range(max(1, min(parts, len(share.source))))]
    for number, (share, part) in enumerate(passes, start=1):
        counts = len(share.source) > 0
        batch = batch_of(share if counts else _one_pair(share), numbers.device, pad, slice(part, None, parts))
        with numbers.synchronizing(number == len(passes)):
            loss, plain = numbers.loss(batch, smoothing, r_drop)
            try:
                (loss / max(pieces, least) if counts else 0.0 * loss).backward()  # type: ignore[no-untyped-call]
            except torch.OutOfMemoryError as error:
                if number < len(passes) or numbers.parallel.kind != "ddp":
                    raise
                # The exchange with the other processes has begun, and cannot be made a second time.
                raise ConfigError("out of memory where processes add up their gradients; lower batch.budget in the recipe") from error
        numbers.take_gradients()
        if counts:
            total += loss.detach()
            nll += plain
    return Losses(float(total), float(nll), pieces)


def _one_pair(share: BatchShare) -> BatchShare:
    """A batch of fewer pairs than there are processes leaves some of them without any. They compute one all the same, for nothing: the
    others wait for their part of the exchange."""
    end = np.full((1, 1), share.marks.end, dtype=np.int64)
    return replace(share, source=end, target=end)
