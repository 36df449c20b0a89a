"""A whole run: text in, translator and report out.

    prepare     clean, split, learn pieces                  limelight.corpus
    choose      calibrate, then fix size, steps, schedule   recipe.toml
    train       the loop, with validation and checkpoints   metrics.jsonl, checkpoints/, best/, bundle/
    finish      the best weights, the test set              bundle/, scores.json
    report      always, however the run ended               report.md, report.html

The same command on the same folder goes on where the run was stopped.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from limelight.corpus.engine import Engine, Progress
from limelight.errors import LimelightError
from limelight.training.asked import Asked as Asked
from limelight.training.asked import Result as Result
from limelight.training.assembly import FIRST_STEP, help_out
from limelight.training.config import MachineSettings
from limelight.training.ending import result_of
from limelight.training.layout import (
    State,
    write_status,
)
from limelight.training.leading import Run
from limelight.training.lock import alone_in, refuse_foreign
from limelight.training.signals import Stop, Stopped
from limelight.training.vigil import broke
from limelight.training.watch import Watcher
from limelight.training.world import World, is_elastic, joined, many

LOCK_SECONDS: Final = 150.0  # a process that was cut off ends itself by then


def train(
    asked: Asked,
    folder: Path,
    engine: Engine,
    watch: Watcher,
    progress: Callable[[Progress], None],
    command: Sequence[str],
    began: float | None = None,
) -> Result:
    """Begins a run in `folder`, or goes on with the one that is there. One of several processes leads it, the others help.

    A budget counts from `began`, of the monotonic clock; now, if nothing is said.
    """
    began = time.monotonic() if began is None else began
    stop = Stop()
    with stop.listening():
        try:
            with joined(patience=MachineSettings().patience * FIRST_STEP) as world:
                if not world.main:
                    return help_out(world, folder, stop)
                return _lead(folder, partial(Run, asked, folder, engine, watch, progress, command, stop, began), world)
        except Stopped as stopped:  # before it began, or while it was already closing
            return result_of(folder, stopped.reason)
        except RuntimeError as error:
            if not (many() and broke(error)):
                raise
            raise LimelightError(
                f"an exchange with the other processes broke ({str(error).partition(chr(10))[0][:200]}); who is lost stands above, or is "
                "told by the others; the same command goes on from the last checkpoint"
            ) from None


def _lead(folder: Path, begin: Callable[[World], Run], world: World) -> Result:
    state: State = "failed"
    code = LimelightError.exit_code
    try:
        refuse_foreign(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with alone_in(folder, LOCK_SECONDS if is_elastic() else 0.0):
            run = begin(world)
            try:
                result = run.go()
            except Stopped as stopped:
                write_status(folder, stopped.reason, run.step, run.steps)
                result = result_of(folder, stopped.reason)
        state, code = result.state, result.exit_code
        return result
    except LimelightError as error:
        code = error.exit_code
        raise
    finally:
        world.announce({"over": code, "state": state})  # to those that still wait for a first word
