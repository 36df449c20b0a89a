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

FEWEST = 50  # corrections that can be taught: of fewer nobody could tell whether they help
HELD_OUT = 51 / 256  # of the sources
PLAN, TAUGHT, HELD, REFUSED = "plan.json", "taught.jsonl", "held-out.jsonl", "refused.jsonl"


def read_corrections(path: Path, languages: Direction) -> list[Pair]:
    """Lines of JSON: {"source": ..., "correction": ...}, or what suggestions are written as, {"translation": {"en": ..., "de": ...}}."""
    if not path.is_file():
        raise DataError(f"{path} is no file; give a file with a correction in each line, as JSON")
    with path.open("rb") as file:
        columns = ("source", "correction") if b'"correction"' in file.readline(1 << 20) else None
    batches = read_jsonl(CorpusPart(0, 0, "jsonl", (str(path),), languages, columns), ROWS)
    return [pair for batch in batches for pair in zip(batch["source"].to_pylist(), batch["target"].to_pylist(), strict=True)]


def find_unfinished(folder: Path) -> LearningPlan | None:
    """The attempt that was begun, and of which the history knows no end."""
    number = _last(folder) + 1
    place = folder / LEARNT / str(number)
    return settings_of(LearningPlan, place, PLAN, read_json(place, PLAN)[1]) if (place / PLAN).is_file() else None


def count_new(folder: Path, pairs: Iterable[Pair]) -> int:
    """How many the last attempt had not."""
    place, seen = folder / LEARNT / str(_last(folder)), set[tuple[str, ...]]()
    for path in (place / name for name in (TAUGHT, HELD, REFUSED)):
        if path.is_file():
            with path.open(encoding="utf-8", newline="\n") as lines:
                seen.update(tuple(json.loads(line)["translation"].values()) for line in lines)
    return len(set(pairs) - seen)


def begin_attempt(folder: Path, sifted: Sifted, languages: Direction, minutes: float) -> LearningPlan | None:
    """The plan of the next version, on disk; None where there is too little to teach. Texts of the attempt before are not kept."""
    taught = [pair for pair in sifted.taken if not is_held_out(pair[0])]
    held = [pair for pair in sifted.taken if is_held_out(pair[0])]
    if len(taught) < FEWEST or len(held) < FEWEST // 10:
        return None
    last = _last(folder)
    plan = LearningPlan(
        number=last + 1, parent=read_history(folder).current, at=datetime.now(UTC).isoformat(timespec="seconds"), minutes=minutes,
        corrections=len(taught), held_out=len(held), refused=sifted.reasons,
    )  # fmt: skip
    with whole_folder(folder / LEARNT / str(plan.number)) as beside:
        _write(beside / TAUGHT, languages, taught)
        _write(beside / HELD, languages, held)
        _write(beside / REFUSED, languages, [pair for pair, _ in sifted.refused], [reason for _, reason in sifted.refused])
        (beside / PLAN).write_text(plan.model_dump_json(indent=1) + "\n", encoding="utf-8", newline="\n")
    for name in (TAUGHT, HELD, REFUSED):
        (folder / LEARNT / str(last) / name).unlink(missing_ok=True)
    return plan


def is_held_out(source: str) -> bool:
    return hashlib.sha256(source.encode("utf-8", "replace")).digest()[0] < HELD_OUT * 256


def clear_up(folder: Path) -> None:
    """Leave of each attempt that ended what is of use: of one that was kept its run without checkpoints, of another its plan."""
    for each in read_history(folder).versions:
        run = folder / LEARNT / str(each.number) / RUN
        for waste in [run / "checkpoints", run / "best"] if each.kept else [run]:
            shutil.rmtree(waste, ignore_errors=True)


def forget_unfinished(folder: Path) -> None:
    shutil.rmtree(folder / LEARNT / str(_last(folder) + 1), ignore_errors=True)


def _last(folder: Path) -> int:
    return max((each.number for each in read_history(folder).versions), default=0)


def _write(path: Path, languages: Direction, pairs: Sequence[Pair], reasons: Sequence[str] | None = None) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number, pair in enumerate(pairs):
            told = {} if reasons is None else {"reason": reasons[number]}
            file.write(json.dumps({"translation": dict(zip(languages, pair, strict=True)), **told}) + "\n")
