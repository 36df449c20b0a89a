"""The state of a loader is its position as JSON, with all that must be the same for it to mean anything:

    {"format": 1, "prepared": "9f2c...", "corpora": "51ab...", "split": "train", "settings": {"budget": 4096, ...},
     "epoch": 2, "window": 5, "batch": 117, "number": 10377, "skipped": 12}

Rank, world size and workers are not in it: the list of global batches does not depend on them, so a run may go on with others.
"""

import hashlib
import json
from dataclasses import dataclass, fields
from typing import Any, Final

from limelight.corpus.feeding.batches import Batcher
from limelight.corpus.manifest import Split
from limelight.errors import ConfigError

FORMAT: Final = 1


@dataclass(frozen=True)
class Position:
    """A position is a place in the endless list of global batches: the next is `batch` of `window` of `epoch`."""

    epoch: int = 0
    window: int = 0
    batch: int = 0
    number: int = 0  # batches of this epoch that are behind
    skipped: int = 0  # pairs too long for the settings, in the windows of this epoch that are behind


def identity_of(batcher: Batcher, split: Split, turned: bool = False) -> dict[str, Any]:
    """All that decides the order: a state is good only where this is the same."""
    manifest, settings = batcher.pairs.prepared.manifest, batcher.settings
    corpora = json.dumps([batcher.pairs.counts, batcher.weights]).encode()
    return {
        "format": FORMAT,
        "prepared": manifest.address,
        "corpora": hashlib.sha256(corpora).hexdigest()[:16],
        "split": split,
        "settings": {**settings.model_dump(mode="json"), "window": settings.window_rows},
        **({"turned": True} if turned else {}),
    }


def position_in(state: dict[str, Any], identity: dict[str, Any]) -> Position:
    """The position a state holds, if it was made for the same corpus and settings; else an error that lists all differences."""
    problems = _differences(state, {key: value for key, value in identity.items() if key != "settings"})
    saved = state.get("settings") or {}
    problems += _differences(saved, {**dict.fromkeys(saved), **identity["settings"]})  # what is no longer set, too
    names = [field.name for field in fields(Position)]
    wrong = [name for name in names if not isinstance(state.get(name), int) or state[name] < 0]
    problems += [f"{name} is {state.get(name)!r}, not a count" for name in wrong]
    if problems:
        what = "the saved place does not fit this corpus and these settings; restore them, or start without it:"
        raise ConfigError(what, problems)
    return Position(**{name: state[name] for name in names})


def _differences(saved: dict[str, Any], present: dict[str, Any]) -> list[str]:
    return [f"{key} was {saved.get(key)!r}, now {value!r}" for key, value in present.items() if saved.get(key) != value]
