"""Catalogues: empty translations are filled as gettext would write them, and nothing else is touched."""

import subprocess
from pathlib import Path
from shutil import which

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins import Answer, Translate, each, unchanged, upper

from limelight.documents.document import translate_document
from limelight.documents.formats.po import format_string
from limelight.documents.translating import TranslatedDocument
from limelight.errors import ConfigError, DataError
from limelight.translator.translation import recall

HEADER = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Plural-Forms: nplurals=%d; plural=(n != 1);\\n"\n\n'


def done(catalogue: str, change: object = upper, forms: int = 2, again: bool = False) -> TranslatedDocument:
    data = (HEADER % forms + catalogue).encode()
    return translate_document(data, "po", ("en", "de"), each(change), again=again)  # type: ignore[arg-type]


def filled(catalogue: str, change: object = upper, forms: int = 2, again: bool = False) -> str:
    text = done(catalogue, change, forms, again).data.decode()
    assert text.startswith(HEADER % forms)
    return text.removeprefix(HEADER % forms)


def test_a_template_is_filled_and_told_that_msgfmt_will_refuse_it() -> None:
    text = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=CHARSET\\n"\n"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    )
    made = translate_document(f'{text}msgid "open"\nmsgstr ""\n'.encode(), "po", ("en", "de"), each(upper))
    assert [remark.code for remark in made.warnings] == ["template"] and "msginit" in made.warnings[0].message
    assert made.data.decode().endswith('msgstr "OPEN"\n')


def test_only_empty_translations_are_filled() -> None:
    catalogue = 'msgid "open"\nmsgstr ""\n\n#: a.c:1\nmsgid "close"\nmsgstr "zu"\n'
    assert filled(catalogue) == 'msgid "open"\nmsgstr "OPEN"\n\n#: a.c:1\nmsgid "close"\nmsgstr "zu"\n'


def test_what_has_no_letters_is_the_memorys_or_a_persons_and_never_the_models() -> None:
    catalogue = 'msgid "1, 2, 3"\nmsgstr ""\n\nmsgid " ("\nmsgstr ""\n\nmsgid "open"\nmsgstr ""\n'
    made = done(catalogue, lambda text: f"{text} made up")
    assert made.data.decode().count('msgstr ""\n') == 3 and [each.code for each in made.warnings] == ["wordless"] * 2
    assert [(each.unit.line, bool(each.reasons)) for each in made.units] == [(7, True), (10, True), (13, False)] and made.counts.failed == 2

    def remember(texts: list[str]) -> list[object]:
        return [recall(text, f"{text} *") for text in texts]

    kept = translate_document((HEADER % 2 + catalogue).encode(), "po", ("en", "de"), remember)  # type: ignore[arg-type]
    assert 'msgstr "1, 2, 3 *"' in kept.data.decode() and 'msgstr " ( *"' in kept.data.decode() and not kept.warnings


def test_comments_flags_contexts_and_deleted_entries_stay() -> None:
    catalogue = (
        '# by hand\n#. extracted\n#: a.c:1\n#, c-format\n#| msgid "old"\nmsgctxt "menu"\nmsgid "_open it"\nmsgstr ""\n\n'
        '#~ msgid "gone"\n#~ msgstr ""\n'
    )
    assert filled(catalogue) == catalogue.replace('msgstr ""\n\n', 'msgstr "_OPEN IT"\n\n')


def test_fuzzy_entries_are_left_unless_asked_for() -> None:
    catalogue = '#, fuzzy, c-format\nmsgid "open"\nmsgstr "zu"\n'
    assert filled(catalogue) == catalogue
    assert filled(catalogue, again=True) == catalogue.replace("zu", "OPEN")


def test_a_flag_above_a_deleted_entry_says_nothing_about_the_next() -> None:
    catalogue = '#, fuzzy\n#~ msgid "gone"\n#~ msgstr "x"\n\nmsgid "open"\nmsgstr "zu"\n'
    assert filled(catalogue, again=True) == catalogue


@pytest.mark.parametrize(
    ("forms", "given", "expected"),
    [
        (2, ["", ""], ["ONE FILE", "%D FILES"]),
        (3, ["", ""], ["ONE FILE", "%D FILES", "%D FILES"]),
        (1, [""], ["%D FILES"]),
        (2, ["eine", ""], ["eine", "%D FILES"]),
        (2, ["eine", "viele"], ["eine", "viele"]),
        (6, [""] * 6, ["ONE FILE"] + ["%D FILES"] * 5),
    ],
)
def test_plural_forms_follow_the_header(forms: int, given: list[str], expected: list[str]) -> None:
    entry = 'msgid "one file"\nmsgid_plural "%d files"\n'
    made, wanted = (entry + "".join(f'msgstr[{at}] "{text}"\n' for at, text in enumerate(texts)) for texts in (given, expected))
    assert filled(made, forms=forms) == wanted


