"""`limelight ...` as a process of its own, many times: forked from one that has loaded torch and done nothing else.

done = limelight("train", "recipe.toml", "-o", "run")      done.code, done.said, done.seconds
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from limelight.cli import main as cli
from limelight.training.run import leader

PROCESSES: Final = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(
    [
        "survive_command",
        "limelight.training.run.run",
        "limelight.training.checkpoints.writer",
        "torch._dynamo",
        "sacrebleu",
    ]
)


@dataclass(frozen=True)
class Done:
    code: int
    said: str
    seconds: float


def limelight(
    *words: str,
    reports: bool = False,
    environment: Mapping[str, str] | None = None,
    meanwhile: Callable[[Path], None] = lambda said: None,
    limit: float = 900.0,
) -> Done:
    """`reports`: a report is written, which takes longer than a small run. `meanwhile` is called several times a second with the file
    that all it says goes to."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile(prefix="limelight-", suffix=".said") as said:
        process = PROCESSES.Process(target=_life, args=(words, said.name, dict(environment or {}), reports))
        process.start()
        while process.is_alive() and time.monotonic() - began < limit:
            process.join(0.05)
            meanwhile(Path(said.name))
        if process.is_alive():
            process.kill()
            process.join()
            raise TimeoutError(f"limelight {' '.join(words)} took longer than {limit:.0f} s")
        code = process.exitcode
        assert code is not None
        return Done(code, Path(said.name).read_bytes().decode(errors="replace"), time.monotonic() - began)


def _life(words: tuple[str, ...], said: str, environment: dict[str, str], reports: bool) -> None:
    os.environ |= {"OMP_NUM_THREADS": "1"} | environment
    number = os.open(said, os.O_WRONLY | os.O_APPEND)
    os.dup2(number, 1)
    os.dup2(number, 2)
    sys.argv = ["limelight", *words]
    if not reports:
        leader.write_report = lambda folder: None
    cli.main()
