"""An sdist holds what a wheel is made of, pages included, and nothing of the tests; a wheel made of it is whole."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "release"))
from hatch_build import built

from contents import members, problems_of

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not built(ROOT), reason="the pages were not built; make web")


def hatchling(kind: str, output: Path, cwd: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(output)]
    subprocess.run(command, cwd=cwd, env={**os.environ, "PATH": ""}, check=True, capture_output=True)
    [made] = output.iterdir()
    return made


@pytest.mark.process
def test_an_sdist_holds_what_it_should_and_a_wheel_made_of_it_too(tmp_path: Path) -> None:
    """Without npm on the path: who installs from an sdist has none."""
    sdist = hatchling("sdist", tmp_path / "sdist", ROOT)
    assert problems_of(sdist) == []
    with tarfile.open(sdist) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    [folder] = (tmp_path / "unpacked").iterdir()
    wheel = hatchling("wheel", tmp_path / "wheel", folder)
    assert problems_of(wheel) == []
    assert len([name for name in members(wheel) if name.endswith(".py")]) == len(list((ROOT / "src" / "limelight").rglob("*.py")))
