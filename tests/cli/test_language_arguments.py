"""Several languages and tags on the command line become corpora, each with its own pair."""

from typing import Any

import pytest

from limelight.cli.settings_arguments import settings_from
from limelight.corpus.config import PrepareSettings
from limelight.errors import ConfigError

NOTHING = dict.fromkeys(("source", "target", "valid", "test", "vocab_size", "keep_dropped"))


def asked(*paths: str, weights: tuple[str, ...] = (), **options: Any) -> PrepareSettings:
    return settings_from(paths, {**NOTHING, **options}, weights, None)


def pairs(settings: PrepareSettings) -> list[tuple[str, str, bool]]:
    return [(corpus.name, "-".join(corpus.languages or settings.languages), corpus.partial) for corpus in settings.corpora]


def test_the_first_of_many_line_files_is_paired_with_each_other_one():
    settings = asked("data/multi.en", "data/multi.de", "data/multi.fr.gz", "data/multi.cs")
    assert pairs(settings) == [("en-de", "en-de", True), ("en-fr", "en-fr", True), ("en-cs", "en-cs", True)]
    assert settings.corpora[1].paths == ["data/multi.en", "data/multi.fr.gz"]
    assert settings.languages == ("en", "de")


def test_two_pairs_of_files_are_two_corpora_as_always():
    assert pairs(asked("a.en", "a.de", "b.en", "b.de")) == [("a", "en-de", False), ("b", "en-de", False)]
    assert [corpus.languages for corpus in asked("a.en", "a.de", "b.en", "b.de").corpora] == [None, None]
    assert pairs(asked("a.en", "x.tmx", "a.de")) == [("x", "en-de", False), ("a", "en-de", False)]


def test_a_second_pair_of_files_may_be_of_other_languages():
    assert pairs(asked("a.en", "a.de", "b.en", "b.fr")) == [("a", "en-de", False), ("b", "en-fr", False)]
    told = asked("a.en", "a.de", "b.en", "b.fr", source="en", target="de")
    assert [corpus.languages for corpus in told.corpora] == [None, None], "what is asked for wins"


def test_pairs_are_named_with_their_files():
    settings = asked(pair=["en-de=a.en,a.de", "pt-BR-en=b.tsv", "en-de=c.tsv"], both_directions=True)
    assert pairs(settings) == [("en-de", "en-de", False), ("pt-BR-en", "pt-BR-en", False), ("en-de-2", "en-de", False)]
    assert settings.corpora[0].paths == ["a.en", "a.de"]
    assert settings.directions == (("en", "de"), ("pt-BR", "en"), ("de", "en"), ("en", "pt-BR"))


def test_pairs_beside_files_do_not_change_the_first():
    assert asked("a.en", "a.de", pair=["en-is=b.tsv"]).directions == (("en", "de"), ("en", "is"))


def test_wrong_pairs_are_refused_all_at_once():
    with pytest.raises(ConfigError) as refused:
        asked(pair=["en=a.tsv", "en-de=a.en", "en-de=a.en,a.de,a.fr", "en-en=a.en,b.en", "en-is=b.tsv"])
    assert len(refused.value.problems) == 4 and "--pair en-en=a.en,b.en: give two languages" in str(refused.value)


def test_tags_are_given_to_corpora_by_name():
    settings = asked("l10n.tmx", "more.en", "more.de", tag=["ui=l10n", "short=l10n", "formal=more"], source="en", target="de")
    assert [corpus.tags for corpus in settings.corpora] == [("ui", "short"), ("formal",)]
    assert settings.tag_set.names == ("ui", "short", "formal")
    with pytest.raises(ConfigError, match="the corpora are: more"):
        asked("more.en", "more.de", tag=["ui=l10n"])
    with pytest.raises(ConfigError) as refused:
        asked("more.en", "more.de", tag=["ui=l10n", "Formal=more", "s=more"])
    assert len(refused.value.problems) == 3 and "'Formal' is no name of a tag" in str(refused.value)
    with pytest.raises(ConfigError, match="names: 65 are too many; 64 at most"):
        _ = asked("more.en", "more.de", tag=[f"t{n}=more" for n in range(65)], source="en", target="de").tag_set


def test_held_out_line_files_are_found_by_their_languages():
    settings = asked("m.en", "m.de", "m.fr", valid=["dev.fr", "dev.en", "dev.de"], test=["t.en", "t.de"])
    assert settings.held_out.valid == ("dev.en", "dev.de")
    assert [(each.split, each.languages, each.paths) for each in settings.held_out.pairs] == [("valid", ("en", "fr"), ("dev.en", "dev.fr"))]
    assert settings.held_out.test == ("t.en", "t.de")


def test_other_held_out_files_are_one_for_each_pair():
    settings = asked(pair=["en-de=a.tsv", "en-is=b.tsv"], valid=["x.tsv", "y.jsonl"])
    assert settings.held_out.valid == ("x.tsv",)
    assert settings.held_out.pairs[0].languages == ("en", "is")
    with pytest.raises(ConfigError, match="in this order: en-de, en-is"):
        asked(pair=["en-de=a.tsv", "en-is=b.tsv"], valid=["x.tsv"])
    with pytest.raises(ConfigError, match="cannot be told from their names"):
        asked(pair=["en-de=a.tsv", "en-is=b.tsv"], valid=["one.txt", "two.txt"])


def test_one_pair_has_its_sets_as_they_are_given():
    assert asked("a.en", "a.de", valid=["dev.x", "dev.y"]).held_out.valid == ("dev.x", "dev.y")


def test_each_pair_gets_the_file_that_is_nearest_to_its_language():
    settings = asked(pair=["en-pt=a.tsv", "en-pt-BR=b.tsv"], valid=["v.en", "v.pt-BR", "v.pt"])
    assert settings.held_out.valid == ("v.en", "v.pt")
    assert [(each.languages, tuple(each.paths)) for each in settings.held_out.pairs] == [(("en", "pt-BR"), ("v.en", "v.pt-BR"))]
    with pytest.raises(ConfigError, match=r"--valid: v\.it belong to no pair of languages"):
        asked(pair=["en-pt=a.tsv", "en-de=b.tsv"], valid=["v.en", "v.pt", "v.it"])
