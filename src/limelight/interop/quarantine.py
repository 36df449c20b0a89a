"""Files of somebody else that C++ reads are tried first by a process of their own: it may crash, hang or fill its memory, and we go on.

    problem_of(path, "pieces")      None, or what is wrong: "makes SentencePiece crash (SIGSEGV)"

    python -P -m limelight.interop.quarantine pieces source.spm      {"problem": null} on standard output

The process reads the file, then gives up all it does not need: files and the network, memory beyond a bound, time.
"""

import json
import resource
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

from sentencepiece import SentencePieceProcessor

from limelight.text.model_file import read_facts

Kind = Literal["pieces", "tensors"]

MEMORY: Final = 224 << 20  # bytes beside twice the file: with Python's own 16 MB less than 256 MiB
COMPUTING: Final = 5  # seconds; 256,000 pieces take 0.4
WAITING: Final = 30.0  # seconds by the clock, on which a busy machine computes for a few
SLOWEST: Final = 20_000_000  # bytes per second that a file of weights is read with at least
# Every script that a piece may be written in goes another way through the normalizer: one byte to four, composed, joined, right to left.
PROBE: Final = "The cat's  Ünï-cödé e\u0301 \ufb01 ½ Ⅳ ㎏ кот 猫は座る 한국어 קטן قطة \u200d\u00ad\ufeff 👩‍👩‍👧 \U000e0001 \x00\t\x1f\u2581"


def problem_of(path: Path, kind: Kind) -> str | None:
    """What keeps a file from being used, or None if it was read well: a SentencePiece model, or the tensors of a .bin of torch."""
    seconds = path.stat().st_size / SLOWEST
    # -P: neither the folder we stand in nor that of a script is searched for modules; a planted sentencepiece.py is not ours.
    command = [sys.executable, "-P", "-m", "limelight.interop.quarantine", kind, str(path.absolute()), str(seconds)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WAITING + seconds
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"takes more than {WAITING + seconds:.0f} seconds to be read"
    try:
        answer: Any = json.loads(done.stdout)
        problem: str | None = answer["problem"]
        return problem
    except (ValueError, TypeError, KeyError):
        return _end(done.returncode)


def _end(code: int) -> str:
    """SentencePiece also leaves by exit, and would take us with it."""
    if code == -signal.SIGXCPU:
        return f"takes more than {COMPUTING} seconds of computing to be read"
    name = f"exit code {code}" if code >= 0 else next((s.name for s in signal.Signals if s == -code), f"signal {-code}")
    return f"makes the library that reads it crash ({name}); it is damaged, or was made to do harm"


def _give_up(size: int, seconds: float) -> None:
    """Bounds that hold for the rest of this process."""
    computing = COMPUTING + int(seconds)
    limits = {
        "RLIMIT_AS": _mapped() + 2 * size + MEMORY,
        "RLIMIT_CPU": computing,
        "RLIMIT_NOFILE": 0,  # no file can be opened any more, and no socket
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
    }
    for name, most in limits.items():
        # A system without one of them, or which allows less already, has the others.
        with suppress(AttributeError, OSError, ValueError):
            number = getattr(resource, name)
            resource.setrlimit(number, (most, most + 1 if name == "RLIMIT_CPU" else most))


def _mapped() -> int:
    """Bytes of addresses that this process has in use; where nobody tells, as much as torch may need."""
    try:
        return int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 35


def _try_pieces(path: Path, seconds: float) -> None:
    content = path.read_bytes()
    _give_up(len(content), seconds)
    processor = SentencePieceProcessor()
    processor.LoadFromSerializedProto(content)
    read_facts(content)
    for number in range(processor.get_piece_size()):
        processor.id_to_piece(number)
    for text in (PROBE, PROBE * 20, *PROBE.split()):
        processor.normalize(text)
        processor.decode(processor.encode(text))
        processor.encode(text, out_type=str)


TRIALS = {"pieces": _try_pieces}


def main(kind: str, path: str, seconds: str) -> None:
    try:
        TRIALS[kind](Path(path), float(seconds))
        problem = None
    except MemoryError:
        problem = "needs far more memory than its size to be read"
    except Exception as error:  # whatever it is, the file is at fault, and the one who waits wants an answer
        problem = f"cannot be read ({type(error).__name__}: {str(error)[:200]!r})"
    sys.stdout.write(json.dumps({"problem": problem}))


if __name__ == "__main__":
    main(*sys.argv[1:])
