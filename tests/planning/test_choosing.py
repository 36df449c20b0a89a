"""The rules that a plan and a run share."""

import pytest

from limelight.model.config import ModelConfig
from limelight.planning.sizing_rules import (
    BATCH,
    EPOCHS_ENOUGH,
    EPOCHS_OF_NARROW,
    LARGEST_BATCH,
    LEAST_BATCH,
    RATE_BY_MUON,
    SEEN_BY_SLIM,
    SEEN_PER_PARAMETER,
    STEPS_OF_THE_PAPER,
    TEXT_BY_MUON,
    batch_for,
    curve_for,
    dropout_for,
    enough,
    is_too_large,
    peak_rate,
    preset_for,
    reserve,
    training_seconds,
)

COUNTS = {"tiny": 2e6, "slim": 2.5e6, "small": 7e6, "base": 60e6, "big": 210e6, "3b": 3.2e9, "10b": 9.5e9}


@pytest.mark.parametrize(("target", "name"), [(100_000, "tiny"), (500_000, "small"), (50e6, "base"), (1e9, "big")])
def test_more_text_has_use_for_a_larger_model(target: float, name: str) -> None:
    assert preset_for(target, COUNTS, None).name == name


def test_a_model_that_would_see_too_little_or_does_not_fit_makes_room_for_a_smaller_one() -> None:
    just = SEEN_PER_PARAMETER * COUNTS["small"]
    assert preset_for(1e9, COUNTS, lambda name: just).name == "small"
    assert preset_for(1e9, COUNTS, lambda name: 0.99 * just).name == "tiny"
    assert "too little" in preset_for(1e9, COUNTS, lambda name: just).why
    assert preset_for(1e9, COUNTS, lambda name: 0.0).name == "tiny"  # something is always trained
    smaller = preset_for(1e9, COUNTS, None, lambda name: name != "big")
    assert (smaller.name, "memory" in smaller.why) == ("base", True)


def test_by_muon_a_short_text_is_for_a_deeper_and_narrower_model() -> None:
    def choose(target: float, seen: float) -> str:
        return preset_for(target, COUNTS, lambda name: seen, muon=True).name

    just = SEEN_BY_SLIM * COUNTS["slim"]
    assert [choose(target, 1e9) for target in (100_000, 500_000, 2e6, 50e6)] == ["tiny", "slim", "small", "base"]
    assert [choose(500_000, seen) for seen in (just, 0.99 * just)] == ["slim", "tiny"]
    assert [choose(2e6, seen) for seen in (SEEN_PER_PARAMETER * COUNTS["small"], just, 0.99 * just)] == ["small", "slim", "tiny"]


def test_the_batch_grows_with_what_is_seen_and_never_beyond_a_part_of_the_text() -> None:
    seen = [10**exponent for exponent in range(5, 14)]
    pieces = [batch_for(each, 1e12).pieces for each in seen]
    assert pieces == sorted(pieces) and (pieces[0], pieces[-1]) == (BATCH[0], LARGEST_BATCH)
    assert batch_for(40e6, 1e12).pieces == 5_000 and batch_for(1e9, 1e12).pieces == BATCH[1]
    assert batch_for(10e9, 1e12).pieces == 10e9 / STEPS_OF_THE_PAPER
    assert batch_for(10e9, 60_000).pieces == 6_000 and batch_for(10e9, 900).pieces == LEAST_BATCH


def test_what_is_enough_depends_on_text_and_model() -> None:
    assert enough(500_000, 7e6, 256) == EPOCHS_ENOUGH * 500_000
    assert enough(500_000, 2e6, 128) == EPOCHS_OF_NARROW * 500_000
    assert enough(1e12, 7e6, 256) == 200 * 7e6
    assert enough(100, 7e6, 256) == 10_000_000


def test_a_model_is_too_large_for_a_text_that_a_smaller_preset_is_for() -> None:
    assert is_too_large(COUNTS["base"], 500_000, COUNTS) and not is_too_large(COUNTS["small"], 500_000, COUNTS)
    assert is_too_large(COUNTS["3b"], 300e6, COUNTS) and not is_too_large(1.3 * COUNTS["big"], 300e6, COUNTS)
    assert not is_too_large(COUNTS["10b"], 1e12, COUNTS)


def test_many_passes_are_made_at_a_rate_that_hardly_falls() -> None:
    few, many, more = (curve_for(8_000, epochs, is_new) for epochs, is_new in ((39, True), (40, True), (40, False)))
    assert curve_for(8_000, 100, True) == few, "its best weights may be old ones"
    assert few.schedule == {"warmup": 800} and more.schedule == {"warmup": 400} and few.average == more.average == {"decay": 0.9975}
    assert many.schedule == {"name": "inverse_sqrt", "warmup": 800} and many.average == {"decay": 0.9975, "best": 10, "latest": True}


def test_dropout_grows_with_passes_and_the_rate_falls_with_width() -> None:
    assert [dropout_for(epochs) for epochs in (0.5, 8, 99, 100)] == [0.1, 0.2, 0.2, 0.3]
    small, tiny = (ModelConfig.preset(name, 600) for name in ("small", "tiny"))
    assert peak_rate(tiny) == 2 * peak_rate(small)
    assert peak_rate(small.changed(norm_order="post")) == peak_rate(small) / 2
    assert peak_rate(small, muon=True) == RATE_BY_MUON * peak_rate(small)


def test_a_budget_keeps_time_for_its_end() -> None:
    assert reserve(1_800) == 56 and reserve(40) == 10
    assert training_seconds(1_800, 44) == pytest.approx(0.95 * 1_700)
    assert training_seconds(10, 100) == 5.0


def test_every_size_of_the_rules_is_a_preset() -> None:
    for name in TEXT_BY_MUON:
        assert ModelConfig.preset(name, 600)
