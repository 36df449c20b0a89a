"""Two systems: the p values are sacreBLEU's where that is right, and nothing is made of nothing."""

import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.significance import PairedTest

sys.path.insert(0, str(Path(__file__).parent))
from stored_outputs import needs_data, row

from limelight.errors import ConfigError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.inputs import read_parallel
from limelight.evaluation.metrics.compare import Difference, compare, summary
from limelight.evaluation.metrics.metrics import MetricCounts, count

SETTINGS = EvaluateSettings(metrics=("bleu", "chrf"), resamples=1000, trials=2000)
LINES = [f"the number {i} is one more than the number {i - 1} , they say ." for i in range(1, 61)]


def compared(a: list[str], b: list[str], reference: list[str], settings: EvaluateSettings = SETTINGS) -> list[Difference]:
    counted = [[count(name, text, [reference], settings) for name in settings.metrics] for text in (a, b)]
    return compare(("A", "B"), counted[0], counted[1], settings)


@pytest.mark.slow
@needs_data
def test_p_values_are_those_of_sacrebleu() -> None:
    """On 200 lines of two systems that are close, so that p is in the middle."""
    pair = [row("flores200-devtest", "en-is", system) for system in ("nllb", "opusmt")]
    a, b, reference = (text[:200] for text in read_parallel([*(each.output for each in pair), pair[0].reference]))
    found = compared(a, b, reference)
    metrics = {"BLEU": BLEU(tokenize="13a"), "chrF2": CHRF()}
    for test, trials in (("ar", SETTINGS.trials), ("bs", SETTINGS.resamples)):
        _, theirs = PairedTest([("A", a), ("B", b)], metrics, [reference], test, trials)()
        for each in found:
            result = theirs[each.metric][1]
            assert each.other == pytest.approx(result.score, abs=1e-9)
            assert (each.p if test == "ar" else each.p_bootstrap) == pytest.approx(result.p_value, abs=1e-12)
    assert all(0.002 < each.p < 0.9 for each in found), "too far apart or too close to compare p values"


def test_a_system_and_itself_do_not_differ() -> None:
    """sacreBLEU gives p = 0.0001 here, since no random swapping puts them farther apart than not at all."""
    for each in compared(LINES, list(LINES), LINES):
        assert each.p == 1 and each.p_bootstrap == 1 and each.better is None and not each.significant
        assert "same" in each.verdict


def test_one_sentence_proves_nothing() -> None:
    """Swapped or not, one sentence puts them equally far apart, so that every swapping counts against the claim."""
    worse = ["something else entirely", *LINES[1:]]
    (bleu, chrf) = compared(worse, LINES, LINES)
    assert bleu.p == 1 and chrf.p == 1 and bleu.better == "B" and not bleu.significant
    assert "may be chance" in bleu.verdict
    _, theirs = PairedTest([("A", worse), ("B", LINES)], {"BLEU": BLEU(tokenize="13a")}, [LINES], "ar", 500)()
    assert theirs["BLEU"][1].p_value < 0.05, "sacreBLEU no longer claims this; the docs say it does"


def test_a_system_that_is_worse_everywhere_is_found_worse_whichever_comes_first() -> None:
    worse = [text.replace("number", "figure") for text in LINES]
    for a, b, better in ((worse, LINES, "B"), (LINES, worse, "A")):
        for each in compared(a, b, LINES):
            assert each.better == better and each.significant and each.p < 0.001
            assert each.verdict.startswith(f"{better} is better by ") and "unlikely to be chance" in each.verdict
            assert each.low is not None and each.high is not None and each.low <= each.difference <= each.high
            assert (each.low > 0) == (better == "B")


def test_of_ter_the_lower_is_better() -> None:
    worse = [text.replace("number", "figure") for text in LINES]
    (ter,) = compared(worse, LINES, LINES, EvaluateSettings(metrics=("ter",), trials=200))
    assert ter.difference < 0 and ter.better == "B" and ter.significant


def test_scores_counted_in_two_ways_are_not_compared() -> None:
    def counted(**values: object) -> list[MetricCounts]:
        settings = SETTINGS.changed(**values)
        return [count(name, LINES, [LINES], settings) for name in settings.metrics]

    with pytest.raises(ConfigError) as error:
        compare(("A", "B"), counted(), counted(tokenize="char"), SETTINGS)
    (problem,) = error.value.problems
    assert "BLEU of A" in problem and "tok:13a" in problem and "tok:char" in problem
    with pytest.raises(ConfigError) as error:
        compare(("A", "B"), counted(lowercase=True), counted(), SETTINGS)
    assert len(error.value.problems) == 2, "case decides BLEU and chrF"
    with pytest.raises(ConfigError):
        compare(("A", "B"), counted(metrics=("chrf",)), counted(metrics=("chrf++",)), SETTINGS)


def test_other_draws_do_not_keep_scores_from_being_compared() -> None:
    counts = [[count("bleu", LINES, [LINES], SETTINGS.changed(seed=s, resamples=r))] for s, r in ((1, 100), (2, None))]
    assert len(compare(("A", "B"), counts[0], counts[1], SETTINGS)) == 1


@pytest.mark.slow
def test_chance_differences_are_rarely_called_significant() -> None:
    """Two systems that are equally good by construction: at p < 0.05 one claim in twenty is wrong, 40 trials allow for some."""
    claims = 0
    for seed in range(40):
        a = [text.replace("one", "two") if (i * 7919 + seed * 104729) % 97 < 40 else text for i, text in enumerate(LINES)]
        b = [text.replace("one", "two") if (i * 6007 + seed * 15485863) % 89 < 36 else text for i, text in enumerate(LINES)]
        (chrf,) = compared(a, b, LINES, EvaluateSettings(metrics=("chrf",), trials=300, resamples=None))
        claims += chrf.significant
    assert claims <= 6


def test_metrics_that_contradict_each_other_are_pointed_out() -> None:
    def made(metric: str, better: str, significant: bool) -> Difference:
        return Difference(metric, 0, 0, 0, None, None, 0.01, None, better, significant, "")

    assert summary([made("BLEU", "A", True), made("chrF2", "B", False)]) is None
    assert summary([made("BLEU", "A", True), made("chrF2", "A", True)]) is None
    said = summary([made("BLEU", "A", True), made("chrF2", "B", True)])
    assert said is not None and "BLEU prefers A" in said and "chrF2 prefers B" in said
