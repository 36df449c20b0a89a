"""A run on a disk of its own that gets full: it ends with what it had, and goes on bit for bit when there is room."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small_runs import DONE, SHORT, STOPPED, Signal, Small, make_corpus, remains, story

from limelight.training.checkpoints.checkpoint import latest
from limelight.training.run_folder import CHECKPOINTS

EVERY_STEP = {"checkpoints": {"every_seconds": 0.001}}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    allowed = os.geteuid() == 0 and shutil.which("mount") is not None
    if not allowed or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "disk", place], check=False).returncode:
        pytest.skip("a small disk of its own needs the right to mount a tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def room(disk: Path, pages: int) -> None:
    """So many pages are left."""
    found = os.statvfs(disk)
    size = (found.f_blocks - found.f_bfree) * found.f_frsize + pages * 4096
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


@pytest.mark.process
def test_a_run_without_room_for_a_checkpoint_ends_after_three_and_goes_on_as_if_nothing_was(tmp_path: Path, disk: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus")
    straight = Small(corpus, tmp_path / "straight", SHORT | EVERY_STEP)
    assert straight.live() == DONE
    run = Small(corpus, disk / "run", SHORT | EVERY_STEP)
    assert run.live(Signal(after_step=5)) == STOPPED
    before = run.saved.step
    room(disk, 100)  # a log, a status; not half of a checkpoint
    assert run.live() not in (DONE, STOPPED)
    found = latest(run.run / CHECKPOINTS)
    assert found.checkpoint is not None and found.checkpoint.step == before and not found.refused
    assert not [path for path in run.run.rglob(".*") if path.name != ".lock"], "nothing is left behind"
    taken = [line for line in story(run.run) if line[0] == "step"]
    assert len(taken) == before + 3, "it tried three times, and took steps between"
    assert taken == [line for line in story(straight.run) if line[0] == "step"][: before + 3]
    room(disk, 10_000)
    assert run.live() == DONE
    assert story(run.run) == story(straight.run)
    assert remains(run.run) == remains(straight.run)
