"""Steps timed and steps foretold: the kinds of work, and the prices that are fitted to them."""

import random

import pytest

from limelight.model.config import ModelConfig
from limelight.planning.cost.compute import flops
from limelight.planning.cost.shape import BatchShape
from limelight.planning.cost.size import parameters
from limelight.planning.time.measured_time import Work, fit_rates, work
from limelight.training.recipe.calibrate import PROBES

PRICES = Work(products=1e-11, moved=4e-10, looks=3e-9, fused=2e-9, logits=1e-9, weights=3e-9, calls=4e-4)


def seconds(units: Work, prices: Work = PRICES) -> float:
    return sum(a * b for a, b in zip(units.kinds, prices.kinds, strict=True))


@pytest.mark.parametrize("precision", ["float32", "masters"])
def test_prices_are_found_again_from_the_probes_and_foretell_other_models(precision: str) -> None:
    made = [(units, seconds(units)) for units in (work(p.config, p.shape, precision) for p in PROBES)]  # type: ignore[arg-type]
    rates = fit_rates(made)
    assert rates.error < 0.01
    for name, recompute in (("small", False), ("base", True), ("deep", False)):
        other = work(ModelConfig.preset(name, 16_000), BatchShape.packed(32, 40, 40, 1280, 1280), precision, recompute)  # type: ignore[arg-type]
        assert rates.seconds(other) == pytest.approx(seconds(other), rel=0.05)


def test_a_tenth_of_noise_moves_what_is_foretold_by_no_more_than_a_fifth() -> None:
    chance = random.Random(2)
    other = work(ModelConfig.preset("small", 8000), BatchShape.packed(64, 32, 32, 2048, 2048), "float32")
    for _ in range(5):
        units = [work(p.config, p.shape, "float32") for p in PROBES]
        rates = fit_rates([(each, seconds(each) * chance.uniform(0.95, 1.05)) for each in units])
        assert rates.seconds(other) == pytest.approx(seconds(other), rel=0.2)


def test_every_kind_of_work_is_in_some_probe_and_prices_are_never_negative() -> None:
    for precision in ("float32", "masters", "autocast"):
        units = [work(p.config, p.shape, precision) for p in PROBES]  # type: ignore[arg-type]
        assert all(any(each.kinds[k] for each in units) for k in range(len(PRICES.kinds)))
    chance = random.Random(3)
    rates = fit_rates([(work(p.config, p.shape, "float32"), chance.uniform(0.1, 1)) for p in PROBES])
    assert min(rates.prices.kinds) >= 0


def test_work_is_counted_from_the_other_formulas() -> None:
    config, shape = ModelConfig.preset("small", 8000), BatchShape.packed(16, 200, 200, 3200, 3200)
    plain, again = work(config, shape, "float32"), work(config, shape, "float32", recompute=True)
    assert plain.products == flops(config, shape).step()
    assert again.products == flops(config, shape).step(recompute=True)
    assert again.moved > plain.moved and again.weights == plain.weights > sum(parameters(config).values())
    # 200 pieces are too many for stages in float32 and not in bfloat16
    assert (plain.looks, work(config, shape, "masters").fused) == (0, 0)
    assert plain.fused == work(config, shape, "masters").looks == config.num_heads * 3 * sum(shape.looks)


def test_shares_of_the_time_sum_to_one() -> None:
    rates = fit_rates([(work(p.config, p.shape, "float32"), seconds(work(p.config, p.shape, "float32"))) for p in PROBES])
    shares = rates.shares(work(ModelConfig.preset("base", 16_000), PROBES[2].shape, "float32"))
    assert sum(shares.values()) == pytest.approx(1) and max(shares, key=lambda name: shares[name]) == "products"
