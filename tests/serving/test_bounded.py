"""Bodies that are too large, too deep, packed or wrong, on real sockets against a real server."""

import asyncio
import contextlib
import gzip
import json
import time
from collections.abc import Callable, Iterator

import pytest
from http_server import Process, Wire, post, served, status_of
from native_server import Running, running, stored

from limelight.serving.access.keys import Keys
from limelight.serving.middleware.body_limit import BodyLimit
from limelight.serving.settings import ServeSettings

MB = 1 << 20
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def server(starts_process: None) -> Iterator[Process]:
    with served({}) as running:
        yield running


def said_to(server: Process, request: bytes) -> bytes:
    with server.connect() as wire:
        return wire.ask(request).answers(1)


def chunked(path: str, size: int, chunk: int = 10_000) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + (b"%x\r\n" % chunk + b"x" * chunk + b"\r\n") * (size // chunk) + b"0\r\n\r\n"


def test_a_declared_length_above_the_limit_is_refused_before_anything_is_read(server: Process) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
    said = said_to(server, head % (MB + 1))  # no body follows, and none is waited for
    assert status_of(said) == 413
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
    assert b"connection: close" in said
    assert status_of(said_to(server, post("/echo", b"x" * MB))) == 200, "exactly the limit is allowed"


def test_a_client_that_reads_only_when_it_has_sent_its_body_still_reads_why_it_was_refused(server: Process) -> None:
    assert status_of(said_to(server, post("/echo", b"x" * (MB + 100_000)))) == 413
    with server.connect() as wire:
        wire.ask(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
        for _ in range(4):  # a socket that was simply closed would reset the second of these
            time.sleep(0.1)
            wire.ask(b"x" * 10_000)
        assert status_of(wire.answers(1)) == 413


def test_a_chunked_body_is_counted_while_it_comes(server: Process) -> None:
    before = server.memory
    with server.connect() as wire:
        with contextlib.suppress(ConnectionError):  # it stops reading
            wire.ask(chunked("/echo", 10_000_000))
        assert status_of(wire.answers(1)) == 413
    assert server.memory - before < 4 * MB
    assert status_of(said_to(server, chunked("/echo", 1_000_000))) == 200


def test_no_more_than_twice_the_limit_is_ever_read(server: Process) -> None:
    for request in (chunked("/echo", 10_000_000), post("/echo", b"x" * 10_000_000)):
        before = server.read
        with server.connect() as wire, contextlib.suppress(ConnectionError):
            wire.ask(request)
        assert 0 < server.read - before < 2 * MB


def test_a_route_with_a_file_has_a_limit_of_its_own(server: Process) -> None:
    assert status_of(said_to(server, post("/translate_file", b"x" * (2 * MB)))) == 200
    assert status_of(said_to(server, chunked("/translate_file", 2 * MB))) == 200
    refused = said_to(server, post("/translate_file", b"", "X: y").replace(b"Length: 0", b"Length: 9999999"))
    assert status_of(refused) == 413
    assert json.loads(refused.partition(b"\r\n\r\n")[2]) == {"error": "the body has more than 8,388,608 bytes"}


def test_a_packed_body_is_not_unpacked(server: Process) -> None:
    bomb = gzip.compress(bytes(10 * MB), compresslevel=1)
    for packing in ("gzip", "br", "identity, gzip", "x"):
        assert status_of(said_to(server, post("/json", bomb, JSON, f"Content-Encoding: {packing}"))) == 400
    assert status_of(said_to(server, post("/json", b"{}", JSON, "Content-Encoding: identity"))) == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([(b"content-length", b"3"), (b"transfer-encoding", b"chunked")], 400),
        ([(b"content-length", b"3"), (b"content-length", b"3")], 400),
        ([(b"content-length", b"+3")], 400),
        ([(b"content-length", b"3.0")], 400),
        ([(b"content-length", b"\xb2")], 400),
        ([(b"content-length", b"9" * 5_000)], 413),
        ([(b"content-length", b"3")], 200),
        ([(b"transfer-encoding", b"chunked")], 200),
    ],
)  # fmt: skip
def test_what_our_parser_refuses_is_refused_behind_another_one_too(headers: list[tuple[bytes, bytes]], status: int) -> None:
    async def app(scope, receive, send) -> None:  # type: ignore[no-untyped-def]
        await send({"type": "http.response.start", "status": 200, "headers": []})

    sent: list[dict[str, int]] = []

    async def send(message) -> None:  # type: ignore[no-untyped-def]
        sent.append(message)

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "method": "POST", "path": "/echo", "headers": headers}
    asyncio.run(BodyLimit(app, ServeSettings())(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == status


HOSTILE = {
    "depth 100,000": b"[" * 100_000,
    "depth 100,000 in an object": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "depth 33": b'{"a":' * 33 + b"1" + b"}" * 33,
    "80,000 keys": b"{%s}" % b",".join(b'"%d":1' % n for n in range(80_000)),
    "300,000 values": b'{"a":[%s]}' % b",".join([b"[]"] * 300_000),
    "an integer of 5,000 digits": b'{"a":%s}' % (b"9" * 5_000),
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":-Infinity}',
    "a number above all numbers": b'{"a":{"b":[1e999]}}',
    "a key twice": b'{"a":1,"a":2}',
    "half a character": b'{"a":"\\ud800"}',
    "half a character in a key": b'{"\\udc00":1}',
    "U+0000": b'{"a":"\\u0000"}',
    "U+0000 in a key": b'{"a":[{"\\u0000":1}]}',
    "U+0000 behind a backslash": b'{"a":"\\\\\\u0000"}',
    "U+0000 as it is": b'{"a":"\0"}',
    "a list": b"[]",
    "a string": b'"a"',
    "nothing": b"",
    "not UTF-8": b'{"a":"\xff"}',
    "UTF-16": '{"a":1}'.encode("utf-16"),
    "two values": b"{} {}",
    "half a value": b'{"a"',
    "a string without end": b'{"a":"' + b'\\"' * 400_000,
    "a comma too many": b'{"a":1,}',
    "single quotes": b"{'a':1}",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_body_that_is_not_plain_json_is_refused_with_a_reason(server: Process, kind: str) -> None:
    said = said_to(server, post("/json", HOSTILE[kind], JSON))
    assert status_of(said) == 400
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["message"].startswith("the body cannot be read as JSON: ")


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":"\\\\u0000"}',
        b'{"a":"\\ud83d\\ude00"}',
        b'{"a":' * 31 + b"{}" + b"}" * 31,
        b'{"a":"%s"}' % (b"1," * 400_000),
        '{"ü":"\u2028"}'.encode(),
        b'{"a":"%s"}' % (b"\\\\" * 400_000),
        b'{"a":1e308}',
    ],
)
def test_a_body_that_only_looks_strange_is_taken(server: Process, body: bytes) -> None:
    assert status_of(said_to(server, post("/json", body, JSON))) == 200


def part(name: str, value: bytes, more: str = "") -> bytes:
    return b'--XX\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n%b\r\n' % (name.encode(), more.encode(), value)


MULTIPART, URLENCODED = "multipart/form-data; boundary=XX", "application/x-www-form-urlencoded"
END = b"--XX--\r\n"


@pytest.mark.parametrize(
    ("kind", "body", "found"),
    [
        (URLENCODED, b"q=a+b&q=%C3%BC&source=de&empty=", {"fields": 3, "file": None}),
        (URLENCODED, "q=grün".encode(), {"fields": 1, "file": None}),
        (f"{URLENCODED}; charset=utf-8", b"q=a", {"fields": 1, "file": None}),
        (URLENCODED, b"", {"fields": 0, "file": None}),
        (MULTIPART, part("q", b"a") + part("file", b"\0\xff\r\n", '; filename="ü.txt"') + END, {"fields": 1, "file": 4}),
        (MULTIPART, part("file", b"abc", "; filename*=UTF-8''%C3%BC.txt") + END, {"fields": 0, "file": 3}),
        (MULTIPART, b"".join(part(f"f{n}", b"x") for n in range(32)) + END, {"fields": 32, "file": None}),
        ('multipart/form-data; boundary="XX"', part("file", b"x" * 900_000, '; filename="a"') + END, {"fields": 0, "file": 900_000}),
    ],
)  # fmt: skip
def test_a_form_is_read_in_both_its_forms(server: Process, kind: str, body: bytes, found: dict[str, int | None]) -> None:
    said = said_to(server, post("/form", body, f"Content-Type: {kind}"))
    assert status_of(said) == 200
    assert json.loads(said.partition(b"\r\n\r\n")[2]) == found


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (URLENCODED, b"&".join([b"q=1"] * 2_000)),
        (URLENCODED, b"&".join(b"q%d=1" % n for n in range(33))),
        (URLENCODED, b"q=%ff"),
        (URLENCODED, b"q=\xff"),
        (URLENCODED, b"q=%00"),
        (MULTIPART, part("q", b"x") * 2_000 + END),
        (MULTIPART, b"".join(part(f"f{n}", b"x") for n in range(33)) + END),
        (MULTIPART, part("file", b"x", '; filename="a"') * 2 + END),
        (MULTIPART, part("q", b"\xff") + END),
        (MULTIPART, part("q", b"a\0b") + END),
        (MULTIPART, part("q", b"x")),
        (MULTIPART, b"garbage"),
        (MULTIPART, b""),
        (MULTIPART, b"--XX\r\nContent-Type: text/plain\r\n\r\nx\r\n" + END),
        (MULTIPART, b"--XX\r\nContent-Disposition: form-data; name=q" + b";" * 4_000 + b"\r\n\r\nx\r\n" + END),
        (MULTIPART + ";" * 8_000, b""),
        (MULTIPART, b'--XX\r\nContent-Disposition: form-data; name="q"\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n' + END),
        ("multipart/form-data", part("q", b"x") + END),
        (f"multipart/form-data; boundary={'X' * 5_000}", b"x"),
        ("text/plain", b"q=1"),
    ],
)  # fmt: skip
def test_a_form_that_is_wrong_or_endless_is_refused(server: Process, kind: str, body: bytes) -> None:
    assert status_of(said_to(server, post("/form", body, f"Content-Type: {kind}"))) == 400


