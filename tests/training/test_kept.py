"""The best weights of a run: which are kept, what is left out, what their mean is."""

import json
import logging
import os
import random
import resource
from pathlib import Path

import pytest
import torch
from torch import Tensor

from limelight.errors import ModelFileError
from limelight.training.checkpoints import best_weights as module
from limelight.training.checkpoints.best_weights import INDEX, BestWeights


def weights_of(step: int) -> dict[str, Tensor]:
    draw = torch.Generator().manual_seed(step)
    return {"embedding": torch.randn(5, 3, generator=draw), "bias": torch.randn(4, generator=draw)}


def offered(folder: Path, scores: dict[int, float], most: int = 3) -> BestWeights:
    kept = BestWeights(folder, most)
    for step, score in scores.items():
        kept.offer(step, score, weights_of(step))
    return kept


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


SCORES = {100: 20.0, 200: 35.5, 300: 31.0, 400: 33.0, 500: 12.0}


def test_an_offer_says_whether_it_is_the_best_so_far(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path / "best", most=2)
    said = [kept.offer(step, score, weights_of(step)) for step, score in SCORES.items()]
    assert said == [True, True, False, False, False]
    assert kept.best == (200, 35.5)


def test_the_best_are_kept_and_the_others_deleted(tmp_path: Path) -> None:
    kept = offered(tmp_path / "best", SCORES)
    for again in (kept, BestWeights(tmp_path / "best", most=3)):
        assert again.scores() == [(200, 35.5), (400, 33.0), (300, 31.0)]
        assert all(equal(again.load(step), weights_of(step)) for step, _ in again.scores())
    assert files(tmp_path / "best") == [
        "index.json",
        "step-0000200.safetensors",
        "step-0000300.safetensors",
        "step-0000400.safetensors",
    ]


def test_of_equal_scores_the_earlier_step_is_the_best_and_stays(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path, most=1)
    assert kept.offer(100, 30.0, weights_of(100))
    assert not kept.offer(200, 30.0, weights_of(200))
    assert kept.scores() == [(100, 30.0)]


def test_nothing_offered_is_nothing_kept(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path / "best", most=2)
    kept.forget_after(0)
    assert kept.best is None and kept.scores() == []
    assert not (tmp_path / "best").exists()
    with pytest.raises(ModelFileError, match="no weights to average"):
        kept.mean()
    with pytest.raises(ModelFileError, match="steps that can be loaded: none"):
        kept.load(100)


def test_a_score_that_is_no_number_is_not_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = offered(tmp_path, {100: 20.0})
    assert not kept.offer(200, float("nan"), weights_of(200))
    assert kept.scores() == [(100, 20.0)]
    assert "step 200 has the score nan" in caplog.text


# ---- the mean


def test_the_mean_is_added_in_float64(tmp_path: Path) -> None:
    """In float32, 2**24 + 1 is 2**24: the mean would be short by a third of each one."""
    kept = BestWeights(tmp_path, most=3)
    for step, value in enumerate((2.0**24, 1.0, 1.0)):
        kept.offer(step, 1.0, {"w": torch.tensor([value])})
    mean = kept.mean()["w"]
    assert mean.dtype == torch.float32
    assert mean.item() == torch.tensor((2**24 + 2) / 3, dtype=torch.float64).float().item()
    naive = (torch.tensor(2.0**24) + 1.0 + 1.0) / 3
    assert mean.item() != naive.item()


def test_the_mean_is_of_all_that_are_kept_and_no_other(tmp_path: Path) -> None:
    mean = offered(tmp_path, SCORES).mean()
    for name in mean:
        expected = torch.stack([weights_of(step)[name].double() for step in (200, 300, 400)]).mean(0).float()
        torch.testing.assert_close(mean[name], expected, rtol=1e-7, atol=0)


def test_the_mean_of_one_is_that_one_and_bfloat16_becomes_float32(tmp_path: Path) -> None:
    kept = BestWeights(tmp_path, most=2)
    weights = {name: weight.bfloat16() for name, weight in weights_of(1).items()}
    kept.offer(1, 5.0, weights)
    assert equal(kept.mean(), {name: weight.float() for name, weight in weights.items()})


