"""Patching runs a sentence with one place computing what it computed for another (Vig et al. 2020, Meng et al. 2022)."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from limelight.errors import ConfigError
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import PLACES, Places
from limelight.inspection.head_names import KIND_OF, attention_prefix
from limelight.inspection.trace import Array, Stages


def modules_to_patch(passes: VariedPass, places: Places) -> dict[str, nn.Module]:
    """Where each stage of the other sentence goes; each is a row of the map."""
    if places not in PLACES:
        raise ConfigError(f"there are no places {places!r} to patch; there are {', '.join(PLACES)}")
    model = passes.model
    if places == "heads":
        return {f"{attention_prefix(KIND_OF[light.kind], light.layer)}.heads": light.attention.out for light in model.spotlights()}
    if places == "source":
        return {"enc.in": model.source_positions, **{f"enc.{layer}.out": block for layer, block in enumerate(model.encoder.blocks)}}
    return {"dec.in": model.target_positions, **{f"dec.{layer}.out": block for layer, block in enumerate(model.decoder.blocks)}}


@torch.inference_mode()
def find_changes(passes: VariedPass, places: Places, other: Stages) -> tuple[Array, float]:
    """(rows, columns): stages as `modules_to_patch` names them, by positions or heads; and the log-probability without a patch."""
    own = float(passes.without([()]).sum())
    rows: list[list[float]] = []
    columns = {"source": passes.split, "target": passes.size - passes.split, "heads": passes.model.config.num_heads}[places]
    patch = _patch_heads if places == "heads" else _patch_positions
    for name, module in modules_to_patch(passes, places).items():
        rows.append([])
        for some in (range(columns)[first : first + passes.at_once] for first in range(0, columns, passes.at_once)):
            with patch(module, torch.from_numpy(other[name]).to(passes.source.device), some):
                rows[-1] += passes.run(len(some), alike=name.startswith("dec")).sum(dim=1).tolist()
    return np.asarray(rows, np.float32) - np.float32(own), own


def _patch_positions(module: nn.Module, value_TD: Tensor, columns: range) -> RemovableHandle:
    def hook(module: nn.Module, args: tuple[Any, ...], output_BTD: Tensor) -> Tensor:
        patched, at = output_BTD.expand(len(columns), -1, -1).clone(), list(columns)
        patched[range(len(at)), at] = value_TD[at].to(patched)
        return patched

    return module.register_forward_hook(hook)


def _patch_heads(out: nn.Module, value_HTK: Tensor, columns: range) -> RemovableHandle:
    def hook(module: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        heads_BTHK = args[0].view(*args[0].shape[:2], *value_HTK.shape[::2]).clone()
        for row, head in enumerate(columns):
            heads_BTHK[row, :, head] = value_HTK[head, : heads_BTHK.shape[1]].to(heads_BTHK)
        return (heads_BTHK.flatten(2),)

    return out.register_forward_pre_hook(hook)
