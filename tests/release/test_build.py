"""A wheel as people get it: built, looked through, installed beside nothing of the sources, and used."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import limelight

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "release"))
from hatch_build import WITHOUT, built

from contents import problems_of, torch_problems, version_of, version_problems

ROOT = Path(__file__).parents[2]
HAS_PAGE = built(ROOT)


@pytest.fixture(scope="module")
def wheel(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    environment = os.environ if HAS_PAGE else {**os.environ, WITHOUT: "1"}
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    [made] = folder.glob("*.whl")
    return made


def test_the_wheel_holds_what_it_should_and_nothing_else(wheel: Path) -> None:
    assert problems_of(wheel, page=HAS_PAGE) == []
    assert version_of(wheel) == limelight.__version__


def test_the_page_is_in_the_wheel(wheel: Path) -> None:
    if not HAS_PAGE:
        pytest.skip("the page was not built; make web")
    with zipfile.ZipFile(wheel) as opened:
        assert b"<script" in opened.read("limelight/serving/page/index.html")


def test_what_slipped_in_or_fell_out_is_found(wheel: Path, tmp_path: Path) -> None:
    def changed(name: str, without: str = "", more: str = "") -> list[str]:
        other = tmp_path / f"limelight-{name}-py3-none-any.whl"
        with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as new:
            for member in old.namelist():
                if not (without and member.endswith(without)):
                    new.writestr(member, old.read(member))
            if more:
                new.writestr(more, b"x")
        return problems_of(other, page=HAS_PAGE)

    assert changed("1", without="LICENSE")
    assert changed("2", without="py.typed")
    assert changed("3", more="limelight/tests/data.en")
    assert changed("4", more="tests/conftest.py")
    assert changed("5", more="limelight/keys.toml")
    assert changed("6") == []


def test_the_wheel_works_without_the_sources(wheel: Path, tmp_path: Path) -> None:
    """Its own copy of the package, the dependencies of this environment, no compiler on the path."""
    place = tmp_path / "site"
    install = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        str(place),
        str(wheel),
    ]
    subprocess.run(install, check=True, capture_output=True)
    bundle = shutil.copytree(ROOT / "tests" / "bundles" / "format-1", tmp_path / "bundle")
    environment = {"PATH": "", "PYTHONPATH": str(place), "HOME": str(tmp_path), "LANG": "C.UTF-8"}

    def run(*words: str) -> str:
        done = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, check=True)
        return done.stdout.decode()

    assert run("-c", "import limelight; print(limelight.__file__)").startswith(str(place))
    assert "translate" in run("-m", "limelight", "--help")
    assert run("-m", "limelight", "translate", str(bundle), "three seven one") == "drei sieben eins\n"


def test_code_changelog_citation_and_torch_agree() -> None:
    assert version_problems() == []
    assert torch_problems() == []


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("src/limelight/__init__.py", f'"{limelight.__version__}"', '"9.9.9"'),
        ("CITATION.cff", f"version: {limelight.__version__}", "version: 9.9.9"),
        ("CHANGELOG.md", "## Unreleased", "## Soon"),
    ],
)
def test_a_version_that_differs_is_found(file: str, old: str, new: str, tmp_path: Path) -> None:
    for name in ("src/limelight/__init__.py", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / name).read_bytes().decode()
        assert name != file or old in text
        (tmp_path / name).write_bytes((text.replace(old, new, 1) if name == file else text).encode())
    assert version_problems(tmp_path)
