"""The weights of a Hugging Face folder are found, compared with what the model needs, then loaded. Nothing in a file runs."""

import pickle
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from limelight.bundle.weights import FORMATS, StoredShape, empty_model, read_shapes, shapes_of
from limelight.interop.architecture import Architecture
from limelight.interop.file_names import INDEX, PICKLED, PICKLED_INDEX, WHOLE
from limelight.interop.names import (
    BIAS,
    M2M100_TABLES,
    OUTPUT,
    SHARED,
    SOURCE,
    TABLES,
    TARGET,
    Weights,
    to_ours,
    to_theirs,
)
from limelight.interop.published_pieces import read_published, unusable
from limelight.interop.quarantine import tensors_problem
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids

PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)  # a file of the folder itself
LARGEST_INDEX = 50_000_000
MOST_PROBLEMS = 50  # that are listed of the weights
EMBEDDINGS = (SHARED, SOURCE, TARGET, OUTPUT)
# Whatever torch raises at a file that is no list of weights.
DAMAGE = (pickle.UnpicklingError, RuntimeError, OSError, ValueError, EOFError, LookupError, TypeError, AttributeError)
NEAR = 0.01  # a stored table of positions may be in bfloat16; a learned one is further off


def read_weights(folder: Path, architecture: Architecture, config: ModelConfig) -> tuple[ModelConfig, Weights, list[str]]:
    """Our weights, the model with the output bias and the tying that they have, and notices. Else a ConfigError with every problem."""
    parts = weight_files(folder)
    for part in parts:
        if part.endswith(".bin") and (problem := tensors_problem(folder / part)):
            raise unusable(f"{part}: holds more than weights, or is damaged; nothing of it was run ({problem})")
    shapes = {name: shape for part in parts for name, shape in _shapes(folder, part).items()}
    found = config.changed(output_bias=BIAS in shapes and architecture.bias)
    if problems := _misfits(shapes, architecture, found):
        raise unusable(*problems)
    theirs: Weights = {}
    for part in parts:
        theirs |= _load(folder, part)
    wrong = [name for name, weight in theirs.items() if not weight.isfinite().all()]
    problems = [f"{name} has values that are infinite or no numbers" for name in wrong]
    problems += _table_problems(theirs, found, architecture.layout)
    if problems:
        raise unusable(*(f"{parts[0]}: {problem}" for problem in problems))
    tie, notices = _tying(theirs, found)
    found = found.changed(tie=tie)
    return found, to_ours(theirs, found), notices


def weight_files(folder: Path) -> list[str]:
    for index, whole in ((INDEX, WHOLE), (PICKLED_INDEX, PICKLED)):
        if (folder / whole).is_file():
            return [whole]
        if (folder / index).is_file():
            return _read_index(folder, index, Path(whole).suffix)
    raise unusable(f"{WHOLE}: is missing, and so are {INDEX} and {PICKLED}")


def _read_index(folder: Path, index: str, suffix: str) -> list[str]:
    listed = read_published(folder, index, LARGEST_INDEX).get("weight_map")
    if not isinstance(listed, dict) or not listed or not all(isinstance(name, str) for name in listed.values()):
        raise unusable(f"{index}: has no weight_map from names of weights to names of files")
    names = sorted(set(listed.values()))
    if outside := [name for name in names if not PLAIN.fullmatch(name) or not name.endswith(suffix)]:
        raise unusable(*(f"{index}: names {name[:99]!r}, which is no {suffix} file of this folder" for name in outside))
    if missing := [name for name in names if not (folder / name).is_file()]:
        raise unusable(*(f"{name}: is missing, and {index} names it" for name in missing))
    return names


def _shapes(folder: Path, part: str) -> dict[str, StoredShape]:
    if part.endswith(".bin"):
        return shapes_of(_unpickle(folder, part))
    try:
        with safe_open(folder / part, "pt") as file:
            return read_shapes(file)
    except (SafetensorError, OSError, ValueError) as error:
        raise unusable(f"{part}: cannot be read ({str(error)[:300]})") from None


