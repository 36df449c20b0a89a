"""The command line of `limelight plan` becomes a request: text, model, devices, time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from limelight.cli.settings_arguments import put_settings, settings_from, split_settings
from limelight.cli.train.recipe_keys import check_changes
from limelight.corpus.config import PrepareSettings
from limelight.corpus.manifest import NAME
from limelight.errors import ConfigError
from limelight.model.config import PRESETS
from limelight.planning.budget import parse_budget
from limelight.planning.cost.parallel import Precision
from limelight.planning.time.devices import split_count
from limelight.training.config import Recipe
from limelight.training.run_folder import PREPARED, RECIPE

MANY = re.compile(r"(\d+(?:\.\d+)?)([kmb]?)", re.IGNORECASE)
FACTORS = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
EXAMPLE = "limelight plan corpus.en corpus.de --budget 2h"


@dataclass(frozen=True)
class PlanOptions:
    budget: str | None = None
    preset: str | None = None
    device: str | None = None
    devices: Path | None = None
    count: int | None = None
    precision: Precision | None = None
    pairs: int | None = None
    corpus_pairs: int | None = None
    requests: float | None = None
    latency: float | None = None
    source: str | None = None
    target: str | None = None
    vocab_size: int | None = None
    calibrate: bool = False


def how_many(option: str, text: str | None) -> int | None:
    """how_many("--pairs", "2.5M") -> 2_500_000; also 29000, 29,000, 500k, 1B."""
    if text is None:
        return None
    match = MANY.fullmatch(re.sub(r"[,_\s]", "", text))
    number = round(float(match[1]) * FACTORS[match[2].lower()]) if match else 0
    if number < 1:
        raise ConfigError(f"{option} {text} is no number of pairs; write it as 29000, 500k, 10M or 1B")
    return number


@dataclass(frozen=True)
class PlanRequest:
    """A request has `data`, `prepared` or neither: a corpus to take a sample of, one that is prepared, a text that is only thought of."""

    options: PlanOptions
    data: PrepareSettings | None
    prepared: Path | None
    recipe: Recipe | None
    model: dict[str, Any]  # keys of the section
    precision: Precision | None
    seconds: float | None
    steps: int | None
    device: str | None  # None: this machine
    count: int | None
    start: list[str] = field(default_factory=list)  # `limelight train` with the text, without what the plan will say


def parse_plan_request(inputs: Sequence[str], options: PlanOptions) -> PlanRequest:
    paths, written = split_settings(inputs)
    check_changes(written)
    _check(options, paths, written)
    seconds, device, count = _devices(options)
    changes: dict[str, Any] = {}
    put_settings(changes, written)
    recipe, prepared, data = _read(paths, written, options)
    if recipe is not None:
        values = recipe.model_dump(exclude_unset=True)
        put_settings(values, written)
        recipe = Recipe(**values)
        data, prepared = recipe.data, prepared if data == recipe.data else None
    own = recipe.machine.precision if recipe else None
    return PlanRequest(
        options=options, data=data, prepared=prepared, recipe=recipe, model=changes.get("model", {}),
        precision=changes.get("machine", {}).get("precision") or options.precision or own,
        seconds=changes.get("budget_seconds", seconds), steps=changes.get("schedule", {}).get("steps"), device=device, count=count,
        start=_start(paths, written, prepared, options),
    )  # fmt: skip


def _check(options: PlanOptions, paths: Sequence[str], written: Sequence[str]) -> None:
    """Refuse all that does not go together, at once."""
    problems = []
    if options.preset is not None and options.preset not in PRESETS:
        problems.append(f"--preset {options.preset}: there is no such preset; the presets are {', '.join(PRESETS)}")
    if options.latency is not None and options.requests is None:
        problems.append("--latency is of requests; say how many a second: --requests 10 --latency 500")
    if options.preset is not None and any(_recipe_at(path) for path in paths):
        problems.append(f"--preset {options.preset}: a recipe has its model; change that with model.d_model=512 and so on")
    asked = (options.budget, options.preset, options.pairs, options.device, options.corpus_pairs, options.requests)
    if not paths and not written and not any(asked):
        problems.append(f"there is nothing to plan; name the text, such as: {EXAMPLE}; or a size and a device: --preset base --device H100")
    named = parse_budget(options.budget) if options.budget else None
    if named and named.device and options.device and split_count(options.device)[1].lower() != named.device.lower():
        problems.append(f"--budget {options.budget} and --device {options.device} name two devices; leave one out")
    said = {named.count if named and named.device else None, options.count, split_count(options.device or "")[0]}
    numbers = sorted(number for number in said if number is not None)
    if len(numbers) > 1:
        problems.append(f"{' and '.join(map(str, numbers))} devices: say once how many, such as --budget '8xH100 24h'")
    if problems:
        raise ConfigError("this cannot be planned:", problems)


def _devices(options: PlanOptions) -> tuple[float | None, str | None, int | None]:
    budget = parse_budget(options.budget) if options.budget else None
    number, name = split_count(options.device) if options.device else (None, None)
    if budget and budget.device:
        return budget.seconds, budget.device, options.count or number or budget.count or 1
    return budget.seconds if budget else None, name, options.count or number


def _read(paths: Sequence[str], written: Sequence[str], options: PlanOptions) -> tuple[Recipe | None, Path | None, PrepareSettings | None]:
    if len(paths) > 1 and (known := [path for path in paths if _recipe_at(path) or _is_prepared(path)]):
        raise ConfigError(f"{known[0]} is a recipe, a run or a prepared corpus, and is planned alone; leave out the others")
    if not paths:
        return None, None, None
    place = Path(paths[0])
    if (file := _recipe_at(paths[0])) is not None:
        recipe = Recipe.load(file)
        ready = place / PREPARED
        return recipe, (ready if place.is_dir() and _is_prepared(str(ready)) else None), recipe.data
    if _is_prepared(paths[0]):
        return None, place, None
    given = {
        "source": options.source, "target": options.target, "valid": (), "test": (), "vocab_size": options.vocab_size,
        "keep_dropped": False,
    }  # fmt: skip
    settings = [text.removeprefix("data.") for text in written if text.startswith("data.")]
    return None, None, settings_from(paths, given, (), None, settings=settings)


def _recipe_at(path: str) -> Path | None:
    """recipe.toml -> itself; a run -> its recipe."""
    place = Path(path)
    if path.endswith(".toml"):
        return place
    return place / RECIPE if (place / RECIPE).is_file() else None


def _is_prepared(path: str) -> bool:
    return (Path(path) / NAME).is_file()


def _start(paths: Sequence[str], written: Sequence[str], prepared: Path | None, options: PlanOptions) -> list[str]:
    if not paths:
        return []
    if (file := _recipe_at(paths[0])) is not None:
        return ["limelight", "train", str(file), *written, "-o", "another"]
    if prepared is not None:
        return ["limelight", "train", str(prepared), *(each for each in written if not each.startswith("data."))]
    named = {"--source": options.source, "--target": options.target, "--vocab-size": options.vocab_size}
    words = ["limelight", "train", *paths, *written]
    return words + [word for name, value in named.items() if value is not None for word in (name, str(value))]
