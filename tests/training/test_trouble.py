"""Steps that would do harm are left out, and ordinary ones are not."""

import importlib.util
import json
import math
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
import torch

from limelight.errors import ModelFileError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.training.config import DivergenceSettings, OptimizerSettings, ScheduleSettings
from limelight.training.step.divergence import Watchdog
from limelight.training.step.learning_rate import rate
from limelight.training.step.optimizers import build

DEFAULT = DivergenceSettings()


def curve(seed: int, steps: int = 2000) -> list[tuple[float, float]]:
    """Loss and gradient norm as translation has them: both fall, both are noisy, norms have a heavy tail."""
    random = Random(seed)
    points = []
    for step in range(steps):
        loss = (2.0 + 7.0 * math.exp(-step / 250)) * math.exp(random.gauss(0, 0.06))
        heavy = random.gauss(0, 1) / math.sqrt(random.gammavariate(3, 1 / 3))  # Student's t, 6 degrees of freedom
        points.append((loss, (0.5 + 6 * math.exp(-step / 80)) * math.exp(0.2 * heavy)))
    return points


def watched(settings: DivergenceSettings = DEFAULT, steps: int = 400) -> Watchdog:
    """After this many ordinary steps: the loss is about 3.4, the norm about 0.55."""
    watchdog = Watchdog(settings)
    assert [watchdog.judge(loss, norm) for loss, norm in curve(0, steps)] == [None] * steps
    return watchdog


