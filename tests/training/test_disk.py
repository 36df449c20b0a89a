"""What a full disk does to a run: it goes on, says so once, and writes again when there is room."""

import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from limelight.errors import StorageError
from limelight.files import write_whole
from limelight.training.events import Event, RunNotice, StepReport, read_events
from limelight.training.run.event_writers import MetricsWriter, OptionalFiles, add_writers
from limelight.training.run_folder import METRICS, STATUS, read_status, write_status


def step(number: int) -> StepReport:
    return StepReport(number, 9, 0.5, 2.5, 2.0, 1e-3, 0.7, 10, 12, 0.1, 0.2, 0.01, 3.0, 4.4, 1000)


@contextmanager
def no_file_over(size: int) -> Iterator[None]:
    """Stands for a full disk: the kernel cuts a write in its middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_that_do_not_fit_are_written_when_there_is_room(tmp_path: Path) -> None:
    lines, events = MetricsWriter(tmp_path), [step(number) for number in range(1, 8)]
    for event in events[:2]:
        lines(event)
    size = (tmp_path / METRICS).stat().st_size
    with no_file_over(size + 99):  # not even half a line more
        for event in events[2:5]:
            with pytest.raises(OSError, match="File too large"):
                lines(event)
        assert read_events(tmp_path / METRICS) == events[:2], "no half of a line is left"
    for event in events[5:]:
        lines(event)
    lines.close()
    assert read_events(tmp_path / METRICS) == events


def test_a_plain_file_would_keep_the_half_of_a_line(tmp_path: Path) -> None:
    """Negative control: the disk above is really full."""
    path = tmp_path / METRICS
    with path.open("ab", buffering=0) as file, no_file_over(99):
        assert file.write(b'{"event": "step"}' * 20) == 99
        with pytest.raises(OSError, match="File too large"):
            file.write(b"more")
    assert path.stat().st_size == 99


def test_a_run_on_a_full_disk_is_told_once_and_once_more_when_it_is_over(tmp_path: Path) -> None:
    told: list[Event] = []
    with ExitStack() as stack:
        watch = add_writers(tmp_path, told.append, stack)
        watch(step(1))
        with no_file_over(99):
            for number in (2, 3, 4):
                watch(step(number))
        watch(step(5))
    said = [event.text for event in told if isinstance(event, RunNotice)]
    assert [text.split(":")[0] for text in said] == [f"{METRICS} cannot be written", f"{METRICS} is written again"]
    assert [event.step for event in told if isinstance(event, StepReport)] == [1, 2, 3, 4, 5]
    assert read_events(tmp_path / METRICS) == [step(number) for number in (1, 2, 3, 4, 5)]


def test_a_status_that_cannot_be_written_ends_nothing_and_the_last_one_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_status(tmp_path, "training", 7, 9)
    with no_file_over(10):
        write_status(tmp_path, "preempted", 8, 9)
    assert read_status(tmp_path) == {"state": "training", "step": 7, "steps": 9}
    assert STATUS in caplog.text and "does not say 'preempted'" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == [STATUS]


def test_only_what_a_disk_does_is_spared() -> None:
    said: list[str] = []
    spared = OptionalFiles(said.append)
    for _ in range(3):
        with spared("a file"):
            raise OSError(errno.ENOSPC, "No space left on device")
    with spared("another"):
        raise OSError(errno.EIO, "Input/output error")
    with spared("a file"):
        pass
    assert len(said) == 3 and said[0].startswith("a file cannot be written: No space left") and "again" in said[2]
    with pytest.raises(ValueError), spared("a file"):
        raise ValueError("a fault of ours")


def test_a_write_that_fails_names_its_file(tmp_path: Path) -> None:
    with no_file_over(10), pytest.raises(OSError) as caught:
        write_whole(tmp_path / "a.json", b"x" * 99)
    assert caught.value.filename == str(tmp_path / "a.json") and not list(tmp_path.iterdir())


def test_the_exit_code_of_a_full_disk() -> None:
    assert StorageError.exit_code == 74


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    allowed = os.geteuid() == 0 and shutil.which("mount") is not None
    if not allowed or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "disk", place], check=False).returncode:
        pytest.skip("a small disk of its own needs the right to mount a tmpfs")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.process
def test_on_a_disk_that_really_is_full_the_log_goes_on_later(small_disk: Path) -> None:
    told: list[Event] = []
    with ExitStack() as stack:
        watch = add_writers(small_disk, told.append, stack)
        number = 0
        while not any(isinstance(event, RunNotice) for event in told):
            number += 1
            watch(step(number))
        before = len(read_events(small_disk / METRICS))
        assert 0 < before < number
        subprocess.run(["mount", "-o", "remount,size=256k", small_disk], check=True)
        watch(step(number + 1))
    assert read_events(small_disk / METRICS) == [step(each) for each in range(1, number + 2)]
