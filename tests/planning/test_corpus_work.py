"""Hours to prepare a corpus, against what docs/scale.md measured."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from corpus_cluster import nodes_for, ray_work
from limelight.planning.corpus_work import corpus_work


@pytest.mark.parametrize(("pairs", "least", "most"), [(1e6, 14.3, 17.6), (20e6, 300, 304)])
def test_what_was_measured_comes_out(pairs: float, least: float, most: float) -> None:
    work = corpus_work(pairs, cores=2, identify=False)
    assert 0.98 * least <= work.seconds <= 1.02 * most and not work.notes


def test_ray_takes_its_start_and_about_twice_as_long_and_identification_is_the_dearest_filter() -> None:
    assert 27 < ray_work(1e6, identify=False).seconds < 28.5
    assert corpus_work(1e6).seconds == pytest.approx(24.8, rel=0.05)


def test_twice_the_cores_take_half_the_time_until_reading_is_the_limit() -> None:
    assert corpus_work(1e8, 8).seconds == pytest.approx(corpus_work(1e8, 4).seconds / 2)
    many = corpus_work(1e10, 512)
    assert many.seconds == pytest.approx(1e10 * 1e-6) and any("reads" in note for note in many.notes)


def test_bytes_follow_the_text() -> None:
    assert corpus_work(20e6).written == pytest.approx(5.05e9, rel=0.01)
    assert corpus_work(1e6, bytes_of_pair=272).written == 2 * corpus_work(1e6).written
    assert ray_work(1e10, 32, 16).shuffled == pytest.approx(2.02e12)


def test_what_nobody_measured_is_said() -> None:
    notes = corpus_work(1e10, 32).notes
    assert len(notes) >= 3 and any("shard_megabytes" in note for note in notes)


def test_ten_billion_pairs_want_a_cluster() -> None:
    work = nodes_for(1e10, hours=1)
    assert work.engine == "ray" and work.seconds <= 3_600 and 12 <= work.nodes <= 20
    assert work.core_seconds / 3_600 == pytest.approx(233, rel=0.01)
    assert ray_work(1e10, 32, work.nodes - 1).seconds > 3_600


def test_what_one_machine_does_in_time_needs_no_cluster() -> None:
    assert nodes_for(1e6, hours=1).nodes == 1 and nodes_for(1e6, hours=1).engine == "local"
