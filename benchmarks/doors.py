"""Real files of each kind of document (benchmarks/doors_files.py) through the documents' door.

    python benchmarks/doors.py identity FOLDER              a translator that changes nothing gives the same bytes
    python benchmarks/doors.py translated FOLDER            another program opens the translation, and sees the same structure
    python benchmarks/doors.py mutants 1000 [FOLDER]        that many damaged ones of each kind: no crash, no hang, no silent loss

The translator of `translated` writes capital letters; two files of each kind go through the real engine as well (a bundle of the tests).
Who opens what is in `doors_readers.py`; a reader that is not installed is named and counts as a fault. A line for each kind, then the
faults; the exit code is 1 if there are any.
"""

import argparse
import csv
import io
import json
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "documents"), str(ROOT / "benchmarks")]
from sample_documents import SAMPLES, harm, mutant
from stand_ins import each, reversed_words, unchanged, upper

from campaign_document_cases import answering
from doors_files import RealFile, read_list
from doors_readers import READERS, Unreadable
from limelight.documents.document import translate_document
from limelight.documents.translating import Translate, TranslatedDocument
from limelight.documents.units import has_words
from limelight.errors import LimelightError

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
BY_ENGINE, TEXTS = 2, 40  # files of a kind, and texts of each, that the engine translates
SLOW = 5.0  # seconds of CPU for one mutant, twice translated
SMALL = 60_000  # bytes of a real file of which mutants are made
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


def check_identity(file: RealFile) -> list[str]:
    data = file.path.read_bytes()
    done = translate(file.kind, data, each(unchanged))
    return [] if done.data == data or file.kind in FILLS else ["other bytes although nothing changed"]


def check_translated(file: RealFile, translator: Translate) -> list[str]:
    data = file.path.read_bytes()
    done = translate(file.kind, data, translator)
    found = [f"{done.counts.failed} texts failed"] if done.counts.failed else []
    try:
        before = READERS[file.kind](data)
    except Unreadable as error:
        return [*found, f"its reader refuses it as it is ({error})"]
    try:
        return [*found, *([] if READERS[file.kind](done.data) == before else ["another structure"])]
    except Unreadable as error:
        return [*found, f"its reader refuses the translation ({error})"]


def engine() -> Translate:
    """The first texts by a real translator, the others in capital letters."""
    from limelight.decoding.config import SearchSettings
    from limelight.translator.translate import Translator

    translator, search = Translator.load(BUNDLE), SearchSettings(beam=1)
    return lambda texts: [*translator.translate(texts[:TEXTS], search), *each(upper)(texts[TEXTS:])]


def run_files(files: list[RealFile], check: Callable[[RealFile], list[str]]) -> int:
    faults = 0
    for kind in dict.fromkeys(file.kind for file in files):
        said, right, chosen = list[str](), 0, [file for file in files if file.kind == kind]
        for file in chosen:
            try:
                found = check(file)
            except LimelightError as error:
                found = [f"refused: {error}"]
            except Exception as error:
                found = [f"{type(error).__name__} at {traceback.extract_tb(error.__traceback__)[-1]}"]
            right += not found
            said += [f"    {file.package}: {file.path.name}: {one}" for one in found]
        faults += len(said)
        print("\n".join([f"{kind:<12} {right:>3} of {len(chosen)} right", *said]), flush=True)
    return faults


def find_faults(kind: str, data: bytes, name: str, change: Callable[[str], str]) -> set[str]:
    """What is wrong with the translation of a damaged document; nothing where it is refused with a reason."""
    began, options = time.process_time(), options_of(kind, data)
    try:
        done = translate(kind, data, each(change), options)
        found = judge_catalogue(data, done) if kind == "xcstrings" else judge_texts(kind, options, done)
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


def mutants_of(kind: str, count: int, files: Iterable[RealFile], seed: int = 1) -> dict[str, tuple[str, bytes]]:
    """The faults of that many mutants, each with the translator and the mutant that show it. Half are of real files, if there are any."""
    real = [data for file in files if file.kind == kind and len(data := file.path.read_bytes()) < SMALL]
    found: dict[str, tuple[str, bytes]] = {}
    for number in range(count):
        random = Random(f"{seed}/{kind}/{number}")
        data = harm(random.choice(real), random) if real and number % 2 else mutant(kind, random)
        name, change = answering(random)
        for fault in find_faults(kind, data, name, change):
            found.setdefault(fault, (f"{number}, {name}", data))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=("identity", "translated", "mutants"))
    parser.add_argument("words", nargs="*", help="FOLDER, and for mutants their number before it")
    parser.add_argument("--only", help="kinds, with commas between")
    asked = parser.parse_args()
    numbers = [int(word) for word in asked.words if word.isdecimal()]
    folders = [Path(word) for word in asked.words if not word.isdecimal()]
    wanted = asked.only.split(",") if asked.only else list(SAMPLES)
    files = [file for folder in folders for file in read_list(folder) if file.kind in wanted]
    if asked.trial == "identity":
        return bool(run_files(files, check_identity))
    if asked.trial == "translated":
        faults = run_files(files, lambda file: check_translated(file, each(reversed_words if file.kind in READS_ORDER else upper)))
        small = [file for kind in wanted for file in sorted((f for f in files if f.kind == kind), key=lambda f: f.path.stat().st_size)[:BY_ENGINE]]
        print("by the engine:")
        translator = engine()
        return bool(faults + run_files(small, lambda file: check_translated(file, translator)))
    total = 0
    for kind in wanted:
        found = mutants_of(kind, numbers[0] if numbers else 1000, files)
        total += len(found)
        print("\n".join([f"{kind:<12} {len(found)} faults", *(f"    {what}: {how} {data[:300]!r}" for what, (how, data) in found.items())]), flush=True)
    return bool(total)


READS_ORDER = ("docx", "odt", "pptx", "json", "properties")

if __name__ == "__main__":
    sys.exit(main())
