"""Positions are moved from their true places, to see what a model makes of order (section 3.5 of the paper).

    zero        no piece knows where it stands; with rotary positions, all stand at the same place
    shuffle:7   every run of S positions (S: pieces of the source) is shuffled in itself, on both sides
    shift:3     everything stands 3 places later. Rotary positions are relative: nothing changes

The causal mask still tells a decoder what came before. Runs, because a search does not know yet how long its translation will be.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from limelight.chance import draws, key_of
from limelight.errors import LengthError
from limelight.model.positions import Rotation
from limelight.model.transformer import Transformer


def rearrange(model: Transformer, positions: str, source_pieces: int) -> None:
    """Change where the pieces of a twin stand. Hooks belong to its own modules, so the model that it was made from stays as it is."""
    if positions == "normal":
        return
    tables = (model.source_positions, model.target_positions)
    rotations = (model.encoder.rotary, model.decoder.rotary)
    order = _order(positions, source_pieces, model.config.max_length, next(model.parameters()).device)
    for table in tables:
        if positions == "zero":
            table.register_forward_hook(_skip_positions)
        else:
            table.register_forward_pre_hook(_at(order))
    for rotation in rotations:
        rotation.register_forward_hook(_reorder_rotation(order), with_kwargs=True)


def room(positions: str, max_length: int) -> int:
    """How many positions are left: what is shifted ends earlier."""
    return max_length - int(positions.removeprefix("shift:")) if positions.startswith("shift:") else max_length


def check_room(positions: str, pieces: int, max_length: int, what: str) -> None:
    if pieces > room(positions, max_length):
        raise LengthError(
            f"the {what} has {pieces} pieces, and positions={positions} leaves {max(0, room(positions, max_length))} of the model's "
            f"{max_length} positions; shorten it, or shift less"
        )


def _order(positions: str, run: int, max_length: int, device: torch.device) -> Tensor:
    """Which position stands for each of 0 ... max_length - 1."""
    order = np.arange(max_length)
    if positions == "zero":
        order = np.zeros_like(order)
    elif positions.startswith("shift:"):
        order = (order + int(positions.removeprefix("shift:"))).clip(
            max=max_length - 1
        )  # `check_room` lets none be clipped
    else:
        key = key_of(int(positions.removeprefix("shuffle:")))
        for begin in range(0, max_length, run):
            places = order[begin : begin + run]
            order[begin : begin + run] = places[draws(key, places - begin).argsort(kind="stable")]
    return torch.from_numpy(order).to(device)


def _skip_positions(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
    given: Tensor = args[0]
    return given


def _at(order: Tensor):  # type: ignore[no-untyped-def]
    def place(module: nn.Module, args: tuple[Any, ...]) -> tuple[Tensor, Tensor, int]:
        x, columns, start = args
        return x, order[columns + start], 0

    return place


def _reorder_rotation(order: Tensor):  # type: ignore[no-untyped-def]
    def turn(
        module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Rotation | None
    ) -> Rotation | None:
        if output is None:
            return None
        length, start = args[0], kwargs.get("start", 0)
        rows = order[start : start + length]
        return module.cosines[rows], module.sines[rows]  # type: ignore[index]

    return turn
