"""Provenance is the command, versions, commit and machine of a run, for its report, so that it can be repeated."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from limelight.planning.cost.compute import flops_of_pair
from limelight.planning.cost.size import parameters
from limelight.runtime import available_cores
from limelight.training.config import Recipe
from limelight.training.recipe.text_stats import PreparedText
from limelight.training.run_folder import RunFacts

PACKAGES = ("limelight", "torch", "sentencepiece", "sacrebleu", "numpy", "polars", "pyarrow", "safetensors")


def origin(command: Sequence[str]) -> RunFacts:
    versions = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return RunFacts(
        command=list(command),
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions,
        commit=_commit(),
        machine=_machine(),
    )


def _commit() -> str | None:
    """Of the repository one stands in; not everyone stands in one, or has git."""
    try:
        found = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.decode(errors="replace").strip() or None


def _machine() -> dict[str, str]:
    facts = {"system": f"{platform.system()} {platform.machine()}", "processor": _processor()}
    facts["cores"] = str(available_cores())
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        facts["memory"] = f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 2**30:.1f} GiB"
    if torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
    return facts


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_bytes().decode(errors="replace").split("\n"):
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def describe(facts: RunFacts, recipe: Recipe, text: PreparedText) -> None:
    """Adds the parameters by part, and the arithmetic of a target piece."""
    facts.parameters = parameters(recipe.model)
    pair = flops_of_pair(recipe.model, text.source / text.pairs, text.target / text.pairs)
    facts.flops_per_piece = pair / (text.target / text.pairs)
