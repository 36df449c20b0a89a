"""Patching runs a sentence with one place computing what it computed for another (Vig et al. 2020, Meng et al. 2022).

    change(place) = log p(w, place patched) - log p(w)

A place is a layer's output at one position (`source`, `target`; the first row is what the layers read) or a head at all positions.
"""

from collections.abc import Callable, Iterator
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from limelight.errors import ConfigError
from limelight.inspection.analysis.importance import CELLS
from limelight.inspection.analysis.varied_pass import Undo, VariedPass, hooked
from limelight.inspection.causes import Places
from limelight.inspection.head_names import KIND_OF, attention_prefix
from limelight.inspection.trace import Array, Stages

Patch = Callable[[range], Undo]  # batch row i gets column columns[i] of the other sentence


def stages_to_patch(passes: VariedPass, places: Places) -> list[str]:
    """Stages of the other sentence that `find_changes` needs; each is a row of the map."""
    if places not in get_args(Places):
        raise ConfigError(f"there are no places {places!r} to patch; there are {', '.join(get_args(Places))}")
    if places == "heads":
        return [f"{attention_prefix(KIND_OF[light.kind], light.layer)}.heads" for light in passes.model.spotlights()]
    side, blocks = ("enc", passes.model.encoder.blocks) if places == "source" else ("dec", passes.model.decoder.blocks)
    return [f"{side}.in", *(f"{side}.{layer}.out" for layer in range(len(blocks)))]


@torch.inference_mode()
def find_changes(passes: VariedPass, places: Places, other: Stages) -> Array:
    """(rows, columns): stages as `stages_to_patch` names them, by positions or heads."""
    own, rows = float(passes.own().sum()), []
    columns = {"source": passes.split, "target": passes.size - passes.split, "heads": passes.model.config.num_heads}[places]
    at_once = max(1, CELLS // passes.size)
    for name, patch in _patches(passes, places, other):
        found = []
        for first in range(0, columns, at_once):
            passes.check_time()
            some = range(first, min(columns, first + at_once))
            with hooked(patch(some)):
                found += passes.run(len(some), alike=name.startswith("dec")).sum(dim=1).tolist()
        rows.append(found)
    return np.asarray(rows, np.float32) - np.float32(own)


def _patches(passes: VariedPass, places: Places, other: Stages) -> Iterator[tuple[str, Patch]]:
    """In the order of `stages_to_patch`."""
    model, device = passes.model, passes.source.device
    values = [(name, torch.from_numpy(other[name]).to(device)) for name in stages_to_patch(passes, places)]
    if places == "heads":
        for (name, value), light in zip(values, model.spotlights(), strict=True):
            yield name, _patch_heads(light.attention.out, value)
        return
    positions, stack = (model.source_positions, model.encoder) if places == "source" else (model.target_positions, model.decoder)
    for (name, value), module in zip(values, (positions, *stack.blocks), strict=True):
        yield name, _patch_positions(module, value)


def _patch_positions(module: nn.Module, value_TD: Tensor) -> Patch:
    def patch(columns: range) -> Undo:
        def hook(module: nn.Module, args: tuple[Any, ...], output_BTD: Tensor) -> Tensor:
            patched, at = output_BTD.expand(len(columns), -1, -1).clone(), list(columns)
            patched[range(len(at)), at] = value_TD[at].to(patched)
            return patched

        return [module.register_forward_hook(hook).remove]

    return patch


def _patch_heads(out: nn.Module, value_HTK: Tensor) -> Patch:
    def patch(columns: range) -> Undo:
        def hook(module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
            heads_BTHK = args[0].unflatten(2, (value_HTK.shape[0], -1)).clone()
            for row, head in enumerate(columns):
                heads_BTHK[row, :, head] = value_HTK[head, : heads_BTHK.shape[1]].to(heads_BTHK)
            return (heads_BTHK.flatten(2),)

        return [out.register_forward_pre_hook(hook).remove]

    return patch
