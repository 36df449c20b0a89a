"""`limelight inspect RUN --checkpoints` lists what a run can go on from, each read to its last byte. See docs/survive.md."""

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from limelight.errors import DataError, ModelFileError

if TYPE_CHECKING:
    from limelight.training.checkpoints.checkpoint import CheckpointSummary

SOUND = "sound"
GOES_ON = "sound; the run goes on from here"


def show_checkpoints(run: Path, as_json: bool) -> None:
    """Prints them, the newest first. If there are some and none is sound, that is an error: the run cannot go on."""
    from limelight.training.checkpoints.checkpoint import list_checkpoints
    from limelight.training.run_folder import CHECKPOINTS

    found = list_checkpoints(run / CHECKPOINTS)
    if not found:
        raise DataError(f"{run} has no checkpoints; name the folder of a run that has trained for some minutes")
    if as_json:
        values = [{**vars(each), "folder": str(each.folder), "sound": not each.problems} for each in found]
        sys.stdout.write(json.dumps(values) + "\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _table(found)))
    if all(each.problems for each in found):
        raise ModelFileError(
            f"{run} cannot go on, every checkpoint of it is damaged; to begin again from the first step, remove {run / CHECKPOINTS}"
        )


def _table(found: list["CheckpointSummary"]) -> list[str]:
    from limelight.cli.train.live_state import harmless

    rows = [("step", "size", "written", "as", "state")]
    newest = next((each for each in found if not each.problems), None)
    for each in found:
        when = datetime.fromtimestamp(each.when).strftime("%Y-%m-%d %H:%M:%S") if each.when else "-"
        layout = f"{each.shards} shard{'s' * (each.shards > 1)}" if each.shards else "whole"
        state = "; ".join(each.problems) or (GOES_ON if each is newest else SOUND)
        rows.append((str(each.step), f"{each.bytes / 1e6:.1f} MB", when, layout, harmless(state)))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return ["  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[4]]) for row in rows]
