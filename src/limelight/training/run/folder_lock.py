"""A folder lock lets one process at a time write into a run, which begins in no folder of someone else."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limelight.bundle.versions import read_history
from limelight.errors import ConfigError
from limelight.files import await_lock
from limelight.training.run_folder import BUNDLE, FACTS, PREPARED, STATUS, SYNTHETIC_FOLDER, TEACHER

LOCK = ".lock"
LEFT = re.compile(r"\.[\w.-]+\.[0-9a-f]{8}\.(?:part|old)")  # as `limelight.files` names what is not whole yet, and what is replaced


@contextmanager
def own_folder(run: Path, patience: float = 0.0) -> Iterator[None]:
    """A run begins in a new or empty folder, or in one with a prepared corpus, translations of a teacher or a run, and is alone in it.

    `patience`: seconds to wait for another process to end, as one of a host that was cut off from the rest of its run will.
    """
    there = {path.name for path in run.iterdir() if not LEFT.fullmatch(path.name)} - {LOCK, STATUS} if run.exists() else set()
    if there and not there & {PREPARED, FACTS, SYNTHETIC_FOLDER, TEACHER}:
        raise ConfigError(f"{run} is there already and is no run; give another folder with -o")
    if current := read_history(run).current:
        back = f"limelight learn {run} --back goes back to version 0; or give another folder with -o"
        raise ConfigError(f"{run} has learnt version {current}, which would hide what is trained now; {back}")
    with lock_folder(run, patience, "give another folder with -o"):
        _clear_up(run)
        yield


def _clear_up(run: Path) -> None:
    """What a process that was killed left of a translator and of files that it wrote, and the translator that it was replacing."""
    for path in sorted(run.iterdir()):
        if path.name.startswith(f".{BUNDLE}.") and path.suffix == ".old" and not (run / BUNDLE).exists():
            path.rename(run / BUNDLE)
        elif LEFT.fullmatch(path.name):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@contextmanager
def lock_folder(folder: Path, patience: float = 0.0, otherwise: str = "try again later") -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("ab") as file:
        if not await_lock(file, patience):
            raise ConfigError(f"another process is at work in {folder}; wait for it, or {otherwise}")
        yield
