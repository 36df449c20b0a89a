"""A shell completes verbs, options and the words that options take, without loading torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warm_process
from limelight.cli import export
from limelight.cli.completion import EXPORTS, exports, presets
from limelight.model.config import PRESETS

pytestmark = pytest.mark.process

LIMELIGHT = Path(sys.executable).with_name("limelight")
SHELLS = ("bash", "zsh", "fish")
HEAVY = ("torch", "numpy", "polars", "ctranslate2")


def run(words: list[str], **variables: str) -> str:
    done = subprocess.run(words, capture_output=True, env={**os.environ, **variables}, check=True)
    return done.stdout.decode()


def asked_for(**variables: str) -> str:
    """What the program prints for a shell."""
    command = [sys.executable, str(LIMELIGHT)]
    return warm_process.run(command, capture_output=True, env={**os.environ, **variables}, check=True).stdout.decode()


def offered(shell: str, line: str) -> str:
    """What the program tells a shell that asks how `line` may go on."""
    words = {"COMP_WORDS": line.replace(" ", "\n"), "COMP_CWORD": str(line.count(" "))} if shell == "bash" else {}
    asked = {"_TYPER_COMPLETE_ARGS": line, "_TYPER_COMPLETE_FISH_ACTION": "get-args"} if shell != "bash" else {}
    return asked_for(_LIMELIGHT_COMPLETE=f"complete_{shell}", **words, **asked)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("limelight tr", ["train", "translate"]),
        ("limelight doctor --mark", ["--markdown"]),
        ("limelight train --preset ", [*PRESETS]),
        ("limelight train --precision m", ["masters"]),
        ("limelight export --to h", ["huggingface"]),
    ],
)
def test_what_may_follow_is_offered(shell: str, line: str, expected: list[str]) -> None:
    told = offered(shell, line)
    assert all(word in told for word in expected)
    assert "prepare" not in told


@pytest.mark.parametrize("shell", SHELLS)
def test_there_is_a_script_for_every_shell(shell: str) -> None:
    assert f"complete_{shell}" in asked_for(_LIMELIGHT_COMPLETE=f"source_{shell}")


def test_bash_itself_completes() -> None:
    """The script in a real shell, which calls the program as a key would."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    line = (
        'source <(_LIMELIGHT_COMPLETE=source_bash "$1"); COMP_WORDS=(limelight tra); COMP_CWORD=1; '
        '_limelight_completion "$1"; echo "${COMPREPLY[@]}"'
    )
    assert run([bash, "-c", line, "bash", str(LIMELIGHT)]).split() == ["train", "translate"]


@pytest.mark.parametrize("line", ["limelight tr", "limelight train --preset "])
def test_completing_loads_nothing_heavy(line: str, tmp_path: Path) -> None:
    watch = tmp_path / "watch.py"
    watch.write_bytes(
        b"import atexit, sys\nfrom limelight.cli.main import main\n"
        b"atexit.register(lambda: sys.stderr.write(' '.join(sorted(sys.modules))))\nsys.argv = ['limelight']\nmain()\n"
    )
    words = {"COMP_WORDS": line.replace(" ", "\n"), "COMP_CWORD": str(line.count(" "))}
    environment = {**os.environ, "_LIMELIGHT_COMPLETE": "complete_bash", **words}
    done = subprocess.run([sys.executable, str(watch)], capture_output=True, env=environment, check=True)
    assert done.stdout
    assert not set(HEAVY) & set(done.stderr.decode().split())


def test_presets_and_exports_are_those_that_exist() -> None:
    assert [name for name, _ in presets("")] == list(PRESETS)
    assert [name for name, _ in presets("b")] == ["base", "big"]
    assert [name for name, _ in exports("")] == list(EXPORTS)
    assert all(f'"{name}": _' in Path(export.__file__).read_bytes().decode() for name in EXPORTS)


def test_the_program_can_install_it() -> None:
    told = run([str(LIMELIGHT), "--help"], COLUMNS="100")
    assert "--install-completion" in told
    assert "--show-completion" in told
