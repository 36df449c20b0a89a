"""Clients that are slow, silent, endless or strange, on real sockets against a real server whose patience is less than a second."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_server import SHORT, Process, Wire, post, served, status_of

GET = b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"
PATIENCE = 0.8
SLOW = {  # what is sent at first, and then a byte now and then
    "headers": (b"GET /echo HTTP/1.1\r\nHost: a\r\nX: ", b"x"),
    "request line": (b"GET /", b"x"),
    "body": (b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", b"x"),
    "size of a chunk": (b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "empty lines": (b"\r\n", b"\r\n"),
    "nothing": (b"", b""),
    "second request": (GET + b"GET /", b"x"),
}


@pytest.fixture(scope="module")
def server(starts_process: None) -> Iterator[Process]:
    with served({"limits": SHORT}) as running:
        yield running


def slow(port: int, kind: str) -> tuple[bytes, float]:
    begin, byte = SLOW[kind]
    with Wire(port) as wire:
        return wire.ask(begin).trickle(byte)


def test_a_slow_client_loses_its_connection_in_time_whatever_it_is_slow_with(server: Process) -> None:
    with ThreadPoolExecutor(len(SLOW)) as clients:
        results = dict(zip(SLOW, clients.map(lambda kind: slow(server.port, kind), SLOW), strict=True))
    for kind, (said, seconds) in results.items():
        assert PATIENCE - 0.1 < seconds < PATIENCE + 3, f"{kind}: {seconds} s"
        assert said.count(b"HTTP/1.1 408 ") == (kind not in ("empty lines", "nothing")), f"{kind}: {said!r}"
    assert status_of(results["second request"][0]) == 200, "and its first request is answered"


@pytest.mark.long
def test_control_uvicorn_alone_is_as_patient_as_its_clients_want() -> None:
    with served({"limits": SHORT}, "plain") as server, ThreadPoolExecutor(3) as clients:
        kinds = ["headers", "body", "nothing"]
        for kind, (_, seconds) in zip(kinds, clients.map(lambda kind: slow(server.port, kind), kinds), strict=True):
            assert seconds > 9, f"{kind}: if uvicorn itself has learnt it, this is for us to remove"


def test_many_slow_clients_do_not_keep_others_waiting_and_take_little_memory(server: Process) -> None:
    with server.connect() as normal:
        normal.ask(GET).answers(1)
        before = server.memory
        held = [server.connect().ask(begin) for begin, _ in list(SLOW.values())[:3] for _ in range(100)]
        longest = 0.0
        for _ in range(50):
            begin = time.monotonic()
            assert status_of(normal.ask(GET).answers(1)) == 200
            longest = max(longest, time.monotonic() - begin)
        grown = server.memory - before
        assert all(status_of(wire.everything()) == 408 for wire in held)
        for wire in held:
            wire.socket.close()
    assert longest < 0.25, f"{longest} s for a normal request"
    assert grown < 32 << 20, f"{grown / 2**20:.0f} MB more"


def test_bytes_in_time_are_no_crime(server: Process) -> None:
    with server.connect() as wire:
        for _ in range(3):
            for byte in (b"GET /ec", b"ho HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n"):
                wire.ask(byte)
                time.sleep(0.08)  # together longer than any clock
            assert status_of(wire.answers(1)) == 200


def test_no_clock_runs_while_the_client_waits_for_us(server: Process) -> None:
    with server.connect() as wire:
        said = wire.ask(post("/work", b'{"seconds": 1.2, "echo": "late"}')).answers(1)
    assert status_of(said) == 200
    assert b'"late"' in said


@pytest.mark.parametrize("size", [17_000, 200_000])
@pytest.mark.parametrize(
    "request_of",
    [
        lambda size: b"GET /echo HTTP/1.1\r\nHost: a\r\nX: " + b"x" * size + b"\r\n\r\n",
        lambda size: b"GET /echo HTTP/1.1\r\nHost: a\r\n" + b"X: yz\r\n" * (size // 7) + b"\r\n",
        lambda size: b"GET /echo?" + b"x" * size + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        lambda size: b"GET /echo HTTP/1.1\r\nHost: a\r\nX: " + b"x" * size,
        lambda size: b"\r\n" * (size // 2),
    ],
    ids=["one header", "many headers", "request line", "headers without an end", "empty lines"],
)
def test_headers_above_the_limit_are_refused(server: Process, request_of, size: int) -> None:  # type: ignore[no-untyped-def]
    with server.connect() as wire:
        said = wire.ask(request_of(size)).everything()
    assert status_of(said) == 431
    assert json.loads(said.partition(b"\r\n\r\n")[2])["error"]["code"] == "headers_too_large"


def test_headers_below_the_limit_are_taken(server: Process) -> None:
    with server.connect() as wire:
        assert status_of(wire.ask(b"GET /echo HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 16_000 + b"\r\n\r\n").answers(1)) == 200


def test_headers_behind_the_body_are_neither_headers_nor_endless(server: Process) -> None:
    chunked = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    with server.connect() as wire:
        said = wire.ask(chunked + b"1\r\nx\r\n0\r\nX-Api-Key: forged\r\n\r\n").answers(1)
        assert json.loads(said.partition(b"\r\n\r\n")[2]) == {"bytes": 1, "headers": 2}
    for flood in (b"0\r\nX: " + b"x" * 400_000, b"1;" + b"x" * 400_000, (b"1;" + b"x" * 30 + b"\r\ny\r\n") * 30_000):
        with server.connect() as wire:
            begin = time.monotonic()
            wire.ask(chunked)
            try:
                said = wire.ask(flood).everything()
            except ConnectionError:  # it sent more than we were willing to ignore
                said = b"HTTP/1.1 400 "
            assert status_of(said) == 400
            assert time.monotonic() - begin < PATIENCE - 0.1, "it was not the clock"


@pytest.mark.parametrize(
    "request_",
    [
        b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, gzip\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: b\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /echo HTTP/1.1\r\nHost : a\r\n\r\n",
        b"GET /echo HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"hello\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_not_plain_http_is_refused(server: Process, request_: bytes) -> None:
    with server.connect() as wire:
        assert status_of(wire.ask(request_).everything()) == 400


def test_requests_that_come_together_are_answered_in_order(server: Process) -> None:
    bodies = [json.dumps({"seconds": 0.05 * (5 - n), "echo": n}).encode() for n in range(5)]
    with server.connect() as wire:
        said = wire.ask(b"".join(post("/work", body) for body in bodies)).answers(5)
    assert [said.index(b'"echo":%d' % n) for n in range(5)] == sorted(said.index(b'"echo":%d' % n) for n in range(5))


def test_a_request_that_is_wrong_does_not_take_the_answers_of_those_before_it(server: Process) -> None:
    good = post("/work", b'{"seconds": 0.2, "echo": 1}')
    for bad in (b"garbage\r\n\r\n", b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        with server.connect() as wire:
            said = wire.ask(good + bad).everything()
        assert status_of(said) == 200
        assert said.count(b"HTTP/1.1") == 1


def test_only_so_many_requests_may_come_together(server: Process) -> None:
    before = server.memory
    with server.connect() as wire:
        said = wire.ask(post("/work", b'{"seconds": 0.2, "echo": 1}') + GET * 5_000).everything()
    assert said.count(b"HTTP/1.1 200 ") == 17, "one is answered and sixteen wait"
    assert server.memory - before < 8 << 20


def test_a_client_that_does_not_read_is_cut_off(server: Process) -> None:
    with Wire(server.port, room=4096) as wire:
        wire.ask(b"GET /flood HTTP/1.1\r\nHost: a\r\n\r\n")
        before = server.memory
        time.sleep(PATIENCE + 0.5)
        assert server.memory - before < 8 << 20
        assert len(wire.everything()) < 20_000_000, "of 30 MB: what was on its way"


def test_a_client_that_reads_gets_all_of_it(server: Process) -> None:
    with server.connect() as wire:
        wire.ask(b"GET /flood HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert len(wire.everything()) > 30_000_000


def test_a_client_that_leaves_is_noticed_also_behind_another_request(server: Process) -> None:
    before = json.loads(server.get("/left").partition(b"\r\n\r\n")[2])["left"]
    long = post("/work", b'{"seconds": 5, "echo": 1}')
    for asked in (long, long + long):
        with server.connect() as wire:
            wire.ask(asked)
            time.sleep(0.1)
    time.sleep(0.1)
    assert json.loads(server.get("/left").partition(b"\r\n\r\n")[2])["left"] >= before + 2


def test_an_answer_before_the_end_of_the_body_is_read_by_a_client_that_sends_first(server: Process) -> None:
    for path in ("/unread", "/nowhere"):
        with server.connect() as wire:
            said = wire.ask(post(path, b"x" * 200_000) + GET).answers(2)
        assert said.count(b"HTTP/1.1 ") == 2, "and the connection can be used again"
        with server.connect() as wire:
            said = wire.ask(post(path, b"x" * 400_000) + GET).answers(2)
        assert said.count(b"HTTP/1.1 ") == 1, "unless it was too much to ignore"


def test_a_request_for_another_protocol_is_answered_in_this_one(server: Process) -> None:
    offer = ["Upgrade: h2c", "Connection: Upgrade, HTTP2-Settings", "HTTP2-Settings: AAA"]
    for body in (b"", b"abc", b"x" * 300_000):
        with server.connect() as wire:
            said = wire.ask(post("/echo", body, *offer) + post("/echo", b"four")).answers(2)
        assert b'{"bytes":%d,"headers":5}' % len(body) in said
        assert b'{"bytes":4,"headers":2}' in said, "and what follows is not lost either"


def test_a_client_that_asks_whether_it_may_send_is_told_before_it_does(server: Process) -> None:
    with server.connect() as wire:
        head = b"POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: "
        assert wire.ask(head + b"3\r\n\r\n").socket.recv(1000).startswith(b"HTTP/1.1 100 ")
        assert b'"bytes":3' in wire.ask(b"abc").answers(1)
    with server.connect() as wire:
        assert status_of(wire.ask(head + b"3000000\r\n\r\n").everything()) == 413
