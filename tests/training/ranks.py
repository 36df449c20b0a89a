"""Real processes that train together, kept for many tests: to import torch in each of them takes longer than what they test.

    with Ranks(4, "training.shard_scenes") as ranks:
        ranks.run(2, "save_fsdp", str(folder), 7)      the function of that name in two of them, as a world of two; what each returned

A scene is a function (world, *arguments) -> a JSON value. An error in it is returned as {"error": its type, "text": its words}.
"""

import json
import os
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import torch
import torch.distributed as dist

from limelight.training.processes.world import World

sys.path.insert(0, str(Path(__file__).parents[1]))
import warm_process

HERE = Path(__file__).parent


class Ranks:
    def __init__(self, most: int, scenes: str) -> None:
        command = [sys.executable, str(HERE / "ranks.py"), scenes]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        self.processes = [warm_process.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) for _ in range(most)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    def run(self, size: int, scene: str, *arguments: Any) -> list[Any]:
        with socket.create_server(("127.0.0.1", 0)) as free:
            meeting = free.getsockname()[1]  # not by a file: a scene that limits the size of files would cut it
        for rank, process in enumerate(self.processes[:size]):
            _pipe(process.stdin).write(json.dumps([rank, size, meeting, scene, arguments]).encode() + b"\n")
            _pipe(process.stdin).flush()
        return [json.loads(_pipe(process.stdout).readline()) for process in self.processes[:size]]


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


def serve(scenes: Any) -> None:
    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a scene prints is no answer
    for line in sys.stdin.buffer:
        rank, size, meeting, scene, arguments = json.loads(line)
        dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{meeting}", rank=rank, world_size=size)
        try:
            answer = getattr(scenes, scene)(World(rank, size, rank), *arguments)
        except Exception as error:
            number = getattr(error, "errno", None)
            answer = {"error": type(error).__name__, "errno": number, "text": str(error)}
        dist.destroy_process_group()
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    serve(import_module(sys.argv[1]))
