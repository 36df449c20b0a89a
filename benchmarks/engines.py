"""The engines of a bundle against CTranslate2 by itself, and against each other: file in, file out, and a sentence at a time.

    python benchmarks/engines.py en-de --lines news.en --references news.de --json engines.json

The bare engine gets what a program would write around it: SentencePiece before and after, all lines in one call, its own sorting and
batches, the same threads. Contestants run in turns in one process each; ratios are taken turn by turn, since the speed of a shared
machine moves.
"""

import argparse
import gzip
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctranslate2
import sacrebleu
from sentencepiece import SentencePieceProcessor

sys.path.insert(0, str(Path(__file__).parent))
from contestant import Contestant
from limelight.bundle import read, relist
from limelight.interop.ctranslate2.export import export
from limelight.translator.translate import Translator

LATENCY_LINES = 40


class Ours:
    """`limelight translate`: lines of a file to lines of a file."""

    def __init__(self, folder: str, engine: str, dtype: str | None, threads: int, beam: int) -> None:
        self.translator = Translator.load(folder, threads=threads, dtype=dtype, engine=engine)
        self.search = self.translator.settings.search.changed(beam=beam)

    def file(self, given: str, made: str) -> float:
        began = time.perf_counter()
        lines = lines_of(given)
        texts = [one.text for one in self.translator.translate(lines, self.search)]
        Path(made).write_bytes("".join(f"{text}\n" for text in texts).encode())
        return time.perf_counter() - began

    def one(self, line: str) -> float:
        began = time.perf_counter()
        self.translator.translate([line], self.search)
        return time.perf_counter() - began


class Bare:
    """CTranslate2 and SentencePiece, nothing of ours."""

    def __init__(self, folder: str, engine: str, dtype: str | None, threads: int, beam: int) -> None:
        self.pieces = SentencePieceProcessor(str(Path(folder) / "pieces.model"))
        self.engine = ctranslate2.Translator(
            str(Path(folder) / "ctranslate2"), compute_type=dtype or "default", inter_threads=threads, intra_threads=1
        )
        self.beam = beam

    def translated(self, lines: list[str], size: int) -> list[str]:
        results = self.engine.translate_batch(
            self.pieces.encode(lines, out_type=str), max_batch_size=size, batch_type="tokens", beam_size=self.beam,
            length_penalty=0.6, max_decoding_length=256,
        )  # fmt: skip
        return [self.pieces.decode(result.hypotheses[0]) for result in results]

    def file(self, given: str, made: str) -> float:
        began = time.perf_counter()
        Path(made).write_bytes("".join(f"{text}\n" for text in self.translated(lines_of(given), 2048)).encode())
        return time.perf_counter() - began

    def one(self, line: str) -> float:
        began = time.perf_counter()
        self.translated([line], 0)
        return time.perf_counter() - began


def lines_of(path: str) -> list[str]:
    content = Path(path).read_bytes()
    return (gzip.decompress(content) if path.endswith(".gz") else content).decode().removesuffix("\n").split("\n")


def contestants(folder: Path, work: Path, names: list[str], threads: int, beam: int) -> dict[str, Contestant]:
    """Each number format in a copy of the bundle of its own."""
    kinds: dict[str, Callable[[], Contestant]] = {}
    for numbers in ("float32", "bfloat16", "int8"):
        copy = work / numbers
        if any(name.endswith(f"ctranslate2 {numbers}") for name in names):
            shutil.copytree(read(folder).folder, copy, ignore=shutil.ignore_patterns("ctranslate2", "manifest.json"))
            relist(copy)
            export(read(copy), numbers)
        kinds[f"torch {numbers}"] = lambda n=numbers: Contestant(Ours, str(folder), "torch", n, threads, beam)
        kinds[f"ctranslate2 {numbers}"] = lambda c=copy: Contestant(Ours, str(c), "ctranslate2", None, threads, beam)
        kinds[f"bare ctranslate2 {numbers}"] = lambda c=copy: Contestant(Bare, str(c), "", None, threads, beam)
    return {name: kinds[name]() for name in names}


def measure(args: argparse.Namespace, work: Path) -> dict[str, Any]:
    names = args.contestants.split(",")
    ready = contestants(args.bundle, work, names, args.threads, args.beam)
    lines = lines_of(args.lines)[: args.most]
    given = str(work / "lines")
    Path(given).write_bytes("".join(f"{line}\n" for line in lines).encode())
    found: dict[str, Any] = {name: {"seconds": [], "latency": []} for name in names}
    for turn in range(args.rounds + 1):
        for name, contestant in ready.items():
            seconds = contestant.ask("file", given, str(work / f"{name}.txt"))
            if turn:  # the first makes kernels
                found[name]["seconds"].append(seconds)
    for line in lines[:LATENCY_LINES]:
        for name, contestant in ready.items():
            found[name]["latency"].append(contestant.ask("one", line))
    for contestant in ready.values():
        contestant.stop()
    for name in names:
        made = (work / f"{name}.txt").read_bytes().decode().removesuffix("\n").split("\n")
        if args.references:
            wanted = lines_of(args.references)[: args.most]
            found[name]["bleu"] = sacrebleu.corpus_bleu(made, [wanted]).score
            found[name]["chrf"] = sacrebleu.corpus_chrf(made, [wanted]).score
    return {"lines": len(lines), "beam": args.beam, "threads": args.threads, "contestants": found}


def table(found: dict[str, Any]) -> str:
    rows = []
    for name, its in found["contestants"].items():
        speed = [found["lines"] / seconds for seconds in its["seconds"]]
        quality = f", BLEU {its['bleu']:.1f}, chrF {its['chrf']:.1f}" if "bleu" in its else ""
        rows.append(
            f"{name:24s} {statistics.median(speed):7.1f} sentences/s ({min(speed):.1f}-{max(speed):.1f}),"
            f" one sentence {1000 * statistics.median(its['latency']):6.1f} ms{quality}"
        )
    for name, its in found["contestants"].items():
        bare = found["contestants"].get(f"bare {name}")
        if bare is not None:
            ratios = [b / a for a, b in zip(its["seconds"], bare["seconds"], strict=True)]
            ratio, slower = against_bare(found, name)
            rows.append(
                f"{name}: {ratio:.3f} of the bare engine's speed ({min(ratios):.3f}-{max(ratios):.3f}),"
                f" {slower:.2f} times its time for one sentence"
            )
    return "\n".join(rows)


def against_bare(found: dict[str, Any], name: str) -> tuple[float, float]:
    """How fast a file is, of the bare engine's speed; how long one sentence takes, times the bare engine's."""
    ours, bare = found["contestants"][name], found["contestants"][f"bare {name}"]
    ratios = [b / a for a, b in zip(ours["seconds"], bare["seconds"], strict=True)]
    return statistics.median(ratios), statistics.median(ours["latency"]) / statistics.median(bare["latency"])


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path, help="a bundle or a run")
    parser.add_argument("--lines", required=True, help="file of source lines, plain or .gz")
    parser.add_argument("--references", help="their translations, for BLEU")
    parser.add_argument("--contestants", default="ctranslate2 float32,bare ctranslate2 float32")
    parser.add_argument("--most", type=int, default=1000, help="lines at most")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--json", type=Path)
    return parser


def main() -> None:
    args = parser().parse_args()
    with tempfile.TemporaryDirectory() as work:
        found = measure(args, Path(work))
    sys.stdout.write(table(found) + "\n")
    if args.json:
        args.json.write_bytes(json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
