"""A connection limits how long a client may take: one that is slow, silent or endless loses it. Plain uvicorn has no such limit.

    idle -> headers -> body -> idle          what the client does, each with its own clock
                          answer             while it is made no clock runs: then the client waits for us

One clock per connection. It is set when the stage changes and not when bytes come, so a byte now and then buys nothing.
"""

import asyncio
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, ClassVar, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from limelight.serving.http.connection_shares import Crowd, is_probe
from limelight.serving.http.raw_refusals import REASONS, Outlet, answer_of
from limelight.serving.settings import Limits

REFUSED = "refused"  # in the state of the app: called with the code of what is refused before the app hears of it
PIPELINED = 16  # requests of one connection that wait for the one before them
LINGER_SECONDS = 2.0  # between our last word and the end, so that the client can read it
IGNORED_BYTES = 256 << 10  # that a client may still send meanwhile


class Stage(Enum):
    IDLE = auto()
    HEADERS = auto()
    BODY = auto()


class EnoughError(Exception):
    """The error ends the parsing, from inside one of the parser's callbacks."""


class LimitedProtocol(HttpToolsProtocol):
    """`front` is the request that is being answered, `cycle` the last one that came; they differ when requests are pipelined."""

    limits: ClassVar[Limits] = Limits()
    crowd: ClassVar[Crowd] = Crowd(Limits())
    draining: ClassVar[bool] = False

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.stage = Stage.IDLE
        self.front: RequestResponseCycle | None = None
        self.clock: asyncio.TimerHandle | None = None
        self.stuck: asyncio.TimerHandle | None = None
        self.deaf = False  # nothing more is parsed; what is under way is answered, then the connection ends
        self.leaving = False  # nothing more is said either
        self.header_bytes = self.body_bytes = self.framing_bytes = self.ignored_bytes = 0
        self.repeated = False  # the parser is being given headers that we have already
        self.verdict = 400

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self.outlet = cast(asyncio.Transport, Outlet(transport, self.leave))
        self.reserved = not self.crowd.seat(self, self.client)  # then only probes are answered
        if self.reserved and not self.crowd.reserve(self):
            transport.abort()
        else:
            self._set_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unset(self.clock, self.stuck)
        self.crowd.remove(self)
        # uvicorn tells the last request that its client has left. Those before it have to know as well.
        for cycle in (self.front, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None:
                cycle.disconnected = True
                cycle.message_event.set()
        self.pipeline.clear()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.deaf or self.leaving:
            self._ignore(len(data))
            return
        before = (self.stage, self.cycle)
        if self.stage is Stage.BODY:
            self.framing_bytes += len(data)
        else:
            self.header_bytes += len(data)
        try:
            self._parse(data)
            self._check_sizes()
        except (httptools.HttpParserError, EnoughError):
            if not (self.deaf or self.leaving):
                self._refuse(self.verdict)
        if (self.stage, self.cycle) != before:
            self._set_clock()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unset(self.stuck)
        self.stuck = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unset(self.stuck)

    def on_message_begin(self) -> None:
        if self.repeated:
            return
        if len(self.pipeline) >= PIPELINED:
            self._stop_listening()
            raise EnoughError
        self.stage = Stage.HEADERS
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Else it stands behind the body, where nobody has looked for what it allows.
        if self.stage is Stage.HEADERS and not self.repeated:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self.repeated:
            self.repeated = False
            return
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self.limits.header_bytes:
            self._raise(431)
        self._check_headers()
        super().on_headers_complete()  # raises for an address that is none; then there is no request
        self.stage = Stage.BODY
        self.header_bytes = self.body_bytes = self.framing_bytes = self.ignored_bytes = 0
        self.cycle.transport = self.outlet
        if self.draining or self.reserved:
            self._answer_last(self.cycle)
        if self.front is None:
            self.front = self.cycle

    def on_body(self, body: bytes) -> None:
        self.body_bytes += len(body)
        self.framing_bytes -= len(body)
        if self.cycle.response_complete:
            self._ignore(len(body))
            if self.leaving:
                raise EnoughError
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():  # so the parser thinks; the body is still to come
            return
        self.stage = Stage.IDLE
        self.header_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.front = self.pipeline[-1][0] if self.pipeline else None
        if self.leaving:
            self.server_state.total_requests += 1
            return
        super().on_response_complete()
        self._unset(self.timeout_keep_alive_task)  # uvicorn's own clock, which any byte would stop
        self._set_clock()

    def shutdown(self) -> None:
        """No further request. What came before is answered."""
        if self.front is None:
            self.leave()
        else:
            self._answer_last(self.cycle)

    def abandon(self) -> None:
        """There is no time for an answer."""
        if self.front is None:
            self.leave()
        elif self.front.response_started:
            self.transport.abort()
        else:
            self._take_back(self.front, 503)

    def leave(self) -> None:
        """Say nothing more, and close when the client has, or soon. A socket closed with unread bytes is reset, and our answer lost."""
        if self.leaving or self.transport.is_closing():
            return
        self.leaving = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self._unset(self.clock)
        self.clock = self.loop.call_later(LINGER_SECONDS, self._close)
        self.crowd.mark(self, idle=True)

    def vacate(self) -> None:
        self.leaving = True
        self._unset(self.clock)
        # What is not sent yet would keep the socket for a client that may never read.
        (self.transport.abort if self.transport.get_write_buffer_size() else self.transport.close)()

    def _parse(self, data: bytes) -> None:
        """Java's client and curl offer HTTP/2 with their first request. A server may go on as if they had not; but this parser takes what
        follows for the other protocol, body included. So a new one is given the same headers without the offer, and then the rest."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as offered:
            headers = [(name, value) for name, value in self.headers if name not in (b"upgrade", b"connection")]
            head = b"%b / HTTP/1.1\r\n" % self.scope["method"].encode()
            head += b"".join(b"%b: %b\r\n" % header for header in headers) + b"\r\n"
            self.parser = httptools.HttpRequestParser(self)
            self.repeated = True
            self._parse(head + data[offered.args[0] :])

    def _set_clock(self) -> None:
        """It runs while we wait for the client."""
        self._unset(self.clock)
        if self.leaving:
            return
        self.crowd.mark(self, idle=self.front is None and self.stage is Stage.IDLE)
        if self.stage is Stage.BODY and not self.pipeline:
            self.clock = self.loop.call_later(self.limits.body_seconds, self._refuse, 408)
        elif self.front is None and self.stage is Stage.HEADERS:
            self.clock = self.loop.call_later(self.limits.header_seconds, self._refuse, 408)
        elif self.front is None:
            self.clock = self.loop.call_later(self.limits.idle_seconds, self.leave)

    def _unset(self, *clocks: asyncio.TimerHandle | None) -> None:
        for clock in clocks:
            if clock is not None:
                clock.cancel()

    def _check_sizes(self) -> None:
        """Headers that do not end yet; and bytes around the body, which nobody else counts: sizes of chunks, their extensions, trailers."""
        if self.stage is not Stage.BODY and self.header_bytes > self.limits.header_bytes:
            self._raise(431)
        if self.stage is Stage.BODY and self.framing_bytes > self.limits.header_bytes + self.body_bytes:
            self._raise(400)

    def _check_headers(self) -> None:
        """Two readers must not disagree on where a body ends or whom it is for. And who had no place may have got one by now."""
        framing = [value.strip().lower() for name, value in self.headers if name == b"transfer-encoding"]
        if framing not in ([], [b"chunked"]) or sum(name == b"host" for name, _ in self.headers) > 1:
            self._raise(400)
        self.reserved = self.reserved and not self.crowd.seat(self, self.client)
        if self.reserved and not is_probe(self.parser.get_method(), self.url):
            self._raise(503)

    def _raise(self, status: int) -> None:
        self.verdict = status
        raise EnoughError

    def _ignore(self, size: int) -> None:
        self.ignored_bytes += size
        if self.ignored_bytes > IGNORED_BYTES:
            self.leave()
            self.flow.pause_reading()

    def _stop_listening(self) -> None:
        self.deaf = True
        self._answer_last(self.cycle)

    def _answer_last(self, cycle: RequestResponseCycle) -> None:
        """The answer says that the connection ends with it, which uvicorn itself says since 0.53."""
        if cycle.keep_alive:
            cycle.keep_alive = False
            cycle.default_headers = [*cycle.default_headers, (b"connection", b"close")]

    def _refuse(self, status: int) -> None:
        """Answers come in the order of the requests, so a refusal is said only if nothing else is to be said before it."""
        receiving = self.stage is Stage.BODY
        if self.front is None:
            if not (receiving and self.cycle.response_complete):
                self._say(status)
            self.leave()
        elif receiving and self.cycle is self.front and not self.front.response_started:
            self._take_back(self.front, status)
        else:
            if receiving and self.cycle is not self.front:
                self.pipeline.popleft()  # half a request behind others is forgotten, and they are answered
                self.cycle = self.pipeline[0][0] if self.pipeline else self.front
            self._stop_listening()

    def _take_back(self, cycle: RequestResponseCycle, status: int) -> None:
        """Whoever works on it is told that the client has left."""
        cycle.disconnected = True
        cycle.message_event.set()
        self._say(status)
        self.leave()

    def _say(self, status: int) -> None:
        if (count := self.app_state.get(REFUSED)) is not None:
            count(REASONS[status][0])
        self.transport.write(answer_of(status, self.server_state.default_headers))

    def _close(self) -> None:
        self.transport.close()  # when all is sent, which whoever does not read can put off
        if self.transport.get_write_buffer_size():
            self._unset(self.stuck)
            self.stuck = self.loop.call_later(self.limits.write_seconds, self.transport.abort)


def make_protocol(limits: Limits, trusts: Callable[[str], bool] = lambda address: False) -> type[LimitedProtocol]:
    """A class of its own for each server: two in one process share neither limits nor the end. `trusts` tells proxies by their address."""
    return type("Limited", (LimitedProtocol,), {"limits": limits, "crowd": Crowd(limits, trusts), "draining": False})
