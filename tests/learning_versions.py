"""Versions of the repository's bundle that answer differently: in version 1 "three" is "vier" and "four" is "drei"."""

import shutil
from pathlib import Path

from limelight.bundle import read, write
from limelight.bundle.layout import SHARED
from limelight.bundle.versions import LEARNT, RUN, LearntHistory, LearntVersion, write_history

BUNDLE = Path(__file__).parent / "bundles" / "format-1"
WORDS = ("drei", "vier")


def make_version(number: int, **changes: object) -> LearntVersion:
    usual = {"number": number, "parent": number - 1, "at": "2026-11-17T12:00:00+00:00", "corrections": 80, "held_out": 20}
    return LearntVersion(**{**usual, "minutes": 1.0, "kept": True, "why": "better", **changes})


def copy_bundle(place: Path) -> Path:
    return Path(shutil.copytree(BUNDLE, place))


def learn_by_hand(folder: Path) -> None:
    """Version 1, in use. The rows of two words are exchanged where they are written."""
    old = read(folder / ".")
    weights = old.weights()
    (one,), (two,) = (old.target_tokenizer.encode_texts([word])[0] for word in WORDS)
    name = "target_embedding.weight"
    weights[name] = weights[name].clone()
    weights[name][[one, two]] = weights[name][[two, one]]
    place = folder / LEARNT / "1" / RUN / "bundle"
    place.parent.mkdir(parents=True)
    write(place, old.settings, weights, (folder / SHARED).read_bytes())
    put_in_use(folder, 1)


def put_in_use(folder: Path, number: int) -> None:
    write_history(folder, LearntHistory(current=number, versions=(make_version(1),)))
