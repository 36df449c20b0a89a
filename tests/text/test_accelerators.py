"""The sign of a keyboard letter is lifted off a label and placed on its translation; names that have such signs stay whole."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.text.careful.accelerators import Accelerator, lift_accelerator, lift_pair, place_accelerator

LABELS = [
    ("_File", "File", "_", "F"),
    ("E&xit", "Exit", "&", "x"),
    ("Save ~As", "Save As", "~", "A"),
    ("R_oom List", "Room List", "_", "o"),
    ("Form_at", "Format", "_", "a"),
    ("Verti&cal", "Vertical", "&", "c"),
    ("Ima~ge", "Image", "~", "g"),
    ("Delete t_hread", "Delete thread", "_", "h"),
    ("Whole wor_ds only", "Whole words only", "_", "d"),
    ("_Öffnen …", "Öffnen …", "_", "Ö"),
    ("&Open %1 & more", "Open %1 & more", "&", "O"),
    ("<b>_Name</b>", "<b>Name</b>", "_", "N"),
    ("Show number of _unread messages in the menu", "Show number of unread messages in the menu", "_", "u"),
    ("_Open %(file_name)s", "Open %(file_name)s", "_", "O"),
    ("ファイル(_F)", "ファイル", "_", "F"),
    ("開く(&O)...", "開く...", "&", "O"),
    ("File (_F)", "File", "_", "F"),
]
OTHERS = [
    "", "File", "AT&T", "R&D", "Q&A", "K&R style", "drag&drop", "Black&white", "Tom & Jerry",
    "&amp; &lt;b", "foo_bar", "snake_case_name", "__init__",
    "_Cut and _Paste", "LC_ALL", "KP_Delete", "Invalid wal_level setting", "The off_t is small here (bad)", "~/.config",
    "~5", "100_000", "_", "& &", "a_",
    "http://a.b/?q=x&y=z", "%s_foo", "%(file_name)s", "_File & &Edit", "__File", "f(_x)", "{0}_file", "Suppress _ALL_ messages",
    "GTK_widget", "free the g_list",
    "If you name it, you can run the command from the view command line with the name of _it that you gave",
    "_x" + 200 * "a",
    "When you set this, then the value of the so-called Ma_ximum is taken",
]  # fmt: skip


@pytest.mark.parametrize(("label", "text", "sign", "letter"), LABELS)
def test_the_sign_of_a_label_is_lifted(label: str, text: str, sign: str, letter: str) -> None:
    assert lift_accelerator(label) == (text, Accelerator(sign, letter))


@pytest.mark.parametrize("text", OTHERS)
def test_signs_of_another_meaning_are_left_alone(text: str) -> None:
    assert lift_accelerator(text) == (text, None)


@pytest.mark.parametrize(
    ("translation", "sign", "letter", "with_sign"),
    [
        ("Datei", "_", "F", "_Datei"),
        ("Format", "&", "f", "&Format"),
        ("Als Datei", "~", "d", "Als ~Datei"),
        ("Neue Datei", "_", "D", "Neue _Datei"),
        ("Beenden", "_", "n", "Bee_nden"),
        ("Neuer Diskurs", "_", "i", "Neuer D_iskurs"),
        ("Ende der Datei", "_", "d", "Ende _der Datei"),
        ("%sen Bau", "_", "e", "%sen _Bau"),
        ("„Öffnen“", "_", "x", "„_Öffnen“"),
        ("%s öffnen", "_", "s", "%s _öffnen"),
        ("<b>Bald</b> da", "_", "b", "<b>_Bald</b> da"),
        ("ファイル", "_", "f", "ファイル(_F)"),
        ("開く...", "&", "o", "開く(&O)..."),
        ("Firefoxを開く", "_", "F", "Firefoxを開く(_F)"),
        ("이름:", "_", "N", "이름(_N):"),
        ("Файл", "_", "F", "_Файл"),
        ("ملف", "_", "F", "_ملف"),
        ("123", "_", "F", "123(_F)"),
        ("", "_", "F", "(_F)"),
        ("_Datei", "_", "F", "_Datei"),
        ("%1$s", "&", "s", "%1$s(&S)"),
    ],
)
def test_the_sign_is_placed_where_a_person_would_place_it(translation: str, sign: str, letter: str, with_sign: str) -> None:
    assert place_accelerator(translation, Accelerator(sign, letter)) == with_sign


WORDS = st.lists(
    st.sampled_from(["Datei", "neue", "öffnen", "%s", "<b>", "{name}", "Größe", "x", "保存", "…", "12", "als"]),
    max_size=6,
)


@pytest.mark.slow
@given(WORDS.map(" ".join), st.sampled_from("_&~"), st.sampled_from("fosDxé"))
def test_the_sign_is_there_once_outside_of_spans_and_all_else_is_unchanged(text: str, sign: str, letter: str) -> None:
    result = place_accelerator(text, Accelerator(sign, letter))
    at = result.index(sign)
    assert result.count(sign) == 1
    assert result.replace(f"({sign}{letter.upper()})", "").replace(sign, "") == text
    assert result[at + 1].isalpha()
    for span in ("%s", "<b>", "{name}"):
        assert result.count(span) == text.count(span)


@pytest.mark.parametrize(
    ("source", "target", "bare"),
    [
        ("_File", "_Datei", ("File", "Datei")),
        ("E&xit", "&Beenden", ("Exit", "Beenden")),
        ("F_lash window", "Fenster b_linkt", ("Flash window", "Fenster blinkt")),
        ("_File", "ファイル(_F)", ("File", "ファイル")),
        ("_File", "Datei", None),
        ("_File", "&Datei", None),
        ("_File", "_Datei _neu", None),
        ("File", "_Datei", None),
        ("wal_level", "wal_level", None),
        ("a", "b", None),
    ],
)
def test_a_pair_is_lifted_if_both_sides_have_the_same_sign(source: str, target: str, bare: tuple[str, str] | None) -> None:
    assert lift_pair(source, target) == bare


@pytest.mark.slow
@pytest.mark.parametrize("part", ["_", "&", "~", "a", "_a", "&a", "a_", " _", ".", "(_", "a&", "(_a)", "\u3000"])
def test_hostile_text_takes_linear_time(part: str) -> None:
    text = (part * 100_000)[:100_000]
    began = time.process_time()
    for one in (text, f"{text} _x", f"{text}_x", f"A {text}_x"):
        lift_accelerator(one)
        place_accelerator(one, Accelerator("_", "q"))
        lift_pair(one, one)
    assert time.process_time() - began < 2  # a quadratic time would be minutes
