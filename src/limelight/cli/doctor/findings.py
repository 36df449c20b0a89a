"""Rules over the facts of a machine and its self-tests name what is wrong, how bad it is, and the fix."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from limelight.cli.doctor.machine import ADDED, NEEDED
from limelight.cli.doctor.self_test_process import SelfTestResult

GB = 10**9
LITTLE_DISK = 2 * GB  # a corpus of some million pairs, its shards and the checkpoints of a small model
LITTLE_MEMORY = 1 * GB  # torch alone takes 0.3 GB, a run of `small` about one
WITHOUT = ("ctranslate2",)  # parts that one can do without
MEND = {
    "start": "pip install --force-reinstall limelight",
    "torch": "pip install --force-reinstall torch; on a machine without a GPU a CPU build: https://pytorch.org/get-started/locally",
    "step": "pip install --force-reinstall torch; if it stays, please report it with this text",
    "pieces": "pip install --force-reinstall 'sentencepiece>=0.2.1'",
    "safetensors": "pip install --force-reinstall safetensors, and see that the folder for temporary files can be written",
    "corpus": "pip install --force-reinstall polars pyarrow; for a CPU without AVX2 polars[rtcompat] instead of polars",
    "translating": "see the parts above first; if they work, please report it with this text",
    "ctranslate2": "pip install --force-reinstall 'ctranslate2>=4.8.1'; until then: limelight translate --engine torch",
}


@dataclass(frozen=True)
class Finding:
    what: str
    fix: str
    stops: bool  # training or translating does not work


@dataclass(frozen=True)
class DoctorReport:
    findings: list[Finding]
    facts: dict[str, Any]
    parts: list[SelfTestResult]
    seconds: float

    @property
    def works(self) -> bool:
        return not any(finding.stops for finding in self.findings)

    def values(self) -> dict[str, Any]:
        problems = [asdict(finding) for finding in self.findings]
        return {
            "works": self.works,
            "problems": problems,
            "facts": self.facts,
            "parts": [asdict(part) for part in self.parts],
            "seconds": self.seconds,
        }


def findings(facts: dict[str, Any], parts: Sequence[SelfTestResult]) -> list[Finding]:
    """Return what was found, with what stops one first."""
    found = [*_packages(facts), *_parts(parts), *_devices(facts), *_room(facts), *_habits(facts)]
    return sorted(found, key=lambda finding: not finding.stops)


def _packages(facts: dict[str, Any]) -> Iterator[Finding]:
    for name, package in facts[NEEDED].items():
        if not fits(package["has"], package["asked"]):
            yield Finding(
                f"{name} {package['has'] or 'is missing'}; {package['asked']} is needed",
                f"pip install '{name}{package['asked']}'",
                True,
            )
    for extra, packages in facts[ADDED].items():
        old = [
            f"{name} {each['has']}"
            for name, each in packages.items()
            if each["has"] and not fits(each["has"], each["asked"])
        ]
        if old:
            yield Finding(
                f"of limelight[{extra}], {', '.join(old)} is another version than was asked for", add(extra), False
            )


def _parts(parts: Sequence[SelfTestResult]) -> Iterator[Finding]:
    for part in parts:
        if not part.works:
            name = part.name.removeprefix("import ")
            yield Finding(f"{part.name}: {part.said}", MEND[name], name not in WITHOUT)


def _devices(facts: dict[str, Any]) -> Iterator[Finding]:
    driver, torch = facts["gpu_driver"], facts.get("torch")
    if driver and torch and not torch["accelerators"]:
        why = "is built for CPUs" if torch["build"] == "CPU" else f"({torch['build']}) cannot use it"
        fix = (
            "choose a build for the GPU at https://pytorch.org/get-started/locally"
            if torch["build"] == "CPU"
            else "compare the driver with the build of torch"
        )
        yield Finding(f"there is a GPU ({driver}), but torch {why}", fix, False)


def _room(facts: dict[str, Any]) -> Iterator[Finding]:
    for name, place in facts["disk"].items():
        where = "this folder" if name == "here" else "the folder for temporary files"
        if not place["writable"]:
            fix = (
                "name another folder with -o, or run in another"
                if name == "here"
                else "set TMPDIR to a folder that can be written"
            )
            yield Finding(f"{where} cannot be written", fix, name != "here")
        elif place["free"] < LITTLE_DISK:
            yield Finding(
                f"{where} has {place['free'] / GB:.1f} GB left; a run keeps corpus, checkpoints and bundle",
                "make room",
                False,
            )
    memory = facts["memory"]
    free = min((each for each in (memory["free"], memory["container_limit"]) if each is not None), default=None)
    if free is not None and free < LITTLE_MEMORY:
        yield Finding(f"{free / GB:.1f} GB of memory are left", "end other programs, or train a smaller preset", False)


def _habits(facts: dict[str, Any]) -> Iterator[Finding]:
    cpu = facts["cpu"]
    cores = facts["torch"]["threads"] if "torch" in facts else cpu["affinity"]
    if cpu["load"] is not None and cpu["load"] > 1.5 * cpu["cores"]:
        yield Finding(
            f"other programs keep the cores busy (load {cpu['load']:.1f} on {cpu['cores']})",
            "expect less speed, or wait for them",
            False,
        )
    threads = facts["variables"].get("OMP_NUM_THREADS", "")
    if threads.isdigit() and int(threads) > cores:
        yield Finding(
            f"OMP_NUM_THREADS is {threads}, and this process may use {cores} cores", "unset OMP_NUM_THREADS", False
        )
    if not facts["limelight"]["page"] and not [
        name for name, each in facts[ADDED].get("serve", {}).items() if not each["has"]
    ]:
        fix = "make web, with Node.js" if facts["limelight"]["editable"] else "install a wheel that has it"
        yield Finding("`limelight serve` and `demo` have no page: it was not built", fix, False)


def missing(packages: dict[str, dict[str, str | None]]) -> list[str]:
    return [name for name, package in packages.items() if package["has"] is None]


def add(extra: str) -> str:
    return f"pip install 'limelight[{extra}]'"


def fits(has: str | None, asked: str) -> bool:
    """fits("2.4.6", ">=1.26") is true, fits("0.55.0", ">=0.54,<0.55") is not. Bounds of the kind that this package writes."""
    if has is None:
        return False
    for sign, bound in re.findall(r"(>=|<)([\d.]+)", asked):
        at_least = _numbers(has) >= _numbers(bound)
        if at_least != (sign == ">="):
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    """("1.26.0+cpu") -> (1, 26); zeros at the end say nothing."""
    release = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(part) for part in release[0].split(".")] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
