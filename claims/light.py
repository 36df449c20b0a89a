"""Measures the light runtime: what `pip install limelight` brings, and how soon a sentence is translated with it.

    make claim-light          in this environment: start-up and memory beside a bare script, the same translations without torch
    make claim-light FULL=1   also in an environment of its own, made by pip without torch: its size, and the same figures there

The bare script loads CTranslate2 and SentencePiece and translates the same sentence with the same files. Both run in turn, so that what
else the machine does is in both. What counts is the time of a processor; seconds by the clock, which also count what it does for other
programs, stand below.
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "translator"))

import psutil
from absent_packages import ABSENT

from claim import Claims, run

SENTENCE, PORT = "seven three one", 5997
BARE = """
import sys, ctranslate2, sentencepiece
folder, text = sys.argv[1:]
pieces = sentencepiece.SentencePieceProcessor(model_file=folder + "/pieces.model")
engine = ctranslate2.Translator(folder + "/ctranslate2", "cpu", intra_threads=1)
found = engine.translate_batch([[*pieces.encode(text, out_type=str), "</s>"]], beam_size=4)
print(pieces.decode(found[0].hypotheses[0]))
"""
STARTER = """
import os, resource, sys, time
began = time.perf_counter()
nothing = os.open(os.devnull, os.O_RDWR)
put = [(os.POSIX_SPAWN_DUP2, nothing, number) for number in (0, 1, 2)]
os.waitpid(os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=put), 0)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)
"""
# Whatever is installed here, the runtime is tried as if these were not.
WITHOUT = f"""{ABSENT}
from limelight.cli.main import main
main()
"""


@dataclass(frozen=True)
class Cost:
    wall: float
    processor: float
    megabytes: float  # at its largest


def cost(command: Sequence[str | Path]) -> Cost:
    """A small process starts the command: Linux counts the memory of whoever starts a program as the program's."""
    told = subprocess.run([sys.executable, "-S", "-c", STARTER, *map(str, command)], capture_output=True, check=True)
    return Cost(*map(float, told.stdout.split()))


def measure(claims: Claims, full: bool) -> None:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a command that compiles itself anew each time is not what people run
    with tempfile.TemporaryDirectory() as work:
        bundle = Path(work, "numbers")
        shutil.copytree(ROOT / "tests" / "bundles" / "format-1", bundle)
        probe = Path(work, "probe.en")
        probe.write_bytes(f"{SENTENCE}\ntwo two nine\n".encode())
        command = [sys.executable, "-P", "-m", "limelight", "export", bundle, "--probe", probe]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        compare(claims, bundle)
        start_up(claims, Path(sys.executable), bundle, 7 if full else 3)
        if full:
            os.environ.pop("PYTHONPATH", None)  # there it is the installed package that counts
            python = install(claims, Path(work, "light"))
            start_up(claims, python, bundle, 7)
            serve(claims, python, bundle)
            import_module("light_proof").prove(claims, python, Path(work))


def start_up(claims: Claims, python: Path, bundle: Path, rounds: int) -> None:
    limelight = [python, "-P", "-m", "limelight"]
    commands: dict[str, list[str | Path]] = {
        "bare": [python, "-c", BARE, bundle, SENTENCE],
        "translate": [*limelight, "translate", bundle, SENTENCE],
        "--help": [*limelight, "--help"],
        "a wrong option": [*limelight, "translate", bundle, "--wrong"],
    }
    found: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            found[name].append(cost(command))
    kept = {name: costs[1:] for name, costs in found.items()}  # the first compiles, and fetches files from the disk
    tell(claims, "one sentence", kept["translate"], 0.9)
    claims.at_most("... megabytes", max(each.megabytes for each in kept["translate"]), 200)
    ratios = [a.processor / b.processor for a, b in zip(kept["translate"], kept["bare"], strict=True)]
    claims.at_most("... processor time, times a bare script's", statistics.median(ratios), 3.6)
    claims.note("... at best", min(ratios))
    claims.note("... at worst", max(ratios))
    tell(claims, "--help", kept["--help"], 0.3)
    tell(claims, "a wrong option", kept["a wrong option"], 0.4)


def tell(claims: Claims, name: str, costs: Sequence[Cost], bar: float) -> None:
    claims.at_most(f"{name}: seconds of a processor", statistics.median(each.processor for each in costs), bar)
    claims.note("... by the clock", statistics.median(each.wall for each in costs))


def compare(claims: Claims, bundle: Path) -> None:
    """The same translations, letter by letter, with torch and without."""
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    lines = [" ".join(words[(i * k) % 9] for k in range(1, 2 + i % 5)) for i in range(100)]
    lines += [f"{line} %s" for line in lines[:20]]
    text = ("\n".join(lines) + "\n").encode()
    made = [
        subprocess.run([sys.executable, "-c", code, "translate", bundle], input=text, capture_output=True, check=True)
        for code in ("from limelight.cli.main import main; main()", WITHOUT)
    ]
    pairs = list(zip(*(done.stdout.split(b"\n") for done in made), strict=True))
    claims.at_least("without torch: share of translations that are the same", sum(a == b for a, b in pairs) / len(pairs), 1)
    lost = sum(b"%s" in line.encode() and b"%s" not in b for line, (_, b) in zip(lines, pairs, strict=False))
    claims.at_most("... placeholders lost", lost, 0)


def install(claims: Claims, place: Path) -> Path:
    """An environment of its own, as `pip install 'limelight[serve]'` makes it; the size is taken before what serving adds."""
    python = place / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    empty = size_of(place)
    subprocess.run([python, "-m", "pip", "install", "--quiet", ROOT], check=True)
    claims.at_most("pip install limelight: megabytes on disk", size_of(place), 350)
    claims.note("... of which the empty environment has", empty)
    heavy = [name for name in ("torch", "polars", "pyarrow") if any(place.glob(f"lib/*/site-packages/{name}"))]
    claims.at_most("... packages among them that training needs", len(heavy), 0)
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{ROOT}[serve]"], check=True)
    return python


def size_of(folder: Path) -> float:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*")) / 2**20


def serve(claims: Claims, python: Path, bundle: Path) -> None:
    seconds, processor = [], []
    for _ in range(3):
        began = time.perf_counter()
        command = [python, "-P", "-m", "limelight", "serve", bundle, "--port", str(PORT)]
        server = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while not is_ready() and server.poll() is None:
                time.sleep(0.01)
            seconds.append(time.perf_counter() - began)
            used = psutil.Process(server.pid).cpu_times()
            processor.append(used.user + used.system)
        finally:
            server.terminate()
            server.wait()
    claims.at_most("serve: seconds of a processor until it is ready", min(processor), 2.5)
    claims.note("... by the clock", min(seconds))


def is_ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


if __name__ == "__main__":
    run(measure, __doc__)
