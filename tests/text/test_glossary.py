"""Terms are found in a text, looked for in its translation, and read from files of others."""

import gzip
import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.errors import ConfigError, DataError
from limelight.text.careful import glossary as module
from limelight.text.careful.glossary import Glossary, Term, is_met

DATA = os.environ.get("LIMELIGHT_DATA")


def found(text: str, *sources: str) -> list[str]:
    return [term.source for term in Glossary.of(dict.fromkeys(sources, "x")).find(text)]


@pytest.mark.parametrize(
    ("text", "sources", "expected"),
    [
        ("Open the file.", ["file"], ["file"]),
        ("The FILE and the File", ["file"], ["file"]),
        ("two files, three boxes, four queries", ["file", "box", "query"], ["file", "box", "query"]),
        ("profile, files_2, filed", ["file"], []),
        ("IT knows it", ["IT"], ["IT"]),
        ("we know it", ["IT"], []),
        ("two URLs", ["URL"], ["URL"]),
        ("two urls", ["URL"], []),
        ("the user group of users", ["user", "user group"], ["user group", "user"]),
        ("the user group", ["user", "user group"], ["user group"]),
        ("one two three four", ["one two", "two three four"], ["two three four"]),
        ("file, box, file", ["box", "file"], ["file", "box"]),
        ("user\u00a0 group", ["user group"], ["user group"]),
        ("C++ and C", ["C++", "C"], ["C++", "C"]),
        ("an e-mail", ["e-mail"], ["e-mail"]),
        ("<b>file</b>", ["file"], ["file"]),
        ("user's", ["user"], ["user"]),
        ("打开数据库文件", ["数据库"], ["数据库"]),
        ("cafe\u0301", ["café"], ["café"]),
        ("STRASSE", ["Straße"], ["Straße"]),
        ("name or Name", ["Name", "name"], ["name", "Name"]),
        ("the Name", ["name", "Name"], ["Name"]),
        ("user group", ["user group policy"], []),
        ("", ["file"], []),
    ],
)  # fmt: skip
def test_terms_are_found_as_whole_words_the_longest_first(text: str, sources: list[str], expected: list[str]) -> None:
    assert found(text, *sources) == expected


@pytest.mark.parametrize(
    ("targets", "translation"),
    [
        (["Konnektor"], "Die Konnektorinstanzen"),
        (["Konnektor"], "ein KONNEKTOR"),
        (["Speicher"], "Der Datenspeicher"),
        (["Typ"], "zwei Typen"),
        (["Typ"], "der Standardregeltyp"),
        (["ID"], "die ID."),
        (["neue Datei"], "in der neuen Dateien"),
        (["Cloud Connector"], "der Cloud-Connector"),
        (["Cloud Connector"], "der Cloud\u00a0Connector"),
        (["Baum"], "die Bäume"),
        (["Straße"], "STRASSEN"),
        (["x", "Datei"], "eine Datei"),
        (["数据库"], "打开数据库文件"),
        (["пространство"], "Создание пространств"),
        (["C++"], "in C++ geschrieben"),
        (["(neu)"], "eine (neu)e"),
        (["neue Datei"], "die Datei (neue Dateien)"),
        (["E-Mail"], "die E\u2011Mails"),
        (["E-Mail"], "eine E Mail"),
        (["Cloud-Connector Datei"], "Cloud Connector Dateien"),
        (["Regel Typ"], "die Grundregel-Typen"),
        (["--"], "a -- b"),
    ],
)
def test_a_target_may_be_inflected_compounded_and_in_any_case(targets: list[str], translation: str) -> None:
    assert is_met(Term("s", tuple(targets)), translation)


@pytest.mark.parametrize(
    ("targets", "translation"),
    [
        (["Konnektor"], "Die Verbindung"),
        (["Ja"], "im Jahr"),
        (["ID"], "die Idee"),
        (["Typ"], "ein typisches Bild"),
        (["Art"], "viele Karten"),
        (["neue Datei"], "neue und alte Datei"),
        (["Datei", "Akte"], "ein Haus"),
        (["C++"], "in C geschrieben"),
        (["数据库"], "数据"),
        (["Datei"], ""),
        (["E-Mail"], "eine Mail"),
        (["neue Datei"], "neue. Datei"),
        (["Regel Ja"], "Regel Jahr"),
        (["--"], "a - b"),
        (["\u0301"], "a - b"),
        (["-\u0301 \u0302"], "a - b"),
    ],
)
def test_other_words_are_not_the_target(targets: list[str], translation: str) -> None:
    assert not is_met(Term("s", tuple(targets)), translation)


