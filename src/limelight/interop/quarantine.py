"""Foreign files that C++ reads are tried first in a process of their own, which may crash, hang or fill its memory.

    python -P -m limelight.interop.quarantine pieces < source.spm      {"problem": null} on standard output

Before it reads, the process gives up what it does not need: files and the network, memory beyond a bound, time. Windows has no such bounds
for a process: there it may crash or hang alone, and its time is bounded by whoever waits.
"""

import io
import json
import math
import mmap
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from sentencepiece import SentencePieceProcessor

from limelight.text.pieces.model_file import read_facts

MEMORY: Final = 224 << 20  # bytes beside twice the file: with Python's own 16 MB less than 256 MiB
COMPUTING: Final = 5  # seconds
# Seconds by the clock: a busy machine takes long to load torch, and what hangs is ended by COMPUTING.
WAITING: Final = 120.0
SLOWEST: Final = 20_000_000  # bytes per second that a file of weights is read with at least
# Each kind of character goes its own way through a normalizer: of one byte to four, composed, joined, unseen, from right to left.
PROBE: Final = (
    "The cat's  \u00dcn\u00ef e\u0301 \ufb01 \u00bd \u2163 \u338f \u043a\u043e\u0442 \u732b\u306f \ud55c\uad6d \u05e7\u05d8 \u0642\u0637 "
    "\u200d\u00ad\ufeff \U0001f469\u200d\U0001f467 \U000e0001 \x00\t\x1f\u2581 1,234.5"
)


def pieces_problem(model: bytes) -> str | None:
    """What keeps a SentencePiece model from being used, or None. Given the bytes that will be used, not a file that may change."""
    return _answer("pieces", "-", 0.0, model)


def tensors_problem(path: Path) -> str | None:
    """The same for a file of torch, of which only tensors are read. A zip in it may unpack to a thousand times its size."""
    return _answer("tensors", str(path.absolute()), path.stat().st_size / SLOWEST, b"")


def _answer(kind: str, path: str, longer: float, content: bytes) -> str | None:
    # -P: the folder we stand in is not searched for modules, since somebody's sentencepiece.py may lie there.
    command = [sys.executable, "-P", "-m", "limelight.interop.quarantine", kind, path, str(longer)]
    try:
        done = subprocess.run(command, input=content, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WAITING + longer)
    except subprocess.TimeoutExpired:
        return f"takes more than {WAITING + longer:.0f} seconds to be read"
    try:
        problem: str | None = json.loads(done.stdout)["problem"]
        return problem
    except (ValueError, TypeError, KeyError):
        return _end(done.returncode)


def _end(code: int) -> str:
    """By a signal, or by an exit that would have been ours."""
    if code < 0 and code == -getattr(signal, "SIGXCPU", 0):
        return f"takes more than {COMPUTING} seconds of computing to be read"
    name = f"exit code {code}" if code >= 0 else next((s.name for s in signal.Signals if s == -code), f"signal {-code}")
    return f"makes the library that reads it crash ({name}); it is damaged, or was made to do harm"


def _give_up(size: int, longer: float) -> None:
    computing = math.ceil(time.process_time()) + COMPUTING + int(longer)  # loading torch counts too
    limits = {
        "RLIMIT_AS": _measure_mapped() + 2 * size + MEMORY,
        "RLIMIT_CPU": computing,
        "RLIMIT_NOFILE": 0,  # no file can be opened any more, and no socket
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
    }
    if os.name == "nt":
        return
    resource = import_module("resource")
    for name, most in limits.items():
        # A system without one of them, or which allows less already, has the others.
        with suppress(AttributeError, OSError, ValueError):
            number = getattr(resource, name)
            resource.setrlimit(number, (most, most + 1 if name == "RLIMIT_CPU" else most))


def _measure_mapped() -> int:
    """Bytes of addresses that this process has in use; where the system does not tell, as much as torch may need."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * mmap.PAGESIZE
    except OSError:
        return 1 << 35


def _try_pieces(path: str, longer: float) -> None:
    content = sys.stdin.buffer.read()
    _give_up(len(content), longer)
    processor = SentencePieceProcessor()
    processor.LoadFromSerializedProto(content)
    read_facts(content)
    for number in range(processor.get_piece_size()):
        processor.id_to_piece(number)
    for text in (PROBE, PROBE * 20, *PROBE.split()):
        processor.normalize(text)
        processor.decode(processor.encode(text))
        processor.encode(text, out_type=str)


def _try_tensors(path: str, longer: float) -> None:
    torch: Any = import_module("torch")  # takes a second, which pieces need not wait for
    small = io.BytesIO()
    torch.save({}, small)
    small.seek(0)
    torch.load(small, weights_only=True)  # it loads modules of its own, which is not possible later
    with Path(path).open("rb") as file:
        _give_up(Path(path).stat().st_size, longer)
        torch.load(file, map_location="cpu", weights_only=True)


TRIALS = {"pieces": _try_pieces, "tensors": _try_tensors}


def main(kind: str, path: str, longer: str) -> None:
    try:
        TRIALS[kind](path, float(longer))
        problem = None
    except MemoryError:
        problem = "needs far more memory than its size to be read"
    except Exception as error:  # whatever it is, the file is at fault, and somebody waits for the answer
        problem = f"cannot be read ({type(error).__name__}: {str(error)[:200]!r})"
    sys.stdout.write(json.dumps({"problem": problem}))


if __name__ == "__main__":
    main(*sys.argv[1:])
