"""How a server begins and ends: real processes, real signals, real sockets."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from http_server import Process, Wire, post, served, status_of

from limelight.errors import ConfigError
from limelight.serving.http.lifecycle import address, bind_socket

pytestmark = pytest.mark.process

READY = b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n"
BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"


def work(seconds: float, echo: int = 0, padding: int = 0) -> bytes:
    return post("/work", json.dumps({"seconds": seconds, "echo": echo, "padding": padding}).encode())


@pytest.fixture
def server() -> Iterator[Process]:
    with served({}) as running:
        yield running


def ended(server: Process, within: float) -> int:
    """Its exit code; it must end by itself in time."""
    return server.process.wait(within)


def test_a_port_that_is_taken_is_an_error_with_a_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=f"port {port}: another program does.*--port {port + 1}"):
            bind_socket("127.0.0.1", port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no.such.host.invalid"])
def test_an_address_of_another_machine_is_an_error(host: str) -> None:
    with pytest.raises(ConfigError, match=r"try --host 127\.0\.0\.1"):
        bind_socket(host, 0)


def test_the_address_can_be_opened_also_in_version_6() -> None:
    with bind_socket("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert address(listener, "127.0.0.1") == f"http://127.0.0.1:{port}"
        assert address(listener, "::1") == f"http://[::1]:{port}"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_a_server_that_nobody_uses_at_once(server: Process, number: int, code: int) -> None:
    server.process.send_signal(number)
    begin = time.monotonic()
    assert ended(server, 5) == code
    assert time.monotonic() - begin < 1.5


def test_an_idle_connection_does_not_keep_the_server(server: Process) -> None:
    with server.connect() as used, server.connect() as unused:
        used.ask(READY).answers(1)
        server.process.terminate()
        assert used.everything() == unused.everything() == b"", "closed, not reset"
    assert ended(server, 5) == 0


def test_what_was_asked_before_is_answered_and_what_comes_later_is_told_to_go_elsewhere(server: Process) -> None:
    with server.connect() as early, server.connect() as kept, server.connect() as late:
        early.ask(work(2.5, echo=7))
        assert status_of(kept.ask(READY).answers(1)) == 200
        late.ask(READY).answers(1)
        server.process.terminate()
        time.sleep(0.1)
        said = kept.ask(READY).answers(1)
        assert status_of(said) == 503, "not ready within 100 ms"
        assert b"connection: close" in said
        assert status_of(server.get("/readyz")) == 503, "on a new connection too"
        time.sleep(1.2)
        said = late.ask(work(0)).everything()
        assert status_of(said) == 503
        assert b"retry-after: " in said
        assert b"connection: close" in said
        said = early.everything()
        assert status_of(said) == 200
        assert b'"echo":7' in said
        assert b"connection: close" in said
    assert ended(server, 3) == 0
    with pytest.raises(ConnectionRefusedError):
        server.connect()


@pytest.mark.long
def test_the_port_is_free_for_the_next_server_while_the_last_one_finishes(server: Process) -> None:
    with server.connect() as wire:
        wire.ask(work(12.0, echo=1))
        server.process.terminate()
        latest = time.monotonic() + 9  # on a busy machine; alone it takes 2 s
        while not is_free(server.port):
            assert time.monotonic() < latest, "the port is still taken"
            time.sleep(0.1)
        assert server.process.poll() is None, "it is still at work"
        assert status_of(wire.everything()) == 200


def is_free(port: int) -> bool:
    try:
        bind_socket("127.0.0.1", port).close()
    except ConfigError:
        return False
    return True


def test_requests_that_were_sent_a_moment_before_the_signal_are_answered(server: Process) -> None:
    used = [server.connect() for _ in range(20)]
    for wire in used:
        wire.ask(READY).answers(1)
    fresh = [server.connect() for _ in range(20)]
    os.kill(server.process.pid, signal.SIGSTOP)  # so that the requests and the signal wait together
    for number, wire in enumerate((*used, *fresh)):
        wire.ask(work(0.05, echo=number, padding=100_000))
    unaccepted = [server.connect().ask(work(0.05, echo=40 + number)) for number in range(5)]
    server.process.terminate()
    os.kill(server.process.pid, signal.SIGCONT)
    for number, wire in enumerate((*used, *fresh, *unaccepted)):
        with wire:
            said = wire.everything()
            assert status_of(said) == 200, f"request {number}"
            assert b'"echo":%d,' % number in said
    assert ended(server, 5) == 0


def test_an_answer_that_is_being_read_is_not_cut_off(server: Process) -> None:
    with Wire(server.port, room=65536) as wire:
        wire.ask(work(0, padding=20_000_000))
        time.sleep(0.2)
        server.process.terminate()
        time.sleep(1.5)
        assert len(wire.everything()) > 20_000_000
    assert ended(server, 5) == 0


def test_a_second_signal_is_the_end_of_patience(server: Process) -> None:
    with server.connect() as wire:
        wire.ask(work(60))
        time.sleep(0.1)
        server.process.terminate()
        time.sleep(0.5)
        server.process.terminate()
        begin = time.monotonic()
        said = wire.everything()
        assert status_of(said) == 503
        assert b"retry-after: " in said
        assert ended(server, 4) == 128 + signal.SIGTERM
        assert time.monotonic() - begin < 4


def test_the_end_is_not_put_off_for_longer_than_agreed() -> None:
    with served({"drain_seconds": 1.0}) as server, server.connect() as wire, server.connect() as half:
        wire.ask(work(60))
        half.ask(work(60)[:-5])
        time.sleep(0.1)
        server.process.terminate()
        begin = time.monotonic()
        assert status_of(wire.everything()) == status_of(half.everything()) == 503
        assert ended(server, 3) == 0
        assert 0.9 < time.monotonic() - begin < 3


@pytest.mark.long
def test_one_keystroke_that_arrives_twice_is_one_signal(server: Process) -> None:
    with server.connect() as wire:
        wire.ask(work(0.5, echo=3))
        time.sleep(0.1)
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.02)
        server.process.send_signal(signal.SIGINT)
        assert b'"echo":3' in wire.everything()
    assert ended(server, 5) == 130


@dataclass
class Told:
    """What a client in a closed loop was told, by when it had sent its request."""

    right: list[float] = field(default_factory=list)
    elsewhere: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    silent: list[float] = field(default_factory=list)  # the connection ended without a byte
    broken: list[float] = field(default_factory=list)


def ask_again_and_again(port: int, told: Told, until: float, number: int) -> None:
    draws, wire = random.Random(number), None
    while time.monotonic() < until:
        sent, said, echo = time.monotonic(), b"", draws.randrange(10**9)
        try:
            wire = wire or Wire(port)
            wire.ask(work(draws.uniform(0, 0.06), echo, draws.choice([0, 300_000])))
            sent = time.monotonic()
            said = wire.answers(1)
        except ConnectionRefusedError:
            told.refused.append(sent)
            time.sleep(0.02)
            continue
        except ConnectionError:
            pass
        status = status_of(said)
        right = status == 200 and b'"echo":%d,' % echo in said and said.endswith(b"}")
        kind = told.right if right else told.broken if said else told.silent
        if status == 503 and b"retry-after: " in said:
            kind = told.elsewhere
        kind.append(sent)
        if kind is not told.right or b"connection: close" in said:
            assert wire is not None
            wire.socket.close()
            wire = None
        time.sleep(draws.choice([0, 0, 0, 0.2]))  # so that some connections are idle, and kept, when the signal comes


def drained(server: Process, seconds_after: float) -> tuple[Told, float, int]:
    """Ten clients, a signal in between: what they were told, when it was sent, and the exit code."""
    told, until = Told(), time.monotonic() + 0.7 + seconds_after
    clients = [threading.Thread(target=ask_again_and_again, args=(server.port, told, until, n)) for n in range(10)]
    for client in clients:
        client.start()
    time.sleep(random.Random().uniform(0.3, 0.7))
    server.process.terminate()
    signalled = time.monotonic()
    for client in clients:
        client.join()
    return told, signalled, ended(server, 5)


def test_nothing_is_lost_when_it_stops_under_load(server: Process) -> None:
    told, signalled, code = drained(server, 3.5)
    assert code == 0
    assert not told.broken
    assert len(told.right) > 20
    assert [kind for kind in (told.elsewhere, told.refused, told.silent) if kind and min(kind) < signalled] == []
    assert told.elsewhere, "some came too late and were told so"
    assert told.refused, "and some later still"
    assert len(told.silent) <= 1, "at most one who connects in the very moment in which the port is closed"


@contextlib.contextmanager
def limelight(*arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    command = [
        str(Path(sys.executable).with_name("limelight")),
        "serve",
        f"en-de={BUNDLE}",
        "--port",
        "0",
        "--json",
        *arguments,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read().decode()
        yield process, int(json.loads(line)["address"].rpartition(":")[2])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def test_the_real_command_translates_and_ends_on_ctrl_c() -> None:
    with limelight() as (process, port), Wire(port) as wire:
        asked = post(
            "/translate",
            json.dumps({"q": ["one"] * 40, "source": "en", "target": "de"}).encode(),
            "Content-Type: application/json",
        )
        said = wire.ask(asked).answers(1)
        assert json.loads(said.partition(b"\r\n\r\n")[2]) == {"translatedText": ["eins"] * 40}
        wire.ask(asked)
        process.send_signal(signal.SIGINT)
        assert status_of(wire.everything()) == 200
        assert process.wait(10) == 130