def _load(folder: Path, part: str) -> Weights:
    if part.endswith(".bin"):
        return {name: w.clone() for name, w in _unpickle(folder, part).items()}
    with safe_open(folder / part, "pt") as file:
        return {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118


def _unpickle(folder: Path, part: str) -> Weights:
    """torch's own reader with an allow-list: tensors and containers. Anything else in the file is refused before it is made."""
    try:
        with warnings.catch_warnings():
            # About how the file was pickled, which is not for the person who imports it.
            warnings.simplefilter("ignore")
            found: Any = torch.load(folder / part, map_location="cpu", weights_only=True)
    except DAMAGE as error:
        reason = str(error).strip().split("\n")[0][:200]
        raise unusable(f"{part}: holds more than weights, or is damaged; nothing of it was run ({reason})") from None
    if not isinstance(found, dict) or not all(isinstance(n, str) and isinstance(w, Tensor) for n, w in found.items()):
        raise unusable(f"{part}: is no list of weights by name")
    return found


def _misfits(shapes: Mapping[str, StoredShape], architecture: Architecture, config: ModelConfig) -> list[str]:
    """Missing, left over, of another shape or number format."""
    if problems := _layer_problems(shapes, config):
        return problems
    plain = config.changed(position_layout="halves", position_offset=0)
    empty = to_theirs(empty_model(plain).state_dict(), plain, architecture.separate)
    expected = {name: tuple(w.shape) for name, w in empty.items()}
    size, source = (config.vocab_size, config.d_model), (config.source_vocab, config.d_model)
    known = {**expected, SHARED: size, SOURCE: source, TARGET: size, OUTPUT: size}
    problems = [f"{name} is missing" for name in expected if name not in shapes and name not in EMBEDDINGS]
    problems += _absent_embeddings(shapes, config)
    strange = [name for name in shapes if name not in known and name not in (*TABLES, *M2M100_TABLES)]
    problems += [f"{name[:99]} is no weight of {architecture.model_class}" for name in strange]
    for name, (shape, form) in shapes.items():
        if name in known and shape != known[name]:
            problems.append(f"{name} has shape {shape}, but config.json makes it {known[name]}")
        if name in known and form not in FORMATS.values():
            problems.append(f"{name} has numbers of format {form}; known are {', '.join(FORMATS.values())}")
    hidden = len(problems) - MOST_PROBLEMS
    shown = problems[:MOST_PROBLEMS] + ([f"and {hidden:,} problems more"] if hidden > 0 else [])
    return [f"weights: {problem}" for problem in shown]


def _layer_problems(shapes: Mapping[str, Any], config: ModelConfig) -> list[str]:
    """Said first: a list of a thousand missing names would say less, and take long."""
    problems = []
    for side in ("encoder", "decoder"):
        number = re.compile(rf"model\.{side}\.layers\.(\d{{1,4}})\.")
        stored = {int(found[1]) for name in shapes if (found := number.match(name))}
        said = getattr(config, f"{side}_layers")
        if len(stored) != said:
            problems.append(f"config.json: has {side}_layers={said}, but the weights have {len(stored)}")
    return problems


def _absent_embeddings(shapes: Mapping[str, Any], config: ModelConfig) -> list[str]:
    needed: dict[str, list[tuple[str, ...]]] = {
        "all": [EMBEDDINGS],
        "decoder": [(SOURCE, SHARED), (TARGET, OUTPUT, SHARED)],
        "none": [(SOURCE, SHARED), (TARGET, SHARED), (OUTPUT,)],
    }
    return [f"{names[0]} is missing" for names in needed[config.tie] if not any(name in shapes for name in names)]


def _table_problems(theirs: Mapping[str, Tensor], config: ModelConfig, layout: str) -> list[str]:
    """Positions that are stored must be those that are computed."""
    problems = []
    used = slice(config.position_offset, None)  # what stands before is never read
    for name in [name for name in (*TABLES, *M2M100_TABLES) if name in theirs]:
        table = theirs[name].float()
        if table.dim() != 2 or table.shape[1] != config.d_model:
            problems.append(f"{name} has shape {tuple(table.shape)}, which is no table of positions")
        elif not torch.allclose(table[used], sinusoids(len(table), config.d_model, layout).float()[used], atol=NEAR):
            problems.append(f"{name} is not the table of sinusoids; learned positions cannot be imported")
    return problems


def _tying(theirs: Mapping[str, Tensor], config: ModelConfig) -> tuple[str, list[str]]:
    """As the file has it: where matrices that config.json ties are stored apart and differ, transformers leaves them apart too."""
    if config.tie == "none":
        return "none", []
    one = EMBEDDINGS if config.tie == "all" else (TARGET, OUTPUT)
    stored = [name for name in one if name in theirs]
    if all(torch.equal(theirs[stored[0]], theirs[name]) for name in stored[1:]):
        return config.tie, []
    return "none", [f"config.json ties {', '.join(stored)}, but they differ; they are kept apart, as transformers does"]
