"""What is visibly wrong is named, and what references do too is not."""

import pytest

from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.evaluate import evaluate
from limelight.evaluation.suspicions import is_degenerate, suspicions, tally

REFERENCE = "Das Haus wurde 1984 von 12 Arbeitern gebaut und steht noch heute."
SOURCE = "The house was built in 1984 by 12 workers and stands to this day."


def said(translation: str, reference: str = REFERENCE, source: str | None = SOURCE) -> list[str]:
    (found,) = suspicions([translation], [[reference]], None if source is None else [source])
    return [str(each) for each in found]


@pytest.mark.parametrize(
    ("translation", "reason"),
    [
        ("", "empty"),
        (" \u00a0", "empty"),
        (SOURCE, "source copied"),
        (SOURCE.lower().replace(".", " !"), "source copied"),
        ("Das Haus 1984 12", "too short: 16 characters where the reference has 65"),
        (REFERENCE + " Das wissen wir da 1984 12 x." * 4, "too long: 181 characters where the reference has 65"),
        ("Das Haus, das Haus, das Haus, das Haus, das Haus, 1984 12", "repeats itself"),
        ("Das Haus wurde 1984 von 12 12 12 Arbeitern nanananananananananananananananana", "repeats itself"),
        ("Das Haus wurde 1948 von 12 Arbeitern gebaut und steht noch heute.", "numbers differ: 1984 lost, 1948 new"),
        ("Das Haus wurde von Arbeitern gebaut und steht noch heute.", "numbers differ: 1984, 12 lost"),
        ("Das Haus &quot;wurde&quot; 1984 von 12 Arbeitern gebaut und steht heute.", "HTML escapes"),
    ],
)
def test_a_fault_is_named_with_what_shows_it(translation: str, reason: str) -> None:
    assert reason in said(translation)


def test_words_said_twice_again_and_again_are_a_loop() -> None:
    assert "repeats itself" in said("Muz Muz v v na na dvou dvou kole", "Muž v modré košili jede na kole.", "A man rides a bike.")
    assert "repeats itself" not in said("Ja ja, das war sehr gut.", "Ja, das war gut.", "Yes, that was good.")


def test_one_translation_for_many_sentences_is_broken_and_for_two_may_be_chance() -> None:
    right = ["Eine Katze schläft.", "Ein Hund bellt.", "Zwei Männer stehen auf einer Brücke.", "Ein Mann."]
    found = suspicions(["Ein Mann."] * 4, [right], None)
    assert ["same for several" in map(str, each) for each in found] == [True, True, True, False]
    assert [is_degenerate(each) for each in found] == [True, True, True, False]
    assert not any(map(is_degenerate, suspicions(["Ein Mann."] * 2, [right[:2]], None)))
    assert not any(map(is_degenerate, suspicions(["OK"] * 9, [["Okay"] * 9], None)))  # the references agree, too


@pytest.mark.parametrize("translation", [REFERENCE, "Das Gebäude, 1984 von 12 Leuten errichtet, steht heute noch da."])
def test_a_good_translation_is_not_suspected(translation: str) -> None:
    assert said(translation) == []


def test_a_placeholder_that_is_lost_is_named() -> None:
    found = said("Wähle eine Datei.", "Wähle %s und %(name)s.", "Choose %s and %(name)s.")
    assert found == ["placeholders differ: %s, %(name)s lost"]
    assert said("Wähle %(name)s und %s.", "Wähle %s und %(name)s.", "Choose %s and %(name)s.") == []


def test_what_a_reference_does_too_is_no_fault() -> None:
    assert said("Um 22 Uhr.", "Um 22 Uhr.", "At 10 p.m.") == []
    assert said("Ha ha ha ha ha ha!", "Ha ha ha ha ha ha!", "He laughed.") == []
    assert said("New York Times Square Garden", "New York Times Square Garden", "New York Times Square Garden") == []
    assert said("", "", "x") == []
    assert said("Das kostet 1.000 Euro", "Das kostet 1.000 Euro", "That is 1,000 euros") == []


def test_the_digits_of_an_escape_are_no_number() -> None:
    assert said("Das geht&#39;s.", "Das geht's.", "That's it.") == ["HTML escapes"]


def test_of_several_references_one_is_enough() -> None:
    text, source = "Um 22 Uhr.", "At 10 p.m."
    assert suspicions([text], [["Abends um zehn."], ["Um 22 Uhr."]], [source]) == [[]]
    assert [str(each) for each in suspicions([text], [["Abends um zehn."]], [source])[0]] == ["numbers differ: 10 lost, 22 new"]


def test_without_a_source_the_reference_is_asked() -> None:
    assert said(REFERENCE.replace("1984", "1948"), source=None) == ["numbers differ: 1984 lost, 1948 new"]
    assert said(SOURCE, source=None) == []


def test_a_loop_of_characters_without_spaces_is_found_and_a_row_of_dots_is_not() -> None:
    assert said("我们去去去去去去去去", "我们去北京吧", None) == ["repeats itself"]
    assert said("Kapitel 1 ..........................", "Kapitel 1 .......", None) == []


def test_long_lines_are_looked_at_in_little_time() -> None:
    """A search for repeats that went through a megabyte of letters would take minutes."""
    text = "abcdefghij" * 50_000
    assert "repeats itself" in said(text, REFERENCE, None)


def test_the_tally_counts_sentences() -> None:
    found = suspicions(["", "", REFERENCE, SOURCE], [[REFERENCE] * 4], [SOURCE] * 4)
    assert tally(found) == {"empty": 2, "source copied": 1}


def test_the_worst_come_first_with_their_line_and_reason() -> None:
    system = [REFERENCE, "", REFERENCE.replace("1984", "1948"), "Ja."]
    result = evaluate(system, [[REFERENCE] * 3 + ["Nein."]], [SOURCE] * 3 + ["No."], settings=EvaluateSettings(worst=9))
    assert [each.line for each in result.worst] == [2, 4, 3], "short ones weigh less, equal ones are not listed"
    assert result.worst[0].reasons == ["empty"] and result.worst[0].chrf == 0
    assert result.worst[1].reasons == ["shares little with the reference"]
    assert result.worst[2].reasons == ["numbers differ: 1984 lost, 1948 new"] and result.worst[2].chrf > 80
    assert result.worst[2].source == SOURCE and result.worst[2].references == [REFERENCE]
    bounded = evaluate(system, [[REFERENCE] * 3 + ["Nein."]], settings=EvaluateSettings(worst=1))
    assert [each.line for each in bounded.worst] == [2]
