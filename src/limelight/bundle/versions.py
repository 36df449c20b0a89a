"""Versions that a translator has learnt lie beside it, each in a folder of its own, and one small file says which is in use.

    en-de/
      bundle/             as it was trained, version 0: never touched
      learnt/
        history.json      `LearntHistory`: the version in use, and what became of each
        1/                what version 1 was made from
        1/run/            the run that trained it, with its bundle

The file is replaced whole, so that a reader finds the old version or the new one, and nothing between.
"""

from pathlib import Path

from pydantic import Field

from limelight.bundle.strict_json import read_json, settings_of
from limelight.config import Settings
from limelight.files import write_whole

LEARNT, HISTORY, RUN = "learnt", "history.json", "run"


class LearningPlan(Settings):
    """A plan says when a version was begun, and what from."""

    number: int = Field(ge=1)
    parent: int = Field(ge=0, description="The version that it goes on from.")
    at: str
    minutes: float = Field(gt=0)
    corrections: int = Field(ge=0, description="That it is taught.")
    held_out: int = Field(ge=0)
    refused: dict[str, int] = Field(default={}, description="How many, by reason.")


class LearntVersion(LearningPlan):
    """A version also says with which effect it ended."""

    effect: dict[str, tuple[float, float, float]] = Field(default={}, description="Of each test set: chrF before, after, and p.")
    kept: bool
    why: str


class LearntHistory(Settings):
    current: int = Field(default=0, ge=0)
    versions: tuple[LearntVersion, ...] = Field(default=(), max_length=10_000)

    def find(self, number: int) -> LearntVersion | None:
        return next((each for each in self.versions if each.number == number), None)


def read_history(folder: Path) -> LearntHistory:
    """An empty one where nothing was learnt; a ModelFileError where the file is damaged."""
    place = folder / LEARNT
    if not (place / HISTORY).is_file():
        return LearntHistory()
    return settings_of(LearntHistory, place, HISTORY, read_json(place, HISTORY, 16 << 20)[1])


def write_history(folder: Path, history: LearntHistory) -> None:
    write_whole(folder / LEARNT / HISTORY, history.model_dump_json(indent=1).encode() + b"\n")


def find_version(folder: Path, number: int | None = None) -> Path:
    """The folder of that version; by default of the one in use."""
    number = read_history(folder).current if number is None else number
    return folder / LEARNT / str(number) / RUN if number else folder


def find_original(bundle: Path) -> list[Path]:
    """Where the bundle may lie that a version was learnt from; nowhere for one that is no version."""
    roots = [place.parent for place in bundle.parents if place.name == LEARNT and (place / HISTORY).is_file()]
    return [place for root in roots[:1] for place in (root / "bundle", root)]
