"""What language a text is in, said no more surely than one can know."""

import pytest

from limelight.serving.compat.detect import LEAST, MOST, SURE, Detector, LanguageProbabilities
from limelight.text.identify import Identifier

ENGLISH = "The committee will meet again in spring to decide about the new bridge."
GERMAN = "Der Ausschuss entscheidet im Frühjahr über die neue Brücke."
FRENCH = "Le comité se réunira au printemps pour décider du nouveau pont."


@pytest.fixture(scope="module")
def identifier() -> Identifier:
    return Identifier()  # loaded once: it takes a second


@pytest.fixture(scope="module")
def detector(identifier: Identifier) -> Detector:
    return Detector(("en", "de"), identifier)


def best(detector: Detector, text: str) -> tuple[str, float]:
    first = detector.look([text])[0].best[0]
    return first.language, first.confidence


@pytest.mark.slow
@pytest.mark.parametrize(("text", "language"), [(ENGLISH, "en"), (GERMAN, "de"), (FRENCH, "fr")])
def test_sentences_are_told_with_high_confidence_also_in_languages_of_nobody_here(detector: Detector, text: str, language: str) -> None:
    found, confidence = best(detector, text)
    assert found == language and confidence > 0.9


@pytest.mark.slow
def test_a_foreign_text_is_not_claimed_as_ours(detector: Detector) -> None:
    found = detector.look([FRENCH])[0].source(["en"], "de")
    assert found.language == "en" and found.confidence < 0.1


def test_a_short_word_is_rather_in_a_language_of_the_server_and_said_with_doubt(detector: Detector, identifier: Identifier) -> None:
    language, confidence = best(detector, "Hello")
    assert language == "en" and 0.1 < confidence < 0.6
    assert best(Detector(("br", "fi"), identifier), "Hello")[0] == "br"


@pytest.mark.parametrize("text", ["", "   ", "12 345", "😀 👍", "!?"])
def test_nothing_is_said_about_a_text_without_letters(detector: Detector, text: str) -> None:
    look = detector.look([text])[0]
    assert look.best == []
    assert look.source(["en"], "de").confidence == 0


def test_tags_do_not_count(detector: Detector) -> None:
    tags = '<div class="the committee will decide about it in spring"><strong title="English words and more of them">'
    language, confidence = best(detector, f"{tags}{GERMAN}</strong></div>")
    assert language == "de" and confidence == pytest.approx(best(detector, GERMAN)[1], abs=1e-3)
    assert detector.look(["<b><i>12</i></b>"])[0].best == []


def test_at_most_three_languages_best_first_that_add_up_to_no_more_than_all(detector: Detector) -> None:
    for look in detector.look(["Berlin", "un chien", "ok", ENGLISH]):
        sure = [each.confidence for each in look.best]
        assert 1 <= len(sure) <= MOST and sure == sorted(sure, reverse=True) and min(sure) >= LEAST
        assert sum(look.shares.values()) == pytest.approx(1)


def test_a_text_in_the_target_language_is_left_as_it_is_only_when_that_is_sure(detector: Detector) -> None:
    assert detector.look([GERMAN])[0].source(["en"], "de").language == "de"
    assert LanguageProbabilities({"de": SURE - 0.01, "en": 0.1}).source(["en"], "de").language == "en"
    assert LanguageProbabilities({"de": SURE, "en": 0.1}).source(["en"], "de").language == "de"


def test_the_best_of_several_sources_is_taken(detector: Detector) -> None:
    assert detector.look([FRENCH])[0].source(["en", "fr"], "de").language == "fr"


def test_languages_are_called_as_the_server_calls_them(identifier: Identifier) -> None:
    chinese = "委员会将在春天再次开会决定新桥的建设。"
    assert best(Detector(("en", "zh-CN"), identifier), chinese)[0] == "zh-CN"
    assert best(Detector(("nb", "en"), identifier), "Utvalget møtes igjen til våren for å bestemme om den nye brua.")[0] == "nb"


def test_several_texts_are_looked_at_each_by_itself(detector: Detector) -> None:
    together = detector.look([ENGLISH, "", GERMAN])
    assert [look.best[0].language if look.best else None for look in together] == ["en", None, "de"]
