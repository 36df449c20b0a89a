"""Budgets as people write them, and what they buy."""

from dataclasses import replace
from itertools import pairwise

import pytest

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.planning.budget import Budget, budget_seconds, parse_budget
from limelight.planning.cost.compute import flops_of_pair
from limelight.planning.options import Option, count_of, curve, options
from limelight.planning.sizing_rules import BATCH, EPOCHS_ENOUGH, TEXT_BY_MUON, TextStats, training_seconds
from limelight.planning.time.devices import Device, device, this_machine

CAPTIONS = TextStats(28_938, 440_000, 514_904)  # Multi30k
SENTENCES = TextStats(153_000, 1.4e6, 1.55e6)  # Tatoeba
NEWS = TextStats(10e6, 250e6, 270e6)


def measured(text: TextStats, pieces_per_second: float, vocab_size: int) -> Device:
    """This machine, with the speed that `small` had on it."""
    source, target = text.source / text.pairs, text.target / text.pairs
    work = flops_of_pair(ModelConfig.preset("small", vocab_size), source, target) / target
    return this_machine(24e9, 2, work * pieces_per_second)


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("30m", Budget(None, None, 1_800)),
        ("1h 30m", Budget(None, None, 5_400)),
        ("8xH100 24h", Budget(8, "H100", 86_400)),
        ("2 x L4 90m", Budget(2, "L4", 5_400)),
        ("H100 1h30m", Budget(None, "H100", 5_400)),
        ("1,024xH100 2d", Budget(1_024, "H100", 172_800)),
        ("8xH100", Budget(8, "H100", None)),
        ("4 x RTX-4090 12h", Budget(4, "RTX-4090", 43_200)),
        ("4090 24h", Budget(None, "4090", 86_400)),
        ("RTX 4090 2h", Budget(None, "RTX 4090", 7_200)),
        ("A100 80 24h", Budget(None, "A100 80", 86_400)),
        ("8x4090 1 h 30 m", Budget(8, "4090", 5_400)),
    ],
)
def test_a_budget_is_devices_and_time(text: str, budget: Budget) -> None:
    assert parse_budget(text) == budget


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no time"),
        ("30", "30m for minutes"),
        ("8xH100 24", "24h for hours"),
        ("0xH100 1h", "no device"),
        ("0m", "no time to train"),
        ("8x 24h", "no device"),
        ("1 30m", "no device"),
    ],
)
def test_a_budget_that_cannot_be_read_says_how_to_write_it(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_budget(text)


def test_the_time_of_a_budget_is_that_of_a_run() -> None:
    assert parse_budget("1h30m").seconds == budget_seconds("1h30m") == 5_400


def test_captions_in_thirty_minutes_on_two_cores_are_for_slim() -> None:
    """As measured, by Muon: ahead of `tiny` and of `small` after a quarter of this work (docs/experiments.md)."""
    found = options(CAPTIONS, measured(CAPTIONS, 7_902, 4_000), 1, 1_800, "masters", corpus="multi30k")
    best = found[0]
    assert best.name == "slim" and best.accumulate == 1
    assert 5_000 < best.pieces < 6_500 and 7_500 < best.steps < 8_500 and 80 < best.epochs < 100
    assert best.config.dropout == 0.2 and best.learning_rate == 8e-3 and best.muon
    assert 1_500 < best.seconds < 1_800 and best.cost is None
    wider = [option for option in found if count_of(option.config) > 4 * count_of(best.config)]
    assert all(option.expected.loss > best.expected.loss for option in wider)


def test_three_minutes_on_everyday_sentences_are_for_tiny() -> None:
    """As measured: BLEU 29.2 against 0.8 of `small`."""
    found = options(SENTENCES, measured(SENTENCES, 4_000, 8_000), 1, 180, "masters")
    assert found[0].name == "tiny"
    losses = {option.name: option.expected.loss for option in found}
    assert losses["tiny"] < losses["small"] < losses["base"]


def test_a_day_of_eight_accelerators_on_ten_million_pairs() -> None:
    """`big`, all weights on every device, a large batch, and most of the time left over, which is said."""
    best = options(NEWS, device("H100"), 8, 86_400, "masters")[0]
    assert best.name == "big" and best.parallel.kind == "ddp" and best.fits and not best.recompute
    assert 50_000 < best.pieces < 400_000 and best.epochs == pytest.approx(EPOCHS_ENOUGH, rel=0.01)
    assert best.seconds < 4 * 3_600 and best.cost is not None and best.cost < 100
    assert any("left over" in why.text for why in best.why)
    assert not best.expected.in_range and any("extrapolated" in note for note in best.expected.notes)


@pytest.mark.slow
def test_the_choice_obeys_the_rule_of_a_run() -> None:
    """A size larger than the one taken would see too little, be too large for the text, or not fit."""
    for text in (CAPTIONS, SENTENCES, TextStats(1e6, 25e6, 27e6)):
        for hours in (0.1, 3):
            machine = measured(text, 6_000, 8_000)
            found = options(text, machine, 1, 3_600 * hours, "masters", vocab_size=8_000)
            for option in found[1:]:
                if option.name in ("small", "base", "big") and count_of(option.config) > count_of(found[0].config):
                    room = training_seconds(3_600 * hours) * option.pieces / option.step.worst
                    too_large = any("by heart" in why.text for why in option.why)
                    short = text.target < TEXT_BY_MUON[option.name]
                    assert room < 1.5 * count_of(option.config) or too_large or short or not option.fits


def test_a_model_that_no_device_holds_comes_last_and_a_cut_one_fits() -> None:
    found = {option.name: option for option in options(NEWS, device("H100"), 1, None, "masters")}
    assert not found["10b"].fits and set(list(found)[-2:]) == {"3b", "10b"}
    cut = {option.name: option for option in options(NEWS, device("H100"), 64, None, "masters")}["10b"]
    assert cut.fits and cut.parallel.sharded


@pytest.mark.slow
def test_a_small_memory_cuts_a_step_into_passes_of_the_same_batch() -> None:
    large = options(NEWS, device("H100"), 1, None, "masters")[0]
    cramped = replace(device("H100"), memory=16e9)
    small = next(option for option in options(NEWS, cramped, 1, None, "masters") if option.name == large.name)
    assert (large.accumulate, small.fits) == (1, True) and small.accumulate > 1
    assert small.pieces == large.pieces and small.memory < large.memory


@pytest.mark.slow
def test_a_measured_timing_takes_the_place_of_the_described_one() -> None:
    plain = options(CAPTIONS, device("L4"), 1, 600, "masters")

    def slow(config, parallel, shape, recompute):  # type: ignore[no-untyped-def]
        return replace(plain[0].step, computing=10.0, hidden=0.0, exposed=0.0)

    found: list[Option] = options(CAPTIONS, device("L4"), 1, 600, "masters", timing=slow)
    assert all(option.step.computing == 10.0 * option.accumulate for option in found)
    assert found[0].name == "tiny" and found[0].pieces == BATCH[0]


def test_more_devices_help_until_the_batch_is_too_small_for_them() -> None:
    drawn = curve(NEWS, device("H100"), "masters", count=8, most=256, vocab_size=32_000)
    times = [point.option.seconds for point in drawn.devices]
    assert [point.count for point in drawn.devices] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert times[0] / times[3] == pytest.approx(8, rel=0.2)
    assert drawn.devices[3].helps and not drawn.devices[-1].helps and 8 <= drawn.useful < 256
    costs = [point.option.cost or 0.0 for point in drawn.devices]
    assert costs == sorted(costs)  # what is gained in time is paid for


def test_more_time_is_never_worse_and_ends_where_the_text_is_learnt() -> None:
    drawn = curve(SENTENCES, measured(SENTENCES, 6_000, 8_000), "masters", most=1)
    losses = [point.option.expected.loss for point in drawn.frontier]
    assert all(later <= earlier + 0.02 for earlier, later in pairwise(losses))
    assert drawn.frontier[-1].option.seconds < 0.5 * drawn.frontier[-1].budget or drawn.frontier[-1].budget == 168 * 3_600


def test_where_the_fitted_law_sees_more_in_another_size_it_is_said_and_the_rule_stays() -> None:
    """A day of two cores for a million pairs: `base` would see fewer than 1.5 pieces a parameter, which the rule asks for."""
    text = TextStats(1e6, 25e6, 27e6)
    best, second, *_ = options(text, measured(text, 4_500, 16_000), 1, 86_400, "masters")
    assert best.name == "small" and second.expected.loss < best.expected.loss - 0.1
    assert any(second.name in why.text and "nats lower" in why.text for why in best.why)
