"""Language codes of other people, and which of ours they mean."""

from collections.abc import Iterator

import pytest
from labelled import labelled, loaded

from limelight.serving.compat.language_codes import ServedLanguages, deepl, shorten_code
from limelight.text.language_names import same
from limelight.translator import Translator


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as translator:
        yield translator


def test_one_script_of_chinese_is_not_given_for_the_other(translator: Translator) -> None:
    simplified = ServedLanguages(labelled(translator, ("en", "zh")))
    assert [simplified.find(code) for code in ("zh", "zh-Hans", "zh-CN")] == ["zh"] * 3
    assert [simplified.find(code) for code in ("zt", "zh-Hant", "zh-TW")] == [None] * 3
    traditional = ServedLanguages(labelled(translator, ("en", "zh-TW")))
    assert traditional.find("zt") == "zh-TW" and traditional.find("zh") is None


def test_the_first_of_several_translators_for_the_same_languages_is_taken(translator: Translator) -> None:
    models = labelled(translator, ("en", "de"), ("eng_Latn", "deu_Latn"), ("de", "en"))
    known = ServedLanguages(models)
    assert known.all == ("en", "de") and known.find_model("en", "de") is models.all[0]
    assert known.find_model("de", "en") is models.all[2] and known.find_model("en", "en") is None
    assert known.targets_of("en") == ["de"] and known.sources_of("en") == ["de"]


def test_targets_without_a_region_are_listed_with_those_that_deepl_has(translator: Translator) -> None:
    known = ServedLanguages(labelled(translator, ("de", "en"), ("de", "pt-PT"), ("de", "zh"), ("de", "zh-Hant"), ("en-GB", "de")))
    assert list(known.deepl_targets()) == ["EN-US", "EN-GB", "PT-PT", "ZH", "ZH-HANS", "ZH-HANT", "DE"]
    assert known.deepl_sources() == {"DE": "German", "EN": "English"}


@pytest.mark.parametrize(
    ("code", "known_as"),
    [("de", "de"), ("pt-BR", "pt-BR"), ("deu_Latn", "de"), ("zho_Hant", "zh-Hant"), ("zho_Hans", "zh"), ("yue", "yue")],
)
def test_codes_are_shown_as_everybody_writes_them(code: str, known_as: str) -> None:
    assert shorten_code(code) == known_as


def test_the_same_language_has_several_codes() -> None:
    assert same("nb", "no") and same("pt-BR", "por_Latn") and same("EN", "eng")
    assert not same("nn", "nb") and not same("de", "nl") and not same("xx", "yy")


def test_deepl_writes_languages_of_texts_in_capitals_without_region() -> None:
    assert deepl("en-GB") == "EN" and deepl("de") == "DE"
