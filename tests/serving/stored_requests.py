"""Requests that have broken servers, for every route that takes a body: what Python's own readers let through, and what they choke on."""

from collections.abc import Iterator
from typing import NamedTuple

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"
TEXT_FIELD = {
    "/api/v1/translate": "text",
    "/api/v1/tokenize": "text",
    "/api/v1/score": "source",
    "/translate": "q",
    "/detect": "q",
    "/suggest": "q",
    "/v2/translate": "text",
}
# Each with @ for the name of the text's field. None of them is a request that can be answered.
BODIES = {
    "nothing": b"",
    "not JSON": b"hello",
    "half": b'{"@": "one',
    "list": b'["one"]',
    "text": b'"one"',
    "number": b"5",
    "null": b"null",
    "two values": b'{"@": "one"} {"@": "two"}',
    "byte order mark": b'\xef\xbb\xbf{"@": "one"}',
    "UTF-16": '{"@": "one"}'.encode("utf-16"),
    "not UTF-8": b'{"@": "caf\xe9"}',
    "half a character": b'{"@": "\\ud800"}',
    "zero": b'{"@": "a\\u0000b"}',
    "raw zero": b'{"@": "a\x00b"}',
    "NaN": b'{"@": NaN}',
    "infinity": b'{"@": "one", "x": -Infinity}',
    "too large a number": b'{"@": "one", "x": 1e999}',
    "key twice": b'{"@": "one", "@": "two"}',
    "5,000 digits": b'{"@": "one", "x": ' + b"9" * 5000 + b"}",
    "deep lists": b'{"@": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "deep objects": b'{"@": ' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}",
    "many keys": b"{" + b",".join(b'"k%d": 1' % number for number in range(20_000)) + b"}",
    "text is a number": b'{"@": 12}',
    "text is true": b'{"@": true}',
    "text is an object": b'{"@": {"a": "one"}}',
    "list of numbers": b'{"@": [1, 2]}',
    "list of lists": b'{"@": [["one"]]}',
    "too many texts": b'{"@": [' + b",".join([b'"one"'] * 2_000) + b"]}",
    "too long a text": b'{"@": "' + b"a" * 300_000 + b'"}',
}


class Stored(NamedTuple):
    path: str
    name: str
    kind: str
    body: bytes


def stored() -> Iterator[Stored]:
    """All of them: 203."""
    for path, name in TEXT_FIELD.items():
        for what, body in BODIES.items():
            yield Stored(path, what, JSON, body.replace(b"@", name.encode()))
