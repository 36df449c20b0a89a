"""Real processes that add up a tensor step after step under a vigil, and to one of which something happens.

scene = Scene(folder, size=3, patience=2.0, happens="stop", rank=1).start()
scene.ended(within=9.0)        exit codes; None of one that is still there
scene.struck                   when it happened
scene.said(0)                  [(when, "rank 1 (host a) has not been heard of for 2 s; ...")]
"""

import logging
import multiprocessing
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Self

import torch
import torch.distributed as dist

from limelight.training.processes.world import World, join_world

STEPS, STRIKES_AT = 40, 5
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["limelight.training.processes.world", "torch._dynamo"])  # importing takes longer than a scene


@dataclass
class Scene:
    folder: Path
    size: int
    patience: float
    happens: str  # stop, kill, sleep, raise, long, nothing
    rank: int = 1
    agent: bool = False  # is the store kept by this process, as by a launcher?
    processes: list[BaseProcess] = field(default_factory=list)
    store: Any = None

    def start(self) -> Self:
        self.folder.mkdir()
        listening = socket.create_server(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        if self.agent:
            number = listening.detach()
            self.store = dist.TCPStore(  # type: ignore[attr-defined]
                "127.0.0.1", port, self.size, is_master=True, master_listen_fd=number, wait_for_workers=False
            )
        else:
            listening.close()
        for rank in range(self.size):
            environment = {
                "RANK": str(rank),
                "WORLD_SIZE": str(self.size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": "lo",
                "TORCHELASTIC_USE_AGENT_STORE": str(self.agent),
            }
            process = PROCESSES.Process(target=live, args=(self.folder, environment, self.patience, self.happens, self.rank), daemon=True)
            process.start()
            self.processes.append(process)
        return self

    def ended(self, within: float) -> list[int | None]:
        """After that long whoever is left is killed, which does not count as an end."""
        limit = time.monotonic() + within
        stopped = {self.rank} if self.happens == "stop" else set()
        for rank, process in enumerate(self.processes):
            if rank not in stopped:
                process.join(max(0.0, limit - time.monotonic()))
        codes = [process.exitcode for process in self.processes]
        for process in self.processes:
            process.kill()
            process.join()
        self.store = None
        return codes

    def tell(self, number: signal.Signals) -> None:
        for process in self.processes:
            assert process.pid is not None
            os.kill(process.pid, number)

    @property
    def struck(self) -> float:
        return float((self.folder / "struck").read_bytes())

    def wait_for_strike(self, within: float = 60.0) -> None:
        limit = time.monotonic() + within
        while not (self.folder / "struck").exists() and time.monotonic() < limit:
            time.sleep(0.05)

    def said(self, rank: int) -> list[tuple[float, str]]:
        lines = (self.folder / f"{rank}.log").read_bytes().decode().split("\n")
        parts = [line.split(" ", 1) for line in lines if line[:1].isdecimal()]
        return [(float(when), words) for when, words in parts]


def live(folder: Path, environment: dict[str, str], patience: float, happens: str, struck: int) -> None:
    os.environ.update(environment)
    log = os.open(folder / f"{environment['RANK']}.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 2)
    logging.basicConfig(format="%(created)f %(message)s")
    torch.set_num_threads(1)
    with join_world(patience) as world:
        work(world, folder, patience, happens, struck)


def work(world: World, folder: Path, patience: float, happens: str, struck: int) -> None:
    total = torch.ones(100)
    for step in range(1, STEPS + 1):
        world.phase("forward", step)
        if step == STRIKES_AT and happens == "long":
            world.phase("validating", step, long=True)
        if step == STRIKES_AT and world.rank == struck:
            (folder / "striking").write_bytes(str(time.time()).encode())
            (folder / "striking").rename(folder / "struck")
            strike(happens, patience)
        time.sleep(0.02)
        world.phase("gradients", step)
        dist.all_reduce(total)


def strike(happens: str, patience: float) -> None:
    if happens == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif happens == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif happens == "sleep":
        time.sleep(1000)
    elif happens == "long":
        time.sleep(2.5 * patience)
    elif happens == "raise":
        raise ValueError("no such piece")
