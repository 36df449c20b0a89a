"""An attempt to learn takes the corrections there are, holds some out, and is written whole before it begins; a killed one goes on.

learnt/3/plan.json         `LearningPlan`
learnt/3/taught.jsonl      what it is taught, of all corrections and not only of the new ones: what was learnt before is not forgotten
learnt/3/held-out.jsonl    a fifth, by a hash of the source: what is held out once is never taught
learnt/3/refused.jsonl     what the gate refused, with the reason
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from limelight.bundle.strict_json import read_json, settings_of
from limelight.bundle.versions import LEARNT, RUN, LearningPlan, read_history
from limelight.corpus.reading.raw import ROWS, CorpusPart
from limelight.corpus.reading.records import read_jsonl
from limelight.errors import DataError
from limelight.files import whole_folder
from limelight.learning.gate import Pair, Sifted
from limelight.text.languages import Direction
from limelight.training.run_folder import BUNDLE, FACTS, RECIPE, STATUS

FEWEST = 50  # corrections that can be taught: of fewer nobody could tell whether they help
FEWEST_HELD = 8  # of fewer no paired test can be sure
HELD_OUT = 51 / 256  # of the sources
REPLAY = 0.8  # of what is seen is old text, where there is some: with half, what was learnt was paid for by forgetting
OF_USE = (BUNDLE, FACTS, STATUS, RECIPE)  # of a run; all else holds texts
PLAN, TAUGHT, HELD, REFUSED = "plan.json", "taught.jsonl", "held-out.jsonl", "refused.jsonl"


def read_corrections(path: Path, languages: Direction) -> list[Pair]:
    """Lines of JSON: {"source": ..., "correction": ...}, or what suggestions are written as, {"translation": {"en": ..., "de": ...}}."""
    if not path.is_file():
        raise DataError(f"{path} is no file; give a file with a correction in each line, as JSON")
    source, target = languages
    found = _read_pairs(path, languages, ("source", "correction"))
    for columns in ((f"translation.{source}", f"translation.{target}"), None):
        if None in found:
            others = _read_pairs(path, languages, columns)
            found = [one or other for one, other in zip(found, others, strict=True)]
    if broken := [str(line) for line, pair in enumerate(found, start=1) if pair is None]:
        named = ", ".join(broken[:10]) + (", ..." if len(broken) > 10 else "")
        raise DataError(f"{path}: no correction stands in line {named}; mend these lines, or take them out")
    return [pair for pair in found if pair is not None]


def _read_pairs(path: Path, languages: Direction, columns: tuple[str, str] | None) -> list[Pair | None]:
    """None for a line that has none."""
    batches = read_jsonl(CorpusPart(0, 0, "jsonl", (str(path),), languages, columns), ROWS)
    rows = (row for batch in batches for row in zip(*(batch[name].to_pylist() for name in ("fault", "source", "target")), strict=True))
    return [None if fault else (source, target) for fault, source, target in rows]


def find_unfinished(folder: Path) -> LearningPlan | None:
    """The attempt that was begun, and of which the history knows no end."""
    number = _last(folder) + 1
    place = folder / LEARNT / str(number)
    return settings_of(LearningPlan, place, PLAN, read_json(place, PLAN)[1]) if (place / PLAN).is_file() else None


def goes_on(folder: Path, plan: LearningPlan, pairs: Iterable[Pair], minutes: float) -> bool:
    """Whether an attempt that was begun is still what is asked for: as long, and nothing of it was deleted or is of another file."""
    return plan.minutes == minutes and _read_attempt(folder, plan.number) <= set(pairs)


def count_new(folder: Path, pairs: Iterable[Pair]) -> int:
    """How many the last attempt had not."""
    return len(set(pairs) - _read_attempt(folder, _last(folder)))


def _read_attempt(folder: Path, number: int) -> set[tuple[str, ...]]:
    place, seen = folder / LEARNT / str(number), set[tuple[str, ...]]()
    for path in (place / name for name in (TAUGHT, HELD, REFUSED)):
        if path.is_file():
            with path.open(encoding="utf-8", newline="\n") as lines:
                seen.update(tuple(json.loads(line)["translation"].values()) for line in lines)
    return seen


def begin_attempt(folder: Path, sifted: Sifted, languages: Direction, minutes: float) -> LearningPlan | None:
    """The plan of the next version, on disk; None where there is too little to teach, or to judge it by."""
    taught = [pair for pair in sifted.taken if not is_held_out(pair[0])]
    held = [pair for pair in sifted.taken if is_held_out(pair[0])]
    if len(taught) < FEWEST or len(held) < FEWEST_HELD:
        return None
    plan = LearningPlan(
        number=_last(folder) + 1, parent=read_history(folder).current, at=datetime.now(UTC).isoformat(timespec="seconds"), minutes=minutes,
        corrections=len(taught), held_out=len(held), refused=sifted.reasons,
    )  # fmt: skip
    with whole_folder(folder / LEARNT / str(plan.number)) as beside:
        _write(beside / TAUGHT, languages, taught)
        _write(beside / HELD, languages, held)
        _write(beside / REFUSED, languages, [pair for pair, _ in sifted.refused], [reason for _, reason in sifted.refused])
        (beside / PLAN).write_text(plan.model_dump_json(indent=1) + "\n", encoding="utf-8", newline="\n")
    return plan


def is_held_out(source: str) -> bool:
    return hashlib.sha256(source.encode("utf-8", "replace")).digest()[0] < HELD_OUT * 256


def clear_up(folder: Path) -> None:
    """Leave of each attempt that ended what is of use: of one that was kept its bundle and what tells how it was trained, of another
    its plan; and of the last one the corrections, to know what is new."""
    versions = read_history(folder).versions
    for each in versions:
        place = folder / LEARNT / str(each.number)
        run = place / RUN
        waste = [path for path in run.glob("*") if path.name not in OF_USE] if each.kept else [run]
        for path in [*waste, *(place / name for name in (TAUGHT, HELD, REFUSED) if each is not versions[-1])]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    for path in (folder / LEARNT).glob(".*.part"):  # of one that was killed while it was written down
        shutil.rmtree(path, ignore_errors=True)


def forget_unfinished(folder: Path) -> None:
    shutil.rmtree(folder / LEARNT / str(_last(folder) + 1), ignore_errors=True)


def _last(folder: Path) -> int:
    return max((each.number for each in read_history(folder).versions), default=0)


def _write(path: Path, languages: Direction, pairs: Sequence[Pair], reasons: Sequence[str] | None = None) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, pair in enumerate(pairs):
            told = {} if reasons is None else {"reason": reasons[number]}
            file.write(json.dumps({"translation": dict(zip(languages, pair, strict=True)), **told}) + "\n")
