"""A document is cut into segments, reviewed and put together again; the memory is used and words left out are looked for, where asked."""

import base64
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from limelight.documents.segments import ReviewSegment
from limelight.errors import DeadlineError
from limelight.serving.refusals import TooLarge
from limelight.serving.review import routes
from limelight.store.store import open_store
from limelight.text.careful.glossary import Glossary, Term
from limelight.translator import Translator

sys.path.insert(0, str(Path(__file__).parent))
from labelled import Serving, labelled, loaded, serving

pytestmark = pytest.mark.process
HEADER = 'msgid ""\nmsgstr ""\n"Language: de\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n\n'
TEXTS = ("seven two", "never seen", "seven two", "five")
PO = HEADER + "\n".join(f'msgid "{text}"\nmsgstr ""\n' for text in TEXTS)
KNOWN = "fünf, wie je"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with loaded() as made:
        yield made


@pytest.fixture(scope="module")
def server(translator: Translator, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/a.db"
    store = open_store(url)
    list(store.memory.add(("en", "de"), [("five", KNOWN)], "old.tmx"))
    store.close()
    with serving(labelled(translator, ("en", "de")), store=url) as started:
        yield started


def packed(text: str | bytes, name: str = "a.po") -> dict[str, str]:
    return {"name": name, "data": base64.b64encode(text.encode() if isinstance(text, str) else text).decode()}


def cut(server: Serving, file: dict[str, str], **more: Any) -> list[dict[str, Any]]:
    answer = server.client.post("/api/v1/documents", json={**file, **more})
    assert answer.status_code == 200, answer.text
    segments: list[dict[str, Any]] = answer.json()["segments"]
    return segments


def put(server: Serving, file: dict[str, str], segments: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    answer = server.client.post("/api/v1/documents/file", json={**file, "segments": segments})
    assert answer.status_code == 200, answer.text
    return base64.b64decode(answer.json()["data"]).decode(), answer.json()["refused"]


def test_segments_come_the_worst_first_and_go_back_each_for_itself(server: Serving) -> None:
    found = cut(server, packed(PO))
    assert [each["confidence"] for each in found] == sorted(each["confidence"] for each in found)
    assert found[0]["source"] == "never seen" and found[0]["reasons"][0]["code"] == "unsure"
    given = {each["id"]: {"text": f"{each['id']} Ä"} for each in found}
    assert put(server, packed(PO), given) == (
        HEADER + "\n".join(f'msgid "{text}"\nmsgstr "{number} Ä"\n' for number, text in enumerate(TEXTS)),
        [],
    )


def test_what_nobody_has_looked_at_is_marked_as_a_translator_marks_it(server: Serving) -> None:
    found = {each["source"]: each for each in cut(server, packed(PO))}
    unsure, sure = found["never seen"], found["five"]
    segments = {each["id"]: {"text": "x", "confidence": each["confidence"], "doubtful": bool(each["reasons"])} for each in (unsure, sure)}
    made, refused = put(server, packed(PO), segments)
    assert made.count("#, fuzzy") == 1 and '#, fuzzy\nmsgid "never seen"' in made
    assert [each["code"] for each in refused] == ["not_given", "not_given"]
    reviewed, _ = put(server, packed(PO), segments | {unsure["id"]: {"text": "y"}})
    assert "fuzzy" not in reviewed


def test_a_reviewed_target_of_xliff_is_no_suggestion_of_a_machine(server: Serving) -> None:
    unit = '<trans-unit id="1"><source>seven</source></trans-unit>'
    old = f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{unit}</body></file></xliff>'
    new = '<xliff version="2.0" srcLang="en" trgLang="de"><file><unit><segment><source>seven</source></segment></unit></file></xliff>'
    made, _ = put(server, packed(old, "a.xlf"), {"0": {"text": "Sieben"}})
    assert '<target state="signed-off">Sieben</target>' in made and "mt-suggestion" not in made
    made, _ = put(server, packed(new, "a.xlf"), {"0": {"text": "Sieben"}})
    assert '<segment state="reviewed">' in made and "subState" not in made


def test_texts_between_tags_that_were_translated_one_by_one_are_segments(server: Serving) -> None:
    page = packed('<p title="seven">one <b>two</b> three.</p><p>five</p>', "a.html")
    found = cut(server, page)
    given = {each["id"]: {"text": f"[{each['id']}]."} for each in found}
    made, refused = put(server, page, given)
    assert refused == []
    assert all(each["text"] in made for each in given.values()), "also the full stop that a person wrote"
    assert made.startswith('<p title="[') and "<b>[" in made and made.count("<p") == 2


def test_members_of_an_archive_go_on_counting(server: Serving) -> None:
    pages = {"a.xhtml": "seven", "b.xhtml": "two"}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        for name, text in pages.items():
            archive.writestr(name, f'<html xmlns="http://www.w3.org/1999/xhtml"><body><p>{text}</p></body></html>')
    book = packed(file.getvalue(), "a.epub")
    names = {each["source"]: each["id"] for each in cut(server, book)}
    answer = server.client.post(
        "/api/v1/documents/file", json={**book, "segments": {names["seven"]: {"text": "A"}, names["two"]: {"text": "B"}}}
    )
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(answer.json()["data"]))) as archive:
        assert [f"<p>{text}</p>".encode() in archive.read(name) for name, text in zip(pages, "AB", strict=True)] == [True, True]


