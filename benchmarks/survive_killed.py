"""A run of two processes that is started again whenever it was killed.

    with Launched(words, variables) as lives:      `limelight train --nproc 2`, whose launcher starts its processes again by itself
        lives.goes_on()                            False when it is done; started again if all of it was killed
        lives.kill("rank 1");  lives.kill("all")   SIGKILL, without a warning

`Forked` has no launcher: when one process dies it waits for the other to notice, and starts both again.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from survive_ranks import Ranks

SIZE: Final = 2
NOTICED: Final = 30.0  # seconds in which a process ends that has lost another


class Lives:
    """What both ways to start have in common."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill("all")

    def kill(self, whom: str) -> None:
        raise NotImplementedError


class Launched(Lives):
    def __init__(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        # A storm may kill more often than it lets a checkpoint be written.
        self._command = [sys.executable, "-m", "limelight", *words, "--nproc", str(SIZE), "--restarts", "100"]
        self._variables = os.environ | variables
        self._said = Path(words[words.index("-o") + 1]).with_suffix(".said")
        self._start()

    def _start(self) -> None:
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(self._command, env=self._variables, stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def goes_on(self) -> bool:
        code = self._process.poll()
        if code == -signal.SIGKILL:
            self._start()
        else:
            assert code in (None, 0), f"ended with {code}: {self._said.read_bytes()[-2000:].decode(errors='replace')}"
        return code != 0

    def kill(self, whom: str) -> None:
        """Of one that is not there, as after a kill a moment ago, all are killed."""
        ranks = self._ranks()
        numbers = [ranks[whom]] if whom in ranks else [self._process.pid, *ranks.values()]
        for number in numbers:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        if self._process.pid in numbers:
            self._process.wait()
        until = time.monotonic() + NOTICED
        while any(map(_lives, numbers)):
            assert time.monotonic() < until, "killed processes are still there"
            time.sleep(0.01)

    def _ranks(self) -> dict[str, int]:
        """The launcher's children, as their environment names them."""
        try:
            listed = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_bytes().split()
        except FileNotFoundError:
            return {}
        named: dict[str, int] = {}
        for number in map(int, listed):
            with suppress(OSError):
                variables = Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
                named |= {f"rank {each[5:].decode()}": number for each in variables if each.startswith(b"RANK=")}
        return named


def _lives(number: int) -> bool:
    """Not one that waits to be asked how it ended."""
    try:
        return Path(f"/proc/{number}/stat").read_bytes().rpartition(b") ")[2][:1] not in (b"Z", b"X")
    except OSError:
        return False


class Forked(Lives):
    def __init__(self, words: Sequence[str], variables: Mapping[str, str]) -> None:
        self._words, self._variables = words, variables
        self._ranks = Ranks(words, SIZE, variables)

    def goes_on(self) -> bool:
        if all(self._ranks.alive):
            return True
        codes = self._ranks.codes(NOTICED)
        assert None not in codes, f"a process that lost the other did not end within {NOTICED:.0f} s"
        if set(codes) == {0}:
            return False
        with self._ranks:  # leaves nothing of them
            pass
        self._ranks = Ranks(self._words, SIZE, self._variables)
        return True

    def kill(self, whom: str) -> None:
        for rank in range(SIZE) if whom == "all" else [int(whom.removeprefix("rank "))]:
            self._ranks.kill(rank)
            self._ranks.processes[rank].join()
