"""kill -9 inside saves, from outside: `survive_storm.py` does it, this counts what it found.

Half of its kills wait until a checkpoint is being written; the others fall anywhere. The run that is left ends with the bits of one that
nobody disturbed, and no unsound checkpoint is ever taken. The kinds differ in who writes: one process or both, and when.
"""

import tempfile
from pathlib import Path

from campaign_journal import Journal
from survive_storm import problems, stage_for, stormed, unsound

KINDS = (
    ("ddp", False),
    ("fsdp", False),
    ("ddp", True),
)  # how two processes share, and whether saves are in the background
AT_ONCE = 10  # kills of one run


def run(journal: Journal, count: int) -> None:
    for number in journal.numbers(count, AT_ONCE):
        kind, background = KINDS[number // AT_ONCE % len(KINDS)]
        kills = min(AT_ONCE, count - number)
        with tempfile.TemporaryDirectory(prefix="campaign-kills-") as folder:
            stage = stage_for(Path(folder), kills, background)
            found = stormed(stage, kind, background, True, kills, journal.seed + number)
            found["unsound_by_inspect"] = unsound(stage.folder / f"storm-{kind}")
        journal.counts.update({"kills": found["kills"], "inside saves": found["inside_saves"]})
        for what in problems(found):
            journal.fault(number, what, kind=kind, background=background, found=found)