@pytest.mark.slow
@given(
    st.dictionaries(st.text("ab s-中", min_size=1, max_size=8).filter(str.strip), st.just("x"), min_size=1, max_size=8),
    st.text("ab s-中", max_size=30),
)
def test_found_terms_stand_in_the_text(terms: dict[str, str], text: str) -> None:
    glossary = Glossary.of(terms)
    hits = glossary.find(text)
    assert len(set(hits)) == len(hits)
    for term in hits:
        bare = "".join(term.source.split())
        assert bare.lower() in "".join(text.split()).lower()
    for term in glossary.terms:
        assert Glossary((term,)).find(f"{term.source} ") == [term]


def test_a_glossary_is_made_of_words_or_of_lists() -> None:
    glossary = Glossary.of({"connector": "Konnektor", " file ": ["Datei", "Akte", " Datei", ""]})
    assert glossary.terms == (Term("connector", ("Konnektor",)), Term("file", ("Datei", "Akte")))
    assert glossary == Glossary(glossary.terms)


def test_all_that_is_wrong_with_given_terms_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        Glossary.of({"": "a", "b": "", "c": [], "d": "x" * 201, "e": "x\ny", "f": [str(n) for n in range(21)], "g": "fine"})
    assert caught.value.problems == (
        "term 1: the source is empty",
        "term 2: the target is empty",
        "term 3: the target is empty",
        "term 4: a term of more than 200 characters",
        "term 5: a control character in a term",
        "term 6: more than 20 targets of one term",
    )


