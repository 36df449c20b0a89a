"""What the README shows must run, and what it names must be there."""

import ast
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
    named = re.findall(r"(?:^|`)make ([\w-]+)", README, flags=re.M)
    assert {"setup", "test", "claim-model"} <= set(named)
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


def test_the_ten_questions_are_answered_by_names_that_exist() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## Ten questions")[1].split("\n## ")[0]
    rows = [row for row in section.split("\n") if row.startswith("| ") and "`" in row]
    assert len(rows) == 10
    for row in rows:
        file = ""
        for name in re.findall(r"`([^`]+)`", row.split(" | ")[1]):
            if name.endswith(".py"):
                file = name
            else:
                assert name in names_of(ROOT / "src" / "limelight" / file), f"{file} has no {name}"


def names_of(path: Path) -> set[str]:
    """Functions, classes, methods and constants of a file, methods as Class.method."""
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found
