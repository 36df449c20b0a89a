"""A checkpoint that is damaged: is it found out before the first step, and the one before taken?

    python benchmarks/survive_damage.py             285 damages of a whole checkpoint, 285 of shards; some minutes
    python benchmarks/survive_damage.py --few       a tenth of them

A real run with two checkpoints. Of the newer one, each in turn and undone again: single bits are flipped (at least 20 in each file), files
are cut, deleted, exchanged with those of the same size of the checkpoint before, and stale ones are put in the place of the newest. There
is no file that says which is the newest: the names of the folders do, so that a stale pointer is an older checkpoint under a newer name,
an older manifest, a link, or a folder whose writing never ended. `latest`, which every start calls before it builds a model, must refuse by
the name of the file and give the checkpoint before. For one of each kind and file `limelight train` itself is started, and must go on
from there and say why; with both damaged it must end with 66 and change nothing. Control: with verification off, flips anywhere in the
bytes of a checkpoint must load. The exit code is 1 if any figure is not as it must be; the last line has all of them.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment
from ranks import Ranks
from small_runs import make_corpus, recipe

from limelight.files import sha256_of
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints import folder as checkpoint_folder
from limelight.training.checkpoints.folder import MANIFEST, STATE, TENSORS, name_of, shard_name
from limelight.training.run_folder import CHECKPOINTS, PREPARED
from survive_command import Done, limelight

STEPS, STOPPED = 14, 9
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None  # a checkpoint at every step is much for a real disk


@dataclass(frozen=True)
class Counts:
    flips: int = 200
    cuts: int = 50
    deletions: int = 20
    swaps: int = 10
    stale: int = 5


@dataclass(frozen=True)
class Damage:
    """Done in place; `undo` brings back what was."""

    kind: str
    name: str  # that the refusal must have
    undo: Callable[[], Any]


def damages(root: Path, counts: Counts, draw: random.Random) -> Iterator[Damage]:
    (newest, folder), (_, before) = checkpoint_folder.candidates(root)[:2]
    names = sorted(path.name for path in folder.iterdir())
    yield from flips(folder, names, counts.flips, draw)
    for number in range(counts.cuts):
        path = folder / names[number % len(names)]
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * draw.choice((0, 0.5, 0.999, draw.random() * 0.999)))])
        yield Damage("cut", path.name, lambda path=path, content=content: path.write_bytes(content))  # type: ignore[misc]
    for number in range(counts.deletions):
        path = folder / names[number % len(names)]
        content = path.read_bytes()
        path.unlink()
        yield Damage("deleted", path.name, lambda path=path, content=content: path.write_bytes(content))  # type: ignore[misc]
    alike = [n for n in names if (folder / n).stat().st_size == (before / n).stat().st_size and n != MANIFEST]
    tensors = [name for name in alike if name.endswith(".safetensors")]
    for number in range(counts.swaps):
        path = folder / tensors[number % len(tensors)]
        content = path.read_bytes()
        path.write_bytes((before / path.name).read_bytes())
        yield Damage("swapped", path.name, lambda path=path, content=content: path.write_bytes(content))  # type: ignore[misc]
    yield from list_stale(root, folder, before, newest)


def flips(folder: Path, names: list[str], times: int, draw: random.Random) -> Iterator[Damage]:
    """At least a tenth of them in each file, the rest where the bytes are."""
    large = max(names, key=lambda name: (folder / name).stat().st_size)
    for number in range(times):
        path = folder / (names[number % len(names)] if number < len(names) * times // 10 else large)
        content = path.read_bytes()
        bit = draw.randrange(8 * len(content))
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        yield Damage("flipped", path.name, lambda path=path, content=content: path.write_bytes(content))  # type: ignore[misc]


def list_stale(root: Path, folder: Path, before: Path, newest: int) -> Iterator[Damage]:
    """What stands for a pointer to the newest that is not true any more. Each is refused, or not looked at, by its name."""
    later = root / name_of(newest + 1)
    aside = root.parent / "aside"

    def back() -> None:
        for path in (later, folder):
            path.unlink() if path.is_symlink() else shutil.rmtree(path, ignore_errors=True)
        aside.rename(folder)

    folder.rename(aside)
    shutil.copytree(before, folder)
    yield Damage("stale", MANIFEST, back)  # the older one under the name of the newest
    folder.rename(aside)
    shutil.copytree(before, later)
    yield Damage("stale", later.name, back)  # under a name that was never written
    folder.rename(aside)
    later.symlink_to(before)
    yield Damage("stale", later.name, back)
    folder.rename(aside)
    shutil.copytree(aside, folder)
    shutil.copyfile(before / MANIFEST, folder / MANIFEST)
    yield Damage("stale", MANIFEST, back)
    folder.rename(aside)
    shutil.copytree(aside, root / f".{folder.name}.0123abcd.part")  # complete, but its writing never ended: no candidate
    yield Damage("stale", "", lambda: (back(), shutil.rmtree(root / f".{folder.name}.0123abcd.part")))


def refused(root: Path, damage: Damage, step: int) -> bool:
    found = checkpoint.latest(root)
    said = not damage.name or any(damage.name in sentence for sentence in found.refused)
    return said and found.checkpoint is not None and found.checkpoint.step == step


def battery(root: Path, counts: Counts) -> dict[str, Any]:
    """How many of each kind were found out by `latest`, and how fast it reads."""
    before = checkpoint_folder.candidates(root)[1][0]
    good: dict[str, list[bool]] = {}
    for damage in damages(root, counts, random.Random(0)):
        good.setdefault(damage.kind, []).append(refused(root, damage, before))
        damage.undo()
    assert not checkpoint.latest(root).refused, "what was damaged was not undone"
    return {kind: f"{sum(each)}/{len(each)}" for kind, each in good.items()}


def without_verification(root: Path, counts: Counts) -> int:
    """How many flips would have been loaded: anywhere in its bytes, as bits rot."""
    real, draw, loaded = checkpoint.problems, random.Random(0), 0
    (_, folder), *_ = checkpoint_folder.candidates(root)
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    checkpoint.problems = lambda *_: []  # type: ignore[assignment]
    try:
        for name in draw.choices(list(sizes), weights=list(sizes.values()), k=counts.flips):
            (damage,) = flips(folder, [name], 1, draw)
            try:
                found = checkpoint.latest(root).checkpoint
                loaded += found is not None and found.folder == folder and bool(found.tensors())
            except Exception:
                pass
            damage.undo()
    finally:
        checkpoint.problems = real
    return loaded


def started(stage: Path, run: Path) -> Done:
    return limelight(
        "train",
        str(stage / "recipe.toml"),
        "-o",
        str(run),
        "--plain",
        "--workers",
        "0",
        "checkpoints.every_seconds=0.01",
        f"schedule.steps={STEPS}",
    )


def commands(stage: Path, run: Path, counts: Counts) -> list[str]:
    """The command itself, for one damage of each kind and file; then for a run with nothing left. What is not as it must be."""
    root, wrong, seen = run / CHECKPOINTS, [], set()
    for damage in damages(root, counts, random.Random(1)):
        key = (damage.kind, damage.name if counts.flips >= 200 else "")
        if key not in seen and damage.name:
            seen.add(key)
            copy = run.with_name("copy")
            shutil.copytree(run, copy, symlinks=True)
            done = started(stage, copy)
            before = checkpoint_folder.candidates(root)[1][0]
            if done.code or f"goes on from step {before}" not in done.said or damage.name not in done.said:
                wrong.append(f"{key}: exit {done.code}, {done.said[-400:]}")
            shutil.rmtree(copy)
        damage.undo()
    for _, folder in checkpoint_folder.candidates(root):
        (folder / STATE).write_bytes(b"{}")
    before_hash = hashes(run)
    done = started(stage, run)
    if done.code != 66 or STATE not in done.said or hashes(run) != before_hash:
        wrong.append(f"nothing left: exit {done.code}, {done.said[-400:]}")
    return [*wrong, f"{len(seen) + 1} starts"]


def hashes(run: Path) -> dict[str, str]:
    return {str(path): sha256_of(path) for path in sorted((run / CHECKPOINTS).rglob("*")) if path.is_file()}


def speed(folder: Path, megabytes: int) -> float:
    """Bytes a second of a verification, from the page cache."""
    checkpoint.save(folder, 1, {"w": torch.zeros(megabytes * 250_000)}, {}, keep=1)
    began = time.perf_counter()
    assert not checkpoint.latest(folder).refused
    return megabytes * 1e6 / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--few", action="store_true")
    counts: Final = Counts(20, 8, 8, 4) if parser.parse_args().few else Counts()
    total, failed = sum(vars(counts).values()), False
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="survive-damage-", dir=MEMORY) as place:
        stage = Path(place)
        corpus = make_corpus(stage / "corpus")
        recipe(corpus, schedule={"steps": STEPS, "warmup": 10}, validation={"every": STEPS}).save(stage / "recipe.toml")
        runs = {"whole": stage / "whole", "shards": stage / "shards"}
        shutil.copytree(corpus / PREPARED, runs["whole"] / PREPARED)
        limelight(
            "train", str(stage / "recipe.toml"), "-o", str(runs["whole"]), "--plain", "--workers", "0", "checkpoints.every_seconds=0.01",
            f"schedule.steps={STEPS}", environment=fault_environment(f"step.forward:kill@{STOPPED}"),
        )  # fmt: skip
        shutil.copytree(runs["whole"], runs["shards"])
        shutil.rmtree(runs["shards"] / CHECKPOINTS)
        with Ranks(2, "shard_scenes") as ranks:
            assert ranks.run(2, "spread_run", str(runs["whole"] / CHECKPOINTS), str(runs["shards"] / CHECKPOINTS)) == [
                2,
                2,
            ]
        for layout, run in runs.items():
            files = [TENSORS] if layout == "whole" else [shard_name(0), shard_name(1)]
            found = battery(run / CHECKPOINTS, counts)
            loaded = without_verification(run / CHECKPOINTS, counts)
            good = sum(int(each.split("/")[0]) for each in found.values())
            print(json.dumps({"layout": layout, "files": [*files, STATE, MANIFEST], "refused": found, "good": f"{good}/{total}"}))
            print(
                json.dumps({"layout": layout, "flips_that_load_without_verification": f"{loaded}/{counts.flips}"}),
                flush=True,
            )
            *wrong, starts = commands(stage, run, counts)
            print(json.dumps({"layout": layout, "commands": starts, "wrong": wrong}), flush=True)
            figures[layout] = {
                "good": f"{good}/{total}",
                "load_without": f"{loaded}/{counts.flips}",
                "commands": starts,
                "wrong": len(wrong),
            }
            failed |= good != total or loaded < 0.95 * counts.flips or bool(wrong)
        pace = speed(stage / "speed", 100 if counts.flips < 200 else 500)
        print(json.dumps(figures | {"verified_megabytes_a_second": round(pace / 1e6)}))
    return failed or pace < 200e6


if __name__ == "__main__":
    sys.exit(main())
