"""Windows as far as it can be played here: without the modules, calls and signals that it lacks, in processes of their own.

No Windows ever ran this. What is played is in tests/simulated_windows.py.
"""

import ast
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from house_rules import parse

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "limelight"
PLAYED = ROOT / "tests" / "simulated_windows.py"
STORED = ROOT / "tests" / "bundles" / "format-1"
ELSEWHERE = {"limelight.corpus.exchange.engine_ray"}  # a cluster is no Windows


def environment(folder: Path) -> dict[str, str]:
    """Of processes on the Windows that is played. Python runs a `sitecustomize` before anything else."""
    (folder / "played").mkdir(exist_ok=True)
    (folder / "played" / "sitecustomize.py").write_bytes(PLAYED.read_bytes())
    paths = [str(folder / "played"), str(ROOT / "src")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SIMULATE_WINDOWS": "1", "OMP_NUM_THREADS": "1"}


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], env=environment(folder), capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.process
def test_every_module_can_be_imported(tmp_path: Path) -> None:
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in sorted(SOURCE.rglob("*.py"))]
    names = [name.removesuffix(".__init__") for name in names if not name.endswith("__main__")]
    code = f"""
import importlib, traceback
bad = []
for name in {[name for name in names if name not in ELSEWHERE]!r}:
    try:
        importlib.import_module(name)
    except Exception:
        bad.append(name + ": " + traceback.format_exc().strip().split(chr(10))[-1])
from limelight import files
assert files.os.name == "nt" and not hasattr(files, "fcntl"), "nothing is played"
assert not bad, bad
"""
    done = run(tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.process
def test_a_translator_is_trained_and_translates(tmp_path: Path) -> None:
    words = ("one", "two", "three", "four", "five", "six", "seven"), ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben")
    for code, some in zip(("en", "de"), words, strict=True):
        lines = "".join(f"{some[n % 7]} {some[n // 7 % 7]} {some[n // 49]}.\n" for n in range(343))
        (tmp_path / f"x.{code}").write_bytes(lines.encode())
    command = ["train", str(tmp_path / "x.en"), str(tmp_path / "x.de"), "-o", str(tmp_path / "run"), "--preset", "toy", "--steps", "2"]
    done = run(tmp_path, "-m", "limelight", *command, "--anyway", "--plain", "--no-export", "--threads", "1", "--workers", "1")
    assert done.returncode == 0, done.stderr
    done = run(tmp_path, "-m", "limelight", "translate", str(tmp_path / "run"), "one two three.")
    assert done.returncode == 0 and done.stdout.count("\n") == 1, done.stderr


@pytest.mark.process
def test_lines_of_a_file_and_several_processes(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"three seven one\r\nnine two\n")
    files = ["-i", str(tmp_path / "lines"), "-o", str(tmp_path / "out")]
    done = run(tmp_path, "-m", "limelight", "translate", str(STORED), *files, "--threads", "1")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_bytes() == b"drei sieben eins\nneun zwei\n"
    done = run(tmp_path, "-c", "from limelight.cli.train.launch import launch; launch(None, None, 2, 0, [])")
    assert "--nproc 2 needs groups of processes and signals, which Windows lacks" in done.stderr


@pytest.mark.process
def test_a_server_serves_and_stops(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "limelight", "serve", str(STORED), "--port", "0", "--json", "--threads", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(tmp_path), stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        with urllib.request.urlopen(json.loads(line)["address"] + "/languages", timeout=60) as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert process.wait(60) == 0, process.stderr.read()
        assert time.monotonic() - began < 30


def test_what_windows_lacks_is_never_used_without_a_look() -> None:
    """A name that Windows has not is asked for by getattr or hasattr, or in a function that looks at the system; or stands here."""
    played = parse(PLAYED.read_text("utf-8"))
    lacking = {
        (of, name)
        for node in ast.walk(played)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in ("OF_OS", "OF_SIGNAL")
        for of in [node.targets[0].id[3:].lower()]
        for name in ast.literal_eval(node.value)
    }
    looks = re.compile(r"os\.name|sys\.platform|hasattr\((os|signal), |suppress\(AttributeError")
    # Of runs in several processes, which `launch` refuses there, and of Ctrl-Z, which nobody can send.
    refused = {"rank_process.py", "supervisor.py", "watchdog.py"}
    found = []
    for path in SOURCE.rglob("*.py"):
        text = path.read_text("utf-8")
        if path.name in refused or not re.search(r"^import (os|signal)$", text, re.MULTILINE):
            continue
        tree, functions = parse(text), (ast.FunctionDef, ast.AsyncFunctionDef)
        outside = [node for node in tree.body if not isinstance(node, functions)]
        for part in [*outside, *(node for node in ast.walk(tree) if isinstance(node, functions))]:
            used = {(n.value.id, n.attr) for n in ast.walk(part) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)}
            if used & lacking and not looks.search(ast.get_source_segment(text, part) or ""):
                found.append(f"{path.name} {part.lineno}: {sorted(used & lacking)}")
    assert not found
