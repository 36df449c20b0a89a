"""The body limit refuses bodies that are too large or compressed, as early as that is known.

Content-Length above the limit                413, without reading
chunked, and more than the limit has come     413, with at most the limit and one chunk in memory
no key shown yet                              413 above `keyless_bytes`: strangers fill no memory with what is refused later
more of all bodies together than allowed      503, until some of the requests are done
Content-Encoding, two lengths, no length      400
"""

import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limelight.serving.http.error_dialects import path_of
from limelight.serving.middleware.request_log import send_refusal
from limelight.serving.refusals import BadRequest, Busy, Refusal, TooLarge
from limelight.serving.settings import ServeSettings

# Routes that take files, and by how much of the limit: with a reviewed document its texts come, too.
FILES = {"/translate_file": 1, "/v2/document": 1, "/api/v1/documents": 1, "/api/v1/documents/file": 3}
LAST = {"Connection": "close"}  # the rest of the body is not wanted
LONGEST = 18  # digits of a length; more are too large whatever they say


class BodyLimit:
    """The limit stands inside of `AccessGuard`, which knows the callers that showed a key before the body."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.limits = app, settings.limits
        self.held = 0  # bytes of the bodies of all requests under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        too_large = self._too_large(scope)
        if refusal := _refusal(scope["headers"], too_large):
            await send_refusal(refusal, scope, receive, send, LAST)
            return
        counted = CountedBody(self, too_large, receive, send)
        try:
            await self.app(scope, counted.receive, counted.send)
        except Refusal as error:
            if error is not counted.refusal:
                raise
        finally:
            self.held -= counted.taken
        if counted.refusal is not None and not counted.started:
            await send_refusal(counted.refusal, scope, receive, send, LAST)

    def _too_large(self, scope: Scope) -> "BodyTooLarge":
        path = path_of(scope)
        limit = FILES[path] * self.limits.file_bytes if path in FILES else self.limits.body_bytes
        state = scope.get("state", {})
        if "guard" in state and "caller" not in state and limit > self.limits.keyless_bytes:
            limit = self.limits.keyless_bytes
            why = "and its key is not in a header: send Authorization: Bearer KEY or X-API-Key: KEY"
            return BodyTooLarge(limit, f"the body has more than {limit:,} bytes, {why}")
        return BodyTooLarge(limit, f"the body has more than {limit:,} bytes")


class BodyTooLarge(TooLarge):
    """The refusal is made before it is known whether it has to be said."""

    def __init__(self, limit: int, message: str) -> None:
        super().__init__(message, "send less at once")
        self.limit = limit


class CountedBody:
    """The body is counted as it comes. If it is too much, our answer is the one that is sent, whatever the app makes of it."""

    def __init__(self, bounded: BodyLimit, too_large: BodyTooLarge, receive: Receive, send: Send) -> None:
        self._bounded, self._too_large, self._receive, self._send = bounded, too_large, receive, send
        self.taken = 0
        self.started = False
        self.refusal: Refusal | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._take(len(message.get("body", b"")))
        if self.refusal is not None:
            raise self.refusal
        return message

    def _take(self, size: int) -> None:
        self.taken += size
        self._bounded.held += size
        if self.taken > self._too_large.limit:
            self.refusal = self.refusal or self._too_large
        elif self._bounded.held > self._bounded.limits.bodies_bytes:
            self.refusal = self.refusal or Busy("too many large requests are under way", "send it again in a moment", retry_after=1.0)

    async def send(self, message: Message) -> None:
        if self.refusal is None or self.started:
            self.started = True
            await self._send(message)


def _refusal(headers: Iterable[tuple[bytes, bytes]], too_large: BodyTooLarge) -> Refusal | None:
    lengths = [value.strip() for name, value in headers if name == b"content-length"]
    transfers = [value for name, value in headers if name == b"transfer-encoding"]
    packings = [value.strip().lower() for name, value in headers if name == b"content-encoding"]
    if any(packing not in (b"", b"identity") for packing in packings):
        return BadRequest("bodies are not unpacked here", "send the body as it is, without Content-Encoding")
    if len(lengths) > 1 or (lengths and transfers):
        return BadRequest("the request states the length of its body twice", "send either Content-Length or Transfer-Encoding, once")
    if not lengths:
        return None
    if not re.fullmatch(rb"[0-9]+", lengths[0]):
        return BadRequest("the Content-Length is not a number")
    if len(lengths[0]) > LONGEST or int(lengths[0]) > too_large.limit:
        return too_large
    return None