def test_nothing_of_a_file_is_written_to_the_disk(server: Process) -> None:
    body = part("file", b"x" * 3_000_000, '; filename="a"') + END
    before = server.files
    with server.connect() as wire:
        read = server.read
        wire.ask(post("/v2/document", body, f"Content-Type: {MULTIPART}")[:-1])
        while server.read - read < 3_000_000:
            time.sleep(0.01)
        assert server.files == before
        assert b'"file":3000000' in wire.ask(body[-1:]).answers(1)


@pytest.fixture(scope="module")
def keyed(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    key, models = Keys.add_key(path, "clients"), stored()
    limits = {"bodies_bytes": 4 * MB, "keyless_bytes": 10_000}
    with running(models, Keys.load(path), keys=path, limits=limits) as server:
        yield server, key
    models.close()


def refused_for_others(server: Running, key: str, size: int) -> bool:
    """Is a body of this size refused because of those that others send? Its own fault is another: it is a file of no known kind."""
    file = {"file": ("a.bin", bytes(size))}
    answer = server.client.post("/translate_file", data={"target": "de"}, files=file, headers={"X-API-Key": key})
    assert answer.status_code in (400, 503), answer.text
    assert answer.status_code == 400 or answer.headers["retry-after"] == "1"
    return answer.status_code == 503


def becomes(what: Callable[[], bool]) -> bool:
    """Within ten seconds."""
    return any(what() or time.sleep(0.05) for _ in range(200))


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/translate_file", "/v2/document", "/detect"])
def test_who_has_shown_no_key_in_a_header_sends_little(keyed: tuple[Running, str], path: str) -> None:
    server, key = keyed
    small = {"q": "seven", "text": "seven", "source": "en", "target": "de", "target_lang": "DE", "api_key": key}
    large = {**small, "padding": "x" * 20_000}
    refused = server.client.post(path, json=large)
    assert refused.status_code == 413
    assert "10,000 bytes" in refused.text and "X-API-Key: KEY" in refused.text, "and how it could be sent"
    chunks = (b"x" * 1_000 for _ in range(50))
    assert server.client.post(path, content=chunks, headers={"Content-Type": "text/plain"}).status_code == 413
    wrong = {"X-API-Key": "x" * 43}
    assert server.client.post(path, json=large, headers=wrong).status_code == 413
    for header in ({"X-API-Key": key}, {"Authorization": f"Bearer {key}"}):
        assert server.client.post(path, json=large, headers=header).status_code in (200, 400), "its file is missing"
    assert server.client.post(path, json=small | {"auth_key": key}).status_code in (200, 400)


def test_all_bodies_together_are_bounded_and_every_byte_is_given_back(keyed: tuple[Running, str]) -> None:
    server, key = keyed
    head = f"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Length: {3 * MB}\r\n\r\n"
    nearly_all = 4 * MB - 10_000

    def beside_another() -> bool:
        with Wire(int(server.url.rpartition(":")[2])) as unfinished:
            unfinished.ask(head.encode() + bytes(5 * MB // 2))
            time.sleep(0.2)  # else it may be the one that is refused
            refused = refused_for_others(server, key, 2 * MB)
            small = server.client.post("/api/v1/translate", json={"text": "seven"}, headers={"X-API-Key": key})
            assert small.status_code == 200
            return refused

    for _ in range(3):
        assert becomes(beside_another)
        assert becomes(lambda: not refused_for_others(server, key, nearly_all)), "it left, and others were refused"
    for _ in range(5):
        broken = {"X-API-Key": key, "Content-Type": "application/json"}
        assert server.client.post("/translate", content=b"{" * (MB - 1), headers=broken).status_code == 400
    assert not refused_for_others(server, key, nearly_all)
