"""The body of a request is parsed into values: JSON or a form, strictly read, in memory only.

How large a body may be is the affair of `middleware.body_limit`. Nothing of it is ever in an error, because errors are logged.
"""

import asyncio
import math
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic_core import from_json
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from limelight.serving.queue.text_thread import aside
from limelight.serving.refusals import BadRequest, WrongType

DEEPEST = 32  # of JSON; what clients send has three levels
MEMBERS = 50_000  # values of a JSON body: 500,000 in 1 MB would keep everybody else waiting for a fifth of a second
NAMES = 32  # different fields of a form
VALUES = 1_000  # of all its fields together
OPTIONS, HEADER_BYTES = 16, 4_096  # of a header that says what a form or its part is
FILENAME = re.compile(rb"filename\*=utf-8''([^;\s]+)", re.IGNORECASE)  # RFC 5987: aiohttp writes names so
SMALL = 16 << 10  # bytes of a body that are parsed in the event loop: 5 ms at worst (percent signs), and JSON 1 ms

JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


@dataclass(frozen=True)
class Form:
    fields: dict[str, list[str]] = field(default_factory=dict)
    file: tuple[str, bytes] | None = None


async def read_json(request: Request) -> dict[str, Any]:
    """One object of plain JSON. Numbers are finite, no key occurs twice, no string has half characters or U+0000.

    It has to be called JSON: any page can have a browser send plain text, but for this type the browser asks us first.
    """
    if not is_json(request):
        raise WrongType("the body is not said to be JSON", f"send it with the header Content-Type: {JSON}")
    content = await request.body()
    return await aside(len(content), lambda: json_of(content), SMALL)


def is_json(request: Request) -> bool:
    """application/json, and application/anything+json."""
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    return kind == JSON or (kind.startswith("application/") and kind.endswith("+json"))


def json_of(content: bytes) -> dict[str, Any]:
    bare = _outside_strings(content)
    if bare.count(b",") + bare.count(b"[") + bare.count(b"{") > MEMBERS:
        raise _no_json(f"it has more than {MEMBERS:,} values")
    try:
        value = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise _no_json(str(error)) from None
    if not isinstance(value, dict):
        raise _no_json("it is no JSON object")
    if _check_values(value) < bare.count(b":"):
        raise _no_json("a key occurs twice")
    return value


async def read_form(request: Request) -> Form:
    """What a page or a client sent as fields. No body at all is a form without fields."""
    kind, options = _parse_options(request.headers.get("content-type", "").encode("latin-1"))
    if kind == MULTIPART.encode():
        return await _multipart(request, options.get(b"boundary", b""))
    content = await request.body()
    if kind == URLENCODED.encode() or not content:
        return await aside(len(content), lambda: _parse_urlencoded(content), SMALL)
    raise BadRequest("the body is of a kind that is not understood here", f"send {JSON}, {URLENCODED} or {MULTIPART}")


def _parse_options(header: bytes) -> tuple[bytes, dict[bytes, bytes]]:
    """form-data; name="q" -> form-data and what stands behind it. To parse it takes 2 us for each sign, so that it is bounded here."""
    if header.count(b";") > OPTIONS or len(header) > HEADER_BYTES:
        raise _no_form(f"a header of it has more than {OPTIONS} options or {HEADER_BYTES:,} bytes")
    return parse_options_header(header or None)


def _parse_urlencoded(content: bytes) -> Form:
    form = _Fields()
    if content.count(b"&") >= VALUES:
        raise _no_form(f"it has more than {VALUES:,} values")
    try:
        # Some clients send letters as they are, without percent signs; in UTF-8 both mean the same.
        for each in filter(None, content.replace(b"+", b" ").split(b"&")):
            name, _, value = each.partition(b"=")
            form.add(unquote_to_bytes(name).decode(), unquote_to_bytes(value).decode())
    except UnicodeError:
        raise _no_form("it is not UTF-8, with or without percent signs") from None
    return Form(form.found)


async def _multipart(request: Request, boundary: bytes) -> Form:
    if not boundary:
        raise _no_form("its Content-Type names no boundary")
    parts = _Parts()
    try:
        parser = MultipartParser(boundary, parts.callbacks())  # type: ignore[arg-type]  # theirs names no type of ours
        async for chunk in request.stream():
            for start in range(0, len(chunk), SMALL):
                parser.write(chunk[start : start + SMALL])
                await asyncio.sleep(0)  # others have their turn: a chunk may be as large as the client likes
        parser.finalize()
    except FormParserError:
        raise _no_form("it is not well-formed multipart") from None
    if not parts.ended:
        raise _no_form("its last boundary is missing")
    return Form(parts.fields.found, parts.file)


