"""Words planted in translations are drawn alike after a stop, and what is told of them is counted right (benchmarks/why_planted.py)."""

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import why_planted
from limelight.inspection.analysis import attribution
from limelight.translator.translate import Translator
from why_planted import Planted, choose_threshold, gather, plant, recall_and_precision, separation

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXTS = ["seven two five nine", "six", "four nine six eight", "one two three four"]


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = (attribution.OMITTED, attribution.ADDED)
    with Translator.load(BUNDLE, engine="torch", threads=1) as translator:
        whole = plant(translator, TEXTS, tmp_path / "whole.jsonl", "model")
        lines = (tmp_path / "whole.jsonl").read_bytes().split(b"\n")
        (tmp_path / "torn.jsonl").write_bytes(b"\n".join(lines[:3]) + b"\n" + lines[3][:20])  # a last line that was cut off
        asked: list[str] = []
        both = why_planted.plant_both
        monkeypatch.setattr(why_planted, "plant_both", lambda *given: asked.append(given[1]) or both(*given))
        again = plant(translator, TEXTS, tmp_path / "torn.jsonl", "model")
        assert asked == TEXTS[2:]
        assert json.dumps(again) == json.dumps(whole)
        assert (tmp_path / "torn.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
        with pytest.raises(SystemExit, match="of other sentences or of another model"):
            plant(translator, TEXTS, tmp_path / "torn.jsonl", "another")
    assert usual == (attribution.OMITTED, attribution.ADDED)
    assert whole[1] == {}, "one word is too few"
    found = gather(whole)
    assert sum(planted for _, planted in found["omission"].checked) == sum(planted for _, planted in found["addition"].checked) == 3
    assert [planted for _, planted in found["translation"].mean] == [False, True] * 3
    assert recall_and_precision(found["omission"].checked, attribution.OMITTED)[0] == 1, "digits, word by word: nothing is easier"


def test_separation_is_the_share_of_pairs_in_the_right_order() -> None:
    chance = random.Random(1)
    words = [(float(chance.randrange(5)), chance.random() < 0.4) for _ in range(60)]
    planted, others = ([value for value, is_planted in words if is_planted == which] for which in (True, False))
    pairs = [(one < other) + (one == other) / 2 for one in planted for other in others]
    assert separation(words) == pytest.approx(sum(pairs) / len(pairs))
    assert separation([(-9.0, True), (0.0, False)]) == 1 and separation([(1.0, True), (0.0, False)]) == 0


def test_the_threshold_has_the_greatest_f1() -> None:
    words = [(-5.0, True), (-4.0, True), (-3.0, False), (-1.0, True), (0.0, False), (1.0, False)]
    assert choose_threshold(words) == -0.5  # all three for one mistake, and not two without one
    assert recall_and_precision(words, -0.5) == (1.0, 0.75)
    assert gather([{}]) == {"omission": Planted(), "translation": Planted(), "addition": Planted()}
