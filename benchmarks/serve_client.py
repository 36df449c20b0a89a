"""An HTTP client that costs little: one request at a time on a connection, and what became of it.

request("/healthz") -> b"GET /healthz HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n"
"""

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import httptools

PATIENCE = 120.0  # seconds for one answer; then the connection is closed
# Why there is no answer: no connection; not a byte of one; only a part of one; we gave up.
REFUSED, CLOSED, CUT, LEFT = "refused", "closed", "cut", "left"


def request(path: str, body: bytes = b"", *, method: str | None = None, headers: dict[str, str] | None = None) -> bytes:
    """The bytes of a request. request("/healthz") is a GET, one with a body a POST of JSON."""
    lines = [f"{method or ('POST' if body else 'GET')} {path} HTTP/1.1", "Host: 127.0.0.1"]
    if body:
        lines += [f"Content-Length: {len(body)}"]
        lines += [] if headers and "Content-Type" in headers else ["Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True, slots=True)
class Answer:
    """`number` is that of its request. `status` is 0 where `lost` says why there is none. Times are of time.monotonic."""

    number: int
    sent: float
    took: float
    status: int
    retry_after: str | None = None
    body: bytes = b""
    lost: str | None = None

    @property
    def good(self) -> bool:
        return self.status == 200


class Connection(asyncio.Protocol):
    """One request at a time; whole answers only."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.answered: asyncio.Future[str | None] | None = None
        self.usable = False

    async def ask(self, number: int, raw: bytes, due: float | None = None) -> Answer:
        self.retry_after: str | None = None
        self.body: list[bytes] = []
        self.status = 0
        self.bodiless = raw.startswith(b"HEAD ")
        loop = asyncio.get_running_loop()
        self.answered = loop.create_future()
        enough = loop.call_later(PATIENCE, self.close)
        sent = time.monotonic()
        self.transport.write(raw)
        try:
            lost = await self.answered
        finally:
            enough.cancel()
        took = time.monotonic() - (due or sent)
        return Answer(number, sent, took, 0 if lost else self.status, self.retry_after, b"".join(self.body), lost)

    def connection_made(self, transport: Any) -> None:
        self.transport, self.usable = transport, True

    def data_received(self, data: bytes) -> None:
        self.status = self.status or -1  # something came
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            self.transport.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"retry-after":
            self.retry_after = value.decode()

    def on_headers_complete(self) -> None:
        if self.bodiless:
            self.status = self.parser.get_status_code()
            self.close()  # the parser waits for a body
            self._done(None)

    def on_body(self, body: bytes) -> None:
        self.body.append(body)

    def on_message_complete(self) -> None:
        self.status = self.parser.get_status_code()
        if not self.parser.should_keep_alive():
            self.close()
        self._done(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._done(CUT if self.answered and not self.answered.done() and self.status else CLOSED)

    def close(self) -> None:
        self.usable = False
        self.transport.abort()

    def _done(self, lost: str | None) -> None:
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(lost)


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, "127.0.0.1", port)
    return connection


class Crowd:
    """Connections that are free, and those that are made when none is."""

    def __init__(self, port: int) -> None:
        self.port, self.free = port, deque[Connection]()

    async def ask(self, number: int, raw: bytes, due: float | None = None) -> Answer:
        began = time.monotonic()
        try:
            while self.free and not self.free[-1].usable:
                self.free.pop()
            connection = self.free.pop() if self.free else await connect(self.port)
        except OSError:
            return Answer(number, began, time.monotonic() - began, 0, lost=REFUSED)
        try:
            answer = await connection.ask(number, raw, due)
        except asyncio.CancelledError:
            connection.close()
            return Answer(number, began, time.monotonic() - began, 0, lost=LEFT)
        if connection.usable:
            self.free.append(connection)
        return answer

    def close(self) -> None:
        for connection in self.free:
            connection.close()
