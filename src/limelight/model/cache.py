"""A `DecoderState` remembers the past between steps, so that each step computes one position only.

The decoder writes it; a search only says which row goes on from which, and which sentences stay.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from limelight.model.attention import Visible


class KeyValues(NamedTuple):
    """KeyValues are k and v of one attention, (B, G, S, K) each."""

    k: Tensor
    v: Tensor

    def select(self, rows: Tensor) -> "KeyValues":
        return KeyValues(self.k.index_select(0, rows), self.v.index_select(0, rows))


class SelfCache:
    """A cache has k and v of the positions so far. Room is made ahead and doubled when full, so a step copies only what is new."""

    FIRST_ROOM = 32

    def __init__(self) -> None:
        self.room: KeyValues | None = None
        self.length = 0

    def extend(self, k_BGTK: Tensor, v_BGTK: Tensor) -> KeyValues:
        """Remember the new positions; return all so far, as views."""
        end = self.length + k_BGTK.shape[2]
        if self.room is None or self.room.k.shape[2] < end:
            self.room = KeyValues(*(self._larger(old, new, end) for old, new in zip(self.so_far(k_BGTK), (k_BGTK, v_BGTK), strict=True)))
        for room, new in zip(self.room, (k_BGTK, v_BGTK), strict=True):
            room[:, :, self.length : end] = new
        self.length = end
        return self.so_far(k_BGTK)

    def so_far(self, like: Tensor) -> KeyValues:
        if self.room is None:
            nothing = like[:, :, :0]
            return KeyValues(nothing, nothing)
        return KeyValues(self.room.k[:, :, : self.length], self.room.v[:, :, : self.length])

    def select(self, sentences: Tensor) -> None:
        """Sentences move, leave or multiply. Only the filled part is copied."""
        if self.room is None:
            return
        moved = []
        for old in self.room:
            new = old.new_empty(len(sentences), *old.shape[1:])
            new[:, :, : self.length] = old[:, :, : self.length].index_select(0, sentences)
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
    """A decoder state is all that one batch of translations needs: a cache and a projected memory per block, and the source's mask.

    Each sentence has `width` rows, which share its memory. They also share its cache, which is only ever written at the end: a
    step adds one cell for each row, and `lineage` says which cells are a row's own past, (B, W, cells). So a search that lets one
    row go on from another changes booleans and copies no keys and values.
    """

    caches: list[SelfCache]
    memories: list[KeyValues]
    visible: Visible
    width: int = 1
    lineage: Visible | None = None  # None with one row each, or before the first step

    @property
    def length(self) -> int:
        """Target positions decoded so far."""
        return self.caches[0].length // self.width

    def grow(self, sentences: int, device: torch.device) -> Visible:
        """Every row gets a cell for its newest position. Returns what each may look at, itself included."""
        if self.width == 1:
            return Visible()
        newest = Visible.newborn(sentences, self.width, device)
        self.lineage = newest if self.lineage is None else self.lineage.join(newest)
        return self.lineage

    def reorder(self, rows: Tensor) -> None:
        """Row i goes on from what row rows[i] was; both belong to the same sentence. (B * W,)"""
        if self.lineage is not None and self.lineage.keys is not None:
            keys_BWC = self.lineage.keys
            self.lineage = Visible(keys=keys_BWC.flatten(0, 1).index_select(0, rows).view_as(keys_BWC))

    def select(self, sentences: Tensor) -> None:
        """Only these sentences stay (those that are finished leave), in this order, each with its rows."""
        for cache in self.caches:
            cache.select(sentences)
        self.memories = [memory.select(sentences) for memory in self.memories]
        self.visible = self.visible.select(sentences)
        self.lineage = None if self.lineage is None else self.lineage.select(sentences)
