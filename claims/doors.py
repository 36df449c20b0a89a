"""What the docs state about documents that strangers bring: unchanged to the byte, opened again by others, and damaged without harm.

make claim-doors            under a minute: a document of each kind, those of the Python installation, 50 mutants of each kind
make claim-doors FULL=1     ten real files of each kind as well, fetched from Debian, PyPI and npm, and 1,000 mutants (benchmarks/doors.py)
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("claims", "benchmarks", "tests/documents")]

from sample_documents import SAMPLES
from stand_ins import each, unchanged, upper

from claim import Claims, run
from documents_real import LARGEST, SHAPES, SUFFIXES
from doors_mutants import FILLS, mutants_of, options_of, translate
from limelight.errors import LimelightError

INSTALLED, MUTANTS = 3, 50  # files of the Python installation, and mutants, of each kind


def installed() -> Iterator[tuple[str, bytes]]:
    """The first few files of each kind among the installed packages."""
    lacking = dict.fromkeys(SUFFIXES, INSTALLED)
    for folder, _, names in os.walk(sysconfig.get_path("purelib")):
        for name in sorted(names):
            kind = next((kind for kind, ends in SUFFIXES.items() if name.endswith(ends)), None)
            path = Path(folder) / name
            if kind is not None and lacking[kind] and 0 < path.stat().st_size < LARGEST:
                lacking[kind] -= 1
                yield kind, path.read_bytes()


def check(kind: str, data: bytes) -> tuple[bool, bool]:
    """Whether a document stays to the byte where nothing changes, and keeps its structure where all does."""
    options = options_of(kind, data)
    same = kind in FILLS or translate(kind, data, each(unchanged), options).data == data
    shape = SHAPES.get(kind)
    try:
        before = shape(data) if shape is not None else None
    except Exception:
        return same, True  # others cannot read it as it is
    after = translate(kind, data, each(upper), options).data
    return same, shape is None or shape(after) == before


def measure(claims: Claims, full: bool) -> None:
    changed = broken = read = 0
    refused = {True: 0, False: 0}  # by whether it is a sample
    for number, (kind, data) in enumerate([*SAMPLES.items(), *installed()]):
        try:
            same, whole = check(kind, data)
        except LimelightError:
            refused[number < len(SAMPLES)] += 1
            continue
        read, changed, broken = read + 1, changed + (not same), broken + (not whole)
    claims.at_least("documents translated, of each kind and of the installation", read, len(SAMPLES) + 3)
    claims.at_most("... with other bytes although nothing changed", changed, 0)
    claims.at_most("... with another structure when translated", broken, 0)
    claims.at_most("samples refused", refused[True], 0)
    claims.note("files of the installation refused with a reason", refused[False])
    for kind in SAMPLES:
        claims.at_most(f"faults of {MUTANTS} damaged .{kind}", len(mutants_of(kind, MUTANTS)), 0)
    if full:
        with tempfile.TemporaryDirectory() as folder:
            for words in (
                ["doors_files.py", folder],
                *(["doors.py", *trial, folder] for trial in (["identity"], ["translated"], ["mutants", "1000"])),
            ):
                done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / words[0]), *words[1:]], check=False)
                claims.ended_well(" ".join(words[:2]) if words[0] == "doors.py" else "files fetched", done.returncode)


if __name__ == "__main__":
    run(measure, __doc__)
