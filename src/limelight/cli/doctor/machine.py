"""The facts of a machine are collected for a bug report, without names of users, hosts, folders or files.

facts({"torch": {...}})  ->  {"limelight": {...}, "python": {...}, "cpu": {...}, "memory": {...}, "disk": {...}, "packages": {...}, ...}
"""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, metadata, version
from pathlib import Path
from typing import Any

PURPOSE = {
    "serve": "limelight serve, demo and inspect --open",
    "report": "curves in reports",
    "pictures": "PNG pictures of attention",
    "hub": "models by their name on the Hugging Face hub",
    "onnx": "export to ONNX",
    "cluster": "corpora prepared on a cluster",
    "tracing": "OpenTelemetry spans of the server",
    "compare": "benchmarks beside transformers",
}
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "bf16", "i8mm")
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LOCAL_WORLD_SIZE")  # numbers, if they are set
NEEDED, ADDED = "needs", "extras"


def facts(tried: dict[str, Any]) -> dict[str, Any]:
    """`tried`: what torch and CTranslate2 told of themselves, in another process."""
    return {
        "limelight": {"version": version("limelight"), "editable": _editable(), "page": _has_page()},
        "python": {"version": platform.python_version(), "environment": _environment()},
        "system": {
            "name": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()),
        },
        "cpu": cpu(),
        "memory": memory(),
        "gpu_driver": _gpu_driver(),
        "allocator": allocator(),
        "disk": disk(),
        "variables": {name: os.environ[name] for name in COUNTS if re.fullmatch(r"[\d,]+", os.environ.get(name, ""))},
        **requirements(),
        **tried,
    }


def _editable() -> bool:
    files = distribution("limelight").files or ()
    return any(file.name == "direct_url.json" and b'"editable": true' in file.read_binary() for file in files)


def _has_page() -> bool:
    return (Path(__file__).parents[2] / "serving" / "page" / "index.html").is_file()


def _environment() -> str:
    if "CONDA_PREFIX" in os.environ:
        return "conda"
    return "venv" if sys.prefix != sys.base_prefix else "system"


def cpu() -> dict[str, Any]:
    """`affinity`: the cores left to this process by who started it; a container may leave it less, and then torch's threads say so."""
    told = _read_text(Path("/proc/cpuinfo"))
    name = re.search(r"^model name\s*: (.*)$", told, re.M)
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", told, re.M)
    has = set(flags[1].split()) if flags else set()
    cores = os.cpu_count() or 1
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "name": name[1] if name else platform.processor(),
        "flags": [each for each in FLAGS if each in has],
        "cores": cores,
        "affinity": affinity,
        "load": load,
    }


def memory() -> dict[str, int | None]:
    """Return memory in bytes; None where the system does not say."""
    told = _read_text(Path("/proc/meminfo"))
    found = {
        name: re.search(rf"^{key}:\s*(\d+) kB", told, re.M)
        for name, key in (("total", "MemTotal"), ("free", "MemAvailable"))
    }
    limit = _read_text(Path("/sys/fs/cgroup/memory.max")).strip()
    values = {name: int(match[1]) * 1024 if match else None for name, match in found.items()}
    return {**values, "container_limit": int(limit) if limit.isdigit() else None}


def _gpu_driver() -> str | None:
    """Name the maker of a GPU that the system has, whether torch can use it or not."""
    for name, place in (
        ("NVIDIA", "/proc/driver/nvidia/version"),
        ("AMD", "/sys/module/amdgpu/version"),
        ("AMD", "/dev/kfd"),
    ):
        if Path(place).exists():
            return name
    return None


def allocator() -> str:
    loaded = _read_text(Path("/proc/self/maps"))
    libc = platform.libc_ver()[0] or "the system's"
    return next((name for name in ALLOCATORS if name in loaded), libc)


def disk() -> dict[str, Any]:
    """Describe the disk of the current folder, where runs are written, and of the one for temporary files."""
    return {
        name: {"free": shutil.disk_usage(place).free, "writable": _writable(place)}
        for name, place in (("here", "."), ("temporary", tempfile.gettempdir()))
    }


def _writable(place: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
    except OSError:
        return False
    return True


def _read_text(place: Path) -> str:
    try:
        return place.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def requirements() -> dict[str, Any]:
    """What the package asks for: {"needs": {"numpy": {"asked": ">=1.26", "has": "2.4.6"}}, "extras": {"serve": {...}}}."""
    found: dict[str, Any] = {
        NEEDED: {},
        ADDED: {extra: {} for extra in metadata("limelight").get_all("Provides-Extra") or () if extra in PURPOSE},
    }
    for name, asked, extra in parse_requirements(metadata("limelight").get_all("Requires-Dist") or []):
        if extra is None or extra in PURPOSE:
            (found[NEEDED] if extra is None else found[ADDED][extra])[name] = {"asked": asked, "has": _has(name)}
    return found


def parse_requirements(lines: list[str]) -> Iterator[tuple[str, str, str | None]]:
    """("uvloop>=0.21; sys_platform != 'win32' and extra == 'serve'",)  ->  ("uvloop", ">=0.21", "serve")"""
    for line in lines:
        wanted, _, condition = line.partition(";")
        if "sys_platform != 'win32'" in condition.replace('"', "'") and sys.platform == "win32":
            continue
        name = re.match(r"[\w.-]+", wanted)
        extra = re.search(r"extra == ['\"]([\w-]+)['\"]", condition)
        if name:
            yield name[0], re.sub(r"^\[[^]]*]|[\s()]", "", wanted[name.end() :].strip()), extra[1] if extra else None


def _has(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
