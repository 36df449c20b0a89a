"""A train request holds what a person asks of a run, and a train result what they get."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.errors import ConfigError
from limelight.training.config import OF_THE_WORLD, Precision, Recipe
from limelight.training.recipe.monolingual import MonoText
from limelight.training.recipe.replay import OldText
from limelight.training.run_folder import State

MOST_TOLD, LONGEST_TOLD = 8, 200  # differences to another command, and characters of a value


@dataclass(frozen=True)
class TrainRequest:
    """A request holds what a person gave; the rest is chosen. `data` is None when a whole recipe is given."""

    data: PrepareSettings | None
    prepared: str | None = field(default=None, kw_only=True)  # a folder or address where the text is prepared already
    recipe: Recipe | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)  # nested as a recipe, over whatever is chosen
    preset: str | None = None
    budget_seconds: float | None = None
    steps: int | None = None
    bundle: Path | None = None  # go on from this translator
    new_pieces: bool = False  # it is a parent: pieces are learnt from the new text
    replay: float | None = None  # share of the old text among what is seen
    replay_data: Sequence[CorpusSettings] = ()  # old text, where the translator is no run of ours
    mono: MonoText | None = None  # monolingual text, for back-translation
    seed: int | None = None
    device: str | None = None
    precision: Precision | None = None
    threads: int | None = None
    dry_run: bool = False
    export: bool = True  # for CTranslate2, at the end
    anyway: bool = False  # also with text that looks wrong, or is dropped for the most part

    @property
    def old_text(self) -> OldText | None:
        """Return the old text of the translator to go on from; that of a parent is in other pieces."""
        if self.bundle is None or self.new_pieces:
            return None
        return OldText(self.bundle, self.replay, tuple(self.replay_data))

    @property
    def named_device(self) -> str | None:
        """Return the device that was asked for, wherever that was said; None: it is chosen."""
        written = self.recipe.machine.device if self.recipe else None
        return self.changes.get("machine", {}).get("device") or self.device or written

    def fingerprint(self) -> dict[str, Any]:
        """What must be equal for a run to go on. More time or more steps are not another run."""
        return {
            "data": self.data.model_dump(mode="json") if self.data else None,
            "recipe": _without_world(self.recipe.model_dump(mode="json")) if self.recipe else None,
            "changes": _without_world(self.changes),
            "preset": self.preset,
            "bundle": str(self.bundle) if self.bundle else None,
            "replay": self.replay,
            "replay_data": [corpus.model_dump(mode="json") for corpus in self.replay_data],
            "seed": self.seed,
            **({"prepared": self.prepared} if self.prepared else {}),
            **({"new_pieces": True} if self.new_pieces else {}),
            **({"mono": asdict(self.mono)} if self.mono else {}),
        }


def _without_world(values: Mapping[str, Any]) -> dict[str, Any]:
    """How many processes share a run, and how, may change while it goes on."""
    machine = {key: value for key, value in values.get("machine", {}).items() if key not in OF_THE_WORLD}
    return {key: machine if key == "machine" else value for key, value in values.items() if key != "machine" or machine}


class OtherRunError(ConfigError):
    """A folder has what was begun for another request."""


def refuse_other(told: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """What was begun for one request does not go on for another."""
    if before != now:
        raise OtherRunError(f"{told}; go on with the same command, or give another folder with -o:", differences(before, now))


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """differences({"data": {"seed": 1}}, {"data": {"seed": 2}}) -> ["data.seed was 1, and is 2 now"]"""
    old, new = _leaves(before), _leaves(now)
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    told = [f"{key} was {_format_value(old.get(key))}, and is {_format_value(new.get(key))} now" for key in keys[:MOST_TOLD]]
    return told + ([f"and {len(keys) - MOST_TOLD} more"] if len(keys) > MOST_TOLD else [])


def _leaves(value: Any, path: str = "") -> dict[str, Any]:
    inner = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else None
    if inner is None:
        return {path: value}
    return {key: leaf for name, each in inner for key, leaf in _leaves(each, f"{path}.{name}".strip(".")).items()}


def _format_value(value: Any) -> str:
    return "not given" if value is None else str(value)[:LONGEST_TOLD]


@dataclass(frozen=True)
class TrainResult:
    """A result says how a run ended. `lines` sum it up for people, `values` for programs."""

    state: State
    folder: Path
    exit_code: int
    headline: str | None
    lines: list[str]
    values: dict[str, Any]
