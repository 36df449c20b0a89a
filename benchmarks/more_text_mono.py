"""Monolingual text beside none, in the same total of steps: 20,000 pairs of Europarl, and German lines of the rest without their English.

python benchmarks/more_text_mono.py --pairs 20000 --steps 6000 -o /tmp/mono

Text is found by LIMELIGHT_DATA. What is trained is not trained again: the same command goes on where it was stopped. Both trainings run at
a time, with one thread each and the preset `tiny`; with --mono the other direction takes its share of the steps. The test set is scored
with both, and compared pair by pair.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

PLACE = Path(os.environ.get("LIMELIGHT_DATA", "")) / "europarl"
LINES = 230_000


def read(name: str) -> list[bytes]:
    return gzip.decompress((PLACE / name).read_bytes()).split(b"\n")[:-1]


def write(path: Path, lines: list[bytes]) -> str:
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def unpack(text: Path, pairs: int, lines: int) -> tuple[list[str], str, list[str], list[str]]:
    """The pairs, the lines of the target that follow them, and the validation and test sets."""
    text.mkdir(parents=True, exist_ok=True)
    train = {code: read(f"train.{code}.gz") for code in ("en", "de")}
    real = [write(text / f"train.{code}", train[code][:pairs]) for code in ("en", "de")]
    mono = write(text / "mono.de", train["de"][pairs : pairs + lines])
    valid, test = ([write(text / f"{split}.{code}", read(f"{split}.{code}.gz")) for code in ("en", "de")] for split in ("dev", "test"))
    return real, mono, valid, test


def train(folder: Path, arguments: list[str], steps: int) -> None:
    if (folder / "scores.json").is_file():
        return
    command = ["train", *arguments, "-o", str(folder), "--preset", "tiny", "--steps", str(steps), "--threads", "1", "--plain"]
    with Path(f"{folder}.log").open("ab") as log:
        done = subprocess.run([sys.executable, "-m", "limelight", *command], stdout=log, stderr=log)
    if done.returncode:
        sys.exit(f"{folder} ended with {done.returncode}; see {log.name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--lines", type=int, default=LINES, help="of the target alone")
    parser.add_argument("--steps", type=int, required=True, help="of each training, all its models together")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    real, mono, valid, test = unpack(asked.output / "text", asked.pairs, asked.lines)
    given = [*real, *(word for path in valid for word in ("--valid", path)), *(word for path in test for word in ("--test", path))]
    runs = {"without": given, "with": [*given, "--mono", mono]}
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda name: train(asked.output / name, runs[name], asked.steps), runs))
    for path in sorted((asked.output / "with" / "synthetic").glob("*/synthetic.json")):
        print(f"{path.parent.name}: {json.loads(path.read_bytes())}")
    command = ["evaluate", str(asked.output / "with"), *test, "--compare", str(asked.output / "without")]
    command += ["--metrics", "bleu,chrf", "--worst", "0"]
    print(subprocess.run([sys.executable, "-m", "limelight", *command], capture_output=True, check=True, text=True).stdout)


if __name__ == "__main__":
    main()
