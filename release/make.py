"""Everything a release consists of, with one command: checked, built, installed in a clean environment, tried, listed and hashed.

python release/make.py                       into dist/: wheel, sdist, SBOM, measured.json, SHA256SUMS
python release/make.py --lock                renews release/lock.txt before
python release/make.py --short               wheel and sdist only, checked

Wants build tools that are no part of the package: pip install hatchling cyclonedx-bom. It uploads nothing.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.parse
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from contents import ROOT, problems_of, torch_problems, version_of, version_problems

INDEX, PYPI = "https://pypi.org/simple", "files.pythonhosted.org"
Report = dict[str, Any]  # of pip, on one package
MEASURED, SUMS = "measured.json", "SHA256SUMS"
MADE = ("limelight-*.whl", "limelight-*.tar.gz", "limelight-*.cdx.json", MEASURED, SUMS)
LOCK, MEASURE = ROOT / "release" / "lock.txt", ROOT / "release" / "measure.py"
BUNDLE = ROOT / "tests" / "bundles" / "format-1"
HEADER = """\
# Everything that `pip install 'limelight[serve,train]'` brings beside torch, by exact version and hash. Made by release/make.py --lock.
# The hashes are those of the wheels for {platform}, as in the image; another platform makes its own list.
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
    refuse(version_problems() + torch_problems())
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
    """The versions that the image was tried with, all but torch, each with the hash of the wheel that pip takes on this platform."""
    exact = (ROOT / "deploy" / "requirements.txt").read_bytes().decode().split("\n")
    with tempfile.TemporaryDirectory() as folder:
        wanted, report = Path(folder, "wanted.txt"), Path(folder, "report.json")
        wanted.write_bytes("".join(f"{line}\n" for line in exact if line and not line.startswith(("#", "torch=="))).encode())
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
        run(
            [*pip, "--only-binary", ":all:", "--index-url", INDEX, "--report", report, "-r", wanted],
            environment=_from_pypi_alone(),
        )
        found = json.loads(report.read_bytes())["install"]
    lines = sorted((_locked(each) for each in found), key=str.lower)
    refuse([f"{name} is not on PyPI, but at {address}" for name, address in map(_origin, found) if address != PYPI])
    platform = f"CPython {sys.version_info.major}.{sys.version_info.minor} on {sysconfig.get_platform()}"
    LOCK.write_bytes((HEADER.format(torch=torch_version(), platform=platform) + "".join(lines)).encode())


def _from_pypi_alone() -> dict[str, str]:
    """A mirror or a folder of wheels on this machine is nothing that others could get the same files from."""
    others = ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL", "PIP_NO_INDEX")
    return {**{name: value for name, value in os.environ.items() if name not in others}, "PIP_CONFIG_FILE": os.devnull}


def _locked(package: Report) -> str:
    about, [digest] = package["metadata"], package["download_info"]["archive_info"]["hashes"].values()
    return f"{about['name']}=={about['version']} --hash=sha256:{digest}\n"


def _origin(package: Report) -> tuple[str, str]:
    return package["metadata"]["name"], urllib.parse.urlsplit(package["download_info"]["url"]).netloc


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
