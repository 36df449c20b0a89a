"""Real documents through a translator and back: only the text has changed, say polib, lxml and a parser of subtitles."""

import os
from collections import Counter
from functools import cache
from pathlib import Path

import polib
import pytest
from kept_structure import difference, words
from real_files import RealFile, pages, real_files
from stand_ins import HARMS, each, reversed_words, unchanged, upper

from limelight.documents.document import translate_document

LANGUAGES = ("en", "de")


@cache
def files() -> list[RealFile]:
    folder = os.environ.get("LIMELIGHT_DATA")
    if not folder:
        pytest.skip("LIMELIGHT_DATA names no folder with l10n and iwslt17-ted")
    return real_files(Path(folder))


@pytest.mark.slow
def test_there_are_fifty_real_files_of_every_kind() -> None:
    kinds = Counter(file.kind for file in files())
    assert sum(kinds[kind] for kind in ("po", "xliff", "html", "srt")) >= 50
    assert min(kinds[kind] for kind in ("po", "xliff", "html", "srt", "tmx")) >= 5 and kinds["txt"] >= 1


@pytest.mark.slow
def test_what_comes_back_unchanged_stays_the_same_to_the_byte() -> None:
    for file in files():
        done = translate_document(file.data, file.kind, LANGUAGES, each(unchanged))
        if file.kind in ("html", "srt", "txt"):
            assert done.data == file.data, file.name
        assert difference(file.kind, file.data, done.data) is None, file.name
        assert {remark.code for remark in done.warnings} <= {"wordless"}, (file.name, done.warnings[:3])


@pytest.mark.slow
@pytest.mark.parametrize("change", [reversed_words, *HARMS], ids=lambda change: change.__name__)
def test_the_structure_stays_whatever_the_translator_does_to_the_text(change: object) -> None:
    changed = 0
    for file in files():
        done = translate_document(file.data, file.kind, LANGUAGES, each(change))  # type: ignore[arg-type]
        problem = difference(file.kind, file.data, done.data)
        assert problem is None, f"{file.name}: {problem}"
        counts = done.counts
        assert counts.texts == counts.translated + counts.unchanged + counts.failed
        changed += done.data != file.data
    assert changed > len(files()) / 2


@pytest.mark.slow
def test_no_word_of_a_page_gets_lost() -> None:
    """In capital letters on both sides, so that what was translated compares equal."""
    for file in pages():
        for change in (upper, reversed_words):
            done = translate_document(file.data, "html", LANGUAGES, each(change))
            assert words("html", file.data) == words("html", done.data), file.name
            assert done.counts.translated == done.counts.texts - done.counts.unchanged, file.name


@pytest.mark.slow
def test_every_empty_translation_of_a_catalogue_is_filled() -> None:
    for file in files():
        if file.kind == "po":
            done = polib.pofile(translate_document(file.data, "po", LANGUAGES, each(upper)).data.decode())
            left = [entry.msgid for entry in done.untranslated_entries() if any(map(str.isalpha, entry.msgid))]
            assert set(left) <= {"translator-credits"}, file.name
