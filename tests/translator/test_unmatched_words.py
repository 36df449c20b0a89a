"""`check` warns of words that were left out and made up, also in documents and in their list of what to look at."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight.documents.document import translate_document
from limelight.errors import DeadlineError
from limelight.inspection.tracing import tracer
from limelight.translator.translate import Translator
from limelight.translator.translation import Translation

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXT = "four nine six"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(BUNDLE, threads=1, engine="torch") as loaded:
        yield loaded


def told(made: Translation) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in made.warnings if each.code in ("omission", "addition", "unchecked")]


def test_a_whole_translation_has_nothing_to_tell(translator: Translator) -> None:
    [made] = translator.translate([TEXT], check=True)
    assert made.text == "vier neun sechs" and told(made) == []


def test_what_is_left_out_is_named_where_it_is_asked_for(translator: Translator) -> None:
    short = translator.settings.search.changed(max_length=2)
    [made] = translator.translate([TEXT], short, check=True)
    assert made.text == "vier neun" and told(made) == [("omission", "nothing in the translation came from word 3 of the source")]
    [unasked] = translator.translate([TEXT], short)
    assert told(unasked) == []


def test_what_is_made_up_is_named(translator: Translator) -> None:
    [made] = translator.translate([TEXT], prefixes=["vier eins"], check=True)
    assert ("addition", "word 2 of the translation came from nothing") in told(made)


def test_each_sentence_is_checked_by_itself_and_marks_are_no_words(translator: Translator) -> None:
    short = translator.settings.search.changed(max_length=2)
    [made] = translator.translate([f"{TEXT}\n%s seven\nthree seven one"], short, check=True)
    assert [message for code, message in told(made)].count("nothing in the translation came from word 3 of the source") == 2


def test_several_words_are_one_notice_and_nothing_of_a_text_is_in_it(translator: Translator) -> None:
    [made] = translator.translate(["three seven one"], prefixes=["vier eins"], check=True)
    assert told(made) == [("addition", "words 1, 2 of the translation came from nothing")]


def test_what_is_too_long_to_be_checked_is_said(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "LONGEST", 2)
    [made] = translator.translate([TEXT], check=True)
    assert [code for code, _ in told(made)] == ["unchecked"] and made.text == "vier neun sechs"


def test_a_check_whose_time_is_over_is_said_and_the_others_go_on(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tracer.Tracer.trace

    def trace(self: tracer.Tracer, text: str, **more: Any) -> Any:
        if text == TEXT:
            raise DeadlineError("late")
        return whole(self, text, **more)

    monkeypatch.setattr(tracer.Tracer, "trace", trace)
    late, other = translator.translate([TEXT, "three seven one"], check=True)
    assert [code for code, _ in told(late)] == ["unchecked"] and late.text == "vier neun sechs" and told(other) == []


def test_in_a_document_it_is_a_reason_to_look(translator: Translator) -> None:
    short = translator.settings.search.changed(max_length=2)
    data = f'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "{TEXT}"\nmsgstr ""\n\nmsgid "two"\nmsgstr ""\n'
    done = translate_document(
        data.encode(), "po", ("en", "de"), lambda texts: translator.translate(texts, short, check=True), unsure_below=0
    )
    first, second = done.units
    assert "omission" in [why.code for why in first.reasons] and "omission" not in [why.code for why in second.reasons]
    assert ("omission", 6) in [(remark.code, remark.line) for remark in done.warnings]