def test_blanks_and_line_breaks_around_a_text_go_back() -> None:
    catalogue = 'msgid ""\n"\\n"\n"  two lines\\n"\n"here\\n"\nmsgstr ""\n'
    assert filled(catalogue) == catalogue.replace('msgstr ""\n', 'msgstr ""\n"\\n"\n"  TWO LINES\\n"\n"HERE\\n"\n')


def test_controls_at_the_end_of_a_translation_leave_no_blanks() -> None:
    assert filled('msgid "open"\nmsgstr ""\n', lambda _: "auf\x02\x02") == 'msgid "open"\nmsgstr "auf"\n'


@pytest.mark.process
def test_long_translations_are_wrapped_as_gettext_does(tmp_path: Path) -> None:
    text = "a word, and another one " * 12 + "ä" * 100 + '\nand "quoted" \\ end\t.'
    catalogue = 'msgid "open"\nmsgstr ""\n'
    result = filled(catalogue, lambda _: text)
    assert all(len(line) <= 79 for line in result.split("\n") if "ää" not in line)
    assert polib.pofile(HEADER % 2 + result)[0].msgstr == text
    if which("msgcat"):
        path = tmp_path / "a.po"
        path.write_bytes((HEADER % 2 + filled(catalogue, lambda _: "a word, and another one " * 12 + "end\nnext")).encode())
        again = subprocess.run(["msgcat", path], capture_output=True, check=True).stdout
        assert again == path.read_bytes()


def test_a_string_is_wrapped_when_its_line_would_have_more_than_79_columns() -> None:
    fits = "a b " * 17 + "cd"
    assert format_string("msgstr", fits, "\n", True) == f'msgstr "{fits}"' and len(f'msgstr "{fits}"') == 79
    assert format_string("msgstr", fits + "e", "\n", True) == f'msgstr ""\n"{fits}e"'
    wide = "中" * 35
    assert format_string("msgstr", wide, "\n", True) == f'msgstr "{wide}"' and "\n" in format_string("msgstr", wide + "中", "\n", True)


def test_a_file_that_is_not_wrapped_stays_so() -> None:
    long = "a long line that no tool has wrapped " * 4
    catalogue = f'msgctxt ""\n"{long}\\n"\n"x"\nmsgid "a"\nmsgstr ""\n'
    assert f'msgstr "{long.strip().upper()}"\n' in filled(catalogue, lambda _: long.strip().upper())
    assert 'msgstr ""\n"' in filled('msgid "a"\nmsgstr ""\n', lambda _: long)
    assert f'msgstr "{long.strip()}"\n' in filled('#, no-wrap\nmsgid "a"\nmsgstr ""\n', lambda _: long)


def test_a_few_long_lines_in_a_wrapped_file_do_not_unwrap_it() -> None:
    long = "a long line that no tool has wrapped " * 4
    wrapped = 'msgid ""\n"one line of a text that goes on "\n"in the next one"\nmsgstr "x"\n\n'
    catalogue = wrapped * 2 + f'msgid ""\n"{long}\\n"\n"x"\nmsgstr "x"\n\nmsgid "a"\nmsgstr ""\n'
    assert 'msgid "a"\nmsgstr ""\n"' in filled(catalogue, lambda _: long)
    assert f'msgstr "{long.strip()}"' in filled(f'msgid "{long.strip()}"\nmsgstr "x"\n\nmsgid "a"\nmsgstr ""\n', lambda _: long)


def test_line_ends_and_encodings_stay() -> None:
    catalogue = (HEADER % 2 + 'msgid "open it"\nmsgstr ""\n\nmsgid "b"\nmsgstr "ü"\n').replace("\n", "\r\n")
    data = catalogue.replace("UTF-8", "ISO-8859-1").encode("latin-1")
    result = translate_document(data, "po", ("en", "de"), each(lambda _: "ä\nö")).data
    assert result == data.replace(b'"open it"\r\nmsgstr ""', '"open it"\r\nmsgstr ""\r\n"ä\\n"\r\n"ö"'.encode("latin-1"))


