"""Scores and intervals are sacreBLEU's, sentence counts add up, and the tokenizer suits the language."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from limelight.errors import ConfigError
from limelight.evaluation.config import EvaluateSettings, MetricName
from limelight.evaluation.metrics import metrics as metrics_file
from limelight.evaluation.metrics.metrics import TITLES, bootstrap, count, short_code, swap_pairs, tokenizer_for

WORDS = "the a cat dog sits stands on under mat tree and sees hears his her old new red house .".split()  # noqa: SIM905


def sentences(number: int, seed: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, size=random.integers(3, 14))).capitalize() for _ in range(number)]


REFERENCE, OTHER_REFERENCE = sentences(150, 1), sentences(150, 2)
SYSTEM = [" ".join(word for i, word in enumerate(text.split()) if i % 4 != n % 4) for n, text in enumerate(REFERENCE)]
SACREBLEU = {"bleu": BLEU(tokenize="13a"), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}


@pytest.mark.parametrize("name", TITLES)
@pytest.mark.parametrize("references", [[REFERENCE], [REFERENCE, OTHER_REFERENCE]])
def test_score_interval_and_signature_are_those_of_sacrebleu(name: MetricName, references: list[list[str]]) -> None:
    settings = EvaluateSettings(resamples=200)
    score = count(name, SYSTEM, references, settings).score(settings)
    theirs = SACREBLEU[name].corpus_score(SYSTEM, references, n_bootstrap=200)
    assert score.name == theirs.name
    assert score.value == pytest.approx(theirs.score, abs=1e-9)
    assert score.low is not None and score.high is not None and score.low < score.value < score.high
    assert (score.high - score.low) / 2 == pytest.approx(theirs._ci, abs=1e-3)
    assert score.signature == SACREBLEU[name].get_signature().format()
    assert f"nrefs:{len(references)}|bs:200|seed:12345" in score.signature


def test_the_score_of_a_part_is_the_score_of_its_sentences() -> None:
    settings = EvaluateSettings(resamples=None)
    counts = count("bleu", SYSTEM, [REFERENCE], settings)
    some = np.array([3, 8, 90, 141])
    alone = count("bleu", [SYSTEM[i] for i in some], [[REFERENCE[i] for i in some]], settings)
    assert counts.part(some).value == pytest.approx(alone.value, abs=1e-9)
    chrf = count("chrf", SYSTEM, [REFERENCE], settings)
    assert chrf.of_each()[8] == pytest.approx(CHRF().sentence_score(SYSTEM[8], [REFERENCE[8]]).score, abs=1e-9)


def test_blocks_of_any_size_draw_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.random.default_rng(0).integers(0, 9, (37, 4)).astype(float)
    other = rows[::-1].copy()
    whole = (
        bootstrap(rows, 100, seed=7),
        [np.concatenate(side) for side in zip(*swap_pairs(rows, other, 100, 7), strict=True)],
    )
    monkeypatch.setattr(metrics_file, "DRAWS_AT_ONCE", 37 * 33)
    assert len(list(swap_pairs(rows, other, 100, 7))) == 4
    cut = (
        bootstrap(rows, 100, seed=7),
        [np.concatenate(side) for side in zip(*swap_pairs(rows, other, 100, 7), strict=True)],
    )
    assert np.array_equal(whole[0], cut[0]) and np.array_equal(whole[1], cut[1])
    assert not np.array_equal(whole[0], bootstrap(rows, 100, seed=8))


def test_another_seed_draws_another_interval_and_says_so() -> None:
    a, b = (count("chrf", SYSTEM, [REFERENCE], EvaluateSettings(seed=seed)).score(EvaluateSettings(seed=seed)) for seed in (1, 2))
    assert a.value == b.value and a.low != b.low and "seed:2" in b.signature


def test_without_resampling_there_is_no_interval() -> None:
    settings = EvaluateSettings(resamples=None)
    score = count("ter", SYSTEM, [REFERENCE], settings).score(settings)
    assert score.low is None and score.high is None and "bs:" not in score.signature and not score.higher_is_better


def test_case_counts_unless_told_otherwise() -> None:
    strict, loose = EvaluateSettings(resamples=None), EvaluateSettings(resamples=None, lowercase=True)
    upper = [text.upper() for text in REFERENCE]
    for name in ("bleu", "chrf"):
        assert count(name, upper, [REFERENCE], strict).value < 50
        lower = count(name, upper, [REFERENCE], loose)
        assert lower.value == pytest.approx(100) and "case:lc" in lower.signature


@pytest.mark.parametrize(
    ("language", "tokenizer", "in_note"),
    [
        ("de", "13a", None),
        (None, "13a", None),
        ("pt-BR", "13a", None),
        ("zh", "zh", None),
        ("zho_Hans", "zh", None),
        ("th", "char", "without spaces"),
    ],
)
def test_the_tokenizer_suits_the_language(language: str | None, tokenizer: str, in_note: str | None) -> None:
    name, note = tokenizer_for(language)
    assert name == tokenizer
    assert note is None if in_note is None else in_note in str(note)
    settings = EvaluateSettings(resamples=None)
    assert f"tok:{tokenizer}|" in count("bleu", ["x y"], [["x y"]], settings, language).signature


@pytest.mark.parametrize("language", ["ja", "kor_Hang"])
def test_a_tokenizer_that_is_not_installed_is_replaced_and_that_is_said(language: str) -> None:
    name, note = tokenizer_for(language)
    code = short_code(language)
    if name == f"{code}-mecab":
        pytest.skip(f"{name} is installed here")
    assert name == "char" and f"pip install 'sacrebleu[{code}]'" in str(note) and "not comparable" in str(note)
    with pytest.raises(ConfigError, match="not installed; pip install"):
        asked = EvaluateSettings(tokenize=f"{code}-mecab", resamples=None)
        count("bleu", ["x"], [["x"]], asked, language)


def test_a_tokenizer_asked_for_wins_over_the_language() -> None:
    settings = EvaluateSettings(resamples=None, tokenize="intl")
    assert "tok:intl|" in count("bleu", SYSTEM, [REFERENCE], settings, "zh").signature


def test_ter_takes_chinese_apart() -> None:
    settings = EvaluateSettings(resamples=None)
    score = count("ter", ["我们去北京吧"], [["我们去上海吧"]], settings, "zh")
    assert score.value < 50 and "asian:yes" in score.signature
    assert count("ter", ["我们去北京吧"], [["我们去上海吧"]], settings).value == 100


def test_every_wrong_setting_is_named_at_once() -> None:
    with pytest.raises(ConfigError) as error:
        EvaluateSettings(metrics=("blue",), resamples=7, worst=-1)
    assert len(error.value.problems) == 3
    with pytest.raises(ConfigError, match="each once"):
        EvaluateSettings(metrics=("bleu", "bleu"))


def test_progress_is_told_from_start_to_end() -> None:
    heard: list[tuple[str, int, int]] = []
    count("ter", SYSTEM, [REFERENCE], EvaluateSettings(), watch=lambda *step: heard.append(step))
    assert heard == [("TER", 0, 150), ("TER", 64, 150), ("TER", 128, 150), ("TER", 150, 150)]
