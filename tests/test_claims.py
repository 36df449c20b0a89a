"""What claims and benchmarks import of the package is there, so that a figure of the docs can be measured again."""

import ast
from importlib import import_module, util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRAMS = sorted(path for room in ("claims", "benchmarks") for path in (ROOT / room).glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.slow  # the first of a kind imports engines
def test_it_finds_what_it_imports(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "limelight":
            there = import_module(node.module or "")
            for each in node.names:
                assert hasattr(there, each.name) or util.find_spec(f"{node.module}.{each.name}"), f"{node.module} has no {each.name}"
