"""Servers for a load, against docs/operate.md and docs/scale.md."""

import pytest

from limelight.model.config import ModelConfig
from limelight.planning.serving_load import replicas

SMALL = ModelConfig.preset("small", 8_000)
BASE = ModelConfig.preset("base", 8_000)


@pytest.mark.parametrize(("texts", "servers"), [(1, 2), (10, 3), (100, 14), (1_000, 126), (10_000, 1_251)])
def test_the_table_of_the_page_on_scale_comes_out(texts: float, servers: int) -> None:
    assert replicas(SMALL, texts, pieces=60).replicas == servers


def test_one_core_at_half_load_waits_about_as_long_as_was_measured() -> None:
    """18 texts a second are its capacity; measured were 0.288 s alone and 1.07 s at half load, 2.6 to 4.6 times as long."""
    half = replicas(SMALL, 9)
    assert half.capacity == pytest.approx(18, rel=0.02) and half.replicas == 2
    assert 2.6 * 0.288 < half.latency < 4.6 * 0.288
    assert replicas(SMALL, 0.01).latency == pytest.approx(0.288, rel=0.01)


def test_a_shorter_latency_wants_more_servers_and_what_one_text_takes_nobody_undercuts() -> None:
    counts = [replicas(SMALL, 50, latency=seconds).replicas for seconds in (2.0, 0.6, 0.4, 0.3)]
    assert counts == sorted(counts) and counts[0] < counts[-1]
    assert all(replicas(SMALL, 50, latency=seconds).latency <= seconds for seconds in (2.0, 0.6, 0.4, 0.3))
    hopeless = replicas(SMALL, 50, latency=0.2)
    assert not hopeless.possible and "int8" in hopeless.notes[0]


def test_a_larger_model_wants_servers_in_proportion_to_its_operations() -> None:
    small, base = (replicas(config, 1_000) for config in (SMALL, BASE))
    assert base.replicas / small.replicas == pytest.approx(small.capacity / base.capacity, rel=0.02)
    assert 5 < small.capacity / base.capacity < 10 and base.memory > small.memory
    assert any("not measured" in note for note in base.notes) and not small.notes
