"""What the README shows must run, and what it names must be there."""

import ast
import re
import sys
from pathlib import Path

import pytest

from house_rules import parse

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "site"))
import house_map  # noqa: E402

README = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_map_of_the_house_is_current() -> None:
    old = [page.name for page, text in house_map.current_pages().items() if page.read_text("utf-8") != text]
    assert not old, "python docs/site/house_map.py"


@pytest.mark.slow
def test_first_sentences_are_sentences() -> None:
    """A sentence begins with its subject: no question word, no preposition, no article of a bare noun that ends at once."""
    found = {path: house_map.first_sentence(path) for path in sorted(house_map.SOURCE.rglob("*.py"))}
    bare = re.compile(r"(What|Which|Whether|How|Where|Who|Whom|Of|From|As|In|For|With)\b")
    assert not {str(path): line for path, line in found.items() if bare.match(line) or len(line.split()) < 3}


def test_the_twenty_questions_are_answered_by_names_that_exist() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text("utf-8").split("## Twenty questions")[1].split("\n## ")[0]
    rows = [row for row in section.split("\n") if row.startswith("| ") and "`" in row]
    assert len(rows) == 20
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
    for node in parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found
