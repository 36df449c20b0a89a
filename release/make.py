"""Everything a release consists of, with one command: checked, built, installed in a clean environment, tried, listed and hashed.

python release/make.py                       into dist/: wheel, sdist, SBOM, measured.json, SHA256SUMS
python release/make.py --lock                renews the hashes of release/lock.txt and deploy/requirements*.txt before
python release/make.py --short               wheel and sdist only, checked

Wants build tools that are no part of the package: pip install hatchling cyclonedx-bom. It uploads nothing.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
import venv
from collections.abc import Sequence
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import canonicalize_name, parse_wheel_filename

from contents import ROOT, problems_of, torch_problems, version_of, version_problems

INDEX = "https://pypi.org/simple"
MEASURED, SUMS = "measured.json", "SHA256SUMS"
MADE = ("limelight-*.whl", "limelight-*.tar.gz", "limelight-*.cdx.json", MEASURED, SUMS)
LOCK, MEASURE = ROOT / "release" / "lock.txt", ROOT / "release" / "measure.py"
IMAGES = (ROOT / "deploy" / "requirements.txt", ROOT / "deploy" / "requirements-train.txt")
PYTHON, MACHINES = (3, 11), ("x86_64", "aarch64")  # of the images
LEGACY = ("manylinux2014", "manylinux2010", "manylinux1")
BUNDLE = ROOT / "tests" / "bundles" / "format-1"
HEADER = """\
# Everything that `pip install 'limelight[postgres,serve,train]'` brings beside torch, by exact version and hash,
# made by release/make.py --lock.
# The hashes are those of the wheels for {platform}, as in the images; another platform makes its own list.
#
# torch is not among them: which of its builds is right depends on the machine, each has its own hash, and the CPU builds come from an index
# of their own. So it is installed first, by exact version:  pip install torch=={torch}
# then:  pip install --require-hashes --no-deps -r release/lock.txt  and  pip install --no-deps limelight
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--lock", action="store_true", help="resolve anew, with hashes")
    parser.add_argument("--short", action="store_true", help="build and check only")
    asked = parser.parse_args()
    if asked.lock:
        write_lock()
    has_sbom = asked.short or importlib.util.find_spec("cyclonedx_py") is not None
    lacks = [] if has_sbom else ["cyclonedx-bom, which makes the SBOM, is not installed: pip install cyclonedx-bom"]
    refuse(version_problems() + torch_problems() + lacks)
    packages = build(asked.output)
    refuse([problem for package in packages for problem in problems_of(package)])
    if not asked.short:
        with tempfile.TemporaryDirectory() as folder:
            python = clean_environment(Path(folder) / "venv", packages[0])
            try_it(python, Path(folder))
            measured = run([python, "-I", MEASURE], quietly=True)
            (asked.output / MEASURED).write_bytes(measured)
            say(measured.decode())
            version = version_of(packages[0])
            write_sbom(python, asked.output / f"limelight-{version}.cdx.json", version)
    write_sums(asked.output)
    say(f"{asked.output} is ready; release/README.md says what is left to do by hand")


def refuse(problems: Sequence[str]) -> None:
    if problems:
        sys.exit("\n".join(["this is no release:", *(f"  - {problem}" for problem in problems)]))


def say(text: str) -> None:
    sys.stdout.write(f"{text.rstrip()}\n")
    sys.stdout.flush()


def run(words: Sequence[object], quietly: bool = False, environment: dict[str, str] | None = None, cwd: Path = ROOT) -> bytes:
    command = [str(word) for word in words]
    say(f"$ {' '.join(Path(command[0]).name if at == 0 else word for at, word in enumerate(command))}")
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE if quietly else None)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with code {done.returncode}")
    return done.stdout or b""


def torch_version() -> str:
    return str(re.findall(r"torch==([\d.]+)", (ROOT / "Makefile").read_bytes().decode())[0])


def write_lock() -> None:
    """The versions that the images were tried with, all but torch, each with the hashes of the wheels that pip takes on both platforms."""
    locked: list[str] = []
    for file in IMAGES:
        told = file.read_bytes().decode().split("\n")
        exact = [line.split()[0] for line in told if line and not line.startswith("#")]
        lines = sorted((f"{_with_hashes(line)}\n" for line in exact), key=str.lower)
        file.write_bytes("".join(f"{line}\n" for line in told if line.startswith("#")).encode() + "".join(lines).encode())
        locked += lines
    head = HEADER.format(torch=torch_version(), platform=f"CPython {PYTHON[0]}.{PYTHON[1]} on Linux, {' and '.join(MACHINES)}")
    LOCK.write_bytes((head + "".join(sorted(locked, key=str.lower))).encode())


