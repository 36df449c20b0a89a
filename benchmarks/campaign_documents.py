"""Documents that nobody would write, with translators that answer anything: refused with a reason, or right and whole.

What must hold: a LimelightError, or a result that other people's parsers read with the same structure; every text accounted for; no empty
target without a warning; the same bytes from a translator that changes nothing; under 1 s for less than 50 kB.
"""

import html.parser
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import lxml.etree
import polib

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "documents"))
import kept_structure
from sample_documents import SAMPLES
from stand_ins import each

from campaign_document_cases import Case, answering, document
from campaign_journal import Journal, shrunk
from limelight.documents.document import translate_document
from limelight.documents.translating import TranslatedDocument
from limelight.documents.units import has_words
from limelight.errors import LimelightError

SLOW, SMALL = 1.0, 50_000  # seconds of CPU, bytes
TIMES, DIGITS = re.compile(r"(?m)^\d+:\d\d:\d\d,\d+ *--> *\d"), "0123456789"
Answering = Callable[[str], str]


def run(journal: Journal, count: int) -> None:
    for number in journal.numbers(count):
        random = Random(f"{journal.seed}/{number}")
        case = document(random)
        state = random.getstate()
        name, change = answering(random)

        def found(data: bytes, state: Any = state, case: Case = case, random: Random = random, change: Answering = change) -> set[str]:
            random.setstate(state)
            return faults(Case(case.kind, data, case.harm), name, change)  # noqa: B023

        for what in found(case.data):
            small = shrunk(case.data, lambda data, what=what: what in found(data), 10.0)
            random.setstate(state)
            journal.fault(
                number,
                f"{case.kind}: {what}",
                translator=name,
                harm=case.harm,
                data=repr(small),
                came=_came(case.kind, small, change),
            )
        journal.counts[case.kind] += 1


def faults(case: Case, name: str, change: Answering) -> set[str]:
    began = time.process_time()
    try:
        done = translate_document(case.data, case.kind, ("en", "de"), each(change), name="x")  # type: ignore[arg-type]
    except LimelightError:
        return _slow(case, began)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {f"crash {type(error).__name__} at {Path(place.filename).name}:{place.name}"}
    found = _slow(case, began)
    counts = done.counts
    if counts.texts != counts.translated + counts.unchanged + counts.failed or len(done.units) != counts.texts:
        found.add("texts are not accounted for")
    if name == "unchanged" and case.kind in ("txt", "html", "srt") and done.data != case.data:
        found.add("other bytes although nothing changed")
    if case.kind != "po" or case.harm in ("", "deep"):  # polib reads much that gettext would not
        found |= JUDGES[case.kind](case.data, done)
    return found


def _slow(case: Case, began: float) -> set[str]:
    return {"slow"} if time.process_time() - began > SLOW and len(case.data) < SMALL else set()


def _tree(data: bytes) -> Any:
    return lxml.etree.fromstring(data, lxml.etree.XMLParser(huge_tree=True, resolve_entities=False))


def _xml(kind: str) -> Callable[[bytes, TranslatedDocument], set[str]]:
    def judge(before: bytes, done: TranslatedDocument) -> set[str]:
        try:
            _tree(before)
        except (lxml.etree.XMLSyntaxError, ValueError):
            return set()
        try:
            after = _tree(done.data)
        except (lxml.etree.XMLSyntaxError, ValueError):
            return {"not well-formed"}
        found = {"the tree changed"} if _kept(_tree(before), kind) != _kept(after, kind) else set()
        if kind == "xliff":
            empty = [
                unit
                for unit in after.iter("{*}trans-unit", "{*}segment")
                if (source := unit.find("{*}source")) is not None and has_words("".join(source.itertext()))
                if (target := unit.find("{*}target")) is None or not "".join(target.itertext()).strip()
            ]
            if len(empty) > done.counts.failed + done.counts.left:
                found.add("empty targets that nobody counted")
        return found

    return judge


