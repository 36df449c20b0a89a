"""At the end of a run its confidence is fitted on the validation set, and looked at on the test set."""

import json
import shutil
import sys
from pathlib import Path
from random import Random

import pytest

from limelight import bundle
from limelight.bundle.bundle import amend
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import prepare
from limelight.evaluation.config import InferenceOptions
from limelight.training.config import FineTuning
from limelight.training.report.headline import tell_before
from limelight.training.report.run_record import read_run
from limelight.training.run_folder import BUNDLE, SCORES
from limelight.training.step.budget_clock import BudgetClock
from limelight.training.validation.final_weights import RemainingBudget, calibrate_confidence
from limelight.training.validation.scoring import score

sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import draw_pairs

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
ON = InferenceOptions(device="cpu", threads=1)
ENDLESS = RemainingBudget(BudgetClock(None, 1), 1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored bundle as the bundle of a run, with text whose references are wrong in every fourth word."""
    folder = tmp_path_factory.mktemp("run")
    pairs = draw_pairs(700, Random(3), held_out=False)
    for language, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        wrong = lambda words: [w + "e" if i % 4 == 3 else w for i, w in enumerate(words)]  # noqa: E731
        lines = [" ".join(wrong(text.split()) if language == "de" else text.split()) for text in side]
        (folder / f"numbers.{language}").write_bytes("".join(f"{line}\n" for line in lines).encode())
    settings = PrepareSettings(
        languages=("en", "de"),
        corpora=[{"name": "numbers", "paths": [str(folder / f"numbers.{language}") for language in ("en", "de")]}],
        filters={"wrong_language": "off"},
        held_out={"valid_pairs": 200, "test_pairs": 90, "largest_share": 0.4},
        pieces={"size": 345, "character_coverage": 1.0},
    )
    prepare(settings, folder / "prepared", LocalEngine(0), lambda _: None)
    shutil.copytree(STORED, folder / BUNDLE)
    return folder


@pytest.mark.slow
def test_confidence_is_fitted_on_validation_and_checked_on_test(run: Path) -> None:
    prepared = PreparedCorpus.open(run / "prepared")
    heard: list[int] = []
    calibration = calibrate_confidence(run, prepared, ON, lambda speed, total: heard.append(total), ENDLESS)
    assert calibration is not None and calibration.lines == 200 and heard[-1] == 200
    assert 0.6 < calibration.words.at(0.999) < 0.95  # it is sure of all words, and a sixth of them is not in the reference
    assert score(run, prepared, ON, lambda *_: None, ENDLESS, calibration) is not None
    stored = json.loads((run / SCORES).read_bytes())["confidence"]
    found = read_run(run).scores
    assert found is not None and found.confidence is not None
    assert found.confidence.words.error == stored["words"]["error"]
    assert found.confidence.words.error < 0.05 < found.confidence.words.claimed_error
    assert found.confidence.sentences.count == 90


@pytest.mark.slow
def test_what_a_bundle_knows_already_does_not_change_what_is_fitted(run: Path) -> None:
    prepared = PreparedCorpus.open(run / "prepared")
    first = calibrate_confidence(run, prepared, ON, lambda *_: None, ENDLESS)
    amend(run, confidence=first)
    try:
        assert calibrate_confidence(run, prepared, ON, lambda *_: None, ENDLESS) == first
    finally:
        amend(run, confidence=None)
    assert bundle.read(run).settings.confidence is None


def test_without_a_calibration_the_scores_have_no_confidence(run: Path) -> None:
    score(run, PreparedCorpus.open(run / "prepared"), ON, lambda *_: None, ENDLESS)
    found = read_run(run).scores
    assert found is not None and found.confidence is None


@pytest.mark.slow
def test_the_translator_that_a_run_went_on_from_is_scored_on_the_same_text(run: Path, tmp_path: Path) -> None:
    """Its decoder is damaged, so it is worse, and that is no chance; one that is away by now costs the comparison alone."""
    found, pieces = bundle.read(STORED), (STORED / "pieces.model").read_bytes()
    weights = {name: weight * (0.5 if "decoder" in name else 1) for name, weight in found.weights().items()}
    bundle.write(tmp_path / "old", found.settings, weights, (pieces, pieces))
    prepared = PreparedCorpus.open(run / "prepared")
    score(run, prepared, ON, lambda *_: None, ENDLESS, None, FineTuning(bundle=str(tmp_path / "old")))
    scores = read_run(run).scores
    assert scores is not None
    told, before = tell_before(scores.before), {each.metric: each for each in scores.before}
    assert {name: each.other for name, each in before.items()} == {name: scores.of(name).value for name in ("BLEU", "chrF2")}  # type: ignore[union-attr]
    assert all(each.significant and each.difference > 5 for each in scores.before)
    assert f"before: BLEU {before['BLEU'].system:.1f} · " in told and "this one is better by" in told
    for other in (FineTuning(bundle=str(tmp_path / "nowhere")), FineTuning(bundle=str(tmp_path / "old"), parent="en to de")):
        score(run, prepared, ON, lambda *_: None, ENDLESS, None, other)
        again = read_run(run).scores
        assert again is not None and again.before == () and again.scores == scores.scores


def test_a_budget_that_is_used_up_leaves_a_part_of_the_test_set_and_the_report_says_so(run: Path) -> None:
    prepared, late = PreparedCorpus.open(run / "prepared"), RemainingBudget(BudgetClock(1.0, 1), 1)
    late.each = 0.1
    assert calibrate_confidence(run, prepared, ON, lambda *_: None, late) is None
    found = score(run, prepared, ON, lambda *_: None, late)
    assert found is not None and found[0].sentences == 50 and {each.lines for each in found[1]} == {50}
    assert "50 of its 90 pairs, since the budget was used up" in json.loads((run / SCORES).read_bytes())["set"]
