"""A tag is a piece that no text encodes to and that leaves no trace; a set of tags has one spelling."""

import pytest

from limelight.errors import ConfigError, DataError
from limelight.text.pieces.tags import TagSet, language_piece, name_piece
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn

TAGS = TagSet(languages=("de", "zh-Hans"), names=("formal", "ui"))
TEXTS = ["the old dog sees the house", "der alte Hund sieht das Haus"] * 9


def test_languages_stand_before_names():
    assert TAGS.pieces == ("<2de>", "<2zh-Hans>", "<formal>", "<ui>")
    assert (language_piece("zh-Hans"), name_piece("formal")) == ("<2zh-Hans>", "<formal>")


def test_names_are_ordered_as_the_set_lists_them_each_once():
    assert TAGS.order(["ui", "formal", "ui"]) == ("formal", "ui")
    assert TAGS.order([]) == ()


def test_unknown_names_are_refused_with_those_that_there_are():
    with pytest.raises(ConfigError, match="polite, rude: the model has no such tag; it knows: formal, ui"):
        TAGS.order(["rude", "ui", "polite"])
    with pytest.raises(ConfigError, match="it was taught none"):
        TagSet().order(["formal"])


@pytest.mark.parametrize("name", ["2de", "Formal", "", "a b", "x" * 33, "<ui>", "unk", "s", "ui\n"])
def test_what_could_be_taken_for_another_piece_is_no_name(name):
    with pytest.raises(ConfigError, match="names: "):
        TagSet(names=(name,))


def test_every_problem_of_a_set_is_told_at_once():
    with pytest.raises(ConfigError) as refused:
        TagSet(languages=("de", "de"), names=("A", "ui", "ui"))
    assert len(refused.value.problems) == 3


def test_a_tag_is_reserved_after_the_numbered_ones_and_no_text_becomes_it():
    tokenizer = Tokenizer(learn(TEXTS, PieceSettings(size=330, tags=2, placeholders=1, named=TAGS.pieces)))
    ids = [tokenizer.id_of_control(piece) for piece in TAGS.pieces]
    assert ids == list(range(tokenizer.tag(1) + 1, tokenizer.tag(1) + 5))
    assert not set(ids) & set(tokenizer.encode_texts(["<2de> <formal> the dog <ui>"])[0])
    words = tokenizer.encode_texts(["the old dog"])[0]
    assert tokenizer.decode([[ids[0], ids[2], *words]]) == ["the old dog"]
    assert set(ids) <= tokenizer.controls()
    with pytest.raises(DataError, match="<2fr>"):
        tokenizer.id_of_control("<2fr>")


def test_without_names_settings_are_written_as_before():
    assert "named" not in PieceSettings().model_dump(mode="json")
    assert PieceSettings(**PieceSettings(named=("<2de>",)).model_dump(mode="json")).named == ("<2de>",)
