"""A checkpoint is whole or refused, and the earlier ones outlive whatever happens to a save."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import warm_process
from limelight.bundle import bundle
from limelight.errors import ModelFileError
from limelight.training.checkpoints import checkpoint, writer
from limelight.training.checkpoints import folder as checkpoint_folder
from limelight.training.checkpoints import tensors as checkpoint_tensors
from limelight.training.checkpoints.checkpoint import latest, name_of, save
from limelight.training.checkpoints.folder import MANIFEST, STATE, TENSORS

FILES = (TENSORS, STATE, MANIFEST)


def tensors_of(step: int) -> dict[str, Tensor]:
    """The same names and sizes for every step, with other content."""
    draw = torch.Generator().manual_seed(step)
    return {
        "weight": torch.randn(5, 7, generator=draw).bfloat16(),
        "master": torch.randn(5, 7, generator=draw),
        "count": torch.tensor(step),
        "generator": draw.get_state(),
        "order": torch.randint(-(2**63), 2**63 - 1, (11,), generator=draw),
        "nothing": torch.zeros(0, 3),
    }


def state_of(step: int) -> dict[str, Any]:
    return {"step": f"{step:09d}", "epoch": 2.25, "tiny": 5e-324, "third": 1 / 3, "name": "größer\u2028", "none": None}


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    def bits(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
        return tensor.dtype, tensor.shape, tensor.reshape(-1).view(torch.uint8).numpy().tobytes()

    return {name: bits(t) for name, t in one.items()} == {name: bits(t) for name, t in other.items()}


def steps_on_disk(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def assert_newest_is(root: Path, step: int) -> None:
    found = latest(root)
    assert found.checkpoint is not None, found.refused
    assert found.checkpoint.step == step
    assert found.checkpoint.state == state_of(step)
    assert same(found.checkpoint.tensors(), tensors_of(step))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for step in (100, 200):
        save(tmp_path / "checkpoints", step, tensors_of(step), state_of(step), keep=2)
    return tmp_path / "checkpoints"


# ---- what goes in comes out


def test_every_number_format_comes_back_bit_for_bit(tmp_path: Path) -> None:
    bits = torch.randint(0, 256, (64,), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    bits[:8] = torch.tensor([255, 255, 255, 127, 0, 0, 0, 128], dtype=torch.uint8)  # a NaN with a payload, -0
    formats = [
        torch.bfloat16,
        torch.float16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
    ]
    tensors = {str(dtype): bits.view(dtype) for dtype in formats}
    tensors |= {"uint8": bits, "bool": bits > 99, "scalar": torch.tensor(-0.0), "empty": torch.zeros(0, 4)}
    save(tmp_path, 7, tensors, {}, keep=1)
    found = latest(tmp_path).checkpoint
    assert found is not None
    assert same(found.tensors(), tensors)


def test_views_and_shared_memory_are_written_separately(tmp_path: Path) -> None:
    base = torch.arange(24.0).reshape(4, 6)
    tensors = {"a": base, "b": base, "turned": base.T, "part": base[1:3, ::2], "wide": torch.ones(1, 3).expand(5, 3)}
    tensors["learned"] = torch.nn.Parameter(base)
    save(tmp_path, 1, tensors, {}, keep=1)
    found = latest(tmp_path).checkpoint
    assert found is not None
    loaded = found.tensors()
    assert all(torch.equal(loaded[name], tensors[name]) for name in tensors)
    loaded["a"].zero_()  # in place, and in memory of its own
    assert torch.equal(loaded["b"], base)
    assert torch.equal(found.tensors()["a"], base)


def test_loaded_tensors_do_not_change_with_the_file(two: Path) -> None:
    """Memory mapped to the file would."""
    found = latest(two).checkpoint
    assert found is not None
    loaded = found.tensors()
    size = (found.folder / TENSORS).stat().st_size
    with (found.folder / TENSORS).open("r+b") as file:
        file.write(b"?" * size)
    assert same(loaded, tensors_of(200))


def test_the_state_is_strict_json(tmp_path: Path) -> None:
    for wrong in ({"a": float("nan")}, {"a": [float("inf")]}):
        with pytest.raises(ValueError, match="plain JSON"):
            save(tmp_path, 1, {}, wrong, keep=1)
    with pytest.raises(TypeError, match=r"state\.a\[0\] has the key 1"):
        save(tmp_path, 1, {}, {"a": [{1: 2}]}, keep=1)
    with pytest.raises(TypeError):
        save(tmp_path, 1, {}, {"a": torch.zeros(1)}, keep=1)
    assert steps_on_disk(tmp_path) == []


def test_a_state_larger_than_a_bundle_may_have_comes_back(tmp_path: Path) -> None:
    state = {"long": "x" * 1_100_000}
    save(tmp_path, 1, {}, state, keep=1)
    found = latest(tmp_path).checkpoint
    assert found is not None
    assert found.state == state


def test_others_may_read_what_the_owner_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = save(tmp_path, 1, tensors_of(1), {}, keep=1)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o644}


def test_without_checkpoints_there_is_none(tmp_path: Path) -> None:
    for root in (tmp_path / "absent", tmp_path):
        assert latest(root) == checkpoint.LatestCheckpoint(None, [])


def test_what_is_no_checkpoint_is_passed_by(two: Path) -> None:
    (two / "notes.txt").write_bytes(b"mine")
    (two / "step-300").mkdir()
    (two / ".step-0000300.0123abcd.part").mkdir()
    assert_newest_is(two, 200)
    assert latest(two).refused == []


# ---- damage


def flips(folder: Path, draw: random.Random, times: int) -> Iterator[str]:
    for name in FILES:
        content = (folder / name).read_bytes()
        for bit in draw.sample(range(8 * len(content)), times):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            (folder / name).write_bytes(flipped)
            yield name
        (folder / name).write_bytes(content)


def damages(root: Path) -> Iterator[str]:
    """Ways to damage step 200, each undone before the next. Yields the name that the refusal must have."""
    folder, earlier, draw = root / name_of(200), root / name_of(100), random.Random(0)
    yield from flips(folder, draw, 40)
    for name in FILES:
        content = (folder / name).read_bytes()
        for length in (0, len(content) - 1, *(draw.randrange(len(content)) for _ in range(5))):
            (folder / name).write_bytes(content[:length])
            yield name
        (folder / name).write_bytes(content + b"\n")
        yield name
        (folder / name).unlink()
        yield name
        (folder / name).mkdir()
        yield name
        (folder / name).rmdir()
        other = (earlier / name).read_bytes()
        assert len(other) == len(content) and other != content
        (folder / name).write_bytes(other)
        yield name
        (folder / name).write_bytes(content)
    (folder / "more.bin").write_bytes(b"")
    yield "more.bin"
    (folder / "more.bin").unlink()


def test_every_damage_is_refused_by_name_and_the_earlier_one_taken(two: Path) -> None:
    count = 0
    for name in damages(two):
        found = latest(two)
        assert found.checkpoint is not None and found.checkpoint.step == 100, name
        (sentence,) = found.refused
        assert f"{name}: " in sentence and name_of(200) in sentence
        count += 1
    assert count == 3 * 40 + 3 * 11 + 1
    assert_newest_is(two, 200)  # the battery undid what it did


def test_without_the_hashes_flips_would_pass(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the battery above can fail."""
    monkeypatch.setattr(checkpoint_folder, "sha256_of", lambda path: "")
    for step in (100, 200):
        save(two, step, tensors_of(step), state_of(step), keep=2)
    passed = [name for name in flips(two / name_of(200), random.Random(0), 40) if not latest(two).refused]
    assert passed.count(TENSORS) == 40
    assert passed.count(MANIFEST) == 0  # it has a checksum of its own


