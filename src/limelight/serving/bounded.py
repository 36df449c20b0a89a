"""Bodies have a size and no disguise: what is too large is refused before it is read, and what is packed is not unpacked.

Content-Length above the limit                413, without reading
chunked, and more than the limit has come     413, with at most the limit and one chunk in memory
Content-Encoding, two lengths, no length      400
"""

import re
from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limelight.serving.dialects import answer
from limelight.serving.observed import note_refusal
from limelight.serving.paths import path_of
from limelight.serving.refusals import BadRequest, Refusal, TooLarge
from limelight.serving.settings import ServeSettings

FILES = ("/translate_file", "/v2/document")  # routes that take files
LONGEST = 18  # digits of a length; more are too large whatever they say


class Bounded:
    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.limits = app, settings.limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self.limits.file_bytes if path_of(scope) in FILES else self.limits.body_bytes
        if refusal := _refusal(scope["headers"], limit):
            await _refuse(refusal, scope, receive, send)
            return
        counted = CountedBody(limit, receive, send)
        try:
            await self.app(scope, counted.receive, counted.send)
        except TooLarge as error:
            if error is not counted.refusal:
                raise
        if counted.refusal is not None and not counted.started:
            await _refuse(counted.refusal, scope, receive, send)


class CountedBody:
    """What comes is counted. If it is too much, our answer is the one that is sent, whatever the app makes of it."""

    def __init__(self, limit: int, receive: Receive, send: Send) -> None:
        self.limit, self._receive, self._send = limit, receive, send
        self.taken = 0
        self.started = False
        self.refusal: TooLarge | None = None

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self.taken += len(message.get("body", b""))
            if self.taken > self.limit:
                self.refusal = self.refusal or _too_large(self.limit)
        if self.refusal is not None:
            raise self.refusal
        return message

    async def send(self, message: Message) -> None:
        if self.refusal is None or self.started:
            self.started = True
            await self._send(message)


def _refusal(headers: Iterable[tuple[bytes, bytes]], limit: int) -> Refusal | None:
    lengths = [value.strip() for name, value in headers if name == b"content-length"]
    transfers = [value for name, value in headers if name == b"transfer-encoding"]
    packings = [value.strip().lower() for name, value in headers if name == b"content-encoding"]
    if any(packing not in (b"", b"identity") for packing in packings):
        return BadRequest("bodies are not unpacked here", "send the body as it is, without Content-Encoding")
    if len(lengths) > 1 or (lengths and transfers):
        return BadRequest(
            "the request states the length of its body twice", "send either Content-Length or Transfer-Encoding, once"
        )
    if not lengths:
        return None
    if not re.fullmatch(rb"[0-9]+", lengths[0]):
        return BadRequest("the Content-Length is not a number")
    if len(lengths[0]) > LONGEST or int(lengths[0]) > limit:
        return _too_large(limit)
    return None


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"the body has more than {limit:,} bytes", "send less at once")


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    note_refusal(Request(scope), refusal)
    response = answer(path_of(scope), refusal)
    response.headers["Connection"] = "close"  # the rest of the body is not wanted
    await response(scope, receive, send)
