"""Rules over the facts of a machine and its self-tests name what is wrong, how bad it is, and the fix."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from packaging.specifiers import SpecifierSet

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
    stops: bool = False  # training or translating does not work


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
        values = asdict(self)
        return {"works": self.works, "problems": values.pop("findings"), **values}


def findings(facts: dict[str, Any], parts: Sequence[SelfTestResult]) -> list[Finding]:
    """Return what was found, with what stops one first."""
    found = [*_packages(facts), *_parts(parts), *_devices(facts), *_room(facts), *_habits(facts)]
    return sorted(found, key=lambda finding: not finding.stops)


def _packages(facts: dict[str, Any]) -> Iterator[Finding]:
    for name, package in facts[NEEDED].items():
        has, asked = package["has"], package["asked"]
        if not fits(has, asked):
            yield Finding(f"{name} {has or 'is missing'}; {asked} is needed", f"pip install '{name}{asked}'", stops=True)
    for extra, packages in facts[ADDED].items():
        there = {name: each for name, each in packages.items() if each["has"]}
        old = [f"{name} {each['has']}" for name, each in there.items() if not fits(each["has"], each["asked"])]
        if old:
            said = f"of limelight[{extra}], {', '.join(old)} is another version than was asked for"
            yield Finding(said, add(extra))


def _parts(parts: Sequence[SelfTestResult]) -> Iterator[Finding]:
    for part in parts:
        if not part.works:
            name = part.name.removeprefix("import ")
            yield Finding(f"{part.name}: {part.said}", MEND[name], name not in WITHOUT)


def _devices(facts: dict[str, Any]) -> Iterator[Finding]:
    driver, torch = facts["gpu_driver"], facts.get("torch")
    if not driver or not torch or torch["accelerators"]:
        return
    if torch["build"] == "CPU":
        fix = "choose a build for the GPU at https://pytorch.org/get-started/locally"
        yield Finding(f"there is a GPU ({driver}), but torch is built for CPUs", fix)
    else:
        fix = "compare the driver with the build of torch"
        yield Finding(f"there is a GPU ({driver}), but torch ({torch['build']}) cannot use it", fix)


def _room(facts: dict[str, Any]) -> Iterator[Finding]:
    here, temporary = facts["disk"]["here"], facts["disk"]["temporary"]
    if not here["writable"]:
        yield Finding("this folder cannot be written", "name another folder with -o, or run in another")
    if not temporary["writable"]:
        fix = "set TMPDIR to a folder that can be written"
        yield Finding("the folder for temporary files cannot be written", fix, stops=True)
    for where, place in (("this folder", here), ("the folder for temporary files", temporary)):
        if place["writable"] and place["free"] < LITTLE_DISK:
            said = f"{where} has {place['free'] / GB:.1f} GB left; a run keeps corpus, checkpoints and bundle"
            yield Finding(said, "make room")
    memory = facts["memory"]
    free = min(memory["free"], memory["container_limit"] or memory["free"])
    if free < LITTLE_MEMORY:
        yield Finding(f"{free / GB:.1f} GB of memory are left", "end other programs, or train a smaller preset")


def _habits(facts: dict[str, Any]) -> Iterator[Finding]:
    cpu, threads = facts["cpu"], facts["variables"].get("OMP_NUM_THREADS", "")
    if cpu["load"] > 1.5 * cpu["cores"]:
        said = f"other programs keep the cores busy (load {cpu['load']:.1f} on {cpu['cores']})"
        yield Finding(said, "expect less speed, or wait for them")
    cores = facts["torch"]["threads"] if "torch" in facts else cpu["affinity"]
    if threads.isdigit() and int(threads) > cores:
        said = f"OMP_NUM_THREADS is {threads}, and this process may use {cores} cores"
        yield Finding(said, "unset OMP_NUM_THREADS")
    if not facts["limelight"]["page"] and not missing(facts[ADDED].get("serve", {})):
        fix = "make web, with Node.js" if facts["limelight"]["editable"] else "install a wheel that has it"
        yield Finding("`limelight serve` and `demo` have no page: it was not built", fix)


def missing(packages: dict[str, dict[str, str | None]]) -> list[str]:
    return [name for name, package in packages.items() if package["has"] is None]


def add(extra: str) -> str:
    return f"pip install 'limelight[{extra}]'"


def fits(has: str | None, asked: str) -> bool:
    """fits("2.4.6", ">=1.26") is true, fits("0.55.0", ">=0.54,<0.55") is not."""
    return has is not None and SpecifierSet(asked).contains(has, prereleases=True)
