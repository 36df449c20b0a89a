"""What a run writes while it goes on: every event a line, and no step twice."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from limelight.training.events import Event, RunNotice, Sample, StepReport, ValidReport, read_events
from limelight.training.report.run_record import read_run
from limelight.training.run import event_writers
from limelight.training.run.event_writers import SAMPLES, MetricsWriter, StatusWriter, TensorBoard, forget_after
from limelight.training.run_folder import FACTS, METRICS, STATUS, RunFacts, read_status

SAMPLE = Sample("A cat.\u2028It sits.", "Eine Katze.", "Eine »Katze«", 0.25)


def step(number: int, loss: float = 2.5) -> StepReport:
    return StepReport(number, 9, 0.5, loss, 2.0, 1e-3, 0.7, 10, 12, 0.1, 0.2, 0.01, 3.0, 4.4, 1000)


def valid(number: int) -> ValidReport:
    return ValidReport(number, 1.5, 0.5, 3.1, 10.1, 30.25, True, (SAMPLE, SAMPLE))


EVENTS: list[Event] = [RunNotice(0, 0.1, "note", "begins"), step(1), step(2, 1 / 3), valid(2), step(3), valid(3)]


def write(run: Path, events: list[Event]) -> None:
    lines = MetricsWriter(run)
    for event in events:
        lines(event)
    lines.close()


def test_events_come_back_as_they_were(tmp_path: Path) -> None:
    write(tmp_path, EVENTS)
    assert read_events(tmp_path / METRICS) == EVENTS


def test_a_line_is_on_disk_before_the_next_event(tmp_path: Path) -> None:
    lines = MetricsWriter(tmp_path)
    for number, event in enumerate(EVENTS, 1):
        lines(event)
        assert len(read_events(tmp_path / METRICS)) == number
    lines.close()


def test_samples_have_a_file_of_their_own(tmp_path: Path) -> None:
    write(tmp_path, EVENTS)
    lines = [json.loads(line) for line in (tmp_path / SAMPLES).read_bytes().split(b"\n")[:-1]]
    assert [line["step"] for line in lines] == [2, 2, 3, 3]
    assert lines[0] == {"step": 2, **vars(SAMPLE)}


def test_what_was_written_after_a_checkpoint_is_forgotten(tmp_path: Path) -> None:
    write(tmp_path, EVENTS)
    forget_after(tmp_path, 2, 2)
    assert read_events(tmp_path / METRICS) == EVENTS[:4]
    assert len((tmp_path / SAMPLES).read_bytes().split(b"\n")) == 3
    write(tmp_path, EVENTS[4:])
    assert read_events(tmp_path / METRICS) == EVENTS


def test_a_line_that_a_crash_cut_off_goes_when_the_run_goes_on(tmp_path: Path) -> None:
    write(tmp_path, EVENTS)
    with (tmp_path / METRICS).open("ab") as file:
        file.write(b'{"event": "step", "st')
    forget_after(tmp_path, 3, 3)
    write(tmp_path, [step(4)])
    assert read_events(tmp_path / METRICS) == [*EVENTS, step(4)]


@pytest.mark.parametrize("damage", [b'{"event": "step", "st\n', b"7\n", b'{"event": "step"}\n', b"\xff\x00\n", b"\n"])
def test_a_damaged_line_in_the_middle_goes_and_nothing_else(tmp_path: Path, damage: bytes) -> None:
    write(tmp_path, EVENTS[:3])
    for name in (METRICS, SAMPLES):
        with (tmp_path / name).open("ab") as file:
            file.write(damage)
    write(tmp_path, EVENTS[3:])
    forget_after(tmp_path, 3, 3)
    assert read_events(tmp_path / METRICS) == EVENTS
    assert len((tmp_path / SAMPLES).read_bytes().split(b"\n")) == 5


@pytest.mark.parametrize("damage", [b"", b'{"state": "tra', b"[1]", b"\xff"])
def test_a_status_and_facts_that_cannot_be_read_are_as_good_as_absent(tmp_path: Path, damage: bytes) -> None:
    for name in (STATUS, FACTS):
        (tmp_path / name).write_bytes(damage)
    assert read_status(tmp_path) == {} and RunFacts.load(tmp_path) == RunFacts()
    assert len(read_run(tmp_path).unreadable) == 2  # a report names them


def test_a_validation_that_a_checkpoint_knows_nothing_of_is_forgotten(tmp_path: Path) -> None:
    """Saved in the middle of it: the step was taken, and will be validated again."""
    write(tmp_path, EVENTS)
    forget_after(tmp_path, 3, 2)
    assert read_events(tmp_path / METRICS) == EVENTS[:5]
    assert [json.loads(line)["step"] for line in (tmp_path / SAMPLES).read_bytes().split(b"\n")[:-1]] == [2, 2]


def test_nothing_is_forgotten_where_nothing_was_written(tmp_path: Path) -> None:
    forget_after(tmp_path, 5, 5)
    assert list(tmp_path.iterdir()) == []


def test_the_status_is_valid_json_for_any_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_writers, "STATUS_EVERY", -1.0)
    status = StatusWriter(tmp_path)
    for loss, written in ((2.5, 2.5), (float("nan"), None), (float("inf"), None)):
        status(step(7, loss))
        assert b"NaN" not in (tmp_path / "status.json").read_bytes()
        assert read_status(tmp_path) == {"state": "training", "step": 7, "steps": 9, "loss": written, "left_seconds": 4}


def test_the_status_is_not_written_at_every_step(tmp_path: Path) -> None:
    status = StatusWriter(tmp_path)
    status(step(1))
    status(step(2))
    assert read_status(tmp_path)["step"] == 1


@pytest.mark.skipif(not TensorBoard.installed(), reason="tensorboard is not installed")
def test_tensorboard_takes_every_event(tmp_path: Path) -> None:
    board = TensorBoard(tmp_path)
    for event in EVENTS:
        board(event)
    board.close()
    assert list((tmp_path / event_writers.TENSORBOARD).iterdir())


def test_tensorboard_hides_what_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is not needed for this: torch's writer is replaced by one that says what it was given."""
    given: list[dict[str, object]] = []
    writer = SimpleNamespace(SummaryWriter=lambda path, **more: given.append(more))
    monkeypatch.setattr(event_writers, "import_module", lambda name: writer)
    for step_before in (0, 40):
        TensorBoard(tmp_path, step_before)
    assert given == [{"purge_step": None}, {"purge_step": 41}]
