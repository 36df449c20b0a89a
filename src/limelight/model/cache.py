"""What a decoder remembers between steps, so that each step computes one position only.

The decoder writes it; a search only reorders and selects its rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from limelight.model.attention import Visible


class KeyValues(NamedTuple):
    """k and v of one attention, (B, G, S, K) each."""

    k: Tensor
    v: Tensor

    def select(self, rows: Tensor) -> "KeyValues":
        return KeyValues(self.k.index_select(0, rows), self.v.index_select(0, rows))


class SelfCache:
    """k and v of the positions so far. Room is made ahead and doubled when full, so a step copies only what is new."""

    FIRST_ROOM = 32

    def __init__(self) -> None:
        self.room: KeyValues | None = None
        self.length = 0

    def extend(self, k_BGTK: Tensor, v_BGTK: Tensor) -> KeyValues:
        """Remember the new positions; return all so far, as views."""
        end = self.length + k_BGTK.shape[2]
        if self.room is None or self.room.k.shape[2] < end:
            self.room = KeyValues(
                *(self._larger(old, new, end) for old, new in zip(self.so_far(k_BGTK), (k_BGTK, v_BGTK), strict=True))
            )
        for room, new in zip(self.room, (k_BGTK, v_BGTK), strict=True):
            room[:, :, self.length : end] = new
        self.length = end
        return self.so_far(k_BGTK)

    def so_far(self, like: Tensor) -> KeyValues:
        if self.room is None:
            nothing = like[:, :, :0]
            return KeyValues(nothing, nothing)
        return KeyValues(self.room.k[:, :, : self.length], self.room.v[:, :, : self.length])

    def select(self, rows: Tensor) -> None:
        """Rows move, leave or multiply. Only the filled part is copied."""
        if self.room is None:
            return
        moved = []
        for old in self.room:
            new = old.new_empty(len(rows), *old.shape[1:])
            new[:, :, : self.length] = old[:, :, : self.length].index_select(0, rows)
            moved.append(new)
        self.room = KeyValues(*moved)

    def _larger(self, old: Tensor, new: Tensor, end: int) -> Tensor:
        capacity = self.FIRST_ROOM
        while capacity < end:
            capacity *= 2
        room = new.new_empty(*new.shape[:2], capacity, new.shape[3])
        room[:, :, : self.length] = old
        return room


@dataclass
class DecoderState:
    """Everything one batch of unfinished translations needs: a cache and a projected memory per block, and the source's mask."""

    caches: list[SelfCache]
    memories: list[KeyValues]
    visible: Visible

    @property
    def length(self) -> int:
        """Target positions decoded so far."""
        return self.caches[0].length

    def reorder(self, rows: Tensor) -> None:
        """Row i continues what row rows[i] began. Both must translate the same sentence: the memory stays where it is."""
        for cache in self.caches:
            cache.select(rows)

    def select(self, rows: Tensor) -> None:
        """Rows leave (finished sentences) or multiply (a beam opens): the memory moves with them."""
        self.reorder(rows)
        self.memories = [memory.select(rows) for memory in self.memories]
        if self.visible.keys is not None:
            self.visible = Visible(keys=torch.index_select(self.visible.keys, 0, rows))
