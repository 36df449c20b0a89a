"""How fast and in how much memory a corpus is prepared, as it grows and on either engine.

    python benchmarks/corpus.py make 1_000_000 FOLDER      real pairs, multiplied with small edits so that they are no duplicates
    python benchmarks/corpus.py run FOLDER [--engine ray] [--langid] [--pieces MODEL]

`make` reads l10n, Europarl, Tatoeba and Multi30k from LIMELIGHT_DATA. `run` prepares in a process of its
own and prints one JSON object: pairs, seconds, pairs/s, peak memory of the whole tree of processes (proportional set size, sampled), and
the address and hashes of what was written.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from limelight.text.pieces.tokenizer import PieceSettings, learn

PAIRS_PER_FILE = 250_000
SYLLABLES = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]


def real_pairs(data: Path) -> Iterator[tuple[str, str]]:
    """The four corpora, interleaved by file so that any prefix is a mixture."""
    with gzip.open(data / "l10n/tm.en-de.jsonl.gz") as lines:
        entries = [json.loads(line) for line in lines]
    columns = [[(entry["src"].replace("\n", " "), entry["tgt"].replace("\n", " ")) for entry in entries]]
    for name in ("europarl/train", "tatoeba/de-en/train", "multi30k/train"):
        sides = [gzip.decompress((data / f"{name}.{code}.gz").read_bytes()).decode().split("\n")[:-1] for code in ("en", "de")]
        columns.append(list(zip(*sides, strict=True)))
    total = sum(map(len, columns))
    taken = [0] * len(columns)
    for _ in range(total):  # always the corpus that is furthest behind its share
        c = min(range(len(columns)), key=lambda c: (taken[c] + 1) / len(columns[c]))
        if taken[c] < len(columns[c]):
            yield columns[c][taken[c]]
            taken[c] += 1


def name(number: int) -> str:
    """A made-up name for each number below 4,900: one of 70 x 70 pairs of syllables."""
    return (SYLLABLES[number // 70 % 70] + SYLLABLES[number % 70]).capitalize()


def make(pairs: int, folder: Path) -> None:
    """Copy k of pair i begins with two names, the same on both sides: a small edit that filters have nothing against."""
    folder.mkdir(parents=True, exist_ok=True)
    base = list(real_pairs(Path(os.environ["LIMELIGHT_DATA"])))
    for number, start in enumerate(range(0, pairs, PAIRS_PER_FILE)):
        sides: tuple[list[str], list[str]] = ([], [])
        for i in range(start, min(pairs, start + PAIRS_PER_FILE)):
            source, target = base[i % len(base)]
            copy = i // len(base)
            prefix = f"{name(i * 31 + copy)} {name(copy * 7 + i // 4900)}: " if copy else ""
            sides[0].append(prefix + source)
            sides[1].append(prefix + target)
        for code, lines in zip(("en", "de"), sides, strict=True):
            (folder / f"part-{number:04d}.{code}").write_bytes(("\n".join(lines) + "\n").encode())


def learnt(folder: Path, pairs: int = 200_000) -> bytes:
    """A vocabulary of 16,000 pieces from the first files, so that runs can be compared without the time it takes."""
    lines = [line for path in sorted(folder.glob("part-0000.*")) for line in path.read_bytes().decode().split("\n")[: pairs // 2]]
    return learn(lines, PieceSettings(size=16_000))


def peak_memory(pid: int, stop: threading.Event, result: list[float]) -> None:
    """Megabytes of the process and all its descendants: the largest sum seen."""
    while not stop.wait(0.5):
        total = sum(_proportional(each) for each in tree(pid))
        result[0] = max(result[0], total / 1024)


def tree(pid: int) -> list[int]:
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found


def _proportional(pid: int) -> int:
    """Kilobytes: private memory and a fair share of what is shared; mapped files count as far as they are in memory."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().split("\n")
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def command(folder: Path, output: Path, engine: str, langid: bool, pieces: Path | None, workers: int | None) -> list[str]:
    filters = [] if langid else ["filters.wrong_language=off"]
    given = [f'given_pieces=["{pieces}"]'] if pieces else ["pieces.size=16000"]
    more = [] if workers is None else ["--workers", str(workers)]
    return [
        sys.executable,
        "-m",
        "limelight",
        "prepare",
        str(folder),
        "-o",
        str(output),
        "--source",
        "en",
        "--target",
        "de",
        "--engine",
        engine,
        "--json",
        *more,
        *filters,
        *given,
    ]


def run(
    folder: Path,
    output: Path,
    engine: str = "local",
    langid: bool = False,
    pieces: Path | None = None,
    workers: int | None = None,
    memory: bool = False,
) -> dict[str, object]:
    """`memory` watches the processes, which takes some of the time it measures: measure one or the other."""
    began = time.perf_counter()
    process = subprocess.Popen(command(folder, output, engine, langid, pieces, workers), stdout=subprocess.PIPE)
    stop, peak = threading.Event(), [0.0]
    watcher = threading.Thread(target=peak_memory, args=(process.pid, stop, peak))
    if memory:
        watcher.start()
    printed, _ = process.communicate()
    seconds = time.perf_counter() - began
    stop.set()
    if memory:
        watcher.join()
    if process.returncode:
        raise SystemExit(process.returncode)
    manifest = json.loads(printed)
    read = sum(corpus["read"] for corpus in manifest["corpora"])
    files = [file for split in manifest["splits"].values() for shard in split for file in (shard["text"], shard["ids"])]
    return {
        "engine": engine, "langid": langid, "pieces": "given" if pieces else "learnt",
        "pairs": read, "seconds": round(seconds, 2), "pairs_per_second": round(read / seconds),
        "peak_megabytes": round(peak[0]) if memory else None,
        "kept": sum(sum(corpus["kept"].values()) for corpus in manifest["corpora"]),
        "bytes": sum(file["bytes"] for file in files), "shards": [file["sha256"] for file in files],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = verbs.add_parser("make")
    made.add_argument("pairs", type=int)
    made.add_argument("folder", type=Path)
    ran = verbs.add_parser("run")
    ran.add_argument("folder", type=Path)
    ran.add_argument("--output", type=Path, required=True)
    ran.add_argument("--engine", choices=("local", "ray"), default="local")
    ran.add_argument("--langid", action="store_true")
    ran.add_argument("--pieces", type=Path)
    ran.add_argument("--workers", type=int)
    ran.add_argument("--memory", action="store_true", help="peak memory in place of speed")
    args = parser.parse_args()
    if args.verb == "make":
        make(args.pairs, args.folder)
    else:
        print(json.dumps(run(args.folder, args.output, args.engine, args.langid, args.pieces, args.workers, args.memory)))


if __name__ == "__main__":
    main()
