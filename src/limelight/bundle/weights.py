"""model.safetensors holds every weight of the model and no other, in its shape, finite."""

import errno
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from limelight.bundle.layout import WEIGHTS, refusal
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

StoredShape = tuple[tuple[int, ...], str]  # of a weight, and its number format
FORMATS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}  # as safetensors calls them


def load_weights(folder: Path, config: ModelConfig) -> dict[str, Tensor]:
    """In memory, not mapped: what happens to the file later does not change them."""
    try:
        with safe_open(folder / WEIGHTS, "pt") as file:
            shapes = read_shapes(file)
            if problems := _misfits(config, shapes):
                raise refusal(folder, problems)
            weights = {name: file.get_tensor(name).clone() for name in shapes}
    except (SafetensorError, OSError) as error:
        raise refusal(folder, [f"{WEIGHTS}: cannot be read ({error})"]) from None
    if problems := _not_finite(weights):
        raise refusal(folder, problems)
    return weights


def save_weights(folder: Path, weights: Mapping[str, Tensor]) -> None:
    # Copies, since safetensors refuses tensors that share memory or are not contiguous.
    plain = {name: w.detach().cpu().clone(memory_format=torch.contiguous_format) for name, w in weights.items()}
    try:
        save_file(plain, folder / WEIGHTS)
    except SafetensorError as error:
        raise as_os_error(error, folder / WEIGHTS) from None
    (folder / WEIGHTS).chmod(folder.stat().st_mode & 0o666)  # safetensors lets only the owner read


def as_os_error(error: SafetensorError, path: Path) -> OSError:
    """safetensors writes the number of an input-output error into its text: "... No space left on device (os error 28)"."""
    found = re.search(r"\(os error ([0-9]+)\)", str(error))
    number = int(found[1]) if found else errno.EIO
    return OSError(number, os.strerror(number) if found else str(error), str(path))


def weight_problems(weights: Mapping[str, Tensor], config: ModelConfig) -> list[str]:
    """All that `load_weights` would refuse."""
    return _misfits(config, shapes_of(weights)) + _not_finite(weights)


def shapes_of(weights: Mapping[str, Tensor]) -> dict[str, StoredShape]:
    return {name: (tuple(w.shape), FORMATS.get(w.dtype, str(w.dtype))) for name, w in weights.items()}


def read_shapes(file: Any) -> dict[str, StoredShape]:
    """The same of an open file of safetensors, before any weight is loaded."""
    parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    return {name: (tuple(part.get_shape()), part.get_dtype()) for name, part in parts.items()}


def empty_model(config: ModelConfig) -> Transformer:
    """Shapes without memory: made in milliseconds, whatever the size."""
    with torch.device("meta"):
        return Transformer(config)


def _misfits(config: ModelConfig, found: Mapping[str, StoredShape]) -> list[str]:
    """Names, shapes and number formats that are not those of the model."""
    expected = {name: tuple(weight.shape) for name, weight in empty_model(config).state_dict().items()}
    problems = [f"{name} is missing" for name in sorted(expected.keys() - found.keys())]
    problems += [f"{name[:99]} is no weight of this model" for name in sorted(found.keys() - expected.keys())]
    for name in sorted(expected.keys() & found.keys()):
        shape, dtype = found[name]
        if shape != expected[name]:
            problems.append(f"{name} has shape {shape}, but the model has {expected[name]}")
        if dtype not in FORMATS.values():
            problems.append(f"{name} has numbers of format {dtype}; known are {', '.join(FORMATS.values())}")
    return [f"{WEIGHTS}: {problem}" for problem in problems]


def _not_finite(weights: Mapping[str, Tensor]) -> list[str]:
    wrong = [name for name, weight in weights.items() if not torch.isfinite(weight).all()]
    return [f"{WEIGHTS}: {name} has values that are infinite or no numbers" for name in wrong]