def _kept(tree: Any, kind: str) -> list[Any]:
    """All that a translation may not touch, in its order: elements outside targets, and what their attributes and texts are."""
    kept, new = [], {"target"} if kind == "xliff" else set[str]()

    def visit(element: Any) -> None:
        name = lxml.etree.QName(element).localname if isinstance(element.tag, str) else "other"
        if name in new or (name == "tuv" and kind == "tmx" and not _is_source(element)):
            return
        stated = {"state", "subState", "target-language", "trgLang"}
        kept.append(
            (
                name,
                {key: value for key, value in element.attrib.items() if key not in stated and "/ns/its" not in key and "/its}" not in key},
            )
        )
        kept.append((element.text or "").strip())
        for child in element:
            visit(child)

    visit(tree)
    return kept


def _is_source(variant: Any) -> bool:
    language = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
    return not language.lower().startswith("de")


def _catalogue(data: bytes) -> polib.POFile:
    """From a file, since of a string polib makes lines at U+2028 too."""
    with tempfile.NamedTemporaryFile(suffix=".po") as file:
        file.write(data)
        file.flush()
        return polib.pofile(file.name, encoding="utf-8")


def _po(before: bytes, done: TranslatedDocument) -> set[str]:
    try:
        old = _catalogue(before)
    except (OSError, ValueError, IndexError, KeyError, AttributeError):
        return set()
    try:
        new = _catalogue(done.data)
    except Exception:
        return {"polib cannot read it"}
    if [(e.msgid, e.msgctxt, e.msgid_plural) for e in old] != [(e.msgid, e.msgctxt, e.msgid_plural) for e in new]:
        return {"entries changed"}
    lost = [e for e in new if not (e.msgstr or any(e.msgstr_plural.values())) and has_words(e.msgid) and not e.obsolete]
    return {"empty entries that nobody counted"} if len(lost) > done.counts.failed + done.counts.left else set()


class _Tags(html.parser.HTMLParser):
    def __init__(self, data: bytes) -> None:
        super().__init__(convert_charrefs=False)
        self.found: list[Any] = []
        self.feed(data.decode("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, [name for name, _ in attrs]))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(tag)

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", data))


def _html(before: bytes, done: TranslatedDocument) -> set[str]:
    if before.lower().count(b"<title") != before.lower().count(b"</title"):
        return set()  # Python's parser sees tags in it, browsers see text
    with suppress(UnicodeDecodeError, AssertionError):
        if sorted(map(repr, _Tags(before).found)) != sorted(map(repr, _Tags(done.data).found)):
            return {"tags changed"}
    return set()


def _srt(before: bytes, done: TranslatedDocument) -> set[str]:
    with suppress(UnicodeDecodeError, ValueError, IndexError):
        if all(TIMES.match(times) for _, times, _ in kept_structure.read_srt(before)):
            difference = kept_structure.difference("srt", before, done.data)
            return {f"structure: {difference.rstrip(DIGITS)}"} if difference else set()
    with suppress(UnicodeDecodeError):
        if len(TIMES.findall(before.decode())) != len(TIMES.findall(done.data.decode())):
            return {"times changed"}
    return set()


def _txt(before: bytes, done: TranslatedDocument) -> set[str]:
    with suppress(UnicodeDecodeError):
        if len(before.decode().splitlines()) != len(done.data.decode().splitlines()):
            return {"lines changed"}
    return set()


def _came(kind: str, data: bytes, change: Answering) -> str:
    try:
        return repr(translate_document(data, kind, ("en", "de"), each(change), name="x").data)[:1500]  # type: ignore[arg-type]
    except Exception as error:
        return repr(error)[:600]


def _again(kind: str) -> Callable[[bytes, TranslatedDocument], set[str]]:
    """Whoever reads the result finds as many texts as before."""

    def judge(before: bytes, done: TranslatedDocument) -> set[str]:
        try:
            again = translate_document(done.data, kind, ("en", "de"), each(str), name="x").counts  # type: ignore[arg-type]
        except LimelightError:
            return {"its own result is refused"}
        return {"texts lost"} if again.texts + again.left < done.counts.texts else set()

    return judge


JUDGES: dict[str, Callable[[bytes, TranslatedDocument], set[str]]] = {
    **{kind: _again(kind) for kind in SAMPLES}, "txt": _txt, "html": _html, "srt": _srt, "po": _po, "xliff": _xml("xliff"), "tmx": _xml("tmx")
}  # fmt: skip
