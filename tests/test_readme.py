"""What the README shows must run, and what it names must be there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def test_the_python_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    assert "weights (1, 4, 4, 4)" in capsys.readouterr().out


def test_the_commands_of_the_readme_are_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    named = re.findall(r"^    make ([\w-]+)", README, flags=re.M)
    assert {"setup", "test"} <= set(named)
    for target in named:
        if target.startswith("claim-"):
            assert (ROOT / "claims" / f"{target.removeprefix('claim-')}.py").is_file()
        else:
            assert re.search(rf"^{target}:", makefile, flags=re.M), target


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / link).exists(), link


@pytest.mark.parametrize(
    ("title", "room"),
    [
        ("The model", "model"),
        ("The search", "decoding"),
        ("Training", "training"),
        ("Inspection", "inspection"),
        ("Serving", "serving"),
        ("Documents", "documents"),
        ("Interop", "interop"),
    ],
)
def test_files_named_in_the_architecture_exist(title: str, room: str) -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
    section = text.split(f"## {title}, file by file")[1].split("\n## ")[0]
    table = re.findall(r"^\| (`[^|]+) \|", section, flags=re.M)
    named = {name for cell in table for name in re.findall(r"`(\w+\.py)`", cell)}
    there = {path.name for path in (ROOT / "src" / "limelight" / room).glob("*.py")} - {"__init__.py"}
    assert named == there
