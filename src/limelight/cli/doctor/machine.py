"""The facts of a machine are collected for a bug report, without names of users, hosts, folders or files."""

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, metadata, version
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import Requirement

from limelight.runtime import available_cores

PURPOSE = {
    "train": "limelight train, prepare, plan, export, import and demo",
    "desk": "limelight inspect, and the lighting desk of the server",
    "serve": "limelight serve, demo and inspect --open",
    "report": "curves in reports",
    "documents": "YAML documents",
    "mcp": "tools for agents and editors",
    "pictures": "PNG pictures of attention",
    "store": "limelight memory, and serve --store: corrections, translation memory",
    "postgres": "a store for several servers",
    "hub": "models by their name on the Hugging Face hub",
    "onnx": "export to ONNX",
    "s3": "corpora, runs and translators at addresses such as s3://models/en-de",
    "cluster": "prepare and translate on a cluster",
    "tracing": "OpenTelemetry spans of the server",
    "compare": "benchmarks beside transformers",
}
FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "asimd", "bf16", "i8mm")
ALLOCATORS = ("jemalloc", "tcmalloc", "mimalloc")
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES", "LOCAL_WORLD_SIZE")  # numbers, if they are set
DRIVERS = {"/proc/driver/nvidia/version": "NVIDIA", "/sys/module/amdgpu/version": "AMD", "/dev/kfd": "AMD"}
PAGE = Path(__file__).parents[2] / "serving" / "page" / "index.html"
NEEDED, ADDED = "needs", "extras"


def facts(tried: dict[str, Any]) -> dict[str, Any]:
    """`tried`: what torch and CTranslate2 told of themselves, in another process."""
    files = distribution("limelight").files or ()
    editable = any(file.name == "direct_url.json" and b'"editable": true' in file.read_binary() for file in files)
    venv = "venv" if sys.prefix != sys.base_prefix else "system"
    libc = platform.libc_ver()
    memory, limit = psutil.virtual_memory(), _read_text("/sys/fs/cgroup/memory.max").strip()
    loaded = _read_text("/proc/self/maps")
    return {
        "limelight": {"version": version("limelight"), "editable": editable, "page": PAGE.is_file()},
        "python": {
            "version": platform.python_version(),
            "environment": "conda" if "CONDA_PREFIX" in os.environ else venv,
        },
        "system": {
            "name": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(libc),
        },
        "cpu": cpu(),
        "memory": {
            "total": memory.total,
            "free": memory.available,
            "container_limit": int(limit) if limit.isdigit() else None,
        },
        "gpu_driver": next((maker for place, maker in DRIVERS.items() if Path(place).exists()), None),
        "allocator": next((name for name in ALLOCATORS if name in loaded), libc[0] or "the system's"),
        # Of the current folder, where runs are written, and of the one for temporary files.
        "disk": {
            name: {"free": shutil.disk_usage(place).free, "writable": _writable(place)}
            for name, place in (("here", "."), ("temporary", tempfile.gettempdir()))
        },
        "variables": {name: os.environ[name] for name in COUNTS if re.fullmatch(r"[\d,]+", os.environ.get(name, ""))},
        **requirements(metadata("limelight").get_all("Requires-Dist") or []),
        **tried,
    }


def cpu() -> dict[str, Any]:
    """`affinity`: the cores left to this process by who started it; a container may leave it less, and then torch's threads say so."""
    told = _read_text("/proc/cpuinfo")
    name = re.search(r"^model name\s*: (.*)$", told, re.M)
    flags = re.search(r"^(?:flags|Features)\s*: (.*)$", told, re.M)
    has = set(flags[1].split()) if flags else set()
    return {
        "name": name[1] if name else platform.processor(),
        "flags": [each for each in FLAGS if each in has],
        "cores": os.cpu_count() or 1,
        "affinity": available_cores(),
        "load": psutil.getloadavg()[0],
    }


def requirements(lines: Iterable[str]) -> dict[str, Any]:
    """What the package asks for: {"needs": {"numpy": {"asked": ">=1.26", "has": "2.4.6"}}, "extras": {"serve": {...}}}."""
    wanted = [each for each in map(Requirement, lines) if each.name != "limelight"]  # extras of extras
    extras = {extra: [each for each in wanted if _is_added(each, extra)] for extra in PURPOSE}
    return {
        NEEDED: _versions(each for each in wanted if not each.marker or each.marker.evaluate({"extra": ""})),
        ADDED: {extra: _versions(extras[extra]) for extra in sorted(extras) if extras[extra]},
    }


def _is_added(wanted: Requirement, extra: str) -> bool:
    """Is it for this extra, on this system?"""
    return bool(wanted.marker and wanted.marker.evaluate({"extra": extra}) and not wanted.marker.evaluate({"extra": ""}))


def _versions(wanted: Iterable[Requirement]) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for each in wanted:
        try:
            has = version(each.name)
        except PackageNotFoundError:
            has = None
        found[each.name] = {"asked": str(each.specifier), "has": has}
    return found


def _writable(place: str) -> bool:
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"x")
    except OSError:
        return False
    return True


def _read_text(place: str) -> str:
    try:
        return Path(place).read_bytes().decode(errors="replace")
    except OSError:
        return ""
