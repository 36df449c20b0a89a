"""`limelight prepare` for tests: in this process, which is fast, or as the real command, whose memory is measured."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from made_sentences import Pair, sentences

sys.path.insert(0, str(Path(__file__).parents[1]))
import warm_process
from limelight.cli.main import main
from limelight.corpus import prepare
from limelight.text.identify import Identifier, Model
from limelight.text.pieces.tokenizer import PieceSettings, learn

FAST = ("filters.wrong_language=off", "--workers", "0")  # the model that tells languages takes two seconds to load
LOAD = vars(Identifier)["model"].func
ALONE = {"OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}

# VmHWM is the peak of this program alone; ru_maxrss of a child begins with that of its parent.
MEASURED = """
import atexit, sys
from pathlib import Path

def tell():
    kilobytes = [line.split()[1] for line in open("/proc/self/status", newline="\\n") if line.startswith("VmHWM")]
    Path(sys.argv.pop()).write_bytes(kilobytes[0].encode())

atexit.register(tell)
where = sys.argv[-1]
from limelight.cli.main import main
sys.argv = ["limelight", *sys.argv[1:-1]]
try:
    main()
finally:
    sys.argv.append(where)
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str
    megabytes: float = 0.0

    @property
    def report(self) -> dict[str, Any]:
        return dict(json.loads(self.out))


def here(*arguments: object) -> Outcome:
    """The command in this process: the same function, with its arguments, its exit code and what it prints. Only the report stays blank,
    since its pictures take longer to draw than a small corpus to prepare."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["limelight", *map(str, arguments)]),
        mock.patch.object(prepare, "page", lambda manifest: ""),
        mock.patch.object(Identifier, "model", property(lambda _: model_of_languages())),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
            code: Any = 0
        except SystemExit as stopped:
            code = stopped.code
    return Outcome(int(code or 0), out.getvalue(), err.getvalue())


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "limelight", *map(str, arguments)]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **ALONE, **more}


def outside(*arguments: object) -> Outcome:
    """The real command in a process of its own."""
    done = warm_process.run(command(*arguments), capture_output=True, env=environment(), check=False)
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


def measured(*arguments: object) -> Outcome:
    """The same, with the megabytes it took at its peak (Linux)."""
    with tempfile.NamedTemporaryFile() as told:
        line = [sys.executable, "-c", MEASURED, *map(str, arguments), told.name]
        done = subprocess.run(line, capture_output=True, env=environment(), check=False)
        megabytes = int(Path(told.name).read_bytes()) / 1024
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode(), megabytes)


def write_pairs(pairs: Sequence[Pair], folder: Path, name: str = "train") -> tuple[Path, Path]:
    return write_lines([s.encode() for s, _ in pairs], [t.encode() for _, t in pairs], folder, name)


def write_lines(source: Sequence[bytes], target: Sequence[bytes], folder: Path, name: str = "train") -> tuple[Path, Path]:
    """Two files, a newline after each line."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / f"{name}.en", folder / f"{name}.de")
    for path, lines in zip(paths, (source, target), strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    return paths


@cache
def model_of_languages() -> Model:
    """It takes a second to load."""
    return LOAD(Identifier())


@cache
def pieces_model() -> Path:
    """Small pieces for the made sentences, learnt once in a session, so that no run has to."""
    path = Path(tempfile.mkdtemp(prefix="limelight-tests-")) / "pieces.model"
    path.write_bytes(learn((text for pair in sentences(500) for text in pair), PieceSettings(size=600)))
    return path


def given_pieces() -> str:
    return f'given_pieces=["{pieces_model()}"]'
