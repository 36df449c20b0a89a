"""What a translator is good for: each kind of evidence can lower the verdict, none can raise it, and the reason is said."""

import pytest

from limelight.evaluation.evaluate import evaluate
from limelight.evaluation.verdict import (
    BROKEN,
    DENSE_SHARE,
    LEAST,
    UNRELIABLE,
    Bound,
    QualityEvidence,
    QualityVerdict,
    Use,
    evidence_of,
    judge,
)

USES = list(Use)


def verdict(chrf: float = 70.0, bleu: float | None = 45.0, **more: object) -> QualityVerdict:
    bounds = (Bound(chrf, chrf), None if bleu is None else Bound(bleu, bleu))
    found = judge(QualityEvidence(*bounds, **{"sentences": 1000, **more}))  # type: ignore[arg-type]
    assert found is not None
    return found


def test_a_run_that_says_the_same_of_everything_is_not_usable() -> None:
    """BLEU 0.1, every sentence "Muz Muz v v na na", its text seen 0.1 times."""
    found = verdict(8.0, 0.1, degenerate=990, epochs=0.1, pairs=5_000)
    assert found.use is Use.NOT_USABLE and found.headline.startswith("NOT USABLE: ")
    assert "chrF 8.0 and BLEU 0.1" in found.because and "99 % of the translations" in found.because
    assert "0.1 times" in found.because
    assert [word in found.because for word in ("more time", "more text", "--from")] == [True, True, True]


def test_no_verdict_asks_for_time_where_no_time_is_enough() -> None:
    useless = verdict(8.0, 0.1, epochs=1.5, pairs=500, hopeless=True)
    assert useless.change[0] == "more text" and "more time" not in useless.because
    assert verdict(8.0, 0.1, epochs=0.1, pairs=500, hopeless=True).change[0] == "more time", "it has not seen its text once"
    assert "more time" in verdict(40.0, 12.0, epochs=0.1, hopeless=True).change, "the law was wrong: it is usable"


def test_a_bundle_that_had_a_parent_is_not_told_to_get_one() -> None:
    """What `train` says of a translator and what `evaluate` says of its bundle have the same grounds."""
    found = evaluate(["a b"] * 40, [["c d"] * 40])
    alone, child = (
        judge(evidence_of(found, learnt=learnt)) for learnt in ({"pairs": 900, "steps": 5}, {"pairs": 900, "parent": "en to sw"})
    )
    assert alone is not None and [one.split()[0] for one in alone.change] == ["more", "a"] and "parent" in alone.because
    assert child is not None and child.change == ("more text",)


@pytest.mark.parametrize(("use", "least"), LEAST.items())
def test_both_scores_must_be_reached_with_their_intervals(use: Use, least: tuple[float, float]) -> None:
    chrf, bleu = least
    assert verdict(chrf, bleu).use is use
    below = USES[USES.index(use) - 1]
    assert verdict(chrf - 0.1, bleu).use is below and verdict(chrf, bleu - 0.1).use is below
    uncertain = judge(QualityEvidence(Bound(chrf + 2, chrf - 1), Bound(bleu + 2, bleu + 1)))
    assert uncertain is not None and uncertain.use is below


def test_bounds_rise_from_use_to_use_and_broken_shares_fall() -> None:
    assert list(LEAST) == USES[1:] and list(LEAST.values()) == sorted(LEAST.values())
    assert [BROKEN[use] for use in USES[1:]] == sorted(BROKEN.values(), reverse=True)


def test_broken_translations_lower_a_verdict_whatever_the_scores_say() -> None:
    uses = [verdict(degenerate=number).use for number in (0, 20, 21, 51, 201)]
    assert uses == [Use.GOOD, Use.GOOD, Use.POST_EDIT, Use.GIST, Use.NOT_USABLE]
    assert "20 % of the translations" in verdict(degenerate=201).because


def test_confidence_that_cannot_be_believed_is_not_called_good() -> None:
    assert verdict(confidence_error=UNRELIABLE).use is Use.GOOD
    found = verdict(confidence_error=0.2)
    assert found.use is Use.POST_EDIT and "off by 0.20" in found.because


def test_a_handful_of_sentences_calls_nothing_good() -> None:
    few, enough = (verdict(90.0, 90.0, sentences=count) for count in (29, 30))
    assert few.use is Use.POST_EDIT and "29 sentences are too few" in few.because and "30 sentences or more" in few.because
    assert enough.use is Use.GOOD


def test_how_often_a_text_was_seen_explains_a_bad_verdict_and_never_makes_one() -> None:
    assert verdict(epochs=0.3).use is Use.GOOD and "0.3" not in verdict(epochs=0.3).because
    assert "more time" in verdict(30.0, 5.0, epochs=0.3).because
    assert "more time" not in verdict(30.0, 5.0, epochs=20.0).because


def test_who_began_with_a_parent_is_not_told_to_look_for_one() -> None:
    assert "--from" in verdict(20.0, 2.0, pairs=900).because
    assert "--from" not in verdict(20.0, 2.0, pairs=900, fine_tuned=True).because


def test_who_learnt_from_other_text_is_told_of_that_and_not_of_time() -> None:
    found = verdict(10.0, 0.0, epochs=0.5, pairs=900, mismatched=True)
    assert "another kind" in found.because and "swapped" in found.because and "more time" not in found.because


def test_of_lists_of_words_chrf_alone_judges() -> None:
    words = ["Datei", "Fenster", "Drucker", "Netzwerk"] * 30
    found = judge(evidence_of(evaluate(words, [words]), "de"))
    assert found is not None and found.use is Use.GOOD and "BLEU" not in found.because


@pytest.mark.parametrize(("language", "text", "judged"), [("th", "ฉันเห็นบ้านหลังใหญ่", False), ("de", "Ich sehe ein großes Haus", True)])
def test_a_bleu_by_characters_judges_nothing(language: str, text: str, judged: bool) -> None:
    scored = evaluate([text] * 40, [[text] * 40], language=language)
    evidence = evidence_of(scored, language)
    assert "BLEU" in {score.name for score in scored.scores} and evidence.chrf is not None
    assert (evidence.bleu is not None) == judged


def test_a_character_of_chinese_says_more_than_a_letter() -> None:
    chrf, bleu = LEAST[Use.GOOD][0] * DENSE_SHARE, 40.0
    assert verdict(chrf, bleu, language="zh").use is Use.GOOD and verdict(chrf, bleu, language="de").use is not Use.GOOD


def test_without_scores_there_is_no_verdict() -> None:
    assert judge(QualityEvidence(None)) is None