class _Fields:
    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self.values = 0

    def add(self, name: str, value: str) -> None:
        if "\0" in name or "\0" in value:
            raise _no_form("a field contains U+0000")
        self.found.setdefault(name, []).append(value)
        self.values += 1
        if len(self.found) > NAMES or self.values > VALUES:
            raise _no_form(f"it has more than {NAMES} fields or {VALUES:,} values")


class _Parts:
    """What the parser of multipart says, put together. Starlette's own puts files of more than 1 MB on the disk."""

    def __init__(self) -> None:
        self.fields = _Fields()
        self.file: tuple[str, bytes] | None = None
        self.ended = False
        self.headers: dict[bytes, bytes] = {}
        self.header, self.header_value, self.data = bytearray(), bytearray(), bytearray()
        self.options: dict[bytes, bytes] = {}
        self.count = 0

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self._begin,
            "on_header_field": lambda data, start, end: self.header.extend(data[start:end]),
            "on_header_value": lambda data, start, end: self.header_value.extend(data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._headers_finished,
            "on_part_data": lambda data, start, end: self.data.extend(data[start:end]),
            "on_part_end": self._end,
            "on_end": self._all,
        }

    def _begin(self) -> None:
        self.count += 1
        if self.count > VALUES:  # before its headers and data are kept
            raise _no_form(f"it has more than {VALUES:,} parts")
        self.headers, self.data = {}, bytearray()

    def _header_end(self) -> None:
        self.headers[bytes(self.header).lower()] = bytes(self.header_value)
        self.header, self.header_value = bytearray(), bytearray()

    def _headers_finished(self) -> None:
        kind, self.options = _parse_options(self.headers.get(b"content-disposition", b""))
        if kind != b"form-data" or b"name" not in self.options:
            raise _no_form("a part of it has no name")
        if self.headers.get(b"content-transfer-encoding", b"binary").lower() not in (b"binary", b"8bit", b"7bit"):
            raise _no_form("a part of it is encoded; send it as it is")
        if extended := FILENAME.search(self.headers[b"content-disposition"]):
            self.options.setdefault(b"filename", unquote_to_bytes(extended[1]))
        if b"filename" in self.options and self.file is not None:
            raise _no_form("it has more than one file")

    def _end(self) -> None:
        try:
            name = self.options[b"name"].decode()
            if b"filename" in self.options:
                self.file = (self.options[b"filename"].decode(), bytes(self.data))
            else:
                self.fields.add(name, self.data.decode())
        except UnicodeDecodeError:
            raise _no_form("a field is not UTF-8") from None

    def _all(self) -> None:
        self.ended = True


def _outside_strings(content: bytes) -> bytes:
    """What stands between the strings of JSON. By searches for bytes alone: a pattern takes ten times as long, and lets nobody else run."""
    plain = content.replace(rb"\\", b"").replace(rb"\"", b"")
    if plain.count(b'"') > 4 * MEMBERS:  # two for each value, and for its key
        raise _no_json(f"it has more than {MEMBERS:,} values")
    return b"".join(plain.split(b'"')[::2])


def _check_values(value: dict[str, Any]) -> int:
    """Count the keys. Level by level, without recursion, for what the parser lets pass: depth, infinity (1e999), U+0000."""
    level: list[Any] = [value]
    keys = 0
    for _ in range(DEEPEST):
        inside: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                keys += len(node)
                inside += node
                inside += node.values()
            else:
                inside += node
        if any("\0" in child for child in inside if isinstance(child, str)):
            raise _no_json("a string contains U+0000")
        if any(math.isinf(child) for child in inside if isinstance(child, float)):
            raise _no_json("a number is too large")
        level = [child for child in inside if isinstance(child, dict | list)]
        if not level:
            return keys
    raise _no_json(f"it is nested more than {DEEPEST} levels deep")


def _no_json(why: str) -> BadRequest:
    return BadRequest(f"the body cannot be read as JSON: {why}", "send one JSON object in UTF-8")


def _no_form(why: str) -> BadRequest:
    return BadRequest(f"the body cannot be read as a form: {why}")
