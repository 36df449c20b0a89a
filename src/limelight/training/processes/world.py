"""The world tells each process its rank, and exchanges the few values that processes need beside gradients:

    with join_world(patience=100.0) as world:   a world of one, unless torchrun, `--nproc` or a scheduler set RANK and WORLD_SIZE
        world.main                              True in the one process that writes and prints
        world.all_reduce([loss, pieces])        the same sums in every process
        world.broadcast(recipe)                 what the main process says; the others pass anything
        world.gather(texts)                     what every process says, in the order of ranks
        world.run_on_all(write)                 each does its own; an error in one is raised in all, which would wait for it for ever
        world.run_on_main(write)                done by the main process; the others get what it returns

They are JSON values and go through gloo on the CPU, also where gradients go through NCCL. Every method is called by all processes
or by none. All of them run the same code on the same numbers, so that they decide alike; what depends on a clock, on a signal or on the
disk is decided by the main process, and told.
"""

import errno
import json
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from limelight.errors import ConfigError
from limelight.training.processes.heartbeat import Heartbeat

# The second line of defence: a rank that is frozen or dead is found by `Heartbeat` much earlier, and by name.
GROUP_TIMEOUT: Final = timedelta(minutes=30)
ANNOUNCED: Final = "announced"

Made = TypeVar("Made")


@dataclass(frozen=True)
class World:
    rank: int = 0
    size: int = 1
    local_rank: int = 0  # on this machine
    per_host: int = 1  # processes on one machine
    vigil: Heartbeat | None = None
    store: Any = None

    @property
    def main(self) -> bool:
        return self.rank == 0

    def device(self, kind: str) -> torch.device:
        """device("cuda") -> cuda:3 in the process that has that one."""
        device = torch.device(kind)
        if device.type == "cuda" and self.size > 1 and device.index is None:
            return torch.device("cuda", pick_gpu(self.local_rank))
        return device

    def phase(self, name: str, step: int = 0, long: bool = False) -> None:
        """What this process begins to do: said of it when others wait for it in vain. `long`: it may take any time."""
        if self.vigil is not None:
            self.vigil.phase(name, step, long)

    def set_patience(self, seconds: float) -> None:
        if self.vigil is not None:
            self.vigil.patience = seconds

    def announce(self, value: Any) -> None:
        """Sends the main process's first value to those in `await_announcement`, maybe for hours. What it announces later is not heard."""
        if self.store is not None:
            with suppress(RuntimeError):  # a store that is gone has nobody who waits at it
                self.store.compare_set(ANNOUNCED, "", json.dumps(value))

    def await_announcement(self) -> Any:
        """Waits for it as long as it takes, and hears signals meanwhile: a broadcast would do neither."""
        while not self.store.check([ANNOUNCED]):
            time.sleep(0.2)
        return json.loads(self.store.get(ANNOUNCED))

    def leave(self) -> None:
        """Ends the exchange with the others. All leave at about the same time: NCCL wants it so."""
        if self.size > 1 and dist.is_initialized():
            dist.destroy_process_group()

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        if self.size == 1:
            return list(values)
        total = torch.tensor(values, dtype=torch.float64)
        dist.all_reduce(total)
        return [float(value) for value in total]

    def broadcast(self, value: Any = None) -> Any:
        if self.size == 1:
            return value
        content = _bytes_of(value) if self.main else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([len(content)])
        dist.broadcast(length, 0)
        content = content if self.main else torch.empty(int(length), dtype=torch.uint8)
        dist.broadcast(content, 0)
        return _value_of(content)

    def gather(self, value: Any) -> list[Any]:
        if self.size == 1:
            return [value]
        content = _bytes_of(value)
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(self.size)]
        dist.all_gather(lengths, torch.tensor([len(content)]))
        longest = max(int(length) for length in lengths)
        padded = torch.zeros(longest, dtype=torch.uint8)
        padded[: len(content)] = content
        contents = [torch.zeros_like(padded) for _ in range(self.size)]
        dist.all_gather(contents, padded)
        return [_value_of(each[: int(length)]) for each, length in zip(contents, lengths, strict=True)]

    def run_on_all(self, doing: Callable[[], Made]) -> Made:
        """When it failed in any process, all raise the same OSError. A fault of ours stays what it is where it was."""
        if self.size == 1:
            return doing()
        error: Exception | None = None
        try:
            made = doing()
        except Exception as raised:
            error = raised
        failed = [(rank, words) for rank, words in enumerate(self.gather(_words_of(error))) if words is not None]
        if not failed:
            return made
        if error is not None and not isinstance(error, OSError):
            raise error
        rank, (number, text, path) = failed[0]
        others = f" (and {len(failed) - 1} more of {self.size} ranks failed)" if len(failed) > 1 else ""
        raise OSError(number, f"rank {rank}: {text}{others}", path) from error

    def run_on_main(self, doing: Callable[[], Made]) -> Made:
        """What the main process returns is told to the others as JSON has it."""
        made: Made = self.broadcast(self.run_on_all(lambda: doing() if self.main else None))
        return made


