"""A tutorial as a list of things to do, and somebody who does them.

    ```console                          $ limelight translate en-de "..."     is run; what stands below it is what it should print
    ```python title="make_pairs.py"     is written to that file

In what should be printed, `...` in a line stands for anything in it, and a line of `...` alone for any lines.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from limelight.cli.main import app
from limelight.errors import LimelightError

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", flags=re.M | re.S)
DONE = "the command has ended with"
SHELL = set("|<>&;`$%")
SHORTER = [
    ("corpus 20000 1", "corpus 600 1"),
    ("--check-only", "--check-only --workers 0"),
    ("test 300 2", "test 20 2"),
    ("--budget 20m", "--preset toy --steps 4 --workers 0 validation.sentences=8 probes.sentences=0"),
    ("--budget 3m", "--preset toy --steps 4 --workers 0 validation.sentences=8 probes.sentences=0"),
    (" --budget 1m", " --steps 2 --workers 0 validation.sentences=8 probes.sentences=0"),
    (" --budget 2m", " --steps 2 --workers 0 validation.sentences=8 probes.sentences=0"),
    ('"twenty-one"', '"three seven one"'),
]
DEMO = "limelight demo --no-open"  # too long for CI; tests/cli runs it


@dataclass(frozen=True)
class File:
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    line: str
    prints: str


def things_to_do(page: str) -> list[File | Command]:
    found: list[File | Command] = []
    for language, title, body in FENCE.findall(page):
        if title:
            found.append(File(title, body))
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
                line, _, prints = part.partition("\n")
                found.append(Command(line, prints))
    return found


def fits(wanted: str, printed: str) -> bool:
    """fits("a ... c\n...", "a b c\nd\n")"""
    lines = [
        r"(?:.*\n)*?" if line.strip() == "..." else ".*".join(re.escape(part) for part in line.split("...")) + r"\s*\n"
        for line in wanted.strip("\n").split("\n")
    ]
    return bool(re.fullmatch("".join(lines), printed.strip("\n") + "\n"))


class Session:
    """One shell for a whole page, in `folder`. `limelight` may run in this process instead, which spares loading torch each time."""

    def __init__(self, folder: Path, here: bool = False) -> None:
        self.folder, self.here = folder, here
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        self.shell = subprocess.Popen(
            ["bash"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PATH": path, "COLUMNS": "160", "NO_COLOR": "1", "PYTHONUTF8": "1"},
        )

    def run(self, line: str) -> tuple[int, str]:
        """Its exit code and what it printed."""
        if self.here and line.startswith("limelight ") and not SHELL & set(re.sub(r"'[^']*'", "", line)):
            return self._run_here(shlex.split(line)[1:])
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.write(f"{line}\necho; echo '{DONE}' $?\n")
        self.shell.stdin.flush()
        printed = []
        for told in self.shell.stdout:
            if told.startswith(DONE):
                return int(told.removeprefix(DONE)), "".join(printed)
            printed.append(told)
        raise AssertionError(f"the shell has ended at: {line}\n{''.join(printed)}")

    def _run_here(self, words: list[str]) -> tuple[int, str]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            result = CliRunner().invoke(app, words)
        finally:
            os.chdir(before)
        if isinstance(result.exception, LimelightError):
            return result.exception.exit_code, f"{result.output}error: {result.exception}"
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    def close(self) -> None:
        assert self.shell.stdin is not None and self.shell.stdout is not None
        self.shell.stdin.close()
        self.shell.stdout.close()
        self.shell.wait(20)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def follow(text: str, session: Session, change: Callable[[str], str], compared: Callable[[str], bool]) -> None:
    """Do what the page says. All that goes otherwise is told at once; after a command that failed nothing more is tried."""
    port, wrong = str(free_port()), []
    for todo in things_to_do(text):
        if isinstance(todo, File):
            (session.folder / todo.name).write_text(change(todo.text), "utf-8")
            continue
        if todo.line.startswith("pip install"):
            check_extras(todo.line)
            continue
        line = change(todo.line).replace("5000", port)
        if line == "":
            continue
        code, printed = session.run(line)
        if code:
            wrong.append(f"$ {line}\nended with {code}:\n{printed}")
            break
        if compared(todo.line) and not fits(todo.prints, printed):
            wrong.append(f"$ {line}\nshould print:\n{todo.prints}\nbut prints:\n{printed}")
    assert not wrong, "\n\n".join(wrong)


def check_extras(line: str) -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    named = re.search(r"\[([^]]+)\]", line)
    assert not named or set(named[1].split(",")) <= set(known), line


def shorter(line: str) -> str:
    if line == DEMO:
        return ""
    for old, new in SHORTER:
        line = line.replace(old, new)
    return line
