"""Checkpoints of several processes: the same bits in any layout, and whole or refused in all of them."""

import errno
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))
from ranks import Ranks
from shard_scenes import SHAPES, chance, numbers, tensors_of

from limelight.errors import ModelFileError
from limelight.training.checkpoints import folder as checkpoint_folder
from limelight.training.checkpoints.checkpoint import Checkpoint, latest, list_checkpoints, name_of, save
from limelight.training.checkpoints.folder import MANIFEST, STATE, TENSORS, shard_name
from limelight.training.checkpoints.tensors import same_bits
from limelight.training.processes.world import World

FILES = (shard_name(0), shard_name(1), STATE, MANIFEST)


@pytest.fixture(scope="module")
def ranks(starts_process: None) -> Iterator[Ranks]:
    with Ranks(4, "shard_scenes") as ranks:
        yield ranks


@pytest.fixture
def two(ranks: Ranks, tmp_path: Path) -> Path:
    for step in (100, 200):
        ranks.run(2, "save", str(tmp_path / "checkpoints"), "fsdp", step)
    return tmp_path / "checkpoints"


def there(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


# ---- what goes in comes out


LAYOUTS = [(kind, size) for kind in ("one", "fsdp", "network fsdp", "behind one", "behind fsdp") for size in (1, 2, 4)]
LAYOUTS += [("hybrid", 2), ("hybrid", 4), ("network tensor", 2), ("network tensor", 4), ("network both", 4)]


@pytest.mark.parametrize(("kind", "size"), LAYOUTS)
def test_every_rank_gets_its_bits_back(ranks: Ranks, tmp_path: Path, kind: str, size: int) -> None:
    behind, kind = kind.startswith("behind "), kind.removeprefix("behind ")
    if behind:
        said = ranks.run(size, "save_behind", str(tmp_path), kind, [7, 8, 9])
        assert said == [[name_of(7), name_of(8), name_of(9), None, False]] * size
        assert there(tmp_path) == [name_of(8), name_of(9)]
    else:
        ranks.run(size, "save", str(tmp_path), kind, 9)
    found = ranks.run(size, "load", str(tmp_path), kind)
    for rank, each in enumerate(found):
        assert (each["step"], each["differ"], each["refused"]) == (9, [], []), each
        assert each["state"] == {"step": 9, "by": "main"}
        assert kind.startswith("network") or f"chance/cpu/{rank}" in each["loaded"]
    plain = "network one" if kind.startswith("network") else "one"
    assert {each["bits"] for each in found} == set(ranks.run(1, "wanted_digest", plain))


def test_tensors_that_nobody_splits_are_one_file_with_those_of_every_rank(ranks: Ranks, tmp_path: Path) -> None:
    assert ranks.run(4, "save", str(tmp_path), "one", 5)[0] == [MANIFEST, STATE, TENSORS]
    found = latest(tmp_path).checkpoint
    assert found is not None and not found.sharded
    assert {f"chance/cpu/{rank}" for rank in range(4)} < found.names()
    assert torch.equal(found.tensors()["chance/cpu/3"], chance(3))


def test_one_process_reads_shards_as_whole_tensors(two: Path) -> None:
    found = latest(two).checkpoint
    assert found is not None and found.sharded
    tensors = found.tensors()
    assert found.names() == tensors.keys()
    assert all(same_bits(tensors[name], numbers(name, shape)) for name, shape in SHAPES.items())
    assert [torch.equal(tensors[f"chance/cpu/{rank}"], chance(rank)) for rank in (0, 1)] == [True, True]


def test_each_rank_writes_about_its_share_and_replicas_are_written_once(ranks: Ranks, tmp_path: Path) -> None:
    ranks.run(4, "save", str(tmp_path), "hybrid", 5)
    sizes = [(tmp_path / name_of(5) / shard_name(rank)).stat().st_size for rank in range(4)]
    assert max(sizes) < 1.5 * min(sizes)
    numbers_stored = sum(t.numel() for t in latest(tmp_path).checkpoint.tensors().values())  # type: ignore[union-attr]
    in_files = 0
    for rank in range(4):
        path = tmp_path / name_of(5) / shard_name(rank)
        header = json.loads(path.read_bytes()[8 : 8 + int.from_bytes(path.read_bytes()[:8], "little")])
        shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
        in_files += sum(int(torch.Size(shape).numel()) for shape in shapes)
    assert in_files == numbers_stored


@pytest.mark.parametrize(
    "path",
    [
        [(2, "fsdp"), (1, "one"), (4, "fsdp"), (2, "fsdp")],
        [(2, "fsdp"), (1, "fsdp"), (4, "hybrid"), (2, "one")],
        [(4, "network both"), (2, "network fsdp"), (1, "network one"), (4, "network both")],
        [(4, "network both"), (2, "network tensor"), (4, "network fsdp"), (4, "network tensor")],
    ],
    ids=lambda path: " -> ".join(f"{size} {kind}" for size, kind in path),
)
def test_from_layout_to_layout_no_bit_changes(ranks: Ranks, tmp_path: Path, path: list[tuple[int, str]]) -> None:
    (size, kind), *others = path
    ranks.run(size, "save", str(tmp_path), kind, 1)
    wanted = set(ranks.run(size, "wanted_digest", kind))
    for step, (size, kind) in enumerate(others, 2):
        assert set(ranks.run(size, "reshard", str(tmp_path), kind, step)) == wanted
    last = ranks.run(size, "load", str(tmp_path), kind)
    assert {each["bits"] for each in last} == wanted and not any(each["differ"] for each in last)
    assert wanted != set(ranks.run(size, "digest_of_a_flip", kind)), "the comparison must see a single bit"


def test_torch_reads_our_files_and_we_read_those_of_torch(ranks: Ranks, tmp_path: Path) -> None:
    for kind in ("fsdp", "network both"):
        wanted = set(ranks.run(4, "wanted_digest", kind))
        ranks.run(4, "save", str(tmp_path / kind), kind, 1)
        assert set(ranks.run(4, "read_by_torch", str(tmp_path / kind), kind)) == wanted
        assert set(ranks.run(4, "written_by_torch", str(tmp_path / f"{kind} by torch"), kind)) == wanted


def test_the_same_content_leaves_the_files_alone(ranks: Ranks, two: Path) -> None:
    before = {path: path.stat().st_ino for path in (two / name_of(200)).iterdir()}
    ranks.run(2, "save", str(two), "fsdp", 200)
    assert {path: path.stat().st_ino for path in (two / name_of(200)).iterdir()} == before
    ranks.run(4, "save", str(two), "fsdp", 200)  # of another number of processes: replaced
    assert len(there(two / name_of(200))) == 6
    assert {each["step"] for each in ranks.run(2, "load", str(two), "fsdp")} == {200}


def test_a_checkpoint_of_one_process_is_read_by_several_and_the_newest_are_kept(ranks: Ranks, tmp_path: Path) -> None:
    """As written before there were shards."""
    for step in (1, 2, 3):
        save(tmp_path, step, tensors_of(World(), "one", True), {"step": step, "by": "main"}, keep=2)
    found = ranks.run(4, "load", str(tmp_path), "fsdp")
    assert all(each["step"] == 3 and not each["differ"] for each in found)
    ranks.run(4, "save", str(tmp_path), "fsdp", 4)
    assert there(tmp_path) == [name_of(3), name_of(4)]
    assert [(each.step, each.shards, each.problems) for each in list_checkpoints(tmp_path)] == [(4, 4, []), (3, 0, [])]


# ---- what does not fit


def test_what_does_not_fit_is_listed_in_all_ranks_and_nothing_is_changed(ranks: Ranks, two: Path) -> None:
    for said in ranks.run(2, "load_what_does_not_fit", str(two)):
        assert said["unchanged"]
        assert "absent: is not in the checkpoint" in said["text"]
        assert "weights/up: is torch.float32 [10, 6] in the checkpoint, but torch.float32 [3] here" in said["text"]
        assert "optimizer/step: is torch.float32 [] in the checkpoint, but torch.int64 [] here" in said["text"]


def test_ranks_that_contradict_each_other_save_nothing(ranks: Ranks, tmp_path: Path) -> None:
    for said in ranks.run(2, "save_contradictions", str(tmp_path)):
        assert said["error"] == "ValueError" and "in one process and" in said["text"]
    assert there(tmp_path) == []


# ---- a rank that cannot write


@pytest.mark.parametrize("behind", [False, True])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_cannot_write_is_named_by_all_and_nothing_is_left(ranks: Ranks, two: Path, rank: int, behind: bool) -> None:
    for said in ranks.run(2, "save_with_a_limit", str(two), "fsdp", 300, rank, 500, behind):
        assert said["errno"] == errno.EFBIG and said["seconds"] < 10
        assert f"rank {rank}: " in said["text"] and shard_name(rank) in said["text"]
    assert there(two) == [name_of(100), name_of(200)]
    assert {each["step"] for each in ranks.run(2, "load", str(two), "fsdp")} == {200}
    assert ranks.run(2, "save_with_a_limit", str(two), "fsdp", 300, rank, 1 << 20, behind) == [{"errno": None}] * 2
    assert there(two) == [name_of(200), name_of(300)]


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("ckpt.write:enospc#1", "rank 1: No space left"),
        ("ckpt.commit:enospc", "rank 0: No space left"),
        ("ckpt.write:error#1", "an error in ckpt.write"),
    ],
)
def test_whatever_fails_fails_in_all(ranks: Ranks, two: Path, fault: str, text: str) -> None:
    said = ranks.run(2, "save_with_a_fault", str(two), "fsdp", 300, fault)
    assert all(text in each["text"] for each in said), said
    assert there(two) == [name_of(100), name_of(200)]
    assert not latest(two).refused


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


