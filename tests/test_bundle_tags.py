"""The tags of a bundle are checked as the rest of it is, and a bundle without tags is the bundle that it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from limelight.bundle import BundleSettings, BundleTags, read
from limelight.bundle.bundle import relist
from limelight.bundle.card import card
from limelight.bundle.layout import CONFIG
from limelight.errors import ConfigError, ModelFileError
from limelight.model.config import ModelConfig
from tagged_bundle import DIRECTIONS, settings_of, tags_of, tokenizer, write_tagged

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def id_of(piece: str) -> int:
    return tokenizer().id_of_control(piece)


def test_what_nothing_was_inherited_by_has_no_word_of_it() -> None:
    assert "inherited" not in tags_of().model_dump()
    with pytest.raises(ConfigError, match="inherited has fr-de, which directions has not"):
        tags_of(inherited=(("fr", "de"),))


def test_a_bundle_without_tags_has_no_word_of_them() -> None:
    keys = ["format", "made_by", "languages", "model", "normalization", "search", "alignment", "scores", "trained_on"]
    assert list(json.loads(BundleSettings(languages=("en", "de"), model=ModelConfig(vocab_size=500)).encode())) == keys


def test_tags_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = read(write_tagged(tmp_path / "multi")).settings
    assert found.tags == tags_of() and list(found.tags.names) == ["formal", "ui"]
    assert found.directions == list(DIRECTIONS)
    assert (found.source_begin, found.target_begin) == ((), ())


def test_the_ids_of_a_direction_stand_before_its_source_the_language_first() -> None:
    aimed = settings_of().aim("fr", names=["ui", "formal", "ui"])
    assert aimed.languages == ("en", "fr")
    assert aimed.source_begin == (id_of("<2fr>"), id_of("<formal>"), id_of("<ui>"))
    assert aimed.target_begin == ()
    assert settings_of().aim().source_begin == (id_of("<2de>"),)


def test_a_model_that_is_told_both_languages_has_each_in_its_place() -> None:
    many = settings_of(tags=BundleTags(source={"en": 20, "de": 21, "fr": 22}, target_begin={"en": 20, "de": 21, "fr": 22}))
    assert (many.aim("fr").source_begin, many.aim("fr").target_begin) == ((20,), (22,))
    assert many.aim("en").languages == ("de", "en"), "nobody translates from en to en"
    assert many.aim(source="de").languages == ("de", "en")
    assert many.directions[0] == ("en", "de") and set(many.directions) == {
        (a, b) for a in ("en", "de", "fr") for b in ("en", "de", "fr") if a != b
    }


@pytest.mark.parametrize(
    ("target", "source", "found"),
    [
        ("en", None, ("de", "en")),
        (None, "fr", ("fr", "en")),
        ("fr", "de", ("de", "fr")),  # never trained
        ("fr-CA", None, ("en", "fr")),
        ("DE", "EN", ("en", "de")),
        ("fra_Latn", " eng", ("en", "fr")),  # in Python as on the command line
        ("fre", None, ("en", "fr")),
        (None, None, ("en", "de")),
    ],
)
def test_what_is_not_said_of_a_direction_is_as_usual_as_can_be(target: str | None, source: str | None, found: tuple[str, str]) -> None:
    aimed = settings_of().aim(target, source)
    assert aimed.languages == found and aimed.is_trained is (found in DIRECTIONS) and aimed.directions == list(DIRECTIONS)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": "frr"}, ["there is no 'frr', but de, en, fr", "did you mean fr?"]),
        ({"target": "German"}, ["there is no 'German'", "did you mean de?"]),
        ({"target": "xx", "source": "yy"}, ["source: there is no 'yy'", "target: there is no 'xx'"]),
        ({"target": "en", "source": "en"}, ["from en to en"]),
        ({"names": ["formall", "casual"]}, ["it has formal, ui", "'formall': did you mean formal?", "'casual'"]),
    ],
)
def test_what_a_model_has_not_is_refused_with_what_it_has(asked: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of().aim(**asked)
    assert [words for words in said if words not in str(caught.value)] == []


def test_of_two_hundred_languages_a_message_lists_some() -> None:
    codes = {
        code: 20 + number
        for number, code in enumerate(["en", "de", "zh-Hans", "zh-Hant", *(f"q{a}{b}" for a in "abcdefghij" for b in LETTERS)])
    }
    many = settings_of(model=ModelConfig(vocab_size=500), tags=BundleTags(source=codes, target_begin=codes))
    for asked, said in (("xx", " and 224 others, which README.md lists"), ("chinese", "did you mean zh-Hans or zh-Hant?")):
        with pytest.raises(ConfigError) as caught:
            many.aim(asked)
        assert said in str(caught.value) and len(str(caught.value)) < 400
    assert many.aim("zho_Hant").languages == ("en", "zh-Hant")


def test_a_model_without_tags_has_its_own_direction_and_no_other() -> None:
    plain = settings_of(tags=None)
    assert plain.aim("de-AT", "en") is plain and plain.directions == [("en", "de")]
    with pytest.raises(ConfigError, match="from en to de and nothing else") as caught:
        plain.aim("fr", "de", ["formal"])
    assert "'formal': it was taught no tag" in str(caught.value)
    assert "source: there is no 'de', but en" in str(caught.value) and "target: there is no 'fr', but de" in str(caught.value)


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({}, ["there is no tag"]),
        ({"names": {"Formal": 20, "s": 21}}, ["'Formal' is no name", "<s> is a piece of every model"]),
        ({"target": {"de": 20, "fr": 20}}, ["target.fr has the id 20 of target.de"]),
        ({"target": {"de": 20}, "names": {"ui": 20}}, ["names.ui has the id 20 of target.de"]),
        ({"target": {"de": 20}, "directions": [("en", "de"), ("en", "fr")]}, ["directions has fr, but target has no id for it"]),
        ({"target": {"de": 20}, "directions": [("en", "de"), ("en", "de")]}, ["directions has one twice"]),
        ({"target": {"de": 20}, "directions": [("fr", "de")]}, ["begins with fr-de, but languages says en-de"]),
        ({"target": {"de": 99_999, "fr": 0}}, ["tags.target.de is id 99999, but", "tags.target.fr is id 0, which is the padding"]),
        ({"target": {"fr": 20}}, ["tags.target has no id for de"]),
        ({"target_begin": {"de": 99_999}}, ["tags.target_begin.de is id 99999"]),
        ({"names": {f"n{i}": 20 + i for i in range(60)}}, ["fill all positions"]),
    ],
)  # fmt: skip
def test_tags_that_cannot_be_true_are_refused(tags: dict[str, Any], said: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(tags=tags)
    assert [words for words in said if words not in str(caught.value)] == []


def test_ids_that_contradict_the_tags_are_refused() -> None:
    assert settings_of(source_begin=(id_of("<2de>"),)).aim().source_begin == (id_of("<2de>"),)
    with pytest.raises(ConfigError, match="but tags say"):
        settings_of(source_begin=(id_of("<2fr>"),))


def test_a_tag_that_a_text_can_spell_is_refused_with_all_others(tmp_path: Path) -> None:
    folder = write_tagged(tmp_path / "multi")
    spelt = tokenizer().encode_texts(["cat dog"])[0]
    config = json.loads((folder / CONFIG).read_bytes())
    config["tags"]["target"]["fr"], config["tags"]["names"]["ui"] = spelt[:2]
    (folder / CONFIG).write_text(json.dumps(config))
    relist(folder)
    with pytest.raises(ModelFileError) as caught:
        read(folder)
    assert str(caught.value).count("no control piece of pieces.model") == 2


def test_the_card_lists_directions_and_tags(tmp_path: Path) -> None:
    lines = (write_tagged(tmp_path / "multi") / "README.md").read_text().splitlines()
    assert lines[:5] == ["---", "language:", '- "en"', '- "de"', '- "fr"']
    assert "- directions: `en` to `de`, `en` to `fr`, `de` to `en`, `fr` to `en`" in lines
    assert "- tags: `formal`, `ui`" in lines and '    limelight translate FOLDER --to fr --tag formal "..."' in lines
    assert "# en to de and 3 more directions" in lines and any("never trained" in line for line in lines)
    many = settings_of(tags=BundleTags(source={"en": 20, "de": 21, "fr": 22}, target_begin={"en": 20, "de": 21, "fr": 22}))
    assert "- from `en`, `de`, `fr`\n- to `de`, `en`, `fr`\n" in card(many, {}, None)
    assert "Directions" not in card(settings_of(tags=None), {}, None)
