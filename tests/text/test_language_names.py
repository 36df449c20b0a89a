"""Languages have names that people know."""

from itertools import product

import langcodes
import pytest

from limelight.errors import ConfigError
from limelight.text import language_names
from limelight.text.identify import Identifier
from limelight.text.language_names import list_codes, name, standard, usual_tag
from limelight.text.languages import SCRIPTS


def test_tags_of_strangers_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_names, "MOST_TAGS", 200)
    for first, second, third in product("abcdefgh", repeat=3):
        usual_tag(f"de-{first}{second}{third}xx")
    kept = [len(getattr(langcodes.Language, name)) for name in ("_INSTANCES", "_PARSE_CACHE")]
    assert max(kept) <= 210
    assert usual_tag("deu_Latn") == "de" and name("pt_BR") == "Portuguese (Brazil)"


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("de", "German"),
        ("EN", "English"),
        ("pt_BR", "Portuguese (Brazil)"),
        ("pt-AO", "Portuguese"),
        ("zh-Hant", "Chinese (traditional)"),
        ("nb", "Norwegian Bokmål"),
    ],
)
def test_a_code_has_its_english_name_whatever_its_case_and_region(code: str, named: str) -> None:
    assert name(code) == named


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("hsb", "Upper Sorbian"),
        ("deu", "German"),
        ("swh", "Swahili"),
        ("el", "Greek"),
        ("tlh", "Klingon"),
        ("kik", "Kikuyu"),
        ("eng_Latn", "English"),
        ("ace-Arab", "Achinese (Arabic)"),
        ("ace_Latn", "Achinese (Latin)"),
        ("taq-Tfng", "Tamasheq (Tifinagh)"),
        ("zho_Hans", "Chinese (simplified)"),
        ("zh-Hant-HK", "Chinese (traditional)"),
    ],
)
def test_languages_of_all_the_world_have_names(code: str, named: str) -> None:
    assert name(code) == named


@pytest.mark.parametrize(
    ("written", "usual"),
    [
        ("ger", "de"), ("deu", "de"), ("eng", "en"), ("DE", "de"), ("pt_BR", "pt-BR"), ("pt-br", "pt-BR"), ("zho_Hans", "zh-Hans"),
        ("eng_Latn", "en"), ("iw", "he"), ("tl", "tl"), ("sh", "sh"), ("no", "no"), ("arb", "arb"), ("hsb", "hsb"), ("ber", "ber"),
        ("es_419", "es-419"), ("sr_latn", "sr-Latn"), (" en ", "en"),
    ],
)  # fmt: skip
def test_a_language_has_one_way_to_be_written(written: str, usual: str) -> None:
    assert standard(written) == usual == standard(usual)


@pytest.mark.parametrize("code", ["x-klingon", "x-a-b1", "qaa", "qtz"])
def test_private_codes_are_as_good_as_any(code: str) -> None:
    assert standard(code) == code


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("xx", "did you mean"),
        ("german", "de (German)"),
        ("cz", "cs (Czech)"),
        ("jp", "ja (Japanese)"),
        ("qtza", "x-NAME"),
        ("english", "en (English)"),
        ("", "such as en"),
        ("../../etc", "such as en"),
        ("e\u0301n", "did you mean en"),
        ("x" * 10_000, "such as en"),
    ],
)
def test_what_is_no_language_is_refused_with_what_was_probably_meant(code: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="is not a language code") as refused:
        standard(code, "--target")
    assert hint in str(refused.value) and str(refused.value).startswith("--target") and len(str(refused.value)) < 300
    assert usual_tag(code) == code


def test_files_may_be_named_by_every_code_of_a_language() -> None:
    assert list_codes("de") == ("de", "deu", "ger")
    assert list_codes("hsb") == ("hsb",) and list_codes("x-klingon") == ("x-klingon",) and list_codes("") == ("",)


def test_a_code_that_nobody_knows_is_its_own_name() -> None:
    assert name("qqz") == "qqz"


def test_what_is_private_in_a_code_is_no_script() -> None:
    assert [name(code) for code in ("x-klin", "x-ab-norn", "X_Klin")] == ["x-klin", "x-ab-norn", "X_Klin"]
    assert [name(code) for code in ("en-x-test", "en-u-kana", "sr-Latn-x-test")] == ["English", "English", "Serbian (Latin)"]


@pytest.mark.slow
def test_every_language_that_we_know_or_identify_has_a_name() -> None:
    assert [code for code in (*SCRIPTS, *Identifier().known) if name(code) == code] == []
