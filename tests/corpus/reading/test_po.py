"""PO catalogues: the same pairs that polib finds, in memory that does not grow."""

import os
import tempfile
from pathlib import Path
from typing import Any

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.corpus.readers import read
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, CorpusPart, RowFault
from limelight.errors import DataError

HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=%s\\n"\n\n'


def rows_of(path: Path, content: str | bytes | None = None) -> list[dict[str, Any]]:
    if content is not None:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    batches = list(read(CorpusPart(0, 0, "po", (str(path),), ("en", "de")), 5))
    return [row for batch in batches for row in batch.to_pylist()]


def by_polib(catalogue: polib.POFile) -> list[tuple[str, str, str | None, int]]:
    found = []
    for entry in catalogue:
        if entry.obsolete:
            continue
        fault = int(RowFault.FUZZY if entry.fuzzy else RowFault.NONE)
        plural = entry.msgstr_plural
        found.append((entry.msgid, plural[0] if plural else entry.msgstr, entry.msgctxt, fault))
        if entry.msgid_plural:
            found.append((entry.msgid_plural, plural[max(plural)], entry.msgctxt, fault))
    return found


def ours(rows: list[dict[str, Any]]) -> list[tuple[str, str, str | None, int]]:
    return [(row["source"], row["target"], row["segment"], row["fault"]) for row in rows]


TEXT = st.text(st.one_of(st.sampled_from('\\"\n\t\rab%'), st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])), max_size=90)
ENTRY = st.builds(
    polib.POEntry,
    msgid=TEXT.filter(bool),
    msgstr=TEXT,
    msgctxt=st.none() | TEXT.filter(bool),
    flags=st.sampled_from([[], ["fuzzy"], ["c-format"], ["c-format", "fuzzy"]]),
    obsolete=st.sampled_from([False, False, False, True]),
    comment=st.sampled_from(["", "fuzzy", 'msgid "no"']),
)
PLURAL = st.builds(
    polib.POEntry,
    msgid=TEXT.filter(bool),
    msgid_plural=TEXT.filter(bool),
    msgstr_plural=st.lists(TEXT, min_size=1, max_size=4).map(lambda texts: dict(enumerate(texts))),
)


@pytest.mark.slow
@given(st.lists(st.one_of(ENTRY, PLURAL), max_size=8), st.booleans())
def test_generated_catalogues_equal_what_polib_wrote(entries: list[polib.POEntry], returns: bool) -> None:
    catalogue = polib.POFile(wrapwidth=40)
    catalogue.metadata = {"Content-Type": "text/plain; charset=UTF-8"}
    catalogue.extend(entries)
    content = str(catalogue).encode()
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(Path(folder) / "a.po", content.replace(b"\n", b"\r\n") if returns else content)
    assert ours(rows) == by_polib(catalogue)


def test_samples_equal_what_polib_finds() -> None:
    folder = os.environ.get("LIMELIGHT_DATA")
    if not folder:
        pytest.skip("LIMELIGHT_DATA names no folder with samples")
    paths = sorted((Path(folder) / "l10n" / "samples").glob("*.po"))
    assert paths
    for path in paths:
        catalogue = polib.pofile(str(path))
        rows = rows_of(path)
        assert ours(rows) == by_polib(catalogue)
        numbered = [row["line"] for row in rows]
        assert numbered == sorted(numbered)
        lines = path.read_bytes().split(b"\n")
        assert all(lines[number - 1].startswith(b"msgid") for number in numbered)


def test_each_kind_of_entry_has_its_rows(tmp_path: Path) -> None:
    content = HEADER % "UTF-8" + (
        '# a comment\n#, c-format, fuzzy\nmsgctxt "menu"\nmsgid ""\n"two "\n"lines\\n"\nmsgstr "zwei"\n\n'
        'msgid "%d day"\nmsgid_plural "%d days"\nmsgstr[0] "%d Tag"\nmsgstr[1] "x"\nmsgstr[2] "%d Tage"\n'
        '#~ msgid "gone"\n#~ msgstr "weg"\n\nmsgid "none"\nmsgstr ""\n#, fuzzy\n#~ msgid "old"\n#~ msgstr "alt"\n'
        'msgid "tab\\there \\"q\\" \\\\ \\303\\251 \\x41 \\q"\nmsgstr "ä"\nmsgid "one"\nmsgid_plural "many"\nmsgstr[0] "一"\n'
    )
    rows = rows_of(tmp_path / "a.po", content)
    assert [(r["line"], r["source"], r["target"], r["segment"], r["fault"]) for r in rows] == [
        (7, "two lines\n", "zwei", "menu", RowFault.FUZZY),
        (12, "%d day", "%d Tag", None, 0),
        (12, "%d days", "%d Tage", None, 0),
        (20, "none", "", None, 0),
        (25, 'tab\there "q" \\ é A \\q', "ä", None, 0),
        (27, "one", "一", None, 0),
        (27, "many", "一", None, 0),
    ]


