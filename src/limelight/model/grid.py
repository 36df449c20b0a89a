"""A `Grid` says where the positions of a batch stand: padded (B, T), or packed without the padding.

All of the Transformer but attention works on each position by itself, so the stream of positions may have any layout.
Padded, it is (B, T, D), and a grid changes nothing. Packed, it is (N, D): no work is spent on padding, and N is rounded up to a
multiple of `ROUND_TO`, so that the matrix products of different batches have the same few shapes. That matters on a CPU,
where the first product of each new shape compiles a kernel (5 to 60 ms, see docs/experiments.md).

    Grid.packed([[1, 1, 0], [1, 1, 1]])   keeps the 5 cells that hold pieces; spread and collect undo each other
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

ROUND_TO = 256
# Columns of a packed batch: a CPU takes longer for a softmax over fewer numbers, since that is not vectorized.
NARROWEST = 16


@dataclass(frozen=True)
class Grid:
    """A grid has `cells`, the cell of each packed position (N,), and `places`, the packed position of each cell (B*T,). Both None: padded.

    Packed positions from `pieces` on are filler. Nobody reads them but cells of padding, and a loss must not count them: their
    gradient is taken to be zero.
    """

    rows: int
    width: int
    longest: int  # pieces of the longest row; what is wider is padding
    cells: Tensor | None = None
    places: Tensor | None = None
    pieces: int = 0

    @classmethod
    def padded(cls, ids: Tensor) -> "Grid":
        return cls(rows=ids.shape[0], width=ids.shape[1], longest=ids.shape[1])

    @classmethod
    def packed(cls, visible: Tensor) -> "Grid":
        """From a boolean (B, T) on the host. Made with the batch, so that the forward pass never waits for a device to count."""
        filled = visible.flatten().nonzero().squeeze(1)
        pieces = len(filled)
        filler = -(pieces + 1) % ROUND_TO + 1
        places = torch.full((visible.numel(),), pieces)
        places[filled] = torch.arange(pieces)
        longest = int(visible.any(dim=0).nonzero().amax()) + 1 if pieces else 0
        return cls(visible.shape[0], visible.shape[1], longest, F.pad(filled, (0, filler)), places, pieces)

    def to(self, device: torch.device) -> "Grid":
        if self.cells is None or self.places is None:
            return self
        cells, places = self.cells.to(device, non_blocking=True), self.places.to(device, non_blocking=True)
        return replace(self, cells=cells, places=places)

    def spread(self, x: Tensor) -> Tensor:
        """The stream as a grid (B, T, ...)."""
        if self.cells is None or self.places is None:
            return x
        cells: Tensor = _Move.apply(x, self.places, self.cells, self.pieces)  # type: ignore[no-untyped-call]
        return cells.view(self.rows, self.width, *x.shape[1:])

    def collect(self, x: Tensor) -> Tensor:
        """A grid (B, T, ...) as the stream."""
        if self.cells is None or self.places is None:
            return x
        stream: Tensor = _Move.apply(x.flatten(0, 1), self.cells, self.places, None)  # type: ignore[no-untyped-call]
        return stream

    def take(self, ids: Tensor) -> Tensor:
        """Ids (B, T) in the order of the stream."""
        return ids if self.cells is None else ids.flatten()[self.cells]

    def columns(self, device: torch.device) -> Tensor:
        """The position of each piece in its own sentence, broadcastable to the stream."""
        return torch.arange(self.width, device=device) if self.cells is None else self.cells % self.width

    def is_piece(self, device: torch.device) -> Tensor | None:
        """Boolean (N,), False for filler; None when padded."""
        return None if self.cells is None else torch.arange(len(self.cells), device=device) < self.pieces


class _Move(torch.autograd.Function):
    """Rows to other places, one to one, so the gradient is the same move backwards: a read, where autograd would add row by row."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, there: Tensor, back: Tensor, pieces: int | None) -> Tensor:
        ctx.save_for_backward(back)
        ctx.pieces = pieces
        return x.index_select(0, there)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        (back,) = ctx.saved_tensors
        moved = gradients[0].index_select(0, back)
        if ctx.pieces is not None:
            moved[ctx.pieces :] = 0
        return moved, None, None, None
