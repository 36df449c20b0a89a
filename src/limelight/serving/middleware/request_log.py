"""The request log numbers, counts and times every request, and writes one line for each. Only `PathPrefix` stands outside of it; an
exception that nothing else caught becomes a plain 500 here.

    {"time": ..., "id": "5f0c...", "method": "POST", "route": "/translate", "status": 200, "ms": 41.2, "caller": "forum",
     "characters": 64, "texts": 1, "pieces": 19, "model": "en-de"}

`route` is the template that matched, never the path that was asked for. Nothing a client sent is in the line but its length.
"""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limelight.serving.http.connection import REFUSED
from limelight.serving.http.disconnect import ClientLeft
from limelight.serving.http.error_dialects import answer, path_of
from limelight.serving.middleware.logs import Log, Value, kinds_of, now, places_of
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.refusals import Failed, Refusal

CLIENT_LEFT = 499  # nginx's; no such answer is ever sent
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
NO_ROUTE = "(none)"


@dataclass
class RequestFacts:
    """The facts are what is known of a request, beside what every request has."""

    characters: int | None = None
    texts: int | None = None
    pieces: int | None = None
    model: str | None = None
    refusal: str | None = None
    error: list[str] | None = None
    places: list[str] | None = None


def note(request: HTTPConnection, **known: int | str) -> None:
    """Note for routes how much it was, and which model's (its id, not what the client called it). What was noted before stays."""
    vars(_facts(request.scope)).update(known)


def note_refusal(request: HTTPConnection, refusal: Refusal) -> None:
    """Note a refusal that becomes an answer. A failure of ours is written down with its cause."""
    facts = _facts(request.scope)
    facts.refusal = refusal.code
    if refusal.status == 500:
        facts.error, facts.places = kinds_of(refusal), places_of(refusal)


async def send_refusal(refusal: Refusal, scope: Scope, receive: Receive, send: Send, headers: Mapping[str, str] | None = None) -> None:
    """Note a refusal, and answer with it in the words of the route."""
    note_refusal(Request(scope), refusal)
    response = answer(path_of(scope), refusal)
    response.headers.update(headers or {})
    await response(scope, receive, send)


def _facts(scope: Scope) -> RequestFacts:
    facts: RequestFacts = scope.setdefault("state", {}).setdefault("facts", RequestFacts())
    return facts


class RequestLog:
    def __init__(self, app: ASGIApp, metrics: Metrics, log: Log, tracing: OtelTracing | None = None) -> None:
        self.app, self.metrics, self.log, self.tracing = app, metrics, log, tracing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            # What never becomes a request is refused by the connection: too slow, too long, too many. It counts here too.
            scope.setdefault("state", {})[REFUSED] = self.metrics.count_refusal
            await self.app(scope, receive, send)
            return
        scope["state"] = {**scope.get("state", {}), "request_id": secrets.token_hex(16)}
        seen = HttpExchange(scope, receive, send)
        span = self.tracing.begin(Request(scope).headers.get("traceparent")) if self.tracing else None
        try:
            await self.app(scope, seen.receive, seen.send)
        except (ClientLeft, ClientDisconnect):
            seen.left = True
        except Exception as error:
            await self._answer_failure(error, seen)
        finally:
            line = self._line(seen)
            self.metrics.request(str(line["route"]), seen.outcome, time.perf_counter() - seen.begin)
            if (refusal := _facts(scope).refusal) is not None:
                self.metrics.count_refusal(refusal)
            if span is not None:
                span.end(line)
            self.log(line)

    async def _answer_failure(self, error: Exception, seen: "HttpExchange") -> None:
        """Answer and do not raise again: the server around us would write its message down, which may quote a text."""
        refusal = Failed("The server made a mistake", f"Tell its operator the number {seen.scope['state']['request_id']}.")
        refusal.__cause__ = error
        if not seen.started and not seen.left:
            await send_refusal(refusal, seen.scope, seen.receive, seen.send)
        else:
            note_refusal(Request(seen.scope), refusal)

    def _line(self, seen: "HttpExchange") -> dict[str, Value]:
        scope, facts = seen.scope, _facts(seen.scope)
        caller = scope["state"].get("caller")
        line: dict[str, Value] = {
            "time": now(),
            "id": scope["state"]["request_id"],
            "method": scope["method"] if scope["method"] in METHODS else "OTHER",
            "route": getattr(scope.get("route"), "path", NO_ROUTE),
            "status": seen.outcome,
            "ms": round((time.perf_counter() - seen.begin) * 1000, 1),
            "caller": (caller.name or None) if caller else None,
        }
        return line | {name: value for name, value in vars(facts).items() if value is not None}


@dataclass
class HttpExchange:
    """An exchange is what passed between client and app. `left`: the client went before the answer was whole."""

    scope: Scope
    _receive: Receive
    _send: Send
    begin: float = field(default_factory=time.perf_counter)
    status: int = 0
    whole: bool = False
    left: bool = False

    @property
    def started(self) -> bool:
        return self.status > 0

    @property
    def outcome(self) -> int:
        """An answer that was never begun, and nobody's fault, is one that nobody waited for."""
        return CLIENT_LEFT if self.left or not self.started else self.status

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" and not self.whole:
            self.left = True
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)["X-Request-Id"] = self.scope["state"]["request_id"]
        elif message["type"] == "http.response.body":
            self.whole = not message.get("more_body", False)
        await self._send(message)