def test_every_damage_of_shards_is_refused_by_name_and_the_earlier_one_taken(two: Path) -> None:
    folder, earlier, draw = two / name_of(200), two / name_of(100), random.Random(0)

    def refused(name: str) -> None:
        found = latest(two)
        assert found.checkpoint is not None and found.checkpoint.step == 100, name
        assert f"{name}: " in found.refused[0] and name_of(200) in found.refused[0]

    for name in flips(folder, draw, 20):
        refused(name)
    for name in FILES:
        content, other = (folder / name).read_bytes(), (earlier / name).read_bytes()
        for damaged in (b"", content[:-1], content[: len(content) // 2], content + b"\0"):
            (folder / name).write_bytes(damaged)
            refused(name)
        (folder / name).unlink()
        refused(name)
        if other != content:  # equal tensors at both steps make equal shards
            (folder / name).write_bytes(other)
            refused(name)
        (folder / name).write_bytes(content)
    (folder / shard_name(0)).write_bytes((folder / shard_name(1)).read_bytes())
    refused(shard_name(0))


def test_all_ranks_hear_of_damage_and_take_the_same_earlier_one(ranks: Ranks, two: Path) -> None:
    path = two / name_of(200) / shard_name(1)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    for each in ranks.run(2, "load", str(two), "fsdp"):
        assert each["step"] == 100 and shard_name(1) in each["refused"][0] and not each["differ"]


def test_without_the_hashes_flips_of_shards_would_pass(two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: the tests above can fail."""
    monkeypatch.setattr(
        checkpoint_folder,
        "_difference",
        lambda path, written, known: None if path.exists() else f"{path.name}: is gone",
    )
    passed = [name for name in flips(two / name_of(200), random.Random(0), 20) if not latest(two).refused]
    assert {name: passed.count(name) for name in FILES} == {
        shard_name(0): 20,
        shard_name(1): 20,
        STATE: passed.count(STATE),
        MANIFEST: 0,
    }


def test_shards_damaged_after_they_were_found_are_refused(two: Path) -> None:
    found = latest(two).checkpoint
    assert found is not None
    path = found.folder / shard_name(0)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    for use in (found.tensors, lambda: found.load_into({})):
        with pytest.raises(ModelFileError, match=f"{shard_name(0)}: is damaged"):
            use()


@pytest.mark.parametrize("name", ["../outside.safetensors", "model.safetensors", ".metadata", "tensors.safetensors"])
def test_a_manifest_that_lists_other_files_is_refused_before_they_are_opened(two: Path, name: str) -> None:
    path = two / name_of(200) / MANIFEST
    body = {key: part for key, part in json.loads(path.read_bytes()).items() if key != "checksum"}
    body["files"][name] = {"bytes": 0, "sha256": ""}
    path.write_bytes(checkpoint_folder.seal(body))
    assert f"{MANIFEST}: must list {STATE} and shards" in latest(two).refused[0]


def test_a_process_that_was_no_part_of_the_world_reads_the_same(two: Path) -> None:
    """What `latest` gives does not depend on who asks."""
    found = latest(two).checkpoint
    assert found == Checkpoint(two / name_of(200), 200, {"step": 200, "by": "main"})
    assert (found.folder / shard_name(0)).stat().st_mode & 0o777 == (0o666 & found.folder.stat().st_mode)