def _with_hashes(exact: str) -> str:
    """idna==3.20 -> idna==3.20 --hash=sha256:..., with the hash of each wheel that fits one of the machines, as the index tells them."""
    name, version = exact.split("==")
    with urllib.request.urlopen(f"{INDEX}/{canonicalize_name(name)}/", timeout=60) as page:
        links = re.findall(r'href="[^"]+/([^/"]+\.whl)#sha256=([0-9a-f]{64})"', page.read().decode())
    found = [(parse_wheel_filename(file)[3], digest) for file, digest in links if f"-{version}-" in file]
    digests = {machine: [digest for tags, digest in found if tags & _tags(machine)] for machine in MACHINES}
    refuse([f"{exact} has no wheel for {machine} on PyPI" for machine in MACHINES if not digests[machine]])
    return exact + "".join(f" --hash=sha256:{digest}" for digest in sorted({each for all_of_it in digests.values() for each in all_of_it}))


def _tags(machine: str) -> frozenset[Tag]:
    """Of the wheels that the Python of the images takes there, with Debian 12 below it."""
    platforms = [*(f"manylinux_2_{minor}_{machine}" for minor in range(36, 4, -1)), *(f"{old}_{machine}" for old in LEGACY)]
    return frozenset([*cpython_tags(PYTHON, platforms=platforms), *compatible_tags(PYTHON, "cp311", platforms)])


def build(output: Path) -> list[Path]:
    """Wheel and sdist, in this order. The wheel is built from the sdist, so that whoever has the second can make the first."""
    output.mkdir(parents=True, exist_ok=True)
    for old in ours(output):
        old.unlink()
    run([sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", output])
    [sdist] = output.glob("*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(sdist, folder, filter="data")
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", output], cwd=next(Path(folder).iterdir()))
    [wheel] = output.glob("*.whl")
    return [wheel, sdist]


def clean_environment(folder: Path, wheel: Path) -> Path:
    """torch, the lock with its hashes, the wheel; nothing is compiled on the way."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    run([*pip, f"torch=={torch_version()}"])
    run([*pip, "--require-hashes", "--no-deps", "-r", LOCK])
    run([*pip, "--no-deps", wheel])
    run([python, "-m", "pip", "check"])
    return python


def try_it(python: Path, folder: Path) -> None:
    """As a user would, in a folder of their own and with nothing on the path but the environment: no compiler, no Node.js."""
    bare = {"PATH": str(python.parent), "HOME": str(folder), "LANG": "C.UTF-8"}
    limelight = python.with_name("limelight")
    run([limelight, "--help"], quietly=True, environment=bare, cwd=folder)
    found = json.loads(run([limelight, "doctor", "--json"], quietly=True, environment=bare, cwd=folder))
    refuse([problem["what"] for problem in found["problems"] if problem["stops"]])
    said = run([limelight, "translate", BUNDLE, "three seven one"], quietly=True, environment=bare, cwd=folder).decode().strip()
    refuse([f"three seven one was translated as {said!r}"] if said != "drei sieben eins" else [])


def write_sbom(python: Path, place: Path, version: str) -> None:
    """CycloneDX: what the clean environment holds, with licenses, and our own package as what it is about."""
    run([
        sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject", ROOT / "pyproject.toml", "--mc-type", "application",
        "--output-reproducible", "--of", "JSON", "-o", place, python,
    ])  # fmt: skip
    made = json.loads(place.read_bytes())
    made["metadata"]["component"]["version"] = version  # it stands in the code, where the tool does not look
    place.write_bytes(json.dumps(made, indent=1, ensure_ascii=False).encode() + b"\n")
    listed = {each["name"].lower() for each in (*made["components"], made["metadata"]["component"])}
    refuse([f"the SBOM lacks {name}" for name in ("torch", "ctranslate2", "limelight") if name not in listed])


def ours(output: Path) -> list[Path]:
    """What this script wrote, now or before; the folder may hold other things."""
    return sorted(path for pattern in MADE for path in output.glob(pattern))


def write_sums(output: Path) -> None:
    files = [path for path in ours(output) if path.name != SUMS]
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (output / SUMS).write_bytes("".join(lines).encode())


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True).stdout.decode().strip() or "0")  # fmt: skip
    main()
