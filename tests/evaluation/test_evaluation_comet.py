"""COMET's environment, as a real process of another Python. The module `comet` in it is a stand-in: the real one needs a download."""

import os
import sys
import time
from pathlib import Path

import pytest

from limelight.errors import ConfigError, DataError, LimelightError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.comet import CometSettings, comet

pytestmark = pytest.mark.process

SYSTEM, REFERENCE, SOURCE = ["eins", "zwei zwei", "dreißig"], ["eins", "zwei", "drei"], ["one", "two", "three"]
FAST = EvaluateSettings(resamples=100)

# The names and signatures of unbabel-comet 2.x; the score is one that can be computed by hand.
STAND_IN = """
print("COMET and its libraries talk on standard output")
__version__ = "2.2.6"

def download_model(name):
    assert name == "Unbabel/wmt22-comet-da", name
    return "downloaded/" + name

def load_from_checkpoint(path):
    assert path.startswith("downloaded/") or path.endswith(".ckpt"), path
    return Model()

class Output:
    def __init__(self, scores):
        self.scores = scores
        self.system_score = sum(scores) / len(scores)

class Model:
    def predict(self, samples, batch_size=16, gpus=1):
        assert gpus == 0 and all(set(sample) == {"src", "mt", "ref"} for sample in samples)
        print("Predicting")
        return Output([len(sample["ref"]) / len(sample["mt"]) for sample in samples])
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    return environment(tmp_path, STAND_IN)


def environment(folder: Path, module: str) -> Path:
    """A Python that finds this module as `comet`, and knows nothing of ours."""
    (folder / "site").mkdir()
    (folder / "site" / "comet.py").write_bytes(module.encode())
    command = folder / "python"
    command.write_bytes(f'#!/bin/sh\nPYTHONPATH="{folder}/site" exec "{sys.executable}" "$@"\n'.encode())
    command.chmod(0o755)
    return command


def scored(python: Path, **more: object) -> object:
    return comet(SYSTEM, [REFERENCE], SOURCE, CometSettings(python=python, **more), FAST)


def test_scores_come_back_sentence_by_sentence_and_are_averaged(python: Path) -> None:
    counts = comet(SYSTEM, [REFERENCE], SOURCE, CometSettings(python=python), FAST)
    assert counts.of_each() == pytest.approx([1, 4 / 9, 4 / 7])
    score = counts.score(FAST)
    assert score.name == "COMET" and score.value == pytest.approx((1 + 4 / 9 + 4 / 7) / 3)
    assert score.low is not None and score.high is not None and score.low < score.value < score.high
    assert "model:Unbabel/wmt22-comet-da|comet:2.2.6" in score.signature and "bs:100|seed:12345" in score.signature


def test_a_model_file_is_found_from_where_we_stand(python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.ckpt").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    assert scored(python, model="mine.ckpt")


def test_an_environment_without_comet_says_how_to_make_one() -> None:
    with pytest.raises(LimelightError, match=r"has no COMET.*venv comet && comet/bin/pip install unbabel-comet"):
        scored(Path(sys.executable))


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere/python: No such file.*comet/bin/python"):
        scored(tmp_path / "nowhere" / "python")


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("def download_model(name): raise OSError('no route to the hub')", "no route to the hub"),
        ("import os\nos._exit(9)", "code 9"),
        (STAND_IN.replace("for sample in samples]", "for sample in samples[:1]]"), "no score for each of 3"),
        (STAND_IN.replace('len(sample["ref"]) /', "float('nan') *"), "not numbers"),
    ],
)
def test_what_goes_wrong_there_is_said_here(tmp_path: Path, module: str, said: str) -> None:
    with pytest.raises(LimelightError, match=said):
        scored(environment(tmp_path, module))


def test_it_is_ended_with_all_its_children_when_time_is_up(tmp_path: Path) -> None:
    """A child that lives on would hold the pipes, and us with them."""
    note = tmp_path / "child"
    module = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(note)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    began = time.monotonic()
    with pytest.raises(LimelightError, match="no answer in 3 seconds"):
        scored(environment(tmp_path, module), seconds=3)
    assert time.monotonic() - began < 20
    pid = int(note.read_bytes())
    for _ in range(50):
        if not alive(pid):
            break
        time.sleep(0.1)
    assert not alive(pid)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()  # dead, and nobody has asked yet


def test_without_a_source_comet_is_refused() -> None:
    with pytest.raises(DataError, match="--source"):
        comet(SYSTEM, [REFERENCE], None, CometSettings(python=Path(sys.executable)), FAST)
