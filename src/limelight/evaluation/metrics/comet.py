"""COMET, a metric that is itself a neural network, is run in a Python environment of its own. Its pins cannot live beside a new stack."""

import json
import math
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from limelight.config import Settings
from limelight.errors import ConfigError, DataError, LimelightError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.comet_runner import NOT_INSTALLED
from limelight.evaluation.metrics.metrics import MetricCounts, Numbers

RUNNER = Path(__file__).with_name("comet_runner.py")
SAID = 6  # last lines of what COMET said that an error repeats
SEEN_AT_ONCE = 16


class CometSettings(Settings):
    python: Path
    model: str = "Unbabel/wmt22-comet-da"
    gpus: int = 0
    seconds: float = 3_600  # then it is ended: a download that hangs would hang us


class CometError(LimelightError):
    """COMET could not be run in its environment."""

    exit_code = 69


def comet(
    system: Sequence[str],
    references: Sequence[Sequence[str]],
    source: Sequence[str] | None,
    comet_settings: CometSettings,
    settings: EvaluateSettings,
) -> MetricCounts:
    """COMET of each sentence against the first reference; a mean of them is a sum of (score, 1)."""
    if source is None:
        raise DataError("COMET reads the source too, and there is none; name it: --source test.en")
    rows = [{"src": s, "mt": t, "ref": r} for s, t, r in zip(source, system, references[0], strict=True)]
    # A file is named in full: the other Python starts in an empty folder, where nothing of ours is imported by accident.
    file = Path(comet_settings.model)
    model = str(file.resolve()) if file.exists() else comet_settings.model
    request = {"model": model, "rows": rows, "batch_size": SEEN_AT_ONCE, "gpus": comet_settings.gpus}
    answer = _request_scores(comet_settings, json.dumps(request).encode())
    scores = _scores(answer, len(system))
    drawn = "" if settings.resamples is None else f"|bs:{settings.resamples}|seed:{settings.seed}"
    signature = f"nrefs:1{drawn}|model:{comet_settings.model}|comet:{answer.get('version', 'unknown')}"
    table = np.stack([scores, np.ones(len(scores))], axis=1)
    return MetricCounts("COMET", table, lambda row: float(row[0] / row[1]), signature)


def _request_scores(settings: CometSettings, request: bytes) -> dict[str, object]:
    code, out, err = _run(settings, request)
    said = "\n".join(f"    {line}" for line in err.decode("utf-8", "replace").strip().split("\n")[-SAID:])
    if code == NOT_INSTALLED:
        raise CometError(
            f"{settings.python} has no COMET ({said.strip()}); make an environment for it: python3.11 -m venv comet && "
            "comet/bin/pip install unbabel-comet 'setuptools<81', then --comet comet/bin/python"
        )
    answer = None
    with suppress(ValueError):
        answer = json.loads(out) if code == 0 else None
    if not isinstance(answer, dict):
        raise CometError(f"COMET ended with code {code} and no scores; its last words:\n{said}")
    return answer


def _run(settings: CometSettings, request: bytes) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr. However this ends, nothing that it started goes on running."""
    # Not resolved: the Python of an environment is a link, and where the link stands decides what it can import.
    python = settings.python if len(settings.python.parts) == 1 else settings.python.absolute()
    command = [str(python), "-c", RUNNER.read_bytes().decode()]
    pipe = subprocess.PIPE
    with tempfile.TemporaryDirectory(prefix="limelight-") as empty:
        try:
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=empty, start_new_session=True)
        except OSError as error:
            raise ConfigError(
                f"--comet {settings.python}: {error.strerror}; name the Python of an environment, such as comet/bin/python"
            ) from None
        with process:
            try:
                out, err = process.communicate(request, settings.seconds)
            except subprocess.TimeoutExpired:
                raise CometError(
                    f"COMET gave no answer in {settings.seconds:,.0f} seconds and was ended; try fewer sentences or a GPU"
                ) from None
            finally:
                with suppress(ProcessLookupError):
                    # Its own workers too: they would hold our pipes open. Windows has no groups of processes.
                    os.killpg(process.pid, signal.SIGKILL) if os.name != "nt" else process.kill()
    return process.returncode, out, err


def _scores(answer: dict[str, object], sentences: int) -> Numbers:
    scores = answer.get("scores")
    if not isinstance(scores, list) or len(scores) != sentences:
        raise CometError(f"COMET gave no score for each of {sentences:,} sentences; is its version supported (2.x)?")
    if not all(isinstance(score, int | float) and math.isfinite(score) for score in scores):
        raise CometError("COMET gave scores that are not numbers; check its model and its environment")
    return np.array(scores, np.float64)