def test_a_folder_under_the_name_of_another_step_is_refused(two: Path) -> None:
    (two / name_of(200)).rename(two / name_of(300))
    found = latest(two)
    assert found.checkpoint is not None and found.checkpoint.step == 100
    assert "is of step 200, but the folder of step 300" in found.refused[0]


def test_a_newer_format_is_refused(two: Path) -> None:
    path = two / name_of(200) / MANIFEST
    body = {key: part for key, part in json.loads(path.read_bytes()).items() if key != "checksum"}
    path.write_bytes(checkpoint_folder.seal({**body, "format": 3}))
    assert "has format 3, and this limelight reads formats 1 and 2" in latest(two).refused[0]


def test_when_all_are_damaged_all_are_named(two: Path) -> None:
    (two / name_of(200) / STATE).write_bytes(b"{}")
    shutil.rmtree(two / name_of(100))
    (two / name_of(100)).write_bytes(b"a file")
    found = latest(two)
    assert found.checkpoint is None
    assert len(found.refused) == 2
    assert steps_on_disk(two) == [name_of(100), name_of(200)]  # left where they are


def test_tensors_damaged_after_they_were_found_are_refused(two: Path) -> None:
    found = latest(two).checkpoint
    assert found is not None
    path = found.folder / TENSORS
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ModelFileError, match=f"{TENSORS}: is damaged"):
        found.tensors()


# ---- how many are kept


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (9_999_998, 9_999_999, 10_000_000, 10_000_001):
        save(tmp_path, step, {}, {}, keep=3)
    assert steps_on_disk(tmp_path) == ["step-10000000", "step-10000001", "step-9999999"]
    newest = latest(tmp_path).checkpoint
    assert newest is not None and newest.step == 10_000_001