def test_a_translation_that_the_encoding_lacks_is_left_out_and_said() -> None:
    data = (HEADER % 2 + 'msgid "open"\nmsgstr ""\n').replace("UTF-8", "ISO-8859-1").encode()
    result = translate_document(data, "po", ("en", "ja"), each(lambda _: "開く"))
    assert result.data == data
    assert result.counts.failed == 1 and [remark.code for remark in result.warnings] == ["encoding"]


def test_entries_that_are_no_po_are_left_and_said() -> None:
    catalogue = 'msgid "a\nmsgstr ""\n\nmsgid "open"\nmsgstr ""\n\nmsgid "x"\nmsgid "y"\nmsgstr ""\n'
    result = done(catalogue)
    assert result.data.decode().count('""') == 3 and "OPEN" in result.data.decode()
    assert {remark.code for remark in result.warnings} == {"malformed"}
    with pytest.raises(DataError, match="line 1: no entry of it is PO"):
        translate_document(b'msgid "abc\nmsgstr ""\n', "po", ("en", "de"), each(str.upper))


def test_names_of_translators_are_not_translated() -> None:
    catalogue = 'msgid "translator-credits"\nmsgstr ""\n'
    assert filled(catalogue) == catalogue


def test_a_text_that_occurs_twice_is_translated_once() -> None:
    asked: list[str] = []

    def translate(texts: list[str]) -> list[Answer]:
        asked.extend(texts)
        return [Answer(text.upper()) for text in texts]

    catalogue = HEADER % 2 + 'msgctxt "a"\nmsgid "open"\nmsgstr ""\n\nmsgctxt "b"\nmsgid "open"\nmsgstr ""\n'
    result = translate_document(catalogue.encode(), "po", ("en", "de"), translate)
    assert asked == ["open"] and result.data.decode().count("OPEN") == 2 and result.counts.translated == 2


TEXTS = st.text(st.sampled_from('ab \\"\n\t\rß中%0'), min_size=1, max_size=120)


@given(TEXTS, st.booleans())
def test_polib_reads_what_is_written(text: str, wrap: bool) -> None:
    entry = f'msgid "x"\n{format_string("msgstr", text, chr(10), wrap)}\n'
    assert polib.pofile(entry)[0].msgstr == text


@pytest.mark.process
def test_controls_are_written_as_escapes_that_gettext_reads(tmp_path: Path) -> None:
    text = "\a1\x1b[1m\b\f\v\x7f"
    assert format_string("msgstr", text, "\n", True) == r'msgstr "\a1\033[1m\b\f\v\177"'
    if which("msgfmt"):
        (tmp_path / "a.po").write_bytes((HEADER % 2 + f'msgid "x"\n{format_string("msgstr", text, chr(10), True)}\n').encode())
        subprocess.run(["msgfmt", "-o", tmp_path / "a.mo", tmp_path / "a.po"], check=True)
        assert text.encode() in (tmp_path / "a.mo").read_bytes()


@given(st.lists(TEXTS.filter(lambda text: any(map(str.isalpha, text))), max_size=5, unique=True))
def test_a_catalogue_that_polib_wrote_is_filled_with_what_was_given(texts: list[str]) -> None:
    catalogue = polib.POFile()
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.extend(polib.POEntry(msgid=text) for text in texts)
    result = translate_document(f"{catalogue}\n".encode(), "po", ("en", "de"), each(unchanged)).data.decode()
    assert [entry.msgstr for entry in polib.pofile(result)] == texts


def unsure_of(*words: str, protected: bool = True) -> Translate:
    """A translator that is not sure of texts with these words."""

    def translate(texts: list[str]) -> list[Answer]:
        return [
            Answer(text.upper().replace("%D", "%d"), (), 0.3 if any(word in text for word in words) else 0.9, protected) for text in texts
        ]

    return translate


ENTRIES = (
    'msgid "open"\nmsgstr ""\n\n'
    '# by hand\n#: a.c:1\n#, c-format\n#| msgid "old"\nmsgctxt "menu"\nmsgid "close %d"\nmsgstr ""\n\n'
    '#. note\n#| msgid "older"\nmsgid "close it"\nmsgstr ""\n\n'
    'msgid "one file"\nmsgid_plural "close %d files"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    '#, fuzzy\nmsgid "close all"\nmsgstr ""\n\n#,\nmsgid "close none"\nmsgstr ""\n\nmsgid "close done"\nmsgstr "zu"\n'
)