def test_weights_of_another_model_are_not_averaged(tmp_path: Path) -> None:
    kept = offered(tmp_path, {100: 20.0})
    kept.offer(200, 21.0, {"embedding": torch.zeros(5, 3), "bias": torch.zeros(1)})
    with pytest.raises(ModelFileError, match="of another model than step 100"):
        kept.mean()


# ---- a run that goes on from earlier


def test_what_came_after_the_checkpoint_is_forgotten_and_comes_again(tmp_path: Path) -> None:
    offered(tmp_path, SCORES)
    kept = BestWeights(tmp_path, most=3)
    kept.forget_after(300)
    assert kept.scores() == [(200, 35.5), (300, 31.0)]
    assert "step-0000400.safetensors" not in files(tmp_path)
    assert kept.offer(400, 33.0, weights_of(400)) is False
    assert BestWeights(tmp_path, most=3).scores() == [(200, 35.5), (400, 33.0), (300, 31.0)]


def test_what_is_best_so_far_is_the_same_after_going_back(tmp_path: Path) -> None:
    """The weights of step 100 gave way to those of 200, which are forgotten; their score still counts."""
    scores = {100: 30.0, 150: 10.0, 200: 35.0}
    offered(tmp_path, scores, most=1)
    kept = BestWeights(tmp_path, most=1)
    kept.forget_after(120)
    said = [kept.offer(step, scores[step], weights_of(step)) for step in (150, 200)]
    assert said == [False, True]
    assert kept.scores() == [(200, 35.0)]


def test_the_index_does_not_grow_with_every_validation(tmp_path: Path) -> None:
    kept = offered(tmp_path, {step: 50.0 - step for step in range(30)}, most=2)
    assert [offer["step"] for offer in json.loads((tmp_path / INDEX).read_bytes())["offers"]] == [0, 1]
    assert kept.scores() == [(0, 50.0), (1, 49.0)]


def test_a_step_offered_again_takes_its_own_place(tmp_path: Path) -> None:
    kept = offered(tmp_path, {100: 30.0, 200: 31.0}, most=2)
    for seed, score, best in ((7, 32.0, 100), (8, 5.0, 200)):
        kept.offer(100, score, weights_of(seed))
        assert sorted(kept.scores()) == [(100, score), (200, 31.0)]
        assert kept.best is not None and kept.best[0] == best
        assert equal(kept.load(100), weights_of(seed))


# ---- damage


def test_damaged_and_missing_weights_are_left_out_and_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    offered(tmp_path, SCORES)
    path = tmp_path / "step-0000200.safetensors"
    sound, draw = path.read_bytes(), random.Random(0)
    for bit in draw.sample(range(8 * len(sound)), 30):
        flip(path, bit)
        caplog.clear()
        kept = BestWeights(tmp_path, most=3)
        assert kept.scores() == [(400, 33.0), (300, 31.0)] and kept.best == (400, 33.0)
        assert [record.getMessage() for record in caplog.records] == [f"{path} is damaged; it is left out"]
        with pytest.raises(ModelFileError, match="steps that can be loaded: 400, 300"):
            kept.load(200)
        path.write_bytes(sound)
    (tmp_path / "step-0000300.safetensors").unlink()
    kept = BestWeights(tmp_path, most=3)
    assert kept.scores() == [(200, 35.5), (400, 33.0)]
    assert "step-0000300.safetensors is missing" in caplog.text
    expected = (weights_of(200)["bias"].double() + weights_of(400)["bias"].double()) / 2
    assert torch.equal(kept.mean()["bias"], expected.float())