def test_what_would_harm_the_document_is_left_and_told(server: Serving) -> None:
    file = packed(HEADER + '#, c-format\nmsgid "seven %s"\nmsgstr ""\n')
    made, [refused] = put(server, file, {"0": {"text": "sieben"}})
    assert 'msgstr ""\n' in made.removeprefix(HEADER) and refused["code"] == "structure" and refused["line"] == 8
    assert put(server, file, {"0": {"text": "sieben %s"}})[1] == []
    assert put(server, file, {"7": {"text": "nowhere"}, "0.1": {"text": "nowhere"}})[1][0]["code"] == "not_given"


def test_the_memory_is_used_where_it_is_asked_for(server: Serving, translator: Translator) -> None:
    assert [each["from_memory"] for each in cut(server, packed(PO))] == [False] * 4
    last = cut(server, packed(PO), memory="use")[-1]
    assert (last["text"], last["from_memory"], last["source"]) == (KNOWN, True, "five")
    form = {"source": "en", "target": "de", "memory": "use"}
    place = server.client.post("/translate_file", data=form, files={"file": ("a.po", PO.encode())}).json()["translatedFileUrl"]
    assert KNOWN in server.client.get(place).text
    wrong = server.client.post("/translate_file", data={**form, "memory": "yes"}, files={"file": ("a.po", PO.encode())})
    assert wrong.status_code == 400
    with serving(labelled(translator, ("en", "de"))) as bare:
        assert bare.client.post("/api/v1/documents", json={**packed(PO), "memory": "use"}).status_code == 403
        assert bare.client.post("/translate_file", data=form, files={"file": ("a.po", PO.encode())}).status_code == 403


