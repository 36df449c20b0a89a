"""A step that would do harm changes nothing, is counted, and says of which samples it was; too many in a row end the run."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import SHORT, make_corpus, notices, recipe
from torch import Tensor

from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.batches import BatchSettings, PairBatch
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.model.transformer import Transformer
from limelight.training.checkpoints import checkpoint
from limelight.training.events import StepReport, read_events
from limelight.training.recipe.request import TrainRequest, TrainResult
from limelight.training.run import leader, loop, run
from limelight.training.run_folder import CHECKPOINTS, METRICS, PREPARED, REPORT_MD
from limelight.training.step import step as stepping
from limelight.training.step.divergence import Watchdog
from limelight.training.step.gradients import Losses, gradients
from limelight.training.step.trained_model import TrainedModel

# The watchdog knows after 8 steps what is usual. Without dropout, so that losses of so few steps are level.
CHANGES = {
    "schedule": {"steps": 16, "warmup": 3},
    "validation": {"every": 100, "sentences": 4},
    "trouble": {"window": 8, "in_a_row": 4},
    "checkpoints": {"every_seconds": 1e-6, "keep": 100},
}
BAD = 12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


Fault = Callable[[TrainedModel, Losses], Losses]


def nan_loss(numbers: TrainedModel, losses: Losses) -> Losses:
    for weight in numbers.named.values():
        weight.grad = torch.full_like(weight, math.nan)
    return Losses(math.nan, math.nan, losses.pieces)


def infinite_gradient(numbers: TrainedModel, losses: Losses) -> Losses:
    _some_gradient(numbers).view(-1)[3] = math.inf
    return losses


def hundredfold_loss(numbers: TrainedModel, losses: Losses) -> Losses:
    for weight in numbers.named.values():
        if weight.grad is not None:
            weight.grad *= 100
    return Losses(losses.total * 100, losses.total_nll * 100, losses.pieces)


def flipped_exponent_bit(numbers: TrainedModel, losses: Losses) -> Losses:
    """The highest one, of a number below 2: it becomes one of 1e30 or more."""
    gradient = _some_gradient(numbers).view(-1)
    assert abs(float(gradient[3])) < 2 and gradient[3] != 0
    gradient.view(torch.int32)[3] ^= 1 << 30
    return losses


def _some_gradient(numbers: TrainedModel) -> Tensor:
    gradient = numbers.named["encoder.blocks.0.feed_forward.up.weight"].grad
    assert gradient is not None
    return gradient


@dataclass
class Seen:
    """What a run did at each step, seen from inside."""

    changed: dict[int, set[str]] = field(default_factory=dict)  # which tensors of the state, all but the random numbers
    samples: dict[int, list[int]] = field(default_factory=dict)
    result: TrainResult | None = None


def train_with(
    fault: Fault | None,
    bad: Sequence[int],
    folder: Path,
    corpus: Path,
    monkeypatch: pytest.MonkeyPatch,
    reports: bool = False,
    **more: Any,
) -> Seen:
    """A real run, whose gradients are spoilt at some steps."""
    seen = Seen()

    class Watched(loop.TrainingLoop):
        def _take_step(self) -> None:
            before = {name: tensor.clone() for name, tensor in self.standing.tensors().items()}
            super()._take_step()
            after = self.standing.tensors()
            different = {name for name, tensor in after.items() if not _same_bits(tensor, before[name])}
            seen.changed[self.at.step] = {name for name in different if not name.startswith("chance")}

    def spoilt(numbers: TrainedModel, shares: Sequence[PairBatch], *rest: Any, **more: Any) -> Losses:
        losses = gradients(numbers, shares, *rest, **more)
        step = len(seen.samples) + 1
        seen.samples[step] = [int(sample) for share in shares for sample in share.samples]
        return fault(numbers, losses) if fault and step in bad else losses

    if not reports:  # it takes longer than so small a run
        monkeypatch.setattr(leader, "write_report", lambda folder: None)
    monkeypatch.setattr(leader, "TrainingLoop", Watched)
    monkeypatch.setattr(stepping, "gradients", spoilt)
    if not folder.exists():
        folder.mkdir()
        (folder / PREPARED).symlink_to(corpus / PREPARED)
    wanted = TrainRequest(data=None, recipe=recipe(corpus, **{**CHANGES, **more}), export=False)
    seen.result = run.train(wanted, folder, LocalEngine(0), lambda _: None, lambda _: None, ["limelight"])
    return seen


def _same_bits(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.reshape(-1).view(torch.uint8), other.reshape(-1).view(torch.uint8))


def skipped_steps(folder: Path) -> list[int]:
    return [event.step for event in read_events(folder / METRICS) if isinstance(event, StepReport) and event.skipped]


FAULTS = [nan_loss, infinite_gradient, hundredfold_loss, flipped_exponent_bit]
OTHERS = [pytest.param(fault, "float32", marks=pytest.mark.long) for fault in FAULTS[:-1]]


@pytest.mark.process
@pytest.mark.parametrize(("fault", "precision"), [*OTHERS, (flipped_exponent_bit, "float32"), (nan_loss, "masters")])
def test_a_bad_step_changes_no_bit_and_is_told_with_its_samples(
    fault: Fault, precision: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = {"device": "cpu", "threads": 1, "workers": 0, "precision": precision}
    seen = train_with(fault, [BAD], tmp_path / "run", corpus, monkeypatch, machine=machine)
    assert seen.changed[BAD] == set()
    assert all(len(names) > 100 for step, names in seen.changed.items() if step != BAD)
    assert skipped_steps(tmp_path / "run") == [BAD]
    (notice,) = notices(tmp_path / "run", "skipped")
    first = ", ".join(map(str, sorted(seen.samples[BAD])[:20]))
    assert notice.step == BAD and f"samples {first}" in notice.text
    assert seen.result and seen.result.state == "done"


@pytest.mark.long
@pytest.mark.process
@pytest.mark.parametrize("fault", FAULTS)
def test_without_the_watchdog_each_of_these_would_change_the_weights(
    fault: Fault, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""

    monkeypatch.setattr(Watchdog, "judge", lambda self, loss, norm: None)
    monkeypatch.setattr(loop.TrainingLoop, "_over", lambda self: "interrupted" if self.at.step == BAD else None)
    seen = train_with(fault, [BAD], tmp_path / "run", corpus, monkeypatch)
    assert len(seen.changed[BAD]) > 100


@pytest.mark.process
def test_bad_steps_in_a_row_end_the_run_and_the_next_start_says_what_to_do(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    seen = train_with(nan_loss, range(10, 14), folder, corpus, monkeypatch, reports=True)
    assert seen.result and (seen.result.state, seen.result.exit_code) == ("diverged", 70)
    assert skipped_steps(folder) == [10, 11, 12, 13] and max(seen.changed) == 13
    found = checkpoint.latest(folder / CHECKPOINTS)
    assert found.checkpoint and found.checkpoint.step == 9 and not found.refused
    assert all(bool(tensor.isfinite().all()) for name, tensor in found.checkpoint.tensors().items() if "chance" not in name)
    assert "learning_rate" in (folder / REPORT_MD).read_bytes().decode()
    lines = (folder / METRICS).read_bytes()
    again = train_with(None, [], folder, corpus, monkeypatch)
    assert again.result and again.result.exit_code == 70 and again.samples == {}
    assert "try optimizer.learning_rate=" in " ".join(again.result.lines)
    assert (folder / METRICS).read_bytes() == lines


@pytest.mark.process
def test_fewer_bad_steps_in_a_row_do_not_end_it(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = train_with(nan_loss, [9, 10, 11, 13, 14, 15], tmp_path / "run", corpus, monkeypatch)
    assert seen.result and seen.result.state == "done"
    assert skipped_steps(tmp_path / "run") == [9, 10, 11, 13, 14, 15]


@pytest.fixture
def shares(corpus: Path) -> list[PairBatch]:
    with Loader(PreparedCorpus.open(corpus / PREPARED), BatchSettings(budget=512)) as loader:
        return [next(loader), next(loader)]


def gradient_of(
    shares: Sequence[PairBatch], corpus: Path, fails_at: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Tensor], list[str]]:
    """The gradient when some passes, counted from 1, run out of memory; and what was said."""
    torch.manual_seed(5)
    config = recipe(corpus, **SHORT).model.changed(dropout=0.0)
    numbers = TrainedModel(Transformer(config).train(), "float32")
    passes, loss = 0, Transformer.loss

    def failing(self: Transformer, *args: Any) -> Any:
        nonlocal passes
        passes += 1
        if passes in fails_at:
            raise torch.OutOfMemoryError("out of memory")
        return loss(self, *args)

    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Transformer, "loss", failing)
        gradients(numbers, shares, 0.1, None, said.append)
    return {name: weight.grad.clone() for name, weight in numbers.named.items() if weight.grad is not None}, said


def distance(one: dict[str, Tensor], other: dict[str, Tensor]) -> float:
    """Relative, of all gradients as one vector."""
    assert one.keys() == other.keys()
    apart = sum(float((one[name] - other[name]).double().square().sum()) for name in one)
    return math.sqrt(apart / sum(float(gradient.double().square().sum()) for gradient in other.values()))


@pytest.mark.slow
@pytest.mark.parametrize("fails_at", [[1], [2], [1, 2], [1, 3, 6]])
def test_a_step_that_runs_out_of_memory_is_halved_and_has_the_same_gradient(
    fails_at: list[int], shares: list[PairBatch], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when it happens after some of the gradient is there already."""
    whole, silence = gradient_of(shares, corpus, [], monkeypatch)
    halved, said = gradient_of(shares, corpus, fails_at, monkeypatch)
    assert distance(halved, whole) < 1e-6
    assert silence == [] and len(said) == len(fails_at) and f"{2 ** len(fails_at)} parts" in said[-1]


def test_a_gradient_that_was_left_from_the_failed_pass_would_be_found(
    shares: list[PairBatch], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above."""
    whole, _ = gradient_of(shares, corpus, [], monkeypatch)
    monkeypatch.setattr(TrainedModel, "drop_gradients", lambda self: None)
    assert distance(gradient_of(shares, corpus, [2], monkeypatch)[0], whole) > 0.1


def test_a_pair_that_does_not_fit_alone_is_not_halved_for_ever(
    shares: list[PairBatch], corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        gradient_of(shares, corpus, range(1, 1000), monkeypatch)
