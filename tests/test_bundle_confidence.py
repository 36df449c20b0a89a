"""What a bundle knows of its confidence: a curve that never falls, kept in config.json; bundles without one stay as they were."""

import json
import shutil
from pathlib import Path

import pytest

from limelight.bundle import read
from limelight.bundle.bundle import amend
from limelight.bundle.confidence import KNOTS, Calibration, Curve
from limelight.errors import ConfigError

STORED = Path(__file__).parent / "bundles" / "format-1"
CURVE = Curve(knots=((0.2, 0.1), (0.6, 0.5), (0.9, 0.8)))
CALIBRATION = Calibration(words=CURVE, sentences=Curve(knots=((0.5, 0.7),)), lines=1014)


@pytest.mark.parametrize(
    ("claimed", "true"),
    [(0.0, 0.1), (0.2, 0.1), (0.3, 0.2), (0.6, 0.5), (0.75, 0.65), (0.9, 0.8), (1.0, 0.8)],
)
def test_between_knots_a_curve_is_straight_and_beyond_them_level(claimed: float, true: float) -> None:
    assert CURVE.at(claimed) == pytest.approx(true)


def test_a_single_knot_is_an_answer_to_everything() -> None:
    assert [CALIBRATION.sentences.at(claimed) for claimed in (0.0, 0.5, 1.0)] == [0.7, 0.7, 0.7]


@pytest.mark.parametrize(
    ("knots", "why"),
    [
        (((0.5, 0.1), (0.5, 0.2)), "what is claimed must rise"),
        (((0.2, 0.3), (0.5, 0.2)), "what is true must not fall"),
        (((0.2, 0.3), (0.5, 1.2)), "less than or equal to 1"),
        ((), "at least 1 item"),
        (tuple((i / 100, i / 100) for i in range(KNOTS + 1)), f"at most {KNOTS}"),
    ],
)
def test_a_curve_that_falls_or_leaves_its_bounds_is_refused(knots: tuple[tuple[float, float], ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Curve(knots=knots)


def test_a_bundle_keeps_its_calibration_and_its_weights(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(STORED, tmp_path / "numbers"))
    weights = (folder / "model.safetensors").read_bytes()
    amend(folder, confidence=CALIBRATION)
    found = read(folder)
    assert found.settings.confidence == CALIBRATION
    assert found.settings.changed(confidence=None) == read(STORED).settings
    assert (folder / "model.safetensors").read_bytes() == weights
    assert sorted(path.name for path in tmp_path.iterdir()) == ["numbers"]


def test_who_has_the_old_files_open_still_has_them(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(STORED, tmp_path / "numbers"))
    with (folder / "config.json").open("rb") as old:
        amend(folder, confidence=CALIBRATION)
        assert old.read() == (STORED / "config.json").read_bytes()


def test_without_a_calibration_nothing_is_written_about_it(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(STORED, tmp_path / "numbers"))
    assert read(folder).settings.confidence is None
    amend(folder, confidence=CALIBRATION)
    amend(folder, confidence=None)
    assert "confidence" not in json.loads((folder / "config.json").read_bytes())


def test_the_bundle_of_a_run_is_the_one_that_is_changed(tmp_path: Path) -> None:
    shutil.copytree(STORED, tmp_path / "run" / "bundle")
    amend(tmp_path / "run", confidence=CALIBRATION)
    assert read(tmp_path / "run").settings.confidence == CALIBRATION
