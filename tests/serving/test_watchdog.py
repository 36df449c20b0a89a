"""A server that is frozen for good ends itself, and no other does: real processes, frozen by a pattern that holds Python's lock."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_server import Process, post, served, status_of

pytestmark = pytest.mark.process

LIMIT = 1.5  # seconds
SLACK = 20.0  # on a busy machine; alone it takes none


@pytest.fixture
def errors(tmp_path: Path) -> Path:
    return tmp_path / "stderr"


@pytest.fixture
def watched(errors: Path) -> Iterator[Process]:
    with errors.open("wb") as file, served({"watchdog_seconds": LIMIT}, errors=file) as server:
        yield server


def test_a_frozen_server_ends_itself_and_says_where_it_stood(watched: Process, errors: Path) -> None:
    with watched.connect() as wire:
        wire.ask(post("/freeze", b"{}"))
        begin = time.monotonic()
        assert watched.process.wait(LIMIT + SLACK) == 1
        assert time.monotonic() - begin > LIMIT / 2
    said = errors.read_text()
    assert said.startswith("Timeout (0:00:01.500000)!\n")
    assert 'http_server.py", line' in said, "the place in the code"
    assert "aaa" not in said, "and not what it was working on"


@pytest.mark.long
def test_without_a_watchdog_it_stays_frozen(errors: Path) -> None:
    with (
        errors.open("wb") as file,
        served({"watchdog_seconds": "off"}, errors=file) as server,
        server.connect() as wire,
    ):
        wire.ask(post("/freeze", b"{}"))
        time.sleep(0.5)
        server.process.terminate()
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(2 * LIMIT)
        server.process.kill()
    assert not errors.read_bytes()


def test_a_server_that_is_only_busy_or_idle_goes_on(watched: Process, errors: Path) -> None:
    until = time.monotonic() + 3 * LIMIT
    with watched.connect() as wire:
        while time.monotonic() < until:
            said = wire.ask(post("/work", b'{"seconds": 0.3, "echo": 1, "padding": 300000}')).answers(1)
            assert status_of(said) == 200
    time.sleep(2 * LIMIT)
    assert status_of(watched.get("/readyz")) == 200
    watched.process.terminate()
    assert watched.process.wait(10) == 0, "and it is not in the way at the end"
    assert not errors.read_bytes()


@pytest.mark.long
def test_a_server_that_was_stopped_with_ctrl_z_goes_on_afterwards(watched: Process) -> None:
    assert status_of(watched.get("/readyz")) == 200
    watched.process.send_signal(signal.SIGTSTP)
    time.sleep(2 * LIMIT)
    watched.process.send_signal(signal.SIGCONT)
    assert status_of(watched.get("/readyz")) == 200
    time.sleep(LIMIT)
    assert watched.process.poll() is None


@pytest.mark.long
def test_draining_is_watched_too(watched: Process) -> None:
    with watched.connect() as waits, watched.connect() as freezes:
        waits.ask(post("/work", b'{"seconds": 30, "echo": 1}'))
        freezes.ask(b"GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").answers(1)
        watched.process.terminate()
        time.sleep(0.2)
        freezes.ask(post("/freeze", b"{}"))
        assert watched.process.wait(LIMIT + SLACK) == 1
