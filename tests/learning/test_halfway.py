"""A version that forgets is taken back half of the way, once, and judged anew."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from limelight.bundle import read
from limelight.bundle.versions import HISTORY, LEARNT, LearningPlan, find_version, read_history
from limelight.cli import learn
from limelight.learning import effect, halfway
from limelight.learning.attempt import HELD, PLAN
from limelight.learning.effect import NEW, OLD
from limelight.learning.halfway import MARK, take_back

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from test_effect import differ

from learning_versions import copy_bundle, learn_by_hand


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = copy_bundle(tmp_path / "num")
    learn_by_hand(folder)
    (folder / LEARNT / HISTORY).unlink()  # it is not judged yet
    return folder


def test_the_weights_are_the_mean_of_both_and_only_once(folder: Path) -> None:
    places = folder, find_version(folder, 1)
    before, after = (read(each).weights() for each in places)
    assert any(not torch.equal(before[name], after[name]) for name in after)
    assert take_back(*places, folder / LEARNT / "1")
    assert not take_back(*places, folder / LEARNT / "1")  # as after a kill: not a quarter
    mean = read(places[1]).weights()
    assert all(torch.equal(mean[name], (before[name] + after[name]) / 2) for name in after)
    assert not (places[1] / "bundle" / "ctranslate2").exists()
    assert all(torch.equal(weight, before[name]) for name, weight in read(places[0]).weights().items())


def test_who_is_killed_before_the_mean_is_there_goes_half_of_the_way_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places, attempt = (folder, find_version(folder, 1)), folder / LEARNT / "1"
    before, after = (read(place).weights() for place in places)

    @contextmanager
    def killed(*_: Any, **more: Any) -> Iterator[Path]:
        raise KeyboardInterrupt
        yield folder

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(halfway, "edit_copy", killed)
        take_back(*places, attempt)
    assert (attempt / MARK).exists()
    assert take_back(*places, attempt) and not take_back(*places, attempt)
    mean = read(places[1]).weights()
    assert all(torch.equal(mean[name], (before[name] + after[name]) / 2) for name in after)


@pytest.mark.parametrize(
    ("found", "kept", "told"),
    [
        ([(differ(6.0, True), differ(0.0, False))], True, "better on corrections"),
        ([(differ(6.0, True), differ(-2.0, True)), (differ(3.0, True), differ(-0.1, False))], True, "half of the way"),
        ([(differ(6.0, True), differ(-2.0, True)), (differ(3.0, True), differ(-1.0, True))], False, "forgets"),
        ([(differ(-6.0, True), differ(-2.0, True))], False, "not surely better"),  # nothing to go half of the way to
    ],
)
def test_what_forgets_is_judged_again(folder: Path, monkeypatch: pytest.MonkeyPatch, found: list[Any], kept: bool, told: str) -> None:
    attempt, left = folder / LEARNT / "1", list(found)
    plan = LearningPlan(number=1, parent=0, at="2026-11-18", minutes=1, corrections=80, held_out=20)
    (attempt / PLAN).write_text(plan.model_dump_json())
    (attempt / HELD).write_text(json.dumps({"translation": {"en": "one", "de": "eins"}}) + "\n")
    translated = list[Path]()
    monkeypatch.setattr(effect, "translate_sets", lambda place, *_: translated.append(place))
    monkeypatch.setattr(effect, "measure_effect", lambda *_: dict(zip((NEW, OLD), left.pop(0), strict=True)))
    learn._judge(folder, plan, (["two"], ["zwei"]), {"languages": ("en", "de"), "threads": 1})
    version = read_history(folder).versions[0]
    assert version.kept is kept and told in version.why
    assert not left and (attempt / MARK).exists() is (len(found) == 2)
    assert len(translated) == 1 + len(found)  # the version before is not translated again
