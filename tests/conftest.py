"""Marks that keep `make test` quick, and the guards that keep the marks true.

    process    starts a process, binds a socket or waits for a clock: by decorator, or by a fixture that asks for `starts_process`
    slow       takes more than a second of the processor

A test without a mark that does either fails, and says so. Long files begin first: with `--no-loadscope-reorder`, `--dist loadfile` hands
files out in this order, and a long one that comes last keeps one process busy alone.
"""

import multiprocessing.process
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# An example may take its time: on a busy machine hypothesis's 200 ms say nothing about the code.
for profile, examples in (("dev", 20), ("ci", 100), ("nightly", 400)):
    settings.register_profile(profile, max_examples=examples, deadline=None, print_blob=profile != "dev")
settings.load_profile("ci" if os.environ.get("CI") else "dev")

TESTS = Path(__file__).parent
FIRST = ("training", "cli", "serving", "interop")  # folders
APART = {"process", "long", "gpu", "network"}  # may start processes
LONGER = APART | {"slow", "learns", "reference"}  # may take longer than a second
# Seconds of a test without a mark: of the processor (a second on a quiet machine; a busy one takes twice as long, and CI draws five times
# as many examples), and of sleep.
BUDGET, ASLEEP = 5.0 if os.environ.get("CI") else 2.0, 0.05
MARK_OF_A_FILE = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(process|slow|reference|learns|long)\b", re.MULTILINE)
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn")  # audit events
SOCKETS = ("socket.bind", "socket.connect")


class Watch:
    """What the test that runs now does although it has no mark for it."""

    def __init__(self) -> None:
        self.test: str | None = None
        self.seen: list[str] = []
        self.asleep = 0.0

    def begin(self, item: pytest.Item) -> None:
        self.test, self.seen, self.asleep = item.nodeid, [], 0.0

    def end(self) -> None:
        self.test = None

    def see(self, what: str) -> None:
        if self.test is not None:
            self.seen.append(what)
            raise AssertionError(f"{self.test} {what}: mark it `process`, or let its fixture ask for `starts_process`")


WATCH = Watch()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if WATCH is None or WATCH.test is None:  # None: the interpreter ends, and hooks outlive modules
        return
    if event in PROCESSES:
        WATCH.see("starts a process")
    elif event in SOCKETS and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
        WATCH.see("uses a socket")


def _watch_calls() -> None:
    """Of what raises no audit event."""
    start, sleep = multiprocessing.process.BaseProcess.start, time.sleep

    def watched_start(self: multiprocessing.process.BaseProcess) -> None:
        WATCH.see("starts a process")
        start(self)

    def watched_sleep(seconds: float) -> None:
        WATCH.asleep += seconds
        if WATCH.asleep > ASLEEP:
            WATCH.see("waits for a clock")
        sleep(seconds)

    multiprocessing.process.BaseProcess.start = watched_start  # type: ignore[method-assign]
    time.sleep = watched_sleep


sys.addaudithook(_audit)
_watch_calls()


@pytest.fixture(scope="session")
def starts_process() -> None:
    """A fixture that starts a process or a server asks for this one, and each test that uses it is marked `process`."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of which nothing is asked for are not even imported."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    found = MARK_OF_A_FILE.search(collection_path.read_text("utf-8"))
    return (bool(found) and f"not {found[1]}" in config.option.markexpr) or None


@pytest.hookimpl(tryfirst=True)  # before those that are not asked for are left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "starts_process" in getattr(item, "fixturenames", ()):
            item.add_marker("process")
    items.sort(key=lambda item: _turn(item.path.relative_to(TESTS)))  # a stable sort: within a file nothing moves


def _turn(path: Path) -> int:
    return FIRST.index(path.parts[0]) if path.parts[0] in FIRST else len(FIRST)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if not APART & {mark.name for mark in item.iter_markers()}:
        WATCH.begin(item)
    try:
        return (yield)
    finally:
        WATCH.end()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    absent, began = {"torch", "torch._dynamo"} - sys.modules.keys(), time.process_time()
    result = yield
    took = time.process_time() - began
    if absent & sys.modules.keys():  # two seconds each, and whichever test comes first pays for it; the first optimizer needs the second
        took = 0.0
    if WATCH.test and WATCH.seen:  # the code under test may have caught what it was told
        pytest.fail(f"a test without a mark {WATCH.seen[0]}: mark it `process`")
    if took > BUDGET and not LONGER & {mark.name for mark in item.iter_markers()}:
        pytest.fail(f"{took:.1f} s of the processor in a test without a mark: make it quicker, or mark it `slow`")
    return result
