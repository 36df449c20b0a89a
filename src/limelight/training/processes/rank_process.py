"""A rank is a process with the variables that torchrun would set, and is ended with all that it started.

Each rank leads a session of its own. So Ctrl-C reaches the supervisor alone, which passes it on once; and whatever a rank has started,
such as processes that make batches, can be ended by its number. The main rank has the terminal. Of the others, what they print is
dropped and the end of what they complain about is kept.
"""

import os
import selectors
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import IO, Final, Self

from limelight.runtime import available_cores
from limelight.training.processes.rank_environment import SUPERVISOR
from limelight.training.processes.stop_signals import REASONS

LOOPBACK: Final = "127.0.0.1"
LAST_LINES, LAST_BYTES = 20, 1 << 16  # kept of what a rank complains about


def environment(rank: int, size: int, port: int, attempt: int) -> dict[str, str]:
    """Variables as torchrun sets them, with the store on a port of the loopback and gloo and NCCL on it, too: nobody else can connect."""
    loopback = next((name for _, name in socket.if_nameindex() if name in ("lo", "lo0")), "lo")
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        "MASTER_ADDR": LOOPBACK,
        "MASTER_PORT": str(port),
        "TORCHELASTIC_USE_AGENT_STORE": "True",  # the supervisor has the store, and all ranks are its clients
        "TORCHELASTIC_RESTART_COUNT": str(attempt),
        "GLOO_SOCKET_IFNAME": loopback,
        "NCCL_SOCKET_IFNAME": loopback,
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, available_cores() // size))),
        SUPERVISOR: str(os.getpid()),
    }


class Rank:
    """A rank is one process. `code` is how it ended: an exit code, or minus the signal."""

    def __init__(self, number: int, command: Sequence[str], variables: dict[str, str]) -> None:
        main = number == 0
        self.number = number
        self.code: int | None = None
        self._said = b""
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            command,
            env=os.environ | variables,
            stdin=None if main else subprocess.DEVNULL,
            stdout=None if main else subprocess.DEVNULL,
            stderr=None if main else subprocess.PIPE,
            start_new_session=True,
        )
        self.said: IO[bytes] | None = self.process.stderr  # unless that is the terminal
        if self.said is not None:
            os.set_blocking(self.said.fileno(), False)

    def listen(self) -> bool:
        """Takes in what it said since. False: nothing will come any more."""
        if self.said is None or self.said.closed:
            return False
        while (some := self.said.read(LAST_BYTES)) is not None:  # None: nothing for now
            if not some:
                return False
            self._said = (self._said + some)[-LAST_BYTES:]
        return True

    @property
    def last_lines(self) -> list[str]:
        return self._said.decode(errors="replace").rstrip("\n").split("\n")[-LAST_LINES:] if self._said else []

    @property
    def running(self) -> bool:
        return self.code is None

    def look(self) -> int | None:
        """Has it ended? Then what it started goes, too, before its number is given back to the system and may be that of another."""
        if self.running and os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None:
            self.kill()
            self.code = self.process.wait()
            self.listen()
        return self.code

    def send(self, number: int) -> None:
        if self.running:
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kills it with all that it started. A process that is stopped hears nothing else."""
        if self.running:
            with suppress(ProcessLookupError, PermissionError):  # nobody of them is left
                os.killpg(self.process.pid, signal.SIGKILL)

    @property
    def stopped(self) -> bool:
        """Is it stopped by SIGSTOP or a debugger, so that it neither works nor hears?"""
        try:
            # 4242 (name, which may hold anything) T 1 ...
            state = Path(f"/proc/{self.process.pid}/stat").read_bytes().rpartition(b") ")[2][:1]
        except OSError:
            return False
        return self.running and state in (b"T", b"t")

    @property
    def how(self) -> str:
        """rank 1 was ended by SIGKILL"""
        if self.running:
            return f"rank {self.number} {'is stopped and does not answer' if self.stopped else 'runs'}"
        assert self.code is not None
        if self.code < 0:
            return f"rank {self.number} was ended by {name_of(-self.code)}"
        return f"rank {self.number} ended with code {self.code}"

    def close(self) -> None:
        if self.said is not None:
            self.said.close()


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"  # one of the real-time ones


class EventWaiter:
    """A waiter is a context, in the main thread: Python hears signals nowhere else. `heard` grows by each signal that asks to stop."""

    def __init__(self) -> None:
        self.heard: list[int] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        # What is ignored stays so: SIGHUP under nohup, SIGINT in the background of a script. The ranks inherit it.
        numbers = [number for number in REASONS if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._hear) for number in numbers}
        self._before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, _wake)
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(self._writing, False)
        self._fd_before = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._selector.register(self._reading, selectors.EVENT_READ)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        signal.set_wakeup_fd(self._fd_before)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._selector.close()
        os.close(self._reading)
        os.close(self._writing)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self.heard.append(number)

    def listen_to(self, ranks: Sequence[Rank]) -> None:
        for rank in ranks:
            if rank.said is not None:
                self._selector.register(rank.said, selectors.EVENT_READ, rank)

    def until(self, seconds: float | None) -> None:
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Rank):
                if not key.data.listen():
                    self._selector.unregister(key.fileobj)
            else:
                self._drain()

    def forget(self, ranks: Sequence[Rank]) -> None:
        for rank in ranks:
            if rank.said is not None and rank.said in self._selector.get_map():
                self._selector.unregister(rank.said)

    def _drain(self) -> None:
        try:
            while os.read(self._reading, 512):
                pass
        except BlockingIOError:
            return


def _wake(number: int, frame: FrameType | None) -> None:
    """A child ended, which is looked at elsewhere; with the default handler it would wake nobody."""
