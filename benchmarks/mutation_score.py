"""Would the tests notice? Small faults are put into the code one at a time, and the tests that cover the file are run.

python benchmarks/mutation_score.py --count 300 -o mutants.jsonl     a line for each mutant; the same command goes on where it was stopped
python benchmarks/mutation_score.py --near --jobs 2                  only tests that name the file: sooner, and the score is at least this
python benchmarks/mutation_score.py --count 5 --seed 1               a look

A mutant is one change of one place: a comparison, an operation, a constant, and/or/not, a returned value. They are drawn without
replacement from all places in model/, decoding/, corpus/ and training/checkpoints/, by a seed. The raw score is the share that some
test noticed; mutants that change nothing one can see count against it, so 100 % cannot be reached. The sources are never touched:
each mutant lives in a copy of the package that comes first on the path.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random

from mutations import Mutation, applied, mutations

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "limelight"
PLACES = ("model/*.py", "decoding/*.py", "corpus/**/*.py", "training/checkpoints/*.py")
FLOOR = 80.0  # per cent
# Tests by what they are for; a test file is also taken if it names the mutated module.
ROOMS = {
    "model": ("tests/model",),
    "decoding": ("tests/decoding",),
    "corpus": ("tests/corpus",),
    "training": ("tests/training",),
}
MARKERS = "not learns and not long and not gpu and not network"  # as CI, but for what only trains
LONGEST = 600.0  # seconds for the tests of one mutant; one that makes them hang was noticed


@dataclass(frozen=True)
class Result:
    mutant: str  # decoding/beam.py:41:8-41:13 Lt -> LtE
    outcome: str  # killed, timeout or survived
    seconds: float
    by: str  # the first test that failed


def drawn(count: int, seed: int) -> list[Mutation]:
    """Of all places, in an order that depends on the seed alone: a longer list begins with the shorter."""
    found = list(places())
    Random(seed).shuffle(found)
    return found[:count]


@cache
def places() -> tuple[Mutation, ...]:
    files = sorted({path for pattern in PLACES for path in PACKAGE.glob(pattern)})
    return tuple(each for path in files for each in mutations(path.relative_to(PACKAGE).as_posix(), path.read_bytes().decode()))


def suites_of(file: str, near_alone: bool = False) -> list[str]:
    """The test files that can notice: those that import the module by name, first, then the others of its room that import the room.
    `near_alone`: without the others, unless no test names the module."""
    module = "limelight." + file.removesuffix(".py").replace("/", ".")
    room, stem = file.split("/")[0], Path(file).stem
    near, far = [], []
    for folder in ROOMS[room]:
        for path in sorted((ROOT / folder).rglob("test_*.py")):
            text = path.read_bytes().decode()
            if room == "training" and "checkpoint" not in text:
                continue
            (near if module in text or path.stem == f"test_{stem}" else far).append(path.relative_to(ROOT).as_posix())
    return near if near and near_alone else near + far


def survive(mutation: Mutation, python: str, longest: float, near_alone: bool) -> Result:
    """One mutant: a copy of the package with it, and the tests until the first failure, those that are nearest first."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "limelight")
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("page"))  # what is compiled too: it is as new as its source
        source = copy / mutation.file
        source.write_bytes(applied(source.read_bytes().decode(), mutation).encode())
        outcome, by = _judged(suites_of(mutation.file, near_alone), Path(folder), python, longest)
    return Result(mutation.name, outcome, round(time.monotonic() - began, 1), by)


def _judged(suites: Sequence[str], folder: Path, python: str, longest: float) -> tuple[str, str]:
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "CI": "true"}
    command = [
        python,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-m",
        MARKERS,
        f"--timeout={longest:.0f}",
    ]
    try:
        done = subprocess.run([*command, *suites], cwd=ROOT, env=environment, capture_output=True, timeout=longest)
    except subprocess.TimeoutExpired:
        return "timeout", ""
    if done.returncode == 5:
        sys.exit(f"no test was found in {suites}")
    failed = [line for line in done.stdout.decode(errors="replace").split("\n") if line.startswith(("FAILED", "ERROR"))]
    return ("survived", "") if done.returncode == 0 else ("killed", failed[0].split(" - ")[0][:200] if failed else "pytest itself")


def is_imported_from(folder: Path, python: str) -> bool:
    """Does a copy at the front of the path win over the installed package? If not, no mutant would ever be run."""
    code = "import limelight; print(limelight.__file__)"
    done = subprocess.run([python, "-c", code], env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, check=True)
    return Path(done.stdout.decode().strip()).is_relative_to(folder)


def summary(results: Sequence[Mapping[str, object]]) -> list[str]:
    lines = [f"survived: {result['mutant']}" for result in results if result["outcome"] == "survived"]
    noticed = len(results) - len(lines)
    return [
        *lines,
        f"raw score {score(results):.1f} %: {noticed} of {len(results)} mutants noticed (floor {FLOOR:.0f} %)",
    ]


def score(results: Sequence[Mapping[str, object]]) -> float:
    """Per cent."""
    return 100 * sum(result["outcome"] != "survived" for result in results) / max(1, len(results))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=2017)
    parser.add_argument("-o", "--output", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--longest", type=float, default=LONGEST)
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time; one for each core that is free")
    parser.add_argument("--near", action="store_true", help="only tests that name the mutated file")
    parser.add_argument("--only", default="", help="files that begin so, such as decoding/")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(PACKAGE, Path(folder, "limelight"), ignore=shutil.ignore_patterns("__pycache__", "page"))
        if not is_imported_from(Path(folder), sys.executable):
            sys.exit("a copy of the package on PYTHONPATH is not what python imports; mutants would not be run")
    done = [json.loads(line) for line in asked.output.read_bytes().split(b"\n") if line] if asked.output.exists() else []
    judged = {result["mutant"]: result for result in done}
    wanted = [each for each in drawn(10**9, asked.seed) if each.file.startswith(asked.only)][: asked.count]
    left = [mutation for mutation in wanted if mutation.name not in judged]
    with ThreadPoolExecutor(asked.jobs) as pool:
        for result in map(asdict, pool.map(lambda each: survive(each, sys.executable, asked.longest, asked.near), left)):
            judged[result["mutant"]] = result
            with asked.output.open("ab") as file:
                file.write(json.dumps(result).encode() + b"\n")
            print(f"{len(judged)} {result['outcome']:8} {result['seconds']:6.1f} s  {result['mutant']}", flush=True)
    results = [judged[mutation.name] for mutation in wanted]
    print(*summary(results), sep="\n")
    sys.exit(score(results) < FLOOR)


if __name__ == "__main__":
    main()
