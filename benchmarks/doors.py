"""Real files of each kind of document (benchmarks/doors_files.py) through the documents' door.

    python benchmarks/doors.py identity FOLDER              a translator that changes nothing gives the same bytes
    python benchmarks/doors.py translated FOLDER            another program opens the translation, and sees the same structure
    python benchmarks/doors.py mutants 1000 [FOLDER]        that many damaged ones of each kind: no crash, no hang, no silent loss

The translator of `translated` writes capital letters, or words from back to front; two files of each kind (--by-engine) go through the real
engine as well (a bundle of the tests).
Who opens what is in `doors_readers.py`; a reader that is not installed is named and counts as a fault. A line for each kind, then the
faults; the exit code is 1 if there are any.
"""

import argparse
import sys
import traceback
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "documents"), str(ROOT / "benchmarks")]
from sample_documents import SAMPLES
from stand_ins import each, reversed_words, unchanged, upper

from doors_files import RealFile, read_list
from doors_mutants import FILLS, mutants_of, translate
from doors_readers import READERS, UnreadableError
from limelight.documents.translating import Translate
from limelight.errors import LimelightError

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
TURNED = ("docx", "odt", "pptx", "json", "properties")  # kinds whose words go from back to front instead of in capital letters
SMALL = 60_000  # bytes of a real file of which mutants are made
BY_ENGINE, TEXTS = 2, 40  # files of a kind, and texts of each, that the engine translates


def check_identity(file: RealFile) -> list[str]:
    data = file.path.read_bytes()
    done = translate(file.kind, data, each(unchanged))
    return [] if done.data == data or file.kind in FILLS else ["other bytes although nothing changed"]


@cache
def read_before(file: RealFile) -> Any:
    """What the reader sees in the file as it is: some take minutes, and the engine comes after the stand-in."""
    return READERS[file.kind](file.path.read_bytes())


def check_translated(file: RealFile, translator: Translate, may_fail: bool = False) -> list[str]:
    """`may_fail`: a real translator may have nothing to say about a text, which then stays, with a warning."""
    data = file.path.read_bytes()
    done = translate(file.kind, data, translator)
    found = [f"{done.counts.failed} texts failed"] if done.counts.failed and not may_fail else []
    try:
        before = read_before(file)
    except UnreadableError as error:
        print(f"    {file.path.name}: not judged, since its reader refuses the file as it is ({error})")
        return found
    try:
        return [*found, *([] if READERS[file.kind](done.data) == before else ["another structure"])]
    except UnreadableError as error:
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=("identity", "translated", "mutants"))
    parser.add_argument("words", nargs="*", help="FOLDER, and for mutants their number before it")
    parser.add_argument("--only", help="kinds, with commas between")
    parser.add_argument("--most", type=int, help="files of each kind, the smallest; all if it is not said")
    parser.add_argument("--by-engine", type=int, default=BY_ENGINE, help="files of each kind that go through the real engine as well")
    asked = parser.parse_args()
    numbers = [int(word) for word in asked.words if word.isdecimal()]
    folders = [Path(word) for word in asked.words if not word.isdecimal()]
    wanted = asked.only.split(",") if asked.only else list(SAMPLES)
    sized = sorted((file for folder in folders for file in read_list(folder)), key=lambda file: file.path.stat().st_size)
    files = [file for kind in wanted for file in [file for file in sized if file.kind == kind][: asked.most]]
    if asked.trial == "identity":
        return bool(run_files(files, check_identity))
    if asked.trial == "translated":
        faults = run_files(files, lambda file: check_translated(file, each(reversed_words if file.kind in TURNED else upper)))
        small = [file for kind in wanted for file in [file for file in sized if file.kind == kind][: asked.by_engine]]
        print("by the engine:")
        translator = engine()
        return bool(faults + run_files(small, lambda file: check_translated(file, translator, may_fail=True)))
    total = 0
    for kind in wanted:
        real = [data for file in files if file.kind == kind and len(data := file.path.read_bytes()) < SMALL]
        found = mutants_of(kind, numbers[0] if numbers else 1000, real)
        total += len(found)
        said = [f"    {what}: {how} {data[:300]!r}" for what, (how, data) in found.items()]
        print("\n".join([f"{kind:<12} {len(found)} faults", *said]), flush=True)
    return bool(total)


if __name__ == "__main__":
    sys.exit(main())
