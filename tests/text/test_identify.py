"""Identifying many texts at once gives what py3langid gives for each."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from limelight.text import identify as module
from limelight.text.identify import Identifier

SENTENCES = {
    "en": ["The committee will meet again on Thursday afternoon.", "Two dogs run across the snow."],
    "de": ["Der Ausschuss tagt am Donnerstagnachmittag wieder.", "Zwei Hunde laufen über den Schnee."],
    "fr": ["La commission se réunira de nouveau jeudi après-midi.", "Deux chiens courent dans la neige."],
    "cs": ["Výbor se znovu sejde ve čtvrtek odpoledne.", "Dva psi běží přes sníh."],
    "is": ["Nefndin kemur aftur saman á fimmtudaginn.", "Tveir hundar hlaupa yfir snjóinn."],
    "es": ["La comisión volverá a reunirse el jueves por la tarde."],
    "fi": ["Valiokunta kokoontuu jälleen torstaina iltapäivällä."],
    "ru": ["Комитет снова соберётся в четверг после обеда."],
    "zh": ["委员会将于星期四下午再次开会。"],
    "ar": ["ستجتمع اللجنة مرة أخرى بعد ظهر يوم الخميس."],
    "el": ["Η επιτροπή θα συνεδριάσει ξανά την Πέμπτη το απόγευμα."],  # noqa: RUF001
    "sr": ["Одбор ће се поново састати у четвртак поподне."],  # noqa: RUF001
}
ODD = [
    "",
    " ",
    "a",
    "WARNING",
    "ÜBERGRÖSSE NICHT MÖGLICH",
    "cafe\u0301 cre\u0300me",
    "123 456",
    "\0",
    "🙂🙂",
    "ǅ",
    "a\nb",
]
TEXTS = [text for texts in SENTENCES.values() for text in texts]


@pytest.fixture(scope="module")
def identifier():
    return Identifier()


@pytest.fixture(scope="module")
def reference():
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def assert_agrees(identifier, reference, texts):
    found = identifier.identify(texts)
    for at, text in enumerate(texts):
        ranked = dict(reference.rank(text))
        language, confidence = reference.classify(text)
        assert found.confidence[at] == pytest.approx(confidence, abs=1e-4), text
        assert found.languages[at] == language or ranked[found.languages[at]] > confidence - 1e-6, text
        mine = dict(zip(found.known, found.probabilities[at].tolist(), strict=True))
        assert mine == pytest.approx(ranked, abs=1e-4), text


@pytest.mark.slow
def test_known_sentences_are_identified(identifier):
    wanted = [code for code, texts in SENTENCES.items() for _ in texts]
    assert identifier.identify(pa.array(TEXTS)).languages.tolist() == wanted


@pytest.mark.slow
def test_every_probability_equals_that_of_py3langid(identifier, reference):
    assert_agrees(identifier, reference, TEXTS + ODD)


@pytest.mark.slow
@given(texts=st.lists(st.one_of(st.text(max_size=20), st.sampled_from(TEXTS + ODD)), max_size=6))
def test_any_text_is_treated_as_by_py3langid(identifier, reference, texts):
    assert_agrees(identifier, reference, texts)


@pytest.mark.slow
def test_batched_equals_one_by_one(identifier, monkeypatch):
    texts = (TEXTS + ODD) * 3
    together = identifier.identify(texts)
    alone = np.concatenate([identifier.identify([text]).probabilities for text in texts])
    np.testing.assert_allclose(together.probabilities, alone, atol=1e-6)
    monkeypatch.setattr(module, "SLICE", 5)
    monkeypatch.setattr(module, "ROWS", 60)
    np.testing.assert_allclose(identifier.identify(texts).probabilities, alone, atol=1e-6)


def test_a_part_of_a_column_is_read_from_its_own_place(identifier):
    part = identifier.identify(pa.array(ODD + TEXTS).slice(len(ODD), 4))
    assert part.languages.tolist() == ["en", "en", "de", "de"]


def test_only_the_first_characters_are_read(identifier, reference):
    text = "Zwei Hunde laufen über den Schnee. " + "The quick brown fox jumps over it. " * 20
    assert identifier.identify([text]).confidence[0] == pytest.approx(reference.classify(text[:400])[1], abs=1e-4)


def test_probabilities_sum_to_one_and_the_best_is_the_confidence(identifier):
    found = identifier.identify(TEXTS + ODD)
    np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-5)
    for at, code in enumerate(found.languages):
        assert found.probability(str(code))[at] == found.confidence[at]


def test_languages_are_known_by_their_own_codes(identifier):
    assert identifier.knows("de")
    assert not identifier.knows("deu")


def test_nothing_gives_nothing(identifier):
    assert len(identifier.identify([]).languages) == 0


def test_the_model_is_loaded_at_first_use_only():
    assert "model" not in vars(Identifier())
