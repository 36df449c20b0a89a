"""Many connections: of one client, of many, idle or busy; and probes beside them. Real sockets, on several addresses of loopback."""

import contextlib
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from http_server import Process, Wire, post, served, status_of

from limelight.serving.http.connection_shares import RESERVE, Crowd, home_of
from limelight.serving.settings import Limits

GET = b"GET /echo HTTP/1.1\r\nHost: a\r\n\r\n"
PROBE = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf"
WORK = post("/work", b'{"seconds": 30, "echo": 1}')
SMALL = {"connections": 20, "address_connections": 8, "idle_seconds": 60, "body_seconds": 60}


@pytest.fixture(scope="module")
def server(starts_process: None) -> Iterator[Process]:
    with served({"limits": SMALL, "drain_seconds": 0.5}) as running:
        yield running


@contextmanager
def held(server: Process, count: int, first: bytes, source: str | None = None) -> Iterator[list[Wire]]:
    """So many connections that have sent this."""
    with ExitStack() as stack:
        wires = [stack.enter_context(server.connect(source)).ask(first) for _ in range(count)]
        time.sleep(0.1)
        yield wires
    time.sleep(0.1)


def asked(server: Process, request: bytes, source: str | None = None) -> int:
    with server.connect(source) as wire:
        return status_of(wire.ask(request).answers(1))


def is_open(wire: Wire) -> bool:
    wire.socket.settimeout(0.05)
    with contextlib.suppress(TimeoutError, ConnectionError):
        return wire.socket.recv(1, 2) != b""  # 2: MSG_PEEK
    return True


@pytest.mark.parametrize("first", [b"", GET])
def test_when_all_places_are_taken_the_connection_that_is_idle_longest_makes_way(server: Process, first: bytes) -> None:
    with held(server, 20, first) as idle:
        if first:
            assert all(status_of(wire.answers(1)) == 200 for wire in idle)
            idle[0].ask(GET).answers(1)  # so now the second is idle longest
        assert asked(server, GET) == 200
        assert [is_open(wire) for wire in idle] == [bool(first), not first, *[True] * 18]


@pytest.mark.parametrize("first", [HALF, WORK])
def test_those_who_are_served_are_not_driven_out_and_others_are_told_that_there_is_no_room(server: Process, first: bytes) -> None:
    with held(server, 20, first) as busy:
        with server.connect() as wire:
            said = wire.ask(GET).everything()
        assert status_of(said) == 503 and b"retry-after: 1" in said
        assert all(map(is_open, busy))
    assert asked(server, GET) == 200, "and there is room again"


@pytest.mark.parametrize("first", [b"", GET, HALF, WORK])
@pytest.mark.parametrize("sources", [["127.0.0.1"], ["127.0.0.2", "127.0.0.3", "127.0.0.4"]])
def test_probes_are_answered_whoever_holds_all_connections(server: Process, first: bytes, sources: list[str]) -> None:
    with ExitStack() as stack:
        for source in sources:
            stack.enter_context(held(server, 40, first, source))
        for source in ("127.0.0.1", sources[0], "127.0.0.9"):
            for path in (b"readyz", b"healthz", b"mt/healthz?from=kubelet"):
                status = asked(server, PROBE.replace(b"readyz", path), source)
                assert status == (404 if b"mt" in path else 200), "404 is the application's own"


def test_the_reserve_is_not_held_by_those_who_are_silent_and_answers_nothing_else(server: Process) -> None:
    with held(server, 20, WORK), held(server, 3 * RESERVE, b""):
        for _ in range(3):
            assert asked(server, PROBE) == 200
            for other in (GET, PROBE.replace(b"GET", b"POST"), PROBE.replace(b"/readyz", b"/readyz/x")):
                assert asked(server, other) == 503
        with server.connect() as wire:
            assert b"connection: close" in wire.ask(PROBE).everything()


def test_who_waits_in_the_reserve_is_served_when_there_is_room(server: Process) -> None:
    with held(server, 20, WORK) as busy, server.connect() as waiting:
        time.sleep(0.1)
        busy[0].socket.close()
        time.sleep(0.2)
        assert status_of(waiting.ask(GET).answers(1)) == 200


def test_one_address_has_a_share_and_a_proxy_that_is_trusted_has_none(server: Process) -> None:
    with held(server, 8, WORK, "127.0.0.2"):
        assert asked(server, GET, "127.0.0.2") == 503
        assert asked(server, GET, "127.0.0.3") == 200
        with held(server, 12, WORK, "127.0.0.1") as proxied:  # uvicorn trusts it unless FORWARDED_ALLOW_IPS says otherwise
            assert all(map(is_open, proxied))
    with held(server, 8, b"", "127.0.0.2") as idle, held(server, 1, b"", "127.0.0.3") as other:
        assert asked(server, GET, "127.0.0.2") == 200
        assert [is_open(wire) for wire in idle] == [False, *[True] * 7], "its own idle connection made way"
        assert is_open(other[0])


def test_nothing_is_remembered_of_those_who_left() -> None:
    class Wired:
        front = None

        def vacate(self) -> None:
            raise AssertionError

    crowd = Crowd(Limits())
    for at in range(500):
        one = Wired()
        assert crowd.seat(one, (f"10.0.{at // 250}.{at % 250}", 1))
        crowd.mark(one, idle=True)
        crowd.remove(one)
    assert not any(getattr(crowd, name) for name in ("_homes", "_held", "_idle", "_reserve"))


@pytest.mark.process
@pytest.mark.parametrize(
    ("address", "home"),
    [
        ("10.0.0.5", "10.0.0.5"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("/run/limelight.sock", "/run/limelight.sock"),
    ],
)
def test_an_address_counts_as_one_client_and_in_version_6_a_whole_network(address: str, home: str) -> None:
    assert home_of(address) == home
