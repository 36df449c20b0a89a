"""Requests that no good client sends, each with the answer that it must get (AT-18).

All of them are bytes: what is wrong with them no HTTP library would write.
"""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass

JSON_ROUTES = {
    "/api/v1/translate": {"text": "one"},
    "/translate": {"q": "one", "source": "en", "target": "de"},
    "/v2/translate": {"text": ["one"], "target_lang": "DE"},
}
BAD, LARGE, LONG_HEADER = (400,), (413,), (431,)
REFUSED = (400, 413, 415, 422)
MEGABYTE = 1 << 20


@dataclass(frozen=True)
class Case:
    """`statuses` are the right answers; 0 is a connection that is closed without one. `ends`: the client says that it has no more."""

    name: str
    raw: bytes
    statuses: tuple[int, ...] = BAD
    ends: bool = False


def head(path: str, *lines: str, method: str = "POST") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *lines, "", ""]).encode()


def post(path: str, body: bytes, *lines: str, kind: str = "application/json") -> bytes:
    return head(path, f"Content-Type: {kind}", f"Content-Length: {len(body)}", *lines) + body


def cases() -> Iterator[Case]:
    yield from headers()
    for path in JSON_ROUTES:
        yield from bodies(path)
        yield from documents(path)
    yield from forms()


def headers() -> Iterator[Case]:
    get = "GET"
    yield Case("header of 200 kB", head("/healthz", f"X-Long: {'x' * 200_000}", method=get), LONG_HEADER)
    yield Case("5,000 headers", head("/healthz", *(f"X-{i}: {i}" for i in range(5000)), method=get), LONG_HEADER)
    yield Case("path of 100 kB", head("/" + "x" * 100_000, method=get), (414, *LONG_HEADER))
    yield Case("no HTTP at all", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n")
    yield Case("header without a colon", head("/healthz", "nonsense", method=get))
    yield Case("zero byte in a header", head("/healthz", "X-Zero: a\0b", method=get))
    yield Case("no host", b"GET /languages HTTP/1.1\r\n\r\n")


def bodies(path: str) -> Iterator[Case]:
    """Lengths that are too large or do not agree. Of a large body only the beginning is sent: the answer must not wait for the rest."""
    right = json.dumps(JSON_ROUTES[path]).encode()
    kind, chunked = "Content-Type: application/json", "Transfer-Encoding: chunked"
    yield Case(f"{path} 10 MB declared", head(path, kind, "Content-Length: 10000000"), LARGE)
    parts = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    yield Case(f"{path} chunked, more than allowed", head(path, kind, chunked) + parts * (3 * MEGABYTE // 2 // 0x10000), LARGE)
    yield Case(f"{path} length and chunks", head(path, kind, chunked, f"Content-Length: {len(right)}") + right)
    yield Case(f"{path} length below zero", head(path, kind, "Content-Length: -5"))
    yield Case(f"{path} length in letters", head(path, kind, "Content-Length: ten"))
    yield Case(f"{path} two lengths", head(path, kind, "Content-Length: 5", "Content-Length: 6") + b"hello")
    yield Case(f"{path} body cut short", head(path, kind, f"Content-Length: {len(right) + 50}") + right, (0, *BAD), ends=True)
    yield Case(f"{path} length too small", head(path, kind, f"Content-Length: {len(right) - 3}") + right)
    yield Case(f"{path} chunk without a size", head(path, kind, chunked) + b"zz\r\nhello\r\n0\r\n\r\n")
    bomb = gzip.compress(b"\0" * MEGABYTE, 9) * 900  # gzip's members stand one after the other: 0.9 MB that become 0.9 GB
    yield Case(f"{path} gzip of a gigabyte", post(path, bomb[:MEGABYTE], "Content-Encoding: gzip"), REFUSED)
    yield Case(f"{path} gzip of a small body", post(path, gzip.compress(right), "Content-Encoding: gzip"), REFUSED)


def documents(path: str) -> Iterator[Case]:
    """JSON that is none, or that a careless parser would take."""
    field = next(iter(JSON_ROUTES[path]))
    rest = json.dumps({name: value for name, value in JSON_ROUTES[path].items() if name != field})[1:-1]
    more = f", {rest}" if rest else ""

    def document(value: str) -> bytes:
        return f'{{"{field}": {value}{more}}}'.encode()

    bad = {
        "100,000 deep": b"[" * 100_000 + b"]" * 100_000,
        "100,000 deep, of objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "80,000 keys": b"{" + b",".join(b'"k%d":0' % i for i in range(80_000)) + b"}",
        "integer of 5,000 digits": document("9" * 5000),
        "NaN": document("NaN"),
        "Infinity": document("-Infinity"),
        "a key twice": document('"one", "' + field + '": "two"'),
        "lone surrogate": document('"\\ud800"'),
        "zero character": document('"a\\u0000b"'),
        "no UTF-8": document('"X"').replace(b"X", b"\xff\xfe"),
        "UTF-16": document('"one"').decode().encode("utf-16"),
        "a list": b"[1, 2]",
        "nothing": b"",
        "half of it": document('"one"')[:-3],
    }
    for name, body in bad.items():
        yield Case(f"{path} JSON: {name}", post(path, body))
    million = b"{" + b",".join(b'"%06x":0' % i for i in range(1_000_000)) + b"}"
    yield Case(f"{path} JSON: a million keys", post(path, million)[: 2 * MEGABYTE], LARGE)


def forms() -> Iterator[Case]:
    kind = "multipart/form-data; boundary=limit"
    part = b'--limit\r\nContent-Disposition: form-data; name="q"\r\n\r\none\r\n'
    for path in ("/translate", "/translate_file"):
        yield Case(f"{path} 2,000 parts", post(path, part * 2000 + b"--limit--\r\n", kind=kind))
        yield Case(f"{path} parts without an end", post(path, part, kind=kind))
        yield Case(f"{path} parts without a boundary", post(path, part, kind="multipart/form-data"))
    many = "&".join(f"q{i}=1" for i in range(20_000)).encode()
    yield Case("/translate 20,000 fields", post("/translate", many, kind="application/x-www-form-urlencoded"))