def test_words_left_out_are_looked_for_where_that_is_asked_for(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    from limelight.decoding.guards import Notice
    from limelight.translator import presenting

    monkeypatch.setattr(presenting, "_name_unmatched", lambda *_: [Notice("omission", "nothing came from word 1")])
    codes = [{reason["code"] for reason in each["reasons"]} for each in cut(server, packed(PO), check=True)]
    assert all("omission" in each for each in codes)
    assert all("omission" not in {reason["code"] for reason in each["reasons"]} for each in cut(server, packed(PO)))
    form = {"source": "en", "target": "de", "check": "true"}
    place = server.client.post("/translate_file", data=form, files={"file": ("a.po", PO.encode())}).json()["translatedFileUrl"]
    assert server.client.get(place).text.count("#, fuzzy") == 4


def test_terms_of_the_glossary_stand_beside_a_segment(server: Serving) -> None:
    found = cut(server, packed("seven two", "a.txt"), glossary={"two": ["Zwo", "Paar"]})
    assert [(term["source"], term["targets"]) for term in found[0]["terms"]] == [("two", ["Zwo", "Paar"])]


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"name": "a.pdf"}, 400, "kind of file"),
        ({"data": "AAA"}, 400, "at least 4"),
        ({"data": "AAAAA"}, 400, "base64"),
        ({"data": "////"}, 400, "cannot be translated"),
        ({"name": "a.docx"}, 400, "ZIP"),
        ({"model": "none"}, 404, ""),
        ({"check": "yes"}, 400, "check"),
        ({"segments": {}}, 400, "no such key"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_of_it_is_logged(
    server: Serving, change: dict[str, Any], status: int, said: str
) -> None:
    answer = server.client.post("/api/v1/documents", json={**packed("geheim"), **change})
    assert answer.status_code == status and said in answer.text
    assert "geheim" not in str(server.lines) and packed("geheim")["data"] not in str(server.lines)


def test_names_of_segments_are_checked_and_files_may_be_off(server: Serving, translator: Translator) -> None:
    wrong = server.client.post("/api/v1/documents/file", json={**packed(PO), "segments": {"../x": {"text": "a"}, "1": {"text": ""}}})
    assert wrong.status_code == 400
    with serving(labelled(translator, ("en", "de")), files=False) as bare:
        assert bare.client.post("/api/v1/documents", json=packed(PO)).status_code == 403
        assert bare.client.post("/api/v1/documents/file", json={**packed(PO), "segments": {}}).status_code == 403


def test_a_document_of_too_many_texts_is_refused_before_it_is_translated(server: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "MOST_SEGMENTS", 3)
    answer = server.client.post("/api/v1/documents", json=packed(PO))
    assert answer.status_code == 413 and "Part it" in answer.text
    answer = server.client.post("/api/v1/documents/file", json={**packed(PO), "segments": {}})
    assert answer.status_code == 413 and "Part it" in answer.text
    unit = '<trans-unit id="1"><source>a<ept id="1">.</ept> b<ept id="2">.</ept> c<ept id="3">.</ept> d</source></trans-unit>'
    unpaired = f'<xliff version="1.2"><file source-language="en" target-language="de"><body>{unit}</body></file></xliff>'
    monkeypatch.setattr(routes, "list_segments", None)  # it is refused before
    assert server.client.post("/api/v1/documents", json=packed(unpaired, "a.xlf")).status_code == 413


def test_a_glossary_is_bounded_by_what_a_document_has_unpacked(server: Serving) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("a.xhtml", f'<html xmlns="http://www.w3.org/1999/xhtml"><body>{"<p>seven two</p>" * 2_500}</body></html>')
    asked = {**packed(file.getvalue(), "a.epub"), "glossary": {f"term {number}": ["x"] for number in range(1_000)}}
    answer = server.client.post("/api/v1/documents", json=asked)
    assert answer.status_code == 413 and "22,500 characters" in answer.text


def test_terms_of_equal_texts_are_found_once_in_time_and_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = list[str]()

    class Counted(Glossary):
        def find(self, text: str) -> list[Term]:
            found.append(text)
            return list(self.terms)

    glossary, segments = Counted.of({"two": ["Zwo", "Paar"]}), [ReviewSegment("0", 1, "two", "Zwo", None, ())] * 500
    told = routes.describe_segments(segments, glossary, lambda: False)
    assert len(told) == 500 and told[-1]["terms"] == [{"source": "two", "targets": ["Zwo", "Paar"], "met": True}] and found == ["two"]
    with pytest.raises(DeadlineError):
        routes.describe_segments(segments, glossary, lambda: True)
    monkeypatch.setattr(routes, "MOST_CHARACTERS", 1_000)
    with pytest.raises(TooLarge):
        routes.describe_segments(segments, glossary, lambda: False)