def test_without_the_hash_a_flip_would_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control for the test above."""
    monkeypatch.setattr(module, "sha256_of", lambda path: "")
    offered(tmp_path, SCORES)
    path = tmp_path / "step-0000200.safetensors"
    flip(path, 8 * path.stat().st_size - 3)
    kept = BestWeights(tmp_path, most=3)
    assert kept.best == (200, 35.5)
    assert not equal(kept.load(200), weights_of(200))


def test_damage_behind_an_unchanged_time_is_noticed_when_loading(tmp_path: Path) -> None:
    """`best` looks at a file's bytes once; loading and averaging always do."""
    offered(tmp_path, SCORES)
    path = tmp_path / "step-0000200.safetensors"
    loading, averaging = BestWeights(tmp_path, most=3), BestWeights(tmp_path, most=3)
    assert loading.best == averaging.best == (200, 35.5)
    times = path.stat()
    flip(path, 8 * times.st_size - 3)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    expected = (weights_of(300)["bias"].double() + weights_of(400)["bias"].double()) / 2
    assert torch.equal(averaging.mean()["bias"], expected.float())
    with pytest.raises(ModelFileError):
        loading.load(200)


def test_a_damaged_file_makes_room_for_the_next(tmp_path: Path) -> None:
    offered(tmp_path, {100: 30.0, 200: 31.0}, most=2)
    flip(tmp_path / "step-0000200.safetensors", 99)
    kept = BestWeights(tmp_path, most=2)
    assert not kept.offer(300, 5.0, weights_of(300))
    assert kept.scores() == [(100, 30.0), (300, 5.0)]
    assert "step-0000200.safetensors" not in files(tmp_path)


def test_a_damaged_index_is_named_and_the_run_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    offered(tmp_path, SCORES)
    sound = (tmp_path / INDEX).read_bytes()
    for bit in random.Random(0).sample(range(8 * len(sound)), 60):
        flip(tmp_path / INDEX, bit)
        caplog.clear()
        assert BestWeights(tmp_path, most=3).scores() == [], "a flipped digit of a score would choose other weights"
        assert f"{tmp_path / INDEX} cannot be used" in caplog.text
        (tmp_path / INDEX).write_bytes(sound)
    assert len(BestWeights(tmp_path, most=3).scores()) == 3
    (tmp_path / INDEX).write_bytes(b"")
    assert BestWeights(tmp_path, most=3).offer(600, 1.0, weights_of(600))


# ---- interruptions


def test_nothing_is_deleted_before_its_successor_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = offered(tmp_path, {100: 30.0}, most=1)
    for name in ("write_tensors", "write_whole", "force_to_disk"):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error")))
            assert kept.offer(200, 31.0, weights_of(200)), "the best so far, kept or not"
        assert (tmp_path / "step-0000100.safetensors").exists()
        if name != "force_to_disk":
            assert BestWeights(tmp_path, most=1).scores() == [(100, 30.0)]
        kept = BestWeights(tmp_path, most=1)
    assert kept.scores() == [(200, 31.0)]  # listed, though not surely on disk: the old one is there, too


def test_leftovers_of_a_crash_go_with_the_next_offer_and_other_files_stay(tmp_path: Path) -> None:
    kept = offered(tmp_path, {100: 30.0})
    for name in (".step-0000200.safetensors.0123abcd.part", ".tmpA1b2C3", "step-0000050.safetensors", "notes.txt"):
        (tmp_path / name).write_bytes(b"half")
    kept.offer(300, 31.0, weights_of(300))
    assert files(tmp_path) == [INDEX, "notes.txt", "step-0000100.safetensors", "step-0000300.safetensors"]


def test_a_full_disk_leaves_what_was_kept_and_is_no_reason_to_end(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    kept = offered(tmp_path, {100: 30.0}, most=1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with caplog.at_level(logging.WARNING):
            assert kept.offer(200, 31.0, {"w": torch.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "step 200: its weights are not kept" in caplog.text and "File too large" in caplog.text
    caplog.clear()
    assert files(tmp_path) == [INDEX, "step-0000100.safetensors"]
    with caplog.at_level(logging.WARNING):
        assert kept.scores() == BestWeights(tmp_path, most=1).scores() == [(100, 30.0)]
    assert not caplog.records
    assert not kept.offer(300, 30.5, {"w": torch.zeros(100)}), "31.0 was better, though its weights are not here"
    assert kept.scores() == [(300, 30.5)]
