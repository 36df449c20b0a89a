"""Server-sent events (WHATWG HTML, section 9.2) stream what takes long as it is made. Translations are:

    event: part      {"text": 0, "part": 1, "parts": 3, "translation": "Zwei.", "confidence": 0.93}
    event: result    {"text": 0, "result": {...}}          when all parts of a text are done
    event: done      {"took_ms": 41.7}                     always the last, unless there is an error; "zero_shot" where an answer has it
    event: error     {"error": {"code": "late", ...}}

A refusal that comes before the first event is an ordinary answer with its status. While nothing is done, a comment goes out now and then:
proxies close what is silent. When the client leaves, the work is taken out of the queue.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from limelight.serving.http.disconnect import wait_for_disconnect, while_connected
from limelight.serving.http.error_dialects import words
from limelight.serving.queue.service import StreamedSentence, StreamedText
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import Failed, Refusal
from limelight.translator.translation import DIGITS, Translation

SILENCE = 10.0  # seconds between two signs of life
NOTHING: Mapping[str, Any] = {}
COMMENT = b": still here\n\n"
Item = TypeVar("Item")


async def stream_events(
    request: Request,
    made: AsyncIterator[Item],
    encode: Callable[[Item], Awaitable[bytes]],
    silence: float = SILENCE,
    told: Mapping[str, Any] = NOTHING,
) -> Response:
    """The answer, once the first event is there or there was silence for a while. `encode` makes an event of what was made; `told` goes
    with the last."""
    events = events_of(made, encode, silence, told)

    async def begun() -> bytes:
        return await anext(events)

    try:
        first = await while_connected(request, begun())
    except BaseException:
        await events.aclose()
        raise
    return EventStream(first, events)


async def events_of(
    made: AsyncIterator[Item], encode: Callable[[Item], Awaitable[bytes]], silence: float, told: Mapping[str, Any] = NOTHING
) -> AsyncGenerator[bytes, None]:
    """Yield events as bytes for the wire. What is refused before anything was sent is raised; after that it is an event."""
    begin, sent = time.monotonic(), False
    try:
        async with aclosing(breathing(made, silence)) as items:
            async for item in items:
                yield COMMENT if item is None else await encode(item)
                sent = True
    except Refusal as refusal:
        if not sent:
            raise
        yield _error(refusal)
        return
    except Exception:
        if sent:
            yield _error(Failed("the server made a mistake", "Look into its log, or try again."))
        raise
    yield format_event("done", {"took_ms": round((time.monotonic() - begin) * 1000, 3), **told})


async def breathing(source: AsyncIterator[Item], silence: float) -> AsyncGenerator[Item | None, None]:
    """Yield the same items, and None whenever none came for `silence` seconds. Closing it closes the source."""
    coming: asyncio.Future[Item] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(source))
            done, _ = await asyncio.wait({coming}, timeout=silence)
            if not done:
                yield None
                continue
            try:
                item = coming.result()
            except StopAsyncIteration:
                return
            coming = None
            yield item
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait({coming})
            coming.cancelled() or coming.exception()  # nobody is there to be told what went wrong
        if isinstance(source, AsyncGenerator):
            await source.aclose()


def format_event(name: str, value: dict[str, Any]) -> bytes:
    """JSON has no line break of its own, and a text's are escaped in it: one line of data for each event."""
    return f"event: {name}\ndata: {json.dumps(value, ensure_ascii=False, allow_nan=False)}\n\n".encode()


async def encode_translated(item: StreamedSentence | StreamedText, result: Callable[[int, Translation], dict[str, Any]]) -> bytes:
    """Make an event of a sentence or a whole text. `result`: a text's number and translation as JSON."""
    if isinstance(item, StreamedText):
        text, made = item

        def whole() -> bytes:
            return format_event("result", {"text": text, "result": result(text, made)})

        return await aside(weight([made.text, *(each.text for each in made.alternatives)]), whole)
    told = {"translation": item.translation.text, "confidence": round(item.translation.confidence, DIGITS)}
    return format_event("part", {"text": item.text, "part": item.part, "parts": item.parts, **told})


def _error(refusal: Refusal) -> bytes:
    return format_event("error", words("native", refusal))


class EventStream(Response):
    """Starlette's own response leaves the generator to the garbage collector when a client leaves; here the work ends at once."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, events: AsyncGenerator[bytes, None]) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self.first, self.events = first, events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(wait_for_disconnect(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait({sending, leaving})
            await self.events.aclose()

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.first, "more_body": True})
        async for event in self.events:
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
