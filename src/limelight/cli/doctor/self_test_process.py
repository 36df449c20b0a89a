"""The self-tests run in another process, and their results survive that it is killed or hangs."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from limelight.cli.doctor import self_tests

COMMAND = (sys.executable, "-P", "-m", self_tests.__name__)
# Of a file; no address.
PATH = re.compile(r"(?<![:/\w.])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\'\":;,()]+)*[/\\]([^\s/\\'\":;,()]+)")
PATIENCE = 120.0  # seconds for one part; a healthy machine needs three for all, a cold disk with torch on it many


@dataclass(frozen=True)
class SelfTestResult:
    name: str
    works: bool
    seconds: float
    said: str


@dataclass(frozen=True)
class SelfTestOutcome:
    parts: list[SelfTestResult]
    facts: dict[str, Any]


def run_self_tests(command: tuple[str, ...] = COMMAND, patience: float = PATIENCE) -> SelfTestOutcome:
    with tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints)
        assert child.stdout is not None
        written, answered = b"", False
        try:
            written, answered = _all_of(child.stdout, patience)
        finally:
            if not answered:
                child.kill()
            code = child.wait()
        end = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}" if code else ""
        end = end if answered else f"said nothing for {patience:.0f} s"
        complaints.seek(0)
        said = complaints.read().decode(errors="replace").strip().split("\n")[-1]
    return read_lines(written, f"{end}: {said}" if end and said else end)


def _all_of(told: IO[bytes], patience: float) -> tuple[bytes, bool]:
    """Read to the end; false if nothing came for `patience` seconds. Each part has its own time: a busy machine takes long."""
    written, blocks = b"", queue.SimpleQueue[bytes]()

    def read() -> None:  # in a thread, since Windows can wait for sockets only; who else may write there can outlive the process
        with told:
            while block := os.read(told.fileno(), 65_536):  # holds no lock while it waits
                blocks.put(block)
        blocks.put(b"")

    threading.Thread(target=read, daemon=True).start()
    try:
        while block := blocks.get(timeout=patience):
            written += block
    except queue.Empty:
        return written, False
    return written, True


def read_lines(written: bytes, end: str) -> SelfTestOutcome:
    """What the process told. If it ended before its time, so did the part that it had begun; those after it were not tried."""
    parts: list[SelfTestResult] = []
    facts: dict[str, Any] = {}
    begun = "start"
    for line in filter(None, written.split(b"\n")):
        try:
            told = json.loads(line)
        except ValueError:
            break  # cut off when it was killed
        if "begin" in told:
            begun = told["begin"]
        elif "facts" in told:
            facts |= told["facts"]
        else:
            parts.append(SelfTestResult(told["name"], told["works"], told["seconds"], private(told["said"])))
    if end:
        parts.append(SelfTestResult(begun, False, 0.0, private(f"the process that tried it {end}")))
    tried = {part.name for part in parts}
    untried = (name for name in self_tests.list_parts() if name not in tried)
    parts += [SelfTestResult(name, False, 0.0, "was not tried: what came before it failed") for name in untried]
    return SelfTestOutcome(parts, facts)


def private(text: str) -> str:
    """Keep of each path the last name alone: errors of libraries name folders, and reports are pasted where everybody reads them."""
    for place in (sys.prefix, sys.base_prefix, str(Path.home()), str(Path.cwd()), tempfile.gettempdir()):
        if len(place) > 1:  # those that we know of may have blanks in them
            text = text.replace(place, "/...")
    return PATH.sub(r".../\1", text)
