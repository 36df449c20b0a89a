"""Processes that begin with the libraries loaded: to import torch, polars and fastapi takes longer than what most tests ask of a command.

    warm_process.run([sys.executable, "-m", "limelight", "plan", ...], capture_output=True)     as `subprocess.run`
    warm_process.Popen([sys.executable, "server.py", ...], stdout=subprocess.PIPE)              as `subprocess.Popen`

Each is a process of its own, with number, group, folder, environment, files, signals and exit code, forked from one that has imported and
done nothing else. What is tested about starting itself (what is imported, when, and under which variables of Python) starts the usual way.
This file is also the program of the process they are forked from.
"""

import array
import atexit
import contextlib
import importlib
import inspect
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

ASKED = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]
LIBRARIES = (
    "torch._dynamo",
    "sacrebleu",
    "matplotlib.pyplot",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
    "httpx",
)
WITHOUT = (  # they start threads
    "limelight.cli.translate.cluster",
    "limelight.cluster",
    "limelight.corpus.exchange.engine_ray",
    "limelight.interop.onnx",
)
HARMLESS = {
    Path(sys.executable).name,
    "python",
    "python3",
    "jemalloc_bg_thd",
    "polars-ooc-clea",
}  # two allocators expect to be forked
STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class Popen(subprocess.Popen[Any]):
    """The parent does not call exec, and hears of the end through a socket; everything else is as in `subprocess`."""

    def _execute_child(self, *given: Any, **named: Any) -> None:
        asked = ASKED.bind(self, *given, **named).arguments
        words = [os.fsdecode(word) for word in asked["args"]]
        sys.audit("subprocess.Popen", words[0], words, asked["cwd"], asked["env"])
        assert words[0] == sys.executable and not asked["preexec_fn"] and not asked["pass_fds"] and not asked["shell"]
        order = {
            "words": words[1:],
            "folder": os.fspath(asked["cwd"] or Path.cwd()),
            "environment": dict(os.environ if asked["env"] is None else asked["env"]),
            "session": asked["start_new_session"],
        }
        ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        files = [asked[end] if asked[end] >= 0 else usual for usual, end in enumerate((ends[0], ends[3], ends[5]))]
        self._heard = socket.socket(socket.AF_UNIX)
        self._heard.connect(_address())
        self._heard.sendmsg([b"f"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))])
        self._heard.sendall(json.dumps(order).encode() + b"\n")
        self._lines = self._heard.makefile("rb")
        self.pid = int(self._lines.readline())
        self._child_created = True
        self._close_pipe_fds(*(asked[end] for end in ends))  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if flags & os.WNOHANG and not select.select([self._heard], [], [], 0)[0]:
            return 0, 0
        status = int(self._lines.readline())
        self._lines.close()
        self._heard.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                number, status = self._try_wait(os.WNOHANG) if self.returncode is None else (0, 0)
                if number:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


def run(*arguments: Any, **more: Any) -> subprocess.CompletedProcess[Any]:
    _address()  # started by the usual `Popen`
    with mock.patch.object(subprocess, "Popen", Popen):
        return subprocess.run(*arguments, **more)


@cache
def _address() -> str:
    """Where the process that forks listens; it ends when this one does."""
    folder = Path(tempfile.mkdtemp(prefix="limelight-warm-"))
    command = [sys.executable, __file__, str(folder / "asked")]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "GOMP_SPINCOUNT": "1000"})
    assert server.stdout is not None and server.stdout.readline() == b"ready\n"
    server.stdout.close()
    atexit.register(server.communicate)  # closes its standard input, and it ends
    return command[-1]


def serve(address: str) -> None:
    _import_all()
    identify = importlib.import_module("limelight.text.identify")
    identify.Identifier.model = identify.Identifier().model  # what tells languages takes a second to load
    threads = {(task / "comm").read_bytes().decode().strip() for task in Path("/proc/self/task").iterdir()}
    assert threads <= HARMLESS, f"threads {threads - HARMLESS} would be missing after a fork: let WITHOUT name what starts them"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    os.write(1, b"ready\n")
    while listener in select.select([listener, 0], [], [])[0]:
        asker, _ = listener.accept()
        if os.fork() == 0:
            answer(asker)
        asker.close()
    Path(address).unlink()
    Path(address).parent.rmdir()


def _import_all() -> None:
    import limelight

    for name in (*LIBRARIES, *(found.name for found in pkgutil.walk_packages(limelight.__path__, "limelight."))):
        if not name.endswith("__main__") and not name.startswith(WITHOUT):
            with contextlib.suppress(ImportError):  # an extra that is not installed
                importlib.import_module(name)


def answer(asker: socket.socket) -> None:
    """Forks once more: this process waits for the other and tells how it ended."""
    _, files, _, _ = socket.recv_fds(asker, 1, 3)
    order = json.loads(asker.makefile("rb").readline())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    number = os.fork()
    if number == 0:
        become(order, files)
    os.closerange(0, 3)
    for file in files:
        os.close(file)
    asker.sendall(b"%d\n" % number)
    asker.sendall(b"%d\n" % os.waitpid(number, 0)[1])
    os._exit(0)


def become(order: dict[str, Any], files: list[int]) -> None:
    """As if Python had just been started with these words."""
    for usual, file in enumerate(files):
        os.dup2(file, usual)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if order["session"]:
        os.setsid()
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for usual, (name, mode) in enumerate(STREAMS):
        buffering = 1 if name == "stderr" or os.isatty(usual) else -1
        errors = "backslashreplace" if name == "stderr" else "strict"
        stream = open(usual, mode, buffering, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    sys.modules["__main__"] = ModuleType("__main__")
    code: Any = 1
    try:
        obey(order["words"])
        code = 0
    except SystemExit as end:
        code = end.code
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    leave(code)


def obey(words: list[str]) -> None:
    what, *rest = words
    if what == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif what == "-c":
        sys.argv = ["-c", *rest[1:]]
        exec(rest[0], vars(sys.modules["__main__"]))
    else:
        sys.argv, sys.path[0] = words, str(Path(what).parent)
        runpy.run_path(what, run_name="__main__")


def leave(code: Any) -> None:
    """As Python ends, without taking every module of every library apart, which takes half a second."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    if code is not None and not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    try:
        sys.stdout.flush()
    except OSError:
        code = 120
    os._exit((code or 0) & 255)


if __name__ == "__main__":
    serve(sys.argv[1])