def test_nothing_is_removed_before_the_new_one_was_verified(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(path: Path, content: bytes, durable: bool = True) -> None:
        path.write_bytes(content[:-2] + b" \n" if path.name == MANIFEST else content)

    monkeypatch.setattr(writer, "write_whole", damaged)
    with pytest.raises(OSError, match="cannot be read back"):
        save(two, 300, tensors_of(300), state_of(300), keep=1)
    assert steps_on_disk(two) == [name_of(100), name_of(200)]
    assert_newest_is(two, 200)


def test_tensors_that_are_not_written_as_given_are_noticed(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = checkpoint_tensors.save_file
    flipped = tensors_of(300) | {"count": torch.tensor(301)}
    monkeypatch.setattr(checkpoint_tensors, "save_file", lambda tensors, path, header: real(flipped, path))
    with pytest.raises(OSError, match="was not written as it should be: count"):
        save(two, 300, tensors_of(300), state_of(300), keep=1)
    assert_newest_is(two, 200)


def test_damaged_ones_do_not_count_as_kept(two: Path) -> None:
    (two / name_of(200) / STATE).write_bytes(b"{}")
    save(two, 300, tensors_of(300), state_of(300), keep=2)
    assert steps_on_disk(two) == [name_of(100), name_of(300)]


def test_a_run_that_went_back_does_not_lose_what_it_saves(two: Path) -> None:
    """The later, damaged one is left until the run gets there."""
    (two / name_of(200) / STATE).write_bytes(b"{}")
    save(two, 150, tensors_of(150), state_of(150), keep=1)
    assert steps_on_disk(two) == [name_of(150), name_of(200)]
    assert_newest_is(two, 150)
    save(two, 200, tensors_of(200), state_of(200), keep=1)
    assert steps_on_disk(two) == [name_of(200)]
    assert_newest_is(two, 200)


def test_the_same_content_for_the_same_step_leaves_the_files_alone(two: Path) -> None:
    before = {path: path.stat().st_ino for path in (two / name_of(200)).iterdir()}
    assert save(two, 200, tensors_of(200), state_of(200), keep=2) == two / name_of(200)
    assert {path: path.stat().st_ino for path in (two / name_of(200)).iterdir()} == before
    assert steps_on_disk(two) == [name_of(100), name_of(200)]


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_or_other_checkpoint_of_the_same_step_is_replaced(two: Path, name: str) -> None:
    shutil.copyfile(two / name_of(100) / name, two / name_of(200) / name)
    save(two, 200, tensors_of(200), state_of(200), keep=2)
    assert_newest_is(two, 200)
    save(two, 200, tensors_of(5), state_of(5), keep=2)
    found = latest(two).checkpoint
    assert found is not None and found.step == 200 and found.state == state_of(5)
    assert steps_on_disk(two) == [name_of(100), name_of(200)]


# ---- interruptions


def nth_call_fails(real: Callable[..., Any], nth: int, error: BaseException) -> Callable[..., Any]:
    calls = 0

    def call(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise error
        return real(*arguments, **named)

    return call


@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", [200, 300])  # one that is replaced, and a new one
@pytest.mark.parametrize(
    ("where", "what", "calls"),
    [
        (os, "fsync", 5),
        (Path, "rename", 1),
        (Path, "replace", 3),
        (checkpoint_folder, "sha256_of", 2),
        (Path, "mkdir", 2),
    ],
)
def test_a_save_that_fails_at_any_stage_leaves_the_earlier_ones(
    two: Path, monkeypatch: pytest.MonkeyPatch, where: Any, what: str, calls: int, step: int, error: BaseException
) -> None:
    if step == 200:
        calls += what == "rename"  # the old one steps aside first
    for nth in range(1, calls + 1):
        with monkeypatch.context() as patch:
            patch.setattr(where, what, nth_call_fails(getattr(where, what), nth, error))
            with pytest.raises(type(error)):
                save(two, step, tensors_of(0), state_of(0), keep=1)
        parent_not_forced = what == "fsync" and nth == 5
        if not parent_not_forced:  # then the new one may be there already, and is whole
            assert_newest_is(two, 200)
        found = latest(two)
        assert found.checkpoint is not None and found.refused == []
        assert not list(two.glob(".*.part")), "the temporary folder is removed"
        assert (two / name_of(100)).exists(), "nothing was pruned"


def test_a_crash_between_the_two_renames_of_a_replacement_loses_nothing(two: Path) -> None:
    shutil.rmtree(two / name_of(100))
    (two / name_of(200)).rename(two / f".{name_of(200)}.0123abcd.old")  # as a power cut would leave it
    assert_newest_is(two, 200)
    save(two, 150, tensors_of(150), state_of(150), keep=2)
    assert steps_on_disk(two) == [name_of(150), name_of(200)]
    assert_newest_is(two, 200)


def test_leftovers_of_crashed_saves_go_with_the_next(two: Path) -> None:
    for name in (f".{name_of(300)}.0123abcd.part", f".{name_of(200)}.0123abcd.old"):
        (two / name).mkdir()
        (two / name / TENSORS).write_bytes(b"half")
    assert_newest_is(two, 200)
    save(two, 300, {}, {}, keep=3)
    assert steps_on_disk(two) == [name_of(100), name_of(200), name_of(300)]


SAVES = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_checkpoint import large, save, state_of

def tell(line):
    os.write(1, f"{line}\\n".encode())

def save_on(root, step):
    while True:
        step += 1
        tell(step)
        save(root, step, large(step), state_of(step), keep=1)
        save(root, step, large(step + 1), state_of(step), keep=1)  # replaced by another, and back
        save(root, step, large(step), state_of(step), keep=1)

for line in sys.stdin:  # a process for each, without importing torch each time
    child = os.fork()
    if child == 0:
        save_on(Path(sys.argv[1]), int(line))
    tell(f"process {child}")
    os.waitpid(child, 0)
    tell("dead")
"""


def large(step: int) -> dict[str, Tensor]:
    return {"weight": torch.full((250_000,), step, dtype=torch.int32)}


def killed_while_saving(saver: subprocess.Popen[bytes], step: int, seconds: float) -> int:
    """Lets the saver go on from a step, kills it some time after its first save, and gives the last step it began."""
    assert saver.stdin is not None and saver.stdout is not None
    saver.stdin.write(f"{step}\n".encode())
    saver.stdin.flush()
    lines = [saver.stdout.readline() for _ in range(3)]  # its process, and two steps it began
    process = next(int(line.removeprefix(b"process ")) for line in lines if line.startswith(b"process "))
    time.sleep(seconds)
    os.kill(process, signal.SIGKILL)
    last = max(int(line) for line in lines if not line.startswith(b"process "))
    while (line := saver.stdout.readline().strip()) != b"dead":
        last = int(line)
    return last


@pytest.mark.process
def test_a_run_killed_at_any_moment_has_a_whole_checkpoint(tmp_path: Path) -> None:
    """Real SIGKILLs, while one save follows the other and only the newest is kept."""
    root, draw, step, leftovers = tmp_path / "checkpoints", random.Random(0), 0, 0
    command = [sys.executable, "-c", SAVES, str(root), str(Path(__file__).parent)]
    with warm_process.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as saver:
        for _ in range(8):
            last = killed_while_saving(saver, step, draw.uniform(0, 0.1))
            leftovers += bool(list(root.glob(".*")))
            found = latest(root)
            assert found.checkpoint is not None, found.refused
            assert step < found.checkpoint.step and found.checkpoint.step in (last - 1, last)
            weight = found.checkpoint.tensors()["weight"]
            assert int(weight[0]) - found.checkpoint.step in (0, 1) and (weight == weight[0]).all()
            step = found.checkpoint.step
    assert leftovers, "no kill came in the midst of a save: the test shows nothing"


# ---- a full disk


def test_a_full_disk_is_an_os_error_and_leaves_nothing(two: Path) -> None:
    """A bound on the size of files stands for the disk: the kernel cuts the write in the middle."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(OSError) as caught:
            save(two, 300, large(300), state_of(300), keep=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert steps_on_disk(two) == [name_of(100), name_of(200)]
    assert_newest_is(two, 200)


@pytest.mark.process
def test_a_disk_that_really_is_full_has_its_error_and_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    if not mounted or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k", "disk", place], check=False).returncode:
        pytest.skip("a small disk of its own needs the right to mount a tmpfs")
    try:
        save(place / "checkpoints", 100, large(100), {}, keep=1)
        with pytest.raises(OSError) as caught:
            save(place / "checkpoints", 200, large(200), {}, keep=1)
        assert caught.value.errno == errno.ENOSPC
        assert steps_on_disk(place / "checkpoints") == [name_of(100)]
        found = latest(place / "checkpoints").checkpoint
        assert found is not None and torch.equal(found.tensors()["weight"], large(100)["weight"])
    finally:
        subprocess.run(["umount", place], check=True)


def test_files_and_folders_are_forced_to_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a power cut may leave the name without the content."""
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def forced(number: int) -> None:
        done.append(Path(f"/proc/self/fd/{number}").readlink().name)
        fsync(number)

    def renamed(self: Path, target: Path) -> Path:
        done.append("rename")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", forced)
    monkeypatch.setattr(bundle.Path, "rename", renamed)
    save(tmp_path, 1, tensors_of(1), state_of(1), keep=1)
    order = ["tensors", "state", "manifest", "step-0000001", "rename", tmp_path.name]
    assert [each.removeprefix(".").split(".")[0] for each in done] == order
