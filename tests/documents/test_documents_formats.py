"""What a program fills in survives in catalogues: compared as gettext compares it, and judged by gettext itself."""

import os
import sys
from itertools import islice
from pathlib import Path
from shutil import which

import polib
import pytest
from stand_ins import each

sys.path.insert(0, str(Path(__file__).parents[1] / "translator"))
import judged_by_msgfmt as msgfmt
from random_weights import random_translator

from limelight.decoding.config import SearchSettings
from limelight.documents.document import translate_document
from limelight.documents.formats.po import is_part, keeps_format

needs_gettext = pytest.mark.skipif(which("msgfmt") is None, reason="gettext is not installed: apt-get install gettext")


@pytest.mark.parametrize(
    ("flag", "source", "right", "wrong"),
    [
        ("c", "%s of %d", "%s von %d", "%d von %s"),
        ("c", "%s of %d", "aus %s, %d", "%s"),
        ("c", "%1$s of %2$d", "%2$d von %1$s", "%2$s von %1$d"),
        ("c", "%d%% off", "%d ohne", "%d %"),
        ("c", "plain", "schlicht", "50% schlicht"),
        ("c", "50% of %s", "50% ohne %s", "50 % von %s"),
        ("c", "%s: %m %d", "%m %s %d", "%s %d"),
        ("python", "%(a)s of %(b)d", "%(b)d von %(a)s", "%(a)d von %(b)s"),
        ("python-brace", "{} of {:>10}", "{} von {:>10}", "{:>10} von {}"),
        ("python-brace", "{a} of {b!r}", "{b!r} von {a}", "{b} von {a}"),
        ("java", "can''t {0}", "nicht {0}", "l'{0}"),
        ("qt", "%1 of %L2", "%L2 von %1", "%2 von %1"),
        ("ruby", "%{a} of %<b>d", "%<b>d von %{a}", "%{b} von %<b>d"),
        ("sh", "$a of ${b}", "${b} von $a", "$a von $b"),
    ],
)
def test_a_translation_keeps_the_format_or_does_not(flag: str, source: str, right: str, wrong: str) -> None:
    assert keeps_format(source, right, {f"{flag}-format"}) and not keeps_format(source, wrong, {f"{flag}-format"})
    for said in ({f"no-{flag}-format"}, {f"possible-{flag}-format"}, {"fuzzy"}, {"lisp-format"}, set[str]()):
        assert keeps_format(source, wrong, said)


def test_a_singular_may_leave_out_what_its_plural_has_at_the_end() -> None:
    assert is_part("one file", "%d files", {"c-format"}) and is_part("%d file", "%d files in %s", {"c-format"})
    assert not is_part("a file of %s", "%d files of %s", {"c-format"})
    assert is_part("%d file", "%'d files", {"c-format"}) and is_part("%d file", "%05d files", {"c-format"})
    assert not is_part("%s file", "%'d files", {"c-format"}) and not is_part("%ld file", "%'d files", {"c-format"})
    assert is_part("a file of %(a)s", "%(n)d files of %(a)s", {"python-format"})


def test_an_entry_whose_translation_would_break_the_program_is_left_and_said() -> None:
    data = msgfmt.catalogue(['#, c-format\nmsgid "%s on %d"\nmsgstr ""\n'])
    done = translate_document(data, "po", ("en", "de"), each(lambda _: "%d auf %s"))
    assert done.data == data and done.counts.failed == 1 and [remark.code for remark in done.warnings] == ["structure"]


def test_plural_forms_are_written_together_or_not_at_all() -> None:
    """gettext refuses an entry of which one form is there and another is not."""
    data = msgfmt.catalogue(['#, c-format\nmsgid "one file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'])
    done = translate_document(data, "po", ("en", "de"), each(lambda text: "Dateien"))
    assert done.data == data and sorted(remark.code for remark in done.warnings) == ["forms", "structure"]
    assert done.counts.failed == done.counts.texts == 2
    done = translate_document(data, "po", ("en", "de"), each(lambda text: text.replace("file", "Datei")))
    assert done.counts.translated == 2 and b'msgstr[1] "%d Dateis"' in done.data


def test_apostrophes_of_java_are_doubled_and_control_characters_dropped() -> None:
    data = msgfmt.catalogue(['#, java-format\nmsgid "it\'\'s {0}"\nmsgstr ""\n'])
    asked: list[str] = []
    done = translate_document(data, "po", ("en", "de"), each(lambda text: asked.append(text) or "l'\x04{0}"))
    assert asked == ["it's {0}"] and polib.pofile(done.data.decode())[0].msgstr == "l'' {0}"


@pytest.mark.process
@needs_gettext
@pytest.mark.parametrize("harm", [lambda text: " ".join(reversed(text.split())), str.upper, lambda text: text + " 5% x", lambda _: "'{%"])
def test_gettext_accepts_whatever_a_translator_does(harm: object, tmp_path: Path) -> None:
    """A translator that turns words round, shouts, or writes signs of its own: what would be refused is not written."""
    done = translate_document(msgfmt.catalogue(msgfmt.wicked()), "po", ("en", "de"), each(harm))  # type: ignore[arg-type]
    assert msgfmt.complaints(done.data, tmp_path) == [] and done.counts.translated > 0


@pytest.mark.process
@needs_gettext
@pytest.mark.slow
def test_gettext_accepts_wicked_and_real_strings_from_a_model_of_random_weights(tmp_path: Path) -> None:
    folder = os.environ.get("LIMELIGHT_DATA")
    real = islice(msgfmt.real(Path(folder)), 30) if folder else ()
    entries = [*msgfmt.wicked(), *real]
    search = SearchSettings(beam=1, max_length=40)
    with random_translator() as translator:
        done = translate_document(
            msgfmt.catalogue(entries),
            "po",
            ("en", "de"),
            lambda texts: translator.translate(texts, search, segment=True),
        )
    assert msgfmt.complaints(done.data, tmp_path) == []
    assert done.counts.failed < 12  # those whose source is wrong itself, such as "50% of %s" in C
