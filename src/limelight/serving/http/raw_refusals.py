"""Raw answers refuse what never reaches the application: requests that are wrong, late, or one too many."""

import asyncio
import json
from collections.abc import Callable, Iterable

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

REASONS = {
    400: ("bad_request", "this is not HTTP/1.1 as it should be"),
    408: ("slow", "the request took too long to arrive"),
    431: ("headers_too_large", "the request line and the headers are too large"),
    503: ("busy", "the server has as many connections as it can serve, or stops; try again in a moment"),
}


def answer_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    code, message = REASONS[status]
    body = json.dumps({"error": {"code": code, "message": message, "hint": None}}).encode()
    head = [STATUS_LINE[status], *(b"%b: %b\r\n" % header for header in headers)]
    head += [b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)]
    head += [b"retry-after: 1\r\n"] if status == 503 else []
    return b"".join([*head, b"\r\n", body])


class Outlet:
    """An outlet is the transport as an answer sees it: to close it is to leave."""

    def __init__(self, transport: asyncio.Transport, leave: Callable[[], None]) -> None:
        self.write, self.is_closing = transport.write, transport.is_closing
        self.close = leave
