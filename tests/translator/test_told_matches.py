"""What a memory has for a similar text is told to the model after the source: by which ids, with which marks, and to whom not."""

from pathlib import Path

import careful_sentences as careful
import pytest
from random_weights import random_bundle
from test_careful_translation import answering, ids, pieces, settings, translator

from limelight.bundle import BundleSettings, Learnt
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, DataError
from limelight.text.careful.glossary import Glossary
from limelight.translator import Translator

TAUGHT = Learnt(marks=16, terms=True, matches=True)
GREEDY = SearchSettings(beam=1, max_length=12)


def source_of(text: str, match: str | None, learnt: Learnt = TAUGHT, **wishes: object) -> list[int]:
    """What the engine is asked, of one text that is not cut."""
    engine = answering(*["cat"] * 4)
    translator(engine, learnt).translate([text], matches=[match], guards=False, **wishes)
    return list(engine.batches[0][0].source)


def test_a_match_stands_after_the_source_behind_its_tag() -> None:
    assert source_of("the cat", "Die Datei") == [*ids("the cat"), pieces().tag(2), *ids("Die Datei")]
    assert source_of("the cat", None) == source_of("the cat", "") == source_of("the cat", "  ") == ids("the cat")


def test_terms_stand_before_the_match() -> None:
    made = source_of("the file", "Die Datei", glossary=Glossary.of({"file": "Datei"}))
    assert made == [*ids("the file"), pieces().tag(1), *ids("Datei"), pieces().tag(2), *ids("Die Datei")]


def test_marks_of_the_source_stand_in_the_match_and_no_other_placeholder_does() -> None:
    assert source_of("the %s cat", "%s Datei {0} nicht") == [*ids("the ⟦0⟧ cat"), pieces().tag(2), *ids("⟦0⟧ Datei nicht")]
    assert source_of("the _cat", "Die _Datei") == [*ids("the cat"), pieces().tag(2), *ids("Die Datei")]
    assert source_of("the cat", "⟦3⟧ Datei") == [*ids("the cat"), pieces().tag(2), *ids("Datei")]
    assert source_of("THE CAT SAT", "DIE DATEI")[-len(ids("Die datei")) :] == ids("Die datei")
    assert source_of("the %s cat", "%s Datei", protect=False) == [*ids("the %s cat"), pieces().tag(2), *ids("Datei")]


def test_a_number_of_the_match_is_not_kept_against_the_source() -> None:
    """The model copies the 4 of the match, and the second search has marks for numbers: those of the source alone."""
    engine = answering("Datei 4", "Datei ⟦0⟧")
    [made] = translator(engine, TAUGHT).translate(["the file 3"], matches=["Datei 4"])
    assert made.text == "Datei 3" and [notice.code for notice in made.warnings] == ["redecoded"]
    assert list(engine.batches[1][0].source) == [*ids("the file ⟦0⟧"), pieces().tag(2), *ids("Datei")]


def test_a_text_that_is_told_something_stays_whole_unless_it_cannot() -> None:
    two = "the cat sat. the dog ran."
    assert source_of(two, None, segment=True) == ids("the cat sat.")
    assert source_of(two, "Datei", segment=True) == [*ids(two), pieces().tag(2), *ids("Datei")]
    lines = "the cat sat.\nthe dog ran."
    assert source_of(lines, "Datei", segment=True) == ids("the cat sat."), "it is the match of no line"
    message = "{n, plural, other {the cat}}"
    assert source_of(message, "Datei") == ids("the cat")


def test_what_is_longer_than_the_model_was_taught_is_not_told() -> None:
    room = len(ids("the cat")) + 1 + len(ids("Die Datei"))
    for longest, told in ((room, True), (room - 1, False)):
        assert (pieces().tag(2) in source_of("the cat", "Die Datei", TAUGHT.changed(longest=longest))) is told
    assert source_of("the cat", "Datei " * 1000) == ids("the cat")


def test_a_translator_that_was_not_taught_them_refuses_matches() -> None:
    engine = answering("cat")
    for learnt in (None, Learnt(marks=16, terms=True)):
        made = Translator(engine, settings(learnt), pieces(), pieces())
        with pytest.raises(ConfigError, match=r"not taught to be told translations of similar texts; .*batch\.augment\.matches"):
            made.translate(["the cat"], matches=["Datei"])
        with pytest.raises(ConfigError, match="not taught"):
            made.plan(["the cat"], matches=[None])
    assert engine.batches == []


def test_there_is_one_match_for_each_text() -> None:
    with pytest.raises(DataError, match="2 matches for 1 texts"):
        translator(answering("cat"), TAUGHT).translate(["the cat"], matches=["a", None])
    with pytest.raises(DataError, match="half a character"):
        translator(answering("cat"), TAUGHT).translate(["the cat"], matches=["\ud800"])
    with pytest.raises(TypeError, match="not one text"):
        translator(answering("cat"), TAUGHT).translate(["the cat"], matches="D")


def test_a_match_of_any_length_costs_little() -> None:
    assert source_of("the cat", "Datei " * 100_000) == ids("the cat")


def test_a_bundle_says_that_it_was_taught_and_others_stay_as_they_were() -> None:
    assert BundleSettings(**settings(TAUGHT).model_dump()).takes_matches and b'"matches": true' in settings(TAUGHT).encode()
    assert not settings(Learnt(marks=16)).takes_matches and b"matches" not in settings(Learnt(marks=16)).encode()
    assert not settings(None).takes_matches


@pytest.mark.slow
def test_both_engines_hear_it_and_promises_hold(tmp_path: Path) -> None:
    """Of a model that has learnt nothing: what it is told changes what it says, and what must survive does."""
    folder = random_bundle(tmp_path / "bundle", matches=True)
    texts = [template.replace("{}", careful.WORDS[0]) for template in careful.TEMPLATES]
    matches = [template.replace("{}", careful.WORDS[1]) for template in careful.TEMPLATES[::-1]]
    made = []
    for engine in ("torch", "ctranslate2"):
        with Translator.load(folder, engine=engine, threads=1) as loaded:
            alone, told = (loaded.translate(texts, GREEDY, matches=some, guards=False) for some in (None, matches))
            assert all(abs(a.score - b.score) > 1e-3 for a, b in zip(alone, told, strict=True))
            made.append([(each.text, round(each.score, 3)) for each in told])
            if engine == "torch":
                assert all(each.protected for each in loaded.translate(texts, GREEDY, matches=matches))
    assert made[0] == made[1]