def digits() -> ModuleType:
    spec = importlib.util.spec_from_file_location("digits", Path(__file__).parents[2] / "examples" / "digits.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("steps", [0, 400])
@pytest.mark.parametrize(
    ("loss", "norm", "reason"),
    [
        (math.nan, 1.0, "the loss is not a number"),
        (math.inf, 1.0, "the loss is infinite"),
        (-math.inf, 1.0, "the loss is infinite"),
        (3.0, math.nan, "the gradient is not a number"),
        (3.0, math.inf, "the gradient is infinite"),
        (math.nan, math.inf, "the loss is not a number"),
    ],
)
def test_what_is_no_number_is_left_out_from_the_first_step_on(steps: int, loss: float, norm: float, reason: str) -> None:
    watchdog = watched(steps=steps)
    assert watchdog.judge(loss, norm) == reason
    assert watchdog.judge(3.4, 0.55) is None


def test_a_loss_a_hundred_times_the_usual_is_left_out() -> None:
    assert watched().judge(340.0, 0.55) is not None
    assert watched(DivergenceSettings(sigmas=1e9)).judge(340.0, 0.55) is None  # the control: it is the rule that finds it


def test_the_reason_says_what_is_usual() -> None:
    watchdog = Watchdog(DivergenceSettings(window=8))
    for loss in (4.0, 6.0) * 4:
        watchdog.judge(loss, 0.8)
    assert watchdog.judge(812.3, 0.8) == "the loss 812.3 is 807.3 standard deviations above the last 8 steps (5)"
    assert watchdog.judge(5.0, 0.8 * math.e**8) == ("the gradient norm 2385 is 16 standard deviations above the last 8 steps (0.8)")


def test_the_threshold_stands_at_the_mean_and_so_many_deviations() -> None:
    for sigmas in (3.0, 6.0):
        watchdog = Watchdog(DivergenceSettings(window=8, sigmas=sigmas))
        for loss, norm in ((4.0, 1.0), (6.0, math.e**2)) * 4:  # deviations of 1, both
            watchdog.judge(loss, norm)
        assert watchdog.judge(5 + sigmas + 0.01, 1.0) is not None
        assert watchdog.judge(5.0, math.exp(1 + sigmas + 0.01)) is not None
        before = watchdog.state()
        assert watchdog.judge(5 + sigmas - 0.01, 1.0) is None
        watchdog.load(before)
        assert watchdog.judge(5.0, math.exp(1 + sigmas - 0.01)) is None


@pytest.mark.parametrize("place", [0, 17, 499])
def test_one_flipped_exponent_bit_of_one_gradient_is_found(place: int) -> None:
    named = {"w": torch.zeros(500)}
    optimizers = build(named, OptimizerSettings(), torch.device("cpu"))
    generator, watchdog = torch.Generator().manual_seed(1), Watchdog(DEFAULT)
    for _ in range(200):
        named["w"].grad = 0.02 * torch.randn(500, generator=generator)
        assert watchdog.judge(3.0, optimizers.clip(1.0)) is None
    for bit, found in ((30, True), (22, False), (31, False)):  # the highest of the exponent; of the mantissa; the sign
        named["w"].grad = 0.02 * torch.randn(500, generator=generator)
        named["w"].grad.view(torch.int32)[place] ^= torch.tensor(1 << bit).to(torch.int32)
        assert (watchdog.judge(3.0, optimizers.clip(1.0)) is not None) is found


def test_a_gradient_fifty_times_the_usual_is_left_out() -> None:
    assert "gradient norm 27.5 is" in str(watched().judge(3.4, 27.5))
    assert watched().judge(3.4, 2 * 0.55) is None


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_training_is_left_alone(seed: int) -> None:
    watchdog = Watchdog(DEFAULT)
    for loss, norm in curve(seed):
        watchdog.judge(loss, norm)
    assert watchdog.skipped <= 2  # 0.1 % of 2,000 steps


def test_a_flat_curve_does_not_make_noise_a_spike() -> None:
    watchdog = Watchdog(DEFAULT)
    for _ in range(200):
        assert watchdog.judge(0.001, 0.0005) is None
    assert watchdog.judge(0.3, 0.0005) is None
    assert watchdog.judge(0.001, 0.05) is None
    assert watchdog.judge(1.0, 0.0005) is not None
    assert watchdog.judge(0.001, 5.0) is not None


def test_spikes_are_looked_for_after_a_whole_window() -> None:
    settings = DivergenceSettings(window=8)
    for steps, found in ((7, False), (8, True)):
        watchdog = Watchdog(settings)
        for _ in range(steps):
            assert watchdog.judge(5.0, 1.0) is None
        assert (watchdog.judge(500.0, 1.0) is not None) is found


def test_a_bad_step_does_not_excuse_the_next() -> None:
    watchdog = watched()
    before = watchdog.state()
    for count in range(1, 301):
        assert watchdog.judge(340.0, 0.55) is not None
        assert watchdog.judge(3.4, 55.0) is not None
        assert watchdog.in_a_row == watchdog.skipped == 2 * count
    assert watchdog.state() == before | {"in_a_row": 600, "skipped": 600}


def test_bad_steps_in_a_row_are_counted_until_one_is_good() -> None:
    watchdog = watched()
    for _ in range(3):
        watchdog.judge(math.nan, 1.0)
    assert (watchdog.in_a_row, watchdog.skipped) == (3, 3)
    watchdog.judge(3.4, 0.55)
    assert (watchdog.in_a_row, watchdog.skipped) == (0, 3)
    watchdog.judge(340.0, 0.55)
    assert (watchdog.in_a_row, watchdog.skipped) == (1, 4)


def test_a_new_level_comes_to_the_limit_and_a_slow_change_becomes_usual() -> None:
    sudden, slow = watched(), watched()
    for _ in range(DEFAULT.in_a_row):
        sudden.judge(9.0, 0.55)
    assert sudden.in_a_row == DEFAULT.in_a_row
    for step in range(1000):
        assert slow.judge(3.4 + step * 0.01, 0.55 * 1.005**step) is None


def test_a_gradient_of_nothing_is_no_trouble() -> None:
    watchdog = watched()
    assert [watchdog.judge(3.4, 0.0) for _ in range(300)] == [None] * 300
    assert watchdog.judge(3.4, 55.0) is not None  # and does not say what is usual


def test_a_resumed_watchdog_judges_like_an_uninterrupted_one() -> None:
    random, points = Random(3), curve(3, 600)
    for place in random.sample(range(200, 600), 20):  # some of them are close to the threshold
        points[place] = (points[place][0] * random.uniform(1, 3), points[place][1] * random.uniform(1, 12))
    whole, first = Watchdog(DEFAULT), Watchdog(DEFAULT)
    expected = [whole.judge(*point) for point in points]
    assert 5 < whole.skipped < 15
    verdicts = [first.judge(*point) for point in points[:300]]
    second = Watchdog(DEFAULT)
    second.load(json.loads(json.dumps(first.state(), allow_nan=False)))
    assert verdicts + [second.judge(*point) for point in points[300:]] == expected
    assert second.state() == whole.state()


def test_a_shorter_window_keeps_the_last_steps() -> None:
    shorter = Watchdog(DivergenceSettings(window=8))
    shorter.load(watched().state())
    assert shorter.state()["losses"] == watched().state()["losses"][-8:]


def test_a_state_that_cannot_be_used_is_refused_with_every_problem_and_changes_nothing() -> None:
    watchdog = watched()
    before = watchdog.state()
    with pytest.raises(ModelFileError, match=r"skipped is missing; losses has values that are infinite"):
        watchdog.load({"losses": [1.0, math.inf], "log_norms": [], "in_a_row": 2})
    assert watchdog.state() == before


@pytest.mark.long
@pytest.mark.parametrize(("task", "dropout"), [("reverse", 0.0), ("sort", 0.1)])
def test_a_clean_run_of_a_real_model_is_left_alone(task: str, dropout: float) -> None:
    example, settings = digits(), OptimizerSettings(learning_rate=3e-3)
    schedule, random, watchdog = ScheduleSettings(steps=2000, warmup=50), Random(0), Watchdog(DEFAULT)
    torch.manual_seed(0)
    model = Transformer(ModelConfig.preset("toy", example.VOCABULARY, dropout=dropout))
    optimizers = build(dict(model.named_parameters()), settings, torch.device("cpu"))
    for step in range(1, schedule.steps + 1):
        loss = model.loss(example.make_batch(example.training_strings(32, random), task)).mean
        loss.backward()
        if watchdog.judge(loss.item(), optimizers.clip(settings.clip)) is None:
            optimizers.set_rate(settings.learning_rate * rate(step, schedule))
            optimizers.step()
        optimizers.zero_gradients()
    assert watchdog.skipped <= 2
    assert example.exact_match(model.eval(), task, example.held_out_strings()) > 0.95
    assert watchdog.judge(100.0, 1.0) is not None
