"""A server as a process of its own, on a core of its own, and what the system knows about it.

    with Server(limelight("en-de", "--threads", 1), core=0) as server:
        urlopen(f"http://127.0.0.1:{server.port}/healthz")
        server.megabytes, server.descriptors, server.threads

A server is any command that says on its first line of standard output where it listens: {"address": "http://127.0.0.1:4711"}.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

ALONE = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}


def limelight(*words: object) -> list[str]:
    """`limelight serve`, on any port that is free."""
    return [sys.executable, "-m", "limelight", "serve", *map(str, words), "--port", "0", "--json"]


def beside(script: str, *words: object) -> list[str]:
    """A script of this folder that is a server."""
    return [sys.executable, str(Path(__file__).with_name(script)), *map(str, words)]


class Server:
    def __init__(self, command: Sequence[str], core: int | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.errors = os.memfd_create("log")
        prefix = [] if core is None else ["taskset", "--cpu-list", str(core)]
        self.process = subprocess.Popen(
            [*prefix, *command], stdout=subprocess.PIPE, stderr=self.errors, env={**os.environ, **ALONE, **(environment or {})}
        )  # fmt: skip
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        if not first:
            self.process.wait()
            raise RuntimeError(f"it did not start:\n{self.log.decode(errors='replace')[-2000:]}")
        self.port = urlsplit(json.loads(first)["address"]).port or 0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def log(self) -> bytes:
        """Its standard error so far. Read without moving the place at which it is written."""
        return os.pread(self.errors, 1 << 30, 0)

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        return self._status("VmRSS") / 1024

    @property
    def threads(self) -> int:
        return self._status("Threads")

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_bytes().rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def signal(self, number: int = signal.SIGTERM) -> float:
        """When it was sent, by time.monotonic."""
        now = time.monotonic()
        self.process.send_signal(number)
        return now

    def ended(self, seconds: float) -> int | None:
        """Its exit code; None if it has not ended by then."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def stop(self) -> None:
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
            if self.ended(10) is None:
                self.process.kill()
                self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        os.close(self.errors)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_bytes().split(b"\n")
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:".encode()))