@pytest.mark.process
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_the_machine_is_not_sure_of_is_fuzzy(newline: str, tmp_path: Path) -> None:
    data = (HEADER % 2 + ENTRIES).replace("\n", newline).encode()
    result = translate_document(data, "po", ("en", "de"), unsure_of("close")).data
    text = result.decode().replace(newline, "\n").removeprefix(HEADER % 2)
    expected = (
        'msgid "open"\nmsgstr "OPEN"\n\n'
        '# by hand\n#: a.c:1\n#, fuzzy, c-format\n#| msgid "old"\nmsgctxt "menu"\nmsgid "close %d"\nmsgstr "CLOSE %d"\n\n'
        '#. note\n#, fuzzy\n#| msgid "older"\nmsgid "close it"\nmsgstr "CLOSE IT"\n\n'
        '#, fuzzy\nmsgid "one file"\nmsgid_plural "close %d files"\nmsgstr[0] "ONE FILE"\nmsgstr[1] "CLOSE %d FILES"\n\n'
        '#, fuzzy\nmsgid "close all"\nmsgstr "CLOSE ALL"\n\n#, fuzzy\nmsgid "close none"\nmsgstr "CLOSE NONE"\n\n'
        'msgid "close done"\nmsgstr "zu"\n'
    )
    assert text == expected
    catalogue = polib.pofile(result.decode())
    fuzzy = {entry.msgid for entry in catalogue if "fuzzy" in entry.flags}
    assert fuzzy == {"close %d", "close it", "one file", "close all", "close none"}
    if which("msgattrib"):
        (tmp_path / "a.po").write_bytes(result)
        listed = subprocess.run(["msgattrib", "--only-fuzzy", tmp_path / "a.po"], capture_output=True, check=True).stdout.decode()
        assert {entry.msgid for entry in polib.pofile(listed)} == fuzzy
        subprocess.run(["msgfmt", "-c", "-o", "/dev/null", tmp_path / "a.po"], check=True)


@pytest.mark.parametrize("first", ['msgid "open"', 'msgctxt "menu"\nmsgid "open"', '#| msgid "old"\nmsgid "open"'])
def test_a_flag_stands_before_an_entry_at_the_beginning_of_a_file(first: str) -> None:
    made = translate_document(f'{first}\nmsgstr ""\n'.encode(), "po", ("en", "de"), unsure_of("open")).data.decode()
    assert made == f'#, fuzzy\n{first}\nmsgstr "OPEN"\n'


def test_more_plural_forms_than_a_language_has_are_said() -> None:
    made = done('msgid "open"\nmsgid_plural "open all"\nmsgstr[0] ""\n', forms=999_999_999)
    assert made.data.count(b"msgstr[") == 8 and "999999999 plural forms" in made.warnings[0].message


def test_the_threshold_is_asked_for_and_one_marks_everything() -> None:
    data = (HEADER % 2 + 'msgid "open"\nmsgstr ""\n\nmsgid "shut"\nmsgstr ""\n').encode()
    for below, marked in ((0.0, 0), (0.3, 0), (0.31, 1), (1.0, 2)):
        made = translate_document(data, "po", ("en", "de"), unsure_of("open"), unsure_below=below).data
        assert made.count(b"#, fuzzy") == marked
    with pytest.raises(ConfigError, match="between 0 and 1"):
        translate_document(data, "po", ("en", "de"), unsure_of(), unsure_below=60.0)


def test_what_lost_something_is_fuzzy_and_what_was_not_written_is_not() -> None:
    data = (HEADER % 2 + 'msgid "open"\nmsgstr ""\n').encode()
    assert b"#, fuzzy" in translate_document(data, "po", ("en", "de"), unsure_of(protected=False)).data
    assert translate_document(data, "po", ("en", "de"), lambda texts: [Answer("") for _ in texts]).data == data


@pytest.mark.parametrize(("language", "fits"), [("de", True), ("de_AT", True), ("", True), ("is", False), ("is_IS", False)])
def test_a_catalogue_in_another_language_is_refused(language: str, fits: bool) -> None:
    data = f'msgid ""\nmsgstr ""\n"Language: {language}\\n"\n\nmsgid "open"\nmsgstr ""\n'.encode()
    if fits:
        assert b"OPEN" in translate_document(data, "po", ("en", "de"), each(upper)).data
        return
    with pytest.raises(DataError, match=rf"in {language}, and the translator goes to de"):
        translate_document(data, "po", ("en", "de"), each(upper), name="menu.po")