@pytest.mark.parametrize("charset", ["ISO-8859-1", "utf-8", "CHARSET", "cp1252"])
def test_the_header_names_the_charset(tmp_path: Path, charset: str) -> None:
    encoding = "utf-8" if charset == "CHARSET" else charset
    (row,) = rows_of(tmp_path / "a.po", (HEADER % charset + 'msgid "a"\nmsgstr "Köln"\n').encode(encoding))
    assert (row["target"], row["fault"]) == ("Köln", 0)


def test_a_backslash_inside_a_double_byte_character_escapes_nothing(tmp_path: Path) -> None:
    assert b"\\" in "表".encode("shift_jis")
    (row,) = rows_of(tmp_path / "a.po", (HEADER % "Shift_JIS" + 'msgid "a"\nmsgstr "表n"\n').encode("shift_jis"))
    assert row["target"] == "表n"


@pytest.mark.parametrize("charset", ["nonsense", "utf-16", "utf-7", "rot13", "unicode_escape"])
def test_an_unusable_charset_is_refused(tmp_path: Path, charset: str) -> None:
    with pytest.raises(DataError, match="msgconv"):
        rows_of(tmp_path / "a.po", HEADER % charset + 'msgid "a"\nmsgstr "b"\n')


@pytest.mark.parametrize(
    ("broken", "fault"),
    [
        (b'msgid "a\xff"\nmsgstr "b"\n', RowFault.BROKEN_ENCODING),
        (b'msgid "a"\nmsgstr "\\377"\n', RowFault.BROKEN_ENCODING),
        (b'msgid "a"\n', RowFault.MALFORMED),
        (b'msgstr "b"\n', RowFault.MALFORMED),
        (b'msgid "a\nmsgstr "b"\n', RowFault.MALFORMED),
        (b'msgid "a"\nmsgstr "b"\nmsgstr "c"\n', RowFault.MALFORMED),
        (b"garbage\n", RowFault.MALFORMED),
        (b'"orphan"\n', RowFault.MALFORMED),
        (b'msgid "a"\nmsgstr "' + b"x" * LONGEST_LINE + b'"\n', RowFault.TOO_LONG),
        (b'msgid "a"\nmsgstr "b"\n' + (b'"' + b"x" * 1000 + b'"\n') * 1100, RowFault.TOO_LONG),
    ],
)
def test_a_broken_entry_is_one_row_with_its_fault_and_its_neighbours_are_whole(tmp_path: Path, broken: bytes, fault: RowFault) -> None:
    before, after = b'msgid "x"\nmsgstr "y"\n# next\n', b'# next\nmsgctxt "c"\nmsgid "u"\nmsgstr "v"\n'
    rows = rows_of(tmp_path / "a.po", (HEADER % "UTF-8").encode() + before + broken + after)
    assert [row["fault"] for row in rows][:2] == [0, fault]
    if broken not in (b"garbage\n", b'"orphan"\n'):  # with nothing of an entry, they spoil the one that follows
        assert ours(rows)[-1] == ("u", "v", "c", 0)
        assert len(rows) == 3


def test_plural_forms_may_come_in_any_order(tmp_path: Path) -> None:
    forms = 'msgstr[2] "last"\nmsgstr[1] "middle"\nmsgstr[0] "first"\n'
    rows = rows_of(tmp_path / "a.po", f'msgid "one"\nmsgid_plural "many"\n{forms}')
    assert [row["target"] for row in rows] == ["first", "last"]


def test_of_a_text_too_long_only_the_beginning_is_kept(tmp_path: Path) -> None:
    (row,) = rows_of(tmp_path / "a.po", 'msgid "a"\nmsgstr ""\n' + ('"' + "x" * 1_000 + '"\n') * 1_500)
    assert (len(row["target"]), row["fault"]) == (PREFIX, RowFault.TOO_LONG)


def test_empty_files_and_headers_alone_have_no_rows(tmp_path: Path) -> None:
    assert rows_of(tmp_path / "a.po", b"") == []
    assert rows_of(tmp_path / "a.po", HEADER % "UTF-8") == []
