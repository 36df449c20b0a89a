"""A checkpoint that is written in the background is none until it is finished, and what goes wrong meanwhile is told at its end.

Here with one process; tests/training/shard_scenes.py does it with several.
"""

import errno
import threading
from pathlib import Path

import pytest
from test_checkpoint import assert_newest_is, state_of, steps_on_disk, tensors_of

from limelight.training.checkpoints import writer
from limelight.training.checkpoints.checkpoint import list_checkpoints, name_of, save
from limelight.training.checkpoints.shards import RankShard, TensorPart, _check
from limelight.training.checkpoints.writer import Attempt, CheckpointWriter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    save(tmp_path / "checkpoints", 100, tensors_of(100), state_of(100), keep=2)
    return tmp_path / "checkpoints"


def test_it_is_a_checkpoint_once_it_is_finished(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And it holds what the tensors were when it began."""
    go, written = threading.Event(), Attempt.write

    def slowly(self: Attempt, share: RankShard) -> object:
        assert go.wait(60)
        return written(self, share)

    monkeypatch.setattr(writer.Attempt, "write", slowly)
    background, tensors = CheckpointWriter(root, keep=2), tensors_of(200)
    assert background.step is None and not background.ready and background.finish() is None
    background.begin(200, tensors, state_of(200))
    for tensor in tensors.values():
        tensor.zero_()  # training goes on
    assert background.step == 200 and not background.ready
    assert_newest_is(root, 100)
    go.set()
    assert background.finish() == root / name_of(200)
    assert_newest_is(root, 200)
    assert background.step is None and [each.step for each in list_checkpoints(root)] == [200, 100]


def test_two_at_once_are_refused(root: Path) -> None:
    background = CheckpointWriter(root, keep=2)
    background.begin(200, tensors_of(200), state_of(200))
    with pytest.raises(RuntimeError, match="step 200 is still under way"):
        background.begin(300, tensors_of(300), state_of(300))
    background.finish()
    background.begin(300, tensors_of(300), state_of(300))
    background.finish()
    assert_newest_is(root, 300)
    assert steps_on_disk(root) == [name_of(200), name_of(300)]


def test_a_full_disk_is_told_at_the_end_and_leaves_the_one_before(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Attempt, share: RankShard) -> object:
        raise OSError(errno.ENOSPC, "no space left on device")

    background = CheckpointWriter(root, keep=2)
    with monkeypatch.context() as broken:
        broken.setattr(writer.Attempt, "write", full)
        background.begin(200, tensors_of(200), state_of(200))
        with pytest.raises(OSError, match="no space left"):
            background.finish()
    assert_newest_is(root, 100)
    assert steps_on_disk(root) == [name_of(100)] and background.step is None
    background.begin(200, tensors_of(200), state_of(200))  # and the next try is like a first
    assert background.finish() is not None
    assert_newest_is(root, 200)


def test_one_that_cannot_begin_leaves_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(self: RankShard) -> RankShard:
        raise MemoryError

    background = CheckpointWriter(root, keep=2)
    monkeypatch.setattr(RankShard, "copy_to_host", without_memory)
    with pytest.raises(MemoryError):
        background.begin(200, tensors_of(200), state_of(200))
    assert steps_on_disk(root) == [name_of(100)] and background.step is None


@pytest.mark.parametrize(("step", "keep"), [(-1, 2), (5, 0)])
def test_numbers_that_make_no_sense_are_refused(step: int, keep: int, root: Path) -> None:
    with pytest.raises(ValueError, match="steps count from 0"):
        CheckpointWriter(root, keep).begin(step, tensors_of(1), state_of(1))


def part(offset: int, count: int, dtype: str = "torch.float32") -> TensorPart:
    return TensorPart("weight", (6,), dtype, (offset,), (count,), split=True)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([[part(0, 3)], [part(3, 3)]], None),
        ([[part(0, 3)], [part(0, 3)]], "do not make up the whole"),
        ([[part(0, 3)], [part(3, 3, "torch.bfloat16")]], "in one process and"),
    ],
)
def test_parts_must_make_up_the_whole(parts: list[list[TensorPart]], why: str | None) -> None:
    if why is None:
        _check(parts)
    else:
        with pytest.raises(ValueError, match=why):
            _check(parts)


def test_what_cannot_be_described_is_listed_as_unsound(root: Path) -> None:
    (root / name_of(100) / "manifest.json").unlink()
    [only] = list_checkpoints(root)
    assert only.step == 100 and only.problems