def _words_of(error: Exception | None) -> tuple[int, str, str | None] | None:
    if error is None:
        return None
    if isinstance(error, OSError):
        return error.errno or errno.EIO, error.strerror or str(error), error.filename and str(error.filename)
    return errno.EIO, f"{type(error).__name__}: {error}", None


def _bytes_of(value: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(value).encode()), dtype=torch.uint8)


def _value_of(content: Tensor) -> Any:
    return json.loads(content.numpy().tobytes())


def is_distributed() -> bool:
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_elastic() -> bool:
    """May this start follow another whose processes are not all gone yet?"""
    return is_distributed() or "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def join_world(patience: float) -> Iterator[World]:
    """Meets the other processes, as the environment says. `patience`: seconds that a process may be silent before the run ends."""
    if not is_distributed():
        yield World()
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(
            f"WORLD_SIZE={os.environ['WORLD_SIZE']} is set, but not {', '.join(missing)}; start it with --nproc, with torchrun, or unset "
            "WORLD_SIZE"
        )
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    backend = "gloo"
    if torch.cuda.is_available():
        torch.cuda.set_device(pick_gpu(local_rank))
        backend = "cpu:gloo,cuda:nccl"
    dist.init_process_group(backend, timeout=GROUP_TIMEOUT)
    met = World(dist.get_rank(), dist.get_world_size(), local_rank, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = dist.TCPStore(*address, is_master=False, wait_for_workers=False)  # type: ignore[attr-defined]
    start = met.broadcast(secrets.token_hex(8))  # a store may outlive this start of the processes
    vigil = Heartbeat.of_environment(met.rank, met.size, patience)
    leaves = True
    try:
        with vigil:
            yield replace(met, vigil=vigil, store=dist.PrefixStore(start, store))  # type: ignore[attr-defined]
    except Exception:
        leaves = backend == "gloo"  # NCCL would wait for the others here, and they for this process: its end is what tells them
        raise
    finally:
        if leaves:
            met.leave()


def pick_gpu(local_rank: int) -> int:
    """The number of a process's GPU among those that it sees: a scheduler may show each process its own alone."""
    return local_rank if local_rank < torch.cuda.device_count() else 0


def host_store(listening: socket.socket, size: int) -> dist.Store:  # type: ignore[name-defined, unused-ignore]
    """Open the store in which `size` ranks of one machine meet, as long as this value is kept.

    By itself a store listens on every interface, whatever address it is given.
    """
    address, port = listening.getsockname()
    number = listening.detach()
    return dist.TCPStore(address, port, size, is_master=True, master_listen_fd=number, wait_for_workers=False)  # type: ignore[attr-defined, unused-ignore]
