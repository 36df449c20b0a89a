"""A real server for tests of the wire: our connections around an app that translates nothing, in a process of its own.

    python http_server.py '{"limits": {...}}'            ours
    python http_server.py '{"limits": {...}}' plain      uvicorn as it comes, for controls

It writes its address as one line.
"""

import asyncio
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from limelight.runtime import end_process
from limelight.serving.http.body import read_form, read_json
from limelight.serving.http.disconnect import ClientLeft, while_connected
from limelight.serving.http.error_dialects import answer
from limelight.serving.http.lifecycle import serve
from limelight.serving.middleware.body_limit import BodyLimit
from limelight.serving.middleware.drain_gate import DrainGate
from limelight.serving.queue.in_flight import InFlight
from limelight.serving.refusals import Refusal
from limelight.serving.settings import ServeSettings

sys.path.insert(0, str(Path(__file__).parents[1]))
import warm_process

SHORT = {"header_seconds": 0.8, "body_seconds": 0.8, "idle_seconds": 0.8, "write_seconds": 0.8}


class Pretending:
    """A service whose translations take as long as they are asked to."""

    def __init__(self) -> None:
        self.under_way = InFlight()
        self.left = 0

    def drain(self) -> None:
        self.under_way.drain()

    async def wait_drained(self) -> None:
        await self.under_way.over()

    async def work(self, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds


def make_app(settings: ServeSettings, service: Pretending, bounded: bool = True) -> Any:
    async def echo(request: Request) -> Response:
        return JSONResponse({"bytes": len(await request.body()), "headers": len(request.headers)})

    async def as_json(request: Request) -> Response:
        return JSONResponse({"keys": len(await read_json(request))})

    async def as_form(request: Request) -> Response:
        form = await read_form(request)
        return JSONResponse({"fields": len(form.fields), "file": None if form.file is None else len(form.file[1])})

    async def unread(request: Request) -> Response:
        return JSONResponse({"read": False})

    async def work(request: Request) -> Response:
        body = json.loads(await request.body())
        await while_connected(request, service.work(body["seconds"]))
        return JSONResponse({"echo": body["echo"], "padding": "x" * body.get("padding", 0)})

    async def freeze(request: Request) -> Response:
        """As a pattern does that never ends, in C and with Python's lock."""
        return JSONResponse({"found": re.match(r"(?:a|a)*b", "a" * 60) is not None})

    async def left(request: Request) -> Response:
        return JSONResponse({"left": service.left})

    async def flood(request: Request) -> Response:
        async def pieces() -> Any:
            for _ in range(300):
                yield b"x" * 100_000

        return StreamingResponse(pieces())

    async def ready(request: Request) -> Response:
        return Response(status_code=503 if service.under_way.draining else 200)

    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refusal)
        return answer(request.url.path, refusal)

    async def other(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return Response(status_code=error.status_code)

    async def nobody(request: Request, error: Exception) -> Response:
        service.left += 1
        return Response(status_code=499)

    posts = {
        "/echo": echo,
        "/json": as_json,
        "/form": as_form,
        "/translate_file": echo,
        "/v2/document": as_form,
        "/unread": unread,
        "/work": work,
        "/freeze": freeze,
    }
    gets = {"/echo": echo, "/left": left, "/flood": flood, "/healthz": ready, "/readyz": ready}
    routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in posts.items()]
    routes += [Route(path, endpoint) for path, endpoint in gets.items()]
    handlers: Any = {Refusal: refused, HTTPException: other, ClientDisconnect: nobody, ClientLeft: nobody}
    app = Starlette(routes=routes, exception_handlers=handlers)
    return DrainGate(BodyLimit(app, settings) if bounded else app, service.under_way)


@dataclass
class Process:
    """A server that runs, and its port."""

    process: subprocess.Popen[bytes]
    port: int

    def connect(self, source: str | None = None) -> "Wire":
        return Wire(self.port, source=source)

    def get(self, path: str) -> bytes:
        with self.connect() as wire:
            return wire.ask(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()).everything()

    @property
    def memory(self) -> int:
        """Resident bytes."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_bytes().split()[1]) * 4096

    @property
    def read(self) -> int:
        """Bytes that it ever read from files and sockets."""
        return int(Path(f"/proc/{self.process.pid}/io").read_bytes().split()[1])

    @property
    def files(self) -> set[str]:
        """What it has open, sockets aside."""
        found = (str(each.readlink()) for each in Path(f"/proc/{self.process.pid}/fd").iterdir())
        return {each for each in found if not each.startswith("socket:")}


class Wire:
    """A socket, and no idea of HTTP."""

    def __init__(self, port: int, room: int | None = None, source: str | None = None) -> None:
        self.socket = socket.socket()
        if source is not None:  # Linux has all of 127.0.0.0/8
            self.socket.bind((source, 0))
        if room is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.socket.settimeout(10)
        try:
            self.socket.connect(("127.0.0.1", port))
        except OSError:
            self.socket.close()
            raise
        self.since = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, data: bytes) -> Self:
        self.socket.sendall(data)
        return self

    def trickle(self, byte: bytes, every: float = 0.05) -> tuple[bytes, float]:
        """A byte now and then, until the other side ends it: what it said, and after how many seconds."""
        self.socket.settimeout(every)
        said, begin = b"", time.monotonic()
        while time.monotonic() - begin < 10:
            try:
                self.socket.send(byte)
                got = self.socket.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                break
            if not got:
                break
            said += got
        return said, time.monotonic() - begin

    def everything(self) -> bytes:
        """All that comes until the other side closes. A reset is an error."""
        said = bytearray()
        while got := self.socket.recv(65536):
            said += got
        return bytes(said)

    def answers(self, count: int) -> bytes:
        """Until so many answers with bodies of known length have come."""
        said = b""
        while said.count(b"HTTP/1.1 ") < count or not _whole(said):
            got = self.socket.recv(65536)
            if not got:
                break
            said += got
        return said


def _whole(said: bytes) -> bool:
    head, _, body = said[said.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(lengths) and len(body) >= lengths[0]


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1]) if said else 0


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def served(settings: dict[str, Any], *arguments: str, errors: IO[bytes] | None = None) -> Iterator[Process]:
    """It is stopped, and must have stopped by itself, at the end."""
    command = [sys.executable, __file__, json.dumps({"port": 0, **settings}), *arguments]
    process = warm_process.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()
        assert address.startswith("http://127.0.0.1:"), f"it did not start: {address}"
        yield Process(process, int(address.rpartition(":")[2]))
    finally:
        end_process(process)
        process.stdout.close()


def _plain(app: Any) -> None:
    server = uvicorn.Server(uvicorn.Config(app, port=0, http="httptools", log_level="critical", timeout_graceful_shutdown=1))
    start = server.startup

    async def startup(sockets: Any = None) -> None:
        await start(sockets)
        _say(f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}")

    server.startup = startup  # type: ignore[method-assign]
    server.run()


def _say(address: str) -> None:
    sys.stdout.write(address + "\n")
    sys.stdout.flush()


def main() -> int:
    settings, service = ServeSettings(**json.loads(sys.argv[1])), Pretending()
    if "plain" in sys.argv[2:]:
        _plain(make_app(settings, service, bounded=False))
        return 0
    return serve(make_app(settings, service), settings, service, started=_say)


if __name__ == "__main__":
    sys.exit(main())
