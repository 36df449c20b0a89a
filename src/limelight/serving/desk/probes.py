"""Probes are traces of the same few sentences that training saved on its way. They are found where the served model lies in its run.

RUN/probes/00/2000.json.gz, RUN/probes/00/4000.json.gz, ...      the first sentence, at step 2000, at step 4000
"""

import gzip
import json
import re
import zlib
from pathlib import Path
from typing import Any

from limelight.serving.refusals import Failed, NotFound

FOLDER = "probes"
LARGEST = 64 << 20  # bytes of a trace: these are files, and files may be anything
DAMAGED = (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error)
_STEP = re.compile(r"([0-9]{1,15})\.json\.gz")


def probes(run: Path | None) -> list[dict[str, Any]]:
    """Number, text and steps of each; none if the model was not trained here, or without probes. Damaged ones are left out."""
    found = []
    for n, steps in _places(run).items():
        last = steps[max(steps)]
        try:
            found.append({"n": n, "source": str(_read(last)["source"]["text"]), "steps": sorted(steps)})
        except DAMAGED:
            continue
    return found


def probe(run: Path | None, n: int, step: int) -> dict[str, Any]:
    """A trace as `inspection.wire.trace_json` writes it."""
    place = _places(run).get(n, {}).get(step)
    if place is None:
        raise NotFound("there is no such probe", "GET /api/v1/probes lists those there are")
    try:
        return _read(place)
    except DAMAGED as error:
        raise Failed("this probe is damaged", "the operator can delete its file") from error


def _places(run: Path | None) -> dict[int, dict[int, Path]]:
    """Find the files by number and step. Names are read, never made of what a client sent."""
    if run is None or not (run / FOLDER).is_dir():
        return {}
    found: dict[int, dict[int, Path]] = {}
    for folder in sorted((run / FOLDER).iterdir()):
        if re.fullmatch(r"[0-9]{1,3}", folder.name) and folder.is_dir():
            steps = {int(match[1]): each for each in folder.iterdir() if (match := _STEP.fullmatch(each.name))}
            if steps:
                found[int(folder.name)] = steps
    return found


def _read(place: Path) -> dict[str, Any]:
    with gzip.open(place, "rb") as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError("too large")
    value = json.loads(content)
    if value["v"] != 1 or not value["model"] or "attn" not in value:
        raise ValueError("no trace")
    return dict(value)
