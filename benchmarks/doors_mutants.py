"""Damaged documents of each kind, with translators that answer anything: `mutants_of("md", 50)` is what is wrong with them.

What must hold: a reason for refusing it, or a result in which every text with words is found again; all texts accounted for; the same bytes
from a translator that changes nothing; a few seconds at most.
"""

import csv
import io
import json
import re
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from html import unescape
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "documents"))
from sample_documents import harm, mutant
from stand_ins import each, unchanged

from campaign_document_cases import answering
from limelight.documents.document import translate_document
from limelight.documents.formats.srt import cues
from limelight.documents.translating import Translate, TranslatedDocument
from limelight.documents.units import has_words
from limelight.errors import LimelightError

SLOW = 5.0  # seconds of CPU for one mutant, twice translated
FILLS = ("xcstrings",)  # writes a text that is the same in both languages, too


def options_of(kind: str, data: bytes) -> dict[str, Any]:
    """Of a table: the column with most letters, in its place."""
    if kind not in ("csv", "tsv"):
        return {}
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    sign = max(",;\t" if kind == "csv" else "\t", key=text.partition("\n")[0].count)
    weights: dict[int, int] = {}
    with suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=sign):
            for number, cell in enumerate(row, start=1):
                weights[number] = weights.get(number, 0) + sum(map(str.isalpha, cell))
    return {"column": str(max(weights, key=lambda number: weights[number], default=1))}


def translate(kind: str, data: bytes, translator: Translate, options: dict[str, Any] | None = None) -> TranslatedDocument:
    options = options_of(kind, data) if options is None else options
    return translate_document(data, kind, ("en", "de"), translator, name="x", **options)  # type: ignore[arg-type]


def find_faults(kind: str, data: bytes, name: str, change: Callable[[str], str]) -> set[str]:
    """What is wrong with the translation of a damaged document; nothing where it is refused with a reason."""
    began, options = time.process_time(), options_of(kind, data)
    try:
        done = translate(kind, data, each(change), options)
        judge = {"xcstrings": judge_catalogue, "vtt": judge_cues}.get(kind)
        found = judge_texts(kind, options, done) if judge is None else judge(data, done)
        if name == "unchanged" and kind not in FILLS and done.data != data:
            found.add("other bytes although nothing changed")
    except LimelightError:
        done, found = None, set()
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return {f"crash {type(error).__name__} at {Path(place.filename).name}:{place.name}"}
    if done is not None and len(done.units) != done.counts.translated + done.counts.unchanged + done.counts.failed:
        found.add("texts are not accounted for")
    return found | ({"slow"} if time.process_time() - began > SLOW else set())


def judge_catalogue(before: bytes, done: TranslatedDocument) -> set[str]:
    """Without what is new, a string catalogue says what it said."""

    def drop(data: bytes) -> Any:
        told = json.loads(data.decode("utf-8-sig"))
        for entry in told["strings"].values():
            known = entry.get("localizations") if isinstance(entry, dict) else None
            if isinstance(known, dict):
                known.pop("de", None)
                entry.pop("localizations", None) if not known else None
        return told

    return {"something else changed"} if drop(before) != drop(done.data) else set()


def judge_texts(kind: str, options: dict[str, Any], done: TranslatedDocument) -> set[str]:
    """Whoever reads the result finds every text whose translation has words."""
    try:
        again = translate(kind, done.data, each(unchanged), options).counts
    except LimelightError:
        return {"its own result is refused"}
    return {"texts lost"} if again.texts + again.left < sum(has_words(unit.text or unit.source) for unit in done.units) else set()


def judge_cues(before: bytes, done: TranslatedDocument) -> set[str]:
    """As many cues have words as before, but for those of a translation that has other things than words to part among them."""

    def count(data: bytes) -> int:
        text = data.decode("utf-8", "replace")
        said = ("\n".join(text[start:end] for start, end in cue.lines) for cue in cues(text))
        return sum(has_words(unescape(re.sub(r"<[^<>]*>", "", one))) for one in said)

    wordless = (unit for unit in done.units if not all(map(has_words, (unit.text or unit.source).split())))
    return {"texts lost"} if count(done.data) < count(before) - sum(max(1, len(unit.unit.runs)) for unit in wordless) else set()


def mutants_of(kind: str, count: int, real: Sequence[bytes] = (), seed: int = 1) -> dict[str, tuple[str, bytes]]:
    """The faults of that many mutants, each with the translator and the mutant that show it. Half are made of `real`."""
    found: dict[str, tuple[str, bytes]] = {}
    for number in range(count):
        random = Random(f"{seed}/{kind}/{number}")
        data = harm(random.choice(real), random) if real and number % 2 else mutant(kind, random)
        name, change = answering(random)
        for fault in find_faults(kind, data, name, change):
            found.setdefault(fault, (f"{number}, {name}", data))
    return found
