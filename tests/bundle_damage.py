"""280 ways to damage a bundle: 200 flipped bits, 50 cuts, 20 deletions and 10 files of another bundle.

for damage in damages(bundle, another, tmp_path):
    read(damage.folder)     must refuse it and name damage.files
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random

from limelight.bundle import relist

CARD, CONFIG, MANIFEST, WEIGHTS, PIECES = (
    "README.md",
    "config.json",
    "manifest.json",
    "model.safetensors",
    "pieces.model",
)
FILES = (CARD, CONFIG, MANIFEST, WEIGHTS, PIECES)
FLIPS = {name: 120 if name == WEIGHTS else 20 for name in FILES}


@dataclass(frozen=True)
class Damage:
    what: str
    folder: Path  # a damaged copy, the next one takes its place
    files: frozenset[str]  # what a message must name


def damages(bundle: Path, another: Path, place: Path, seed: int = 0) -> Iterator[Damage]:
    """`another` has the same files in the same sizes with other content."""
    random = Random(seed)
    yield from flips(bundle, place, random)
    for name in FILES:
        content = (bundle / name).read_bytes()
        for share in (0, 0.999, *(random.random() for _ in range(8))):
            kept = min(int(share * len(content)), len(content) - 1)
            (_copy(bundle, place) / name).write_bytes(content[:kept])
            yield Damage(f"{name} cut to {kept} of {len(content)} bytes", place, frozenset({name}))
    for gone in deletions():
        _copy(bundle, place)
        for name in gone:
            (place / name).unlink()
        # Without a manifest nothing is known of the others.
        yield Damage(f"{gone} deleted", place, frozenset({MANIFEST} if MANIFEST in gone else gone))
    for one, other in ((bundle, another), (another, bundle)):
        for name in FILES:
            shutil.copyfile(other / name, _copy(one, place) / name)
            yield Damage(f"{name} of another bundle in {one.name}", place, frozenset({name}))


def flips(bundle: Path, place: Path, random: Random, names: Sequence[str] = FILES) -> Iterator[Damage]:
    for name in names:
        content = (bundle / name).read_bytes()
        for bit in random.sample(range(8 * len(content)), FLIPS[name]):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            (_copy(bundle, place) / name).write_bytes(flipped)
            yield Damage(f"bit {bit} of {name} flipped", place, frozenset({name}))


def deletions() -> list[tuple[str, ...]]:
    return [*combinations(FILES, 1), *combinations(FILES, 2), *list(combinations(FILES, 3))[:5]]


def make_another(bundle: Path, place: Path) -> Path:
    """A sound bundle of the same sizes in which every file is another."""
    _copy(bundle, place)
    score = (place / PIECES).read_bytes().index("▁zero".encode()) + len("▁zero".encode()) + 1  # the tag, then a float
    changes = {
        CARD: lambda content: content.replace(b"seed: 2017", b"seed: 2018"),
        CONFIG: lambda content: content.replace(b'"seed": 2017', b'"seed": 2018'),
        WEIGHTS: lambda content: content[:-4] + bytes([content[-4] ^ 1]) + content[-3:],
        PIECES: lambda content: content[:score] + bytes([content[score] ^ 1]) + content[score + 1 :],
    }
    for name, change in changes.items():
        (place / name).write_bytes(change((place / name).read_bytes()))
    relist(place)
    return place


def _copy(bundle: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(bundle, place))
