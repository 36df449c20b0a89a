"""A run takes text in and gives a translator and a report, in five phases:

prepare     clean, split, learn pieces                  limelight.corpus
choose      calibrate, then fix size, steps, schedule   recipe.toml
train       the loop, with validation and checkpoints   metrics.jsonl, checkpoints/, best/, bundle/
finish      the best weights, the test set              bundle/, scores.json
report      always, however the run ended               report.md, report.html
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from limelight.corpus.exchange.engine import ExchangeEngine, Progress
from limelight.errors import LimelightError
from limelight.training.config import MachineSettings
from limelight.training.events import Watcher
from limelight.training.processes.heartbeat import is_collective_error
from limelight.training.processes.stop_signals import Stop, Stopped
from limelight.training.processes.world import World, is_distributed, is_elastic, join_world
from limelight.training.recipe.request import TrainRequest as TrainRequest
from limelight.training.recipe.request import TrainResult as TrainResult
from limelight.training.run.assembly import FIRST_STEP, help_out
from limelight.training.run.folder_lock import own_folder
from limelight.training.run.leader import RunLeader
from limelight.training.run.mirror import mirror_run
from limelight.training.run.result import result_of
from limelight.training.run.rounds import Rounds, refuse_forgotten, refuse_sharing
from limelight.training.run_folder import RunChoice, write_status

LOCK_SECONDS: Final = 150.0  # a process that was cut off ends itself by then


def train(
    asked: TrainRequest,
    folder: Path,
    engine: ExchangeEngine,
    watch: Watcher,
    progress: Callable[[Progress], None],
    command: Sequence[str],
    began: float | None = None,
) -> TrainResult:
    """Begins a run in `folder`, or goes on with the one that is there. One of several processes leads it, the others help.

    A budget counts from `began`, of the monotonic clock; now, if nothing is said.
    """
    began = time.monotonic() if began is None else began
    stop, patience = Stop(), LOCK_SECONDS if is_elastic() else 0.0
    with stop.listening():
        try:
            with join_world(patience=MachineSettings().patience * FIRST_STEP) as world:
                if not world.main:
                    return help_out(world, folder, stop)
                hosts = -(-world.size // world.per_host)
                with _announcing_end(world) as end, mirror_run(folder, watch, patience, hosts) as told, own_folder(folder, patience):
                    refuse_sharing(asked, world.size)
                    refuse_forgotten(asked, folder)

                    def lead(request: TrainRequest, place: Path, since: float, before: Sequence[RunChoice]) -> TrainResult:
                        place.mkdir(parents=True, exist_ok=True)
                        run = RunLeader.open(request, place, engine, told, progress, command, stop, since, world)
                        run.facts.chosen = [*before, *(each for each in run.facts.chosen if each not in before)]
                        try:
                            return run.go()
                        except Stopped as stopped:
                            write_status(place, stopped.reason, run.step, run.steps)
                            return result_of(place, stopped.reason)

                    if asked.mono is not None and asked.data is not None:
                        result = Rounds(asked, asked.mono, asked.data, folder, engine, told, progress, lead, began).train()
                    else:
                        result = lead(asked, folder, began, ())
                    end |= {"over": result.exit_code, "state": result.state}
                    return result
        except Stopped as stopped:  # before it began, or while it was already closing
            return result_of(folder, stopped.reason)
        except RuntimeError as error:
            if not (is_distributed() and is_collective_error(error)):
                raise
            raise LimelightError(
                f"an exchange with the other processes broke ({str(error).partition(chr(10))[0][:200]}); who is lost stands above, or is "
                "told by the others; the same command goes on from the last checkpoint"
            ) from None


@contextmanager
def _announcing_end(world: World) -> Iterator[dict[str, Any]]:
    """Those that still wait for a first word are told how it ended."""
    end: dict[str, Any] = {"over": LimelightError.exit_code, "state": "failed"}
    try:
        yield end
    except LimelightError as error:
        end["over"] = error.exit_code
        raise
    finally:
        world.announce(end)