def test_a_tsv_file_has_a_header_variants_and_further_columns(tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    path.write_bytes("\ufeffSource\tTarget\tnote\r\nconnector\tKonnektor|Verbinder\tx\r\n\r\nfile\tDatei\r\nfile\tAkte\n".encode())
    assert Glossary.load(path).terms == (Term("connector", ("Konnektor", "Verbinder")), Term("file", ("Datei", "Akte")))
    path.write_bytes(b"")
    assert Glossary.load(path).terms == ()


def test_all_that_is_wrong_with_a_file_is_said_with_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "g.tsv"
    path.write_bytes(b"a\tb\nno tab\n\xff\tx\n\ty\nz\t |\n" + b"q\n" * 30)
    with pytest.raises(DataError) as caught:
        Glossary.load(path)
    message = str(caught.value)
    for problem in ("TSV (source, a tab, target", "TBX", "line 2: no tab", "line 3: not UTF-8"):
        assert problem in message
    assert "and 14 more" in message
    path.write_bytes(b"\ty\nz\t |\n")
    with pytest.raises(DataError, match=r"line 1: the source is empty\n.*line 2: the target is empty"):
        Glossary.load(path)


def test_sizes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.tsv"
    path.write_bytes(b"a\tb\nc\td\n")
    monkeypatch.setattr(module, "MOST_TERMS", 1)
    with pytest.raises(DataError, match="2 terms, of which 1 can be used"):
        Glossary.load(path)
    monkeypatch.setattr(module, "LARGEST_FILE", 4)
    with pytest.raises(DataError, match="more than"):
        Glossary.load(path)
    with pytest.raises(DataError, match="cannot be read"):
        Glossary.load(tmp_path / "none.tsv")


OLD = """<?xml version="1.0"?><!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd"><martif type="TBX-Basic" xml:lang="en"><text><body>
<termEntry id="1"><descrip type="definition">a <hi>thing</hi></descrip>
<langSet xml:lang="en-US"><tig><term>connector</term></tig><tig><term>link</term></tig></langSet>
<langSet xml:lang="de"><ntig><termGrp><term>Verbinder</term></termGrp></ntig>
<tig><term>Kon<hi>nektor</hi></term><termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig>
<tig><term>Stecker</term><termNote type="administrativeStatus">deprecatedTerm-admn-sts</termNote></tig></langSet>
<langSet xml:lang="fr"><tig><term>connecteur</term></tig></langSet></termEntry>
<termEntry><langSet xml:lang="en"><tig><term>alone</term></tig></langSet></termEntry></body></text></martif>"""
NEW = """<tbx xmlns="urn:iso:std:iso:30042:ed-2" type="TBX-Basic" style="dca" xml:lang="en"><text><body><conceptEntry id="1">
<langSec xml:lang="en"><termSec><term>user  group</term></termSec></langSec>
<langSec xml:lang="de"><termSec><term>Benutzergruppe</term></termSec></langSec></conceptEntry></body></text></tbx>"""


def test_a_tbx_file_of_either_generation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "g.tbx"
    path.write_bytes(OLD.encode())
    both = ("Konnektor", "Verbinder")
    assert Glossary.load(path, ("en", "de-AT")).terms == (Term("connector", both), Term("link", both))
    assert Glossary.load(path, ("de", "fr")).terms == (
        Term("Konnektor", ("connecteur",)),
        Term("Verbinder", ("connecteur",)),
    )
    path.write_bytes(NEW.encode())
    assert Glossary.load(path).terms == (Term("user group", ("Benutzergruppe",)),)
    other = tmp_path / "terms"
    other.write_bytes(b"\xef\xbb\xbf\n" + NEW.encode())
    assert Glossary.load(other, ("de", "en")).terms == (Term("Benutzergruppe", ("user group",)),)


def test_a_tbx_file_with_other_languages_is_refused_with_theirs(tmp_path: Path) -> None:
    path = tmp_path / "g.tbx"
    path.write_bytes(OLD.encode())
    with pytest.raises(DataError, match="en-US, de, fr, en"):
        Glossary.load(path)
    with pytest.raises(DataError, match="no concept has terms in en and in is"):
        Glossary.load(path, ("en", "is"))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ('<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "a DTD inside"),
        ("<a>&nbsp;</a>", "well-formed"),
        ('<!DOCTYPE a SYSTEM "file:///etc/passwd"><a>&x;</a>', "the entity &x;"),
        ("<a>" * 300, "more than 256 deep"),
        (f"<a><!-- {'x' * (3 << 20)}", "a tag or comment"),
        ("<a>", "well-formed"),
        ("<a\x00>", "well-formed"),
    ],
)
def test_hostile_xml_is_refused(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "g.tbx"
    path.write_bytes(content.encode())
    with pytest.raises(DataError, match=what):
        Glossary.load(path)


def test_words_that_are_what_stands_between_words_are_looked_for_in_a_moment() -> None:
    """As a pattern this took time exponential in the number of dashes."""
    began = time.process_time()
    assert not is_met(Term("one", (" ".join(["-"] * 60 + ["x"]),)), "-" * 200)
    assert is_met(Term("one", (" ".join(["-"] * 60 + ["x"]),)), f"{'-' * 200} x")
    assert time.process_time() - began < 1


TERMS = st.lists(st.text("ab字 ", min_size=1, max_size=9).filter(str.strip), min_size=1, max_size=8)


@pytest.mark.slow
@given(TERMS, st.text("ab字 ", max_size=30))
def test_one_pass_finds_what_trying_every_term_at_every_place_finds(sources: list[str], text: str) -> None:
    words = text.replace("字", " 字 ").split()
    terms = dict.fromkeys(tuple(source.replace("字", " 字 ").split()) for source in sources)
    places = [(at, term) for term in terms for at in range(len(words)) if tuple(words[at : at + len(term)]) == term]
    taken, expected = set[int](), list[tuple[int, tuple[str, ...]]]()
    for at, term in sorted(places, key=lambda place: (-len(place[1]), place[0])):
        if taken.isdisjoint(range(at, at + len(term))):
            taken.update(range(at, at + len(term)))
            expected.append((at, term))
    hits = [tuple(source.replace("字", " 字 ").split()) for source in found(text, *sources)]
    assert hits == list(dict.fromkeys(term for _, term in sorted(expected)))


def test_thousands_of_terms_with_the_same_beginning_are_searched_in_a_moment() -> None:
    glossary = Glossary(tuple(Term(f"user group {n}", ("x",)) for n in range(20_000)))
    text = "the user group 19999 and user group policy " * 50
    assert glossary.find("user group") == []  # from here on it is indexed
    began = time.process_time()
    assert [term.source for term in glossary.find(text)] == ["user group 19999"]
    assert time.process_time() - began < 2


@pytest.mark.skipif(not DATA, reason="LIMELIGHT_DATA is not set")
def test_required_terms_are_found_in_real_sources_and_met_by_real_references() -> None:
    asked = hits = fine = 0
    for line in gzip.decompress((Path(DATA or "") / "wmt25-terminology" / "test.en-de.jsonl.gz").read_bytes()).split(b"\n"):
        row = json.loads(line) if line else {"proper": {}}
        for source, target in row["proper"].items():
            glossary = Glossary.of({source: target})
            asked += 1
            hits += glossary.find(row["en"]) != []
            fine += is_met(glossary.terms[0], row["de"])
    assert hits > 0.96 * asked  # the others are parts of words: "reporting", "Charset", "AddCreate"
    assert fine > 0.99 * asked


@pytest.mark.skipif(not DATA, reason="LIMELIGHT_DATA is not set")
def test_a_real_glossary_is_read() -> None:
    glossary = Glossary.load(Path(DATA or "") / "l10n" / "glossary.en-de.tsv")
    assert len(glossary.terms) == 1491
    assert [term.targets for term in glossary.find("Cancel the help")] == [("Abbrechen",), ("Hilfe",)]
