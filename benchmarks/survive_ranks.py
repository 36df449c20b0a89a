"""A tiny translator that real processes train, stop, lose and train again; and what of it differs from one that was left alone.

    stage = Stage(folder)
    run = stage.new("run")
    with Ranks(stage.words(run, "fsdp"), 2) as ranks:      the ranks of `limelight train`, with torchrun's variables and no launcher
        ranks.codes() -> [0, 0]
    differing(run, straight) -> []                         names of steps, tensors and parts of the state

The ranks are forked from a process that has loaded torch and done nothing else: to start Python anew takes longer than to train.
"""

import multiprocessing
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment
from small_runs import make_corpus, recipe, remains, story

from limelight.cli import main as cli
from limelight.training.processes.rank_environment import SUPERVISOR
from limelight.training.processes.rank_process import LOOPBACK, environment
from limelight.training.processes.world import host_store
from limelight.training.run import leader, mirror
from limelight.training.run_folder import PREPARED

PROCESSES: Final = multiprocessing.get_context("forkserver")
# By names that are found from anywhere: the server knows nothing of this folder.
PROCESSES.set_forkserver_preload(
    ["limelight.training.run.leader", "limelight.cli.main", "limelight.cli.train.train", "torch._dynamo", "sacrebleu"]
)
STALE: Final = "SURVIVE_STALE"  # a variable: seconds after which a lease may be taken
ONE: Final = "one"  # process; any other kind is that of machine.parallel, with two


class Ranks:
    """Processes of a run, each the leader of a session of its own."""

    def __init__(self, words: Sequence[str], size: int, variables: Mapping[str, str] | None = None, said: Path | None = None) -> None:
        self._store: Any = None
        with socket.create_server((LOOPBACK, 0)) as listening:
            port = listening.getsockname()[1]
            if size > 1:
                self._store = host_store(listening, size)  # takes the socket over
        self.said = said or Path(words[words.index("-o") + 1]).with_suffix(".said")
        self.processes = []
        for rank in range(size):
            given = environment(rank, size, port, 0) if size > 1 else {"OMP_NUM_THREADS": "1"}
            given = {name: value for name, value in given.items() if name != SUPERVISOR} | dict(variables or {})
            self.processes.append(PROCESSES.Process(target=_life, args=(tuple(words), str(self.said), given)))
            self.processes[-1].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for rank, _ in enumerate(self.processes):
            self.kill(rank)
        for process in self.processes:
            process.join()
        self._store = None

    def kill(self, rank: int) -> None:
        """With all that it started."""
        number = self.processes[rank].pid
        assert number is not None
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)
        with suppress(ProcessLookupError):  # it leads no session yet
            os.killpg(number, signal.SIGKILL)

    @property
    def alive(self) -> list[bool]:
        return [process.is_alive() for process in self.processes]

    def codes(self, limit: float = 900.0) -> list[int | None]:
        """When all have ended. None: it did not within the limit."""
        until = time.monotonic() + limit
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))
        return [process.exitcode for process in self.processes]


def _life(words: tuple[str, ...], said: str, variables: dict[str, str]) -> None:
    os.setsid()
    os.environ |= variables
    number = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.dup2(number, 1)
    os.dup2(number, 2)
    setattr(leader, "write_report", lambda folder: None)  # noqa: B010, it takes longer than so small a run
    if stale := float(variables.get(STALE, 0)):  # of a run at an address
        setattr(mirror, "Lease", partial(mirror.Lease, renewed=stale / 6, stale=stale))  # noqa: B010
    sys.argv = ["limelight", *words]
    cli.main()


class Stage:
    """A corpus of number words and a recipe: 64 wide, 2+2 layers, dropout 0.1, warm-up, batches by pieces, a moving average."""

    def __init__(self, folder: Path, steps: int, **changes: Any) -> None:
        self.folder, self.steps = folder, steps
        self.corpus = make_corpus(folder / "corpus")
        self.recipe = recipe(
            self.corpus,
            **{"schedule": {"steps": steps, "warmup": 10}, "validation": {"every": steps, "sentences": 4}} | changes,
        )
        self.recipe.save(folder / "recipe.toml")

    def new(self, name: str) -> Path:
        run = self.folder / name
        shutil.copytree(self.corpus / PREPARED, run / PREPARED)
        return run

    def words(self, run: Path, kind: str, **changes: Any) -> list[str]:
        """`changes` such as seed=2, or checkpoints={"keep": 3}."""
        parallel = {} if kind == ONE else {"machine": {"parallel": kind}}
        return ["train", str(self.folder / "recipe.toml"), "-o", str(run), "--plain", *_flat(parallel | changes)]

    def train(self, run: Path, kind: str, fault: str = "", **changes: Any) -> list[int | None]:
        """The exit codes of all processes."""
        with Ranks(self.words(run, kind, **changes), size_of(kind), fault_environment(fault)) as ranks:
            return ranks.codes()


def size_of(kind: str) -> int:
    return 1 if kind == ONE else 2


def _flat(values: Mapping[str, Any], before: str = "") -> list[str]:
    """_flat({"machine": {"parallel": "ddp"}}) -> ["machine.parallel=ddp"]"""
    words: list[str] = []
    for name, value in values.items():
        words += _flat(value, f"{before}{name}.") if isinstance(value, dict) else [f"{before}{name}={_toml(value)}"]
    return words


def _toml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def differing(run: Path, straight: Path) -> list[str]:
    """What was told of every step (bits of loss and norm) and what is left in the end: tensors, chance of each rank, place in the text."""
    found, wanted = remains(run), remains(straight)
    names = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    told, expected = ({line[:2]: line for line in story(each)} for each in (run, straight))
    steps = [line for line in told.keys() | expected.keys() if told.get(line) != expected.get(line)]
    return [f"{event} {step}" for event, step in sorted(steps, key=lambda line: line[1])] + names
