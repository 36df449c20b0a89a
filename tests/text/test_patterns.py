"""The patterns find what must survive a translation, whole, and nothing else."""

# ruff: noqa: RUF001 (letters that look like others are what is tested)

import polars as pl
import pytest

from limelight.text import patterns


def found(pattern: str, text: str) -> list[str]:
    return pl.Series([text]).str.extract_all(pattern)[0].to_list()


@pytest.mark.parametrize("number", ["7", "42", "1,000.5", "1.000,5", "1'000", "1’000", "1\u00a0000,5", "1\u202f000", "2024", "٤٢"])
def test_a_number_is_found_whole_with_its_separators(number: str) -> None:
    assert found(patterns.NUMBER, f"about {number} men") == [number]


def test_numbers_are_told_apart_at_blanks_and_letters() -> None:
    assert found(patterns.NUMBER, "3x4 - 5 6/7") == ["3", "4", "5", "6", "7"]
    assert found(patterns.NUMBER, "one, two. three") == []


@pytest.mark.parametrize(
    "placeholder",
    [
        "%s", "%d", "%i", "%u", "%5.2f", "%-10s", "%+d", "%'d", "%#x", "%03d", "%*d", "%.*s", "%lu", "%lld", "%zu", "%hhx", "%c", "%n",
        "%1$s", "%12$d", "%2$.1f", "%(name)s", "%(count)d",
        "%1", "%12", "%L1", "%PATH%", "%brandName%",
        "{}", "{0}", "{name}", "{user.name}", "{0:x}", "{name!r}", "${name}", "{{name}}", "{ $count }", "$(CC)", "$HOME", "$_x",
        "@VERSION@", "__name__",
    ],
)  # fmt: skip
def test_a_placeholder_is_found_whole(placeholder: str) -> None:
    assert found(patterns.PLACEHOLDER, f"a {placeholder} b") == [placeholder]
    assert found(patterns.PLACEHOLDER, f"({placeholder})") == [placeholder]
    assert found(patterns.PLACEHOLDER, placeholder) == [placeholder]
    assert found(patterns.ANY_PLACEHOLDER_SIGN, placeholder)


@pytest.mark.parametrize("text", ["%@ items", "(%@)", "%1$@"])
def test_the_placeholder_of_objective_c_is_found(text: str) -> None:
    assert [hit[-1] for hit in found(patterns.PLACEHOLDER, text)] == ["@"]


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("%sen und %dmal", ["%s", "%d"]),
        ("%s%s", ["%s", "%s"]),
        ("%d%%", ["%d"]),
        ("%1%2", ["%1", "%2"]),
        ("%n files", ["%n"]),
        ("{a}{b}", ["{a}", "{b}"]),
        ("%d to %d%", ["%d", "%d"]),
    ],
)
def test_placeholders_side_by_side_and_with_endings_are_told_apart(text: str, placeholders: list[str]) -> None:
    assert found(patterns.PLACEHOLDER, text) == placeholders


@pytest.mark.parametrize(
    "text", ["50 % off", "a % of", "5 $ each", "$5", "me@example.org", "snake_case", "{a, b}", "%ige", "%und", "100 %", "{", "_"]
)  # fmt: skip
def test_what_only_looks_like_a_placeholder_is_none(text: str) -> None:
    assert found(patterns.PLACEHOLDER, text) == []


@pytest.mark.parametrize(
    "tag",
    [
        "<b>",
        "</b>",
        "<br>",
        "<br/>",
        "<br />",
        "<B>",
        "<h3>",
        "</qt>",
        "<nl/>",
        '<a href="x y">',
        "<x:g id='1'>",
        "<font color=red>",
    ],
)
def test_a_tag_is_found_whole(tag: str) -> None:
    assert found(patterns.TAG, f"1 {tag}2") == [tag]


@pytest.mark.parametrize(
    "text",
    ["<file>", "<Ctrl>", "a < b > c", "<name@example.org>", "<http://example.org>", "<<", "<>", "<your name>", "<3"],
)
def test_what_only_looks_like_a_tag_is_none(text: str) -> None:
    assert found(patterns.TAG, text) == []


@pytest.mark.parametrize("tag", ["<b>", "</b>", "<br/>", '<a href="x">', "<x:g id='1'>"])
def test_the_name_of_a_tag_is_without_attributes_and_end(tag: str) -> None:
    assert found(patterns.TAG_NAME, tag) == [tag.split()[0].removesuffix(">").removesuffix("/")]


@pytest.mark.parametrize("text", ["a\x00b", "\x07", "\x1b[1m", "\x9c", "m\ufffdssen", "\ue000", "\U000f0000"])
def test_controls_replacement_signs_and_private_use_are_found(text: str) -> None:
    assert found(patterns.CONTROL, text)


@pytest.mark.parametrize("text", ["Größe", "中文", "👩‍🚀", "a\u200bb", "½ – “x” …", "ﬁ", "\u0301", ""])
def test_ordinary_text_has_no_control(text: str) -> None:
    assert not found(patterns.CONTROL, text)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252"])
@pytest.mark.parametrize(
    "text",
    [
        "Käse",
        "Größe",
        "müde",
        "ÖPNV",
        "Über",
        "café",
        "naïve",
        "señor",
        "£5",
        "§ 3",
        "it’s",
        "a – b",
        "„so“",
        "…",
        "ещё раз",
    ],
)
def test_utf_8_once_read_in_the_wrong_encoding_is_found(text: str, encoding: str) -> None:
    misread = "".join(
        bytes([byte]).decode(encoding) if encoding == "latin-1" or byte not in b"\x81\x8d\x8f\x90\x9d" else chr(byte)
        for byte in text.encode()
    )
    if encoding == "latin-1" and not text.isascii() and misread.startswith("â"):
        return  # E2 80 99 in Latin-1 is â and two controls, which CONTROL finds
    assert found(patterns.MOJIBAKE, misread) or found(patterns.CONTROL, misread)


@pytest.mark.parametrize("text", ["École", "À la carte", "Ça va", "„so", "‚so", "5 €", "Être", "ÑU"])
def test_more_of_windows_1252_is_found(text: str) -> None:
    assert found(patterns.MOJIBAKE, text.encode().decode("cp1252"))


@pytest.mark.parametrize("text", ["Käse", "NÃO SÃO PÃES", "Âge", "château", "pâté", "Ðe", "it’s", "“â”", "Ñ", "IRMÃ e irmão", "Ã, Â"])
def test_rightly_read_accents_are_no_mojibake(text: str) -> None:
    assert not found(patterns.MOJIBAKE, text)
