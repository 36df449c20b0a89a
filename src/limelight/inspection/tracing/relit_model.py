"""An `IntervenedModel` is a twin of a model, in modules of its own, so that changes to it stay in it."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from limelight.chance import draws, key_of
from limelight.engines.torch import Heads, WatchedModel
from limelight.errors import ConfigError, LengthError
from limelight.inspection.head_names import KIND_OF, resolve_gates
from limelight.inspection.interventions import Changes, Pin
from limelight.model.cache import DecoderState
from limelight.model.multi_head import Spy
from limelight.model.positions import Rotation
from limelight.model.transformer import Transformer


class IntervenedModel:
    """A twin is for one source: `source_ids` as the model reads them, with their end. `watched`: heads for the coverage penalty."""

    def __init__(self, model: Transformer, changes: Changes, source_ids: Sequence[int], watched: Heads = ()) -> None:
        _check(model, changes, len(source_ids))
        self._watched = WatchedModel(model, watched)
        self.model, self.changes = self._watched.model, changes
        self.model.hidden = tuple(sorted(set(changes.mask_source)))
        self._step: int | None = None  # in a search, which target piece is predicted; None: all of them at once
        _move_positions(self.model, changes.positions, len(source_ids))
        gates = resolve_gates(changes.gates, model.config)
        for light in self.model.spotlights():
            kind, looks = KIND_OF[light.kind], light.attention.looks
            if changes.attention_temperature != 1:
                looks.insert(0, partial(_soften, changes.attention_temperature))
            pins = [p for p in changes.pins if kind == "cross" and (p.layers == "*" or light.layer in p.layers)]
            if pins:
                looks.insert(0, self._pin(pins))
            gate_H = torch.from_numpy(gates[kind][light.layer])
            if bool((gate_H != 1).any()):
                if changes.gate_mode == "zero":
                    light.attention.gate = gate_H.to(next(model.parameters()).device)
                else:
                    looks.append(_Mean(gate_H))

    def start(self, source: Tensor, width: int = 1) -> DecoderState:
        return self.model.start(source, width)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        self._step = state.length
        try:
            return self.model.step(token, state)
        finally:
            self._step = None

    def attention(self, state: DecoderState) -> Tensor:
        return self._watched.attention(state)

    def _pin(self, pins: Sequence[Pin]) -> Spy:
        def look(stage: str, weights_BHTS: Tensor) -> Tensor | None:
            if stage != "weights":
                return None
            moved = weights_BHTS.clone()
            for pin in pins:
                rows = moved[:, :, self._rows(pin.step)]
                rows *= 1 - pin.strength
                rows[..., pin.source] += pin.strength
            return moved

        return look

    def _rows(self, step: int) -> slice:
        """Those of a step: in a search all rows, which are the beam's, or none; else there is a row for each step."""
        if self._step is None:
            return slice(step, step + 1)
        return slice(None) if self._step == step else slice(0)


class _Mean:
    """A dimmed head gives the mean of all values that it may look at, as if it looked everywhere alike.

        head' = g * head + (1 - g) * mean over visible s of v_s

    A mean over a corpus would need one, and a mean over the sentence would know what comes later.
    """

    def __init__(self, gate_H: Tensor) -> None:
        self.gate_H11 = gate_H[:, None, None]
        self.seen: dict[str, Tensor] = {}

    def __call__(self, stage: str, value: Tensor) -> Tensor | None:
        if stage in ("v", "masked"):
            self.seen[stage] = value
        if stage != "heads":
            return None
        v_BHSK, visible_BHTS = self.seen.pop("v"), self.seen.pop("masked") > -torch.inf
        alike_BHTS = visible_BHTS / visible_BHTS.sum(dim=-1, keepdim=True)
        gate = self.gate_H11.to(value)
        return gate * value + (1 - gate) * (alike_BHTS.to(v_BHSK) @ v_BHSK)


def _soften(temperature: float, stage: str, scaled_BHTS: Tensor) -> Tensor | None:
    return scaled_BHTS / temperature if stage == "scaled" else None


def _check(model: Transformer, changes: Changes, source_pieces: int) -> None:
    """Every problem at once, but gates, which `resolve_gates` judges."""
    layers = model.config.decoder_layers
    absent = f"; they are 0 to {source_pieces - 1}"
    problems = [f"mask_source: there is no source piece {at}{absent}" for at in changes.mask_source if at >= source_pieces]
    if set(range(source_pieces)) <= set(changes.mask_source):
        problems.append("mask_source: this hides the whole source; leave at least one piece, such as its end")
    for pin in changes.pins:
        if pin.source >= source_pieces:
            problems.append(f"pins: there is no source piece {pin.source}{absent}")
        wrong = [layer for layer in pin.layers if layer != "*" and layer >= layers]  # type: ignore[operator]
        if wrong:
            problems.append(f"pins: there is no layer {wrong[0]}; the decoder has 0 to {layers - 1}")
    if problems:
        raise ConfigError("these changes cannot be made:", problems)
    check_room(changes.positions, source_pieces, model.config.max_length, "source")


def _move_positions(model: Transformer, positions: str, source_pieces: int) -> None:
    """Positions of a twin are moved from their true places, to see what a model makes of order (section 3.5 of the paper).

        zero        no piece knows where it stands; with rotary positions, all stand at the same place
        shuffle:7   every run of S positions (S: pieces of the source) is shuffled in itself, on both sides
        shift:3     everything stands 3 places later. Rotary positions are relative: nothing changes

    The causal mask still tells a decoder what came before. Runs, because a search does not know yet how long its translation will be.
    Hooks belong to the twin's own modules, so the model that it was made from stays as it is.
    """
    if positions == "normal":
        return
    order = _order(positions, source_pieces, model.config.max_length, next(model.parameters()).device)

    def skip(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Any:
        return args[0]

    def place(module: nn.Module, args: tuple[Any, ...]) -> tuple[Tensor, Tensor, int]:
        x, columns, start = args
        return x, order[columns + start], 0

    def turn(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Rotation | None) -> Rotation | None:
        if output is None:
            return None
        start = kwargs.get("start", 0)
        rows = order[start : start + args[0]]
        return module.cosines[rows], module.sines[rows]

    for table in (model.source_positions, model.target_positions):
        if positions == "zero":
            table.register_forward_hook(skip)
        else:
            table.register_forward_pre_hook(place)
    for rotation in (model.encoder.rotary, model.decoder.rotary):
        rotation.register_forward_hook(turn, with_kwargs=True)


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
        # `check_room` lets none be clipped.
        order = (order + int(positions.removeprefix("shift:"))).clip(max=max_length - 1)
    else:
        key = key_of(int(positions.removeprefix("shuffle:")))
        for begin in range(0, max_length, run):
            places = order[begin : begin + run]
            order[begin : begin + run] = places[draws(key, places - begin).argsort(kind="stable")]
    return torch.from_numpy(order).to(device)
