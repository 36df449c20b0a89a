"""What a person reads in an error has no names of our classes and modules in it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from house_rules import parse, walk
from limelight.config import Settings
from limelight.corpus.config import PrepareSettings
from limelight.errors import ConfigError, LimelightError
from limelight.training.recipe.request import differences

SOURCE = Path(__file__).parents[1] / "src" / "limelight"
SOURCES = sorted(SOURCE.rglob("*.py"))
MODULE = re.compile(r"\blimelight\.(?!css|js)[a-z_]+\.[a-z_]+")


@cache
def classes() -> set[str]:
    nodes = (node for path in SOURCES for node in walk(parse(path.read_text("utf-8"))))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef) and re.search("[a-z][A-Z]", node.name)}


@cache
def errors() -> set[str]:
    return {name for name in classes() if name.endswith("Error")} | {"refusal"}


def sentences(path: Path) -> list[tuple[int, str]]:
    """Every text inside the making of an error, with its line."""
    calls = [
        node
        for node in walk(parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in errors()
    ]
    texts = (each for call in calls for each in ast.walk(call) if isinstance(each, ast.Constant))
    return [(text.lineno, text.value) for text in texts if isinstance(text.value, str)]


@pytest.mark.slow
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_errors_name_no_class_and_no_module_of_ours(path: Path) -> None:
    told = [(line, text) for line, text in sentences(path) if MODULE.search(text) or classes() & set(re.findall(r"\w+", text))]
    assert told == []


@pytest.mark.slow
def test_the_search_finds_errors() -> None:
    """Negative control."""
    assert sum(len(sentences(path)) for path in SOURCES) > 500
    assert MODULE.search("call limelight.bundle.relist") and "PrepareSettings" in classes()


class OwnSettings(Settings):
    steps: int = 1


def test_settings_are_called_as_a_person_would() -> None:
    with pytest.raises(ConfigError, match="the own settings cannot be used"):
        OwnSettings(stpes=5)
    with pytest.raises(LimelightError, match="the prepare settings cannot be read"):
        PrepareSettings.from_toml("a = [")


def test_another_command_says_what_it_asks_otherwise() -> None:
    before = {"data": {"seed": 17, "corpora": [{"name": "a"}]}, "preset": None, "seed": 1}
    now = {"data": {"seed": 17, "corpora": [{"name": "b"}]}, "preset": "tiny", "seed": 1}
    assert differences(before, now) == [
        "data.corpora.0.name was a, and is b now",
        "preset was not given, and is tiny now",
    ]
    assert differences(now, now) == []
    many = differences({}, {str(n): n for n in range(30)})
    assert len(many) == 9 and many[-1] == "and 22 more"
