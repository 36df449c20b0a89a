"""Languages have names that people know."""

import pytest

from limelight.text.identify import Identifier
from limelight.text.language_names import name
from limelight.text.languages import SCRIPTS


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


def test_a_code_that_nobody_knows_is_its_own_name() -> None:
    assert name("qqz") == "qqz"


def test_every_language_that_we_know_or_identify_has_a_name() -> None:
    assert [code for code in (*SCRIPTS, *Identifier().known) if name(code) == code] == []
