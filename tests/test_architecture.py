"""Imports go down the floors, never up and never sideways: in functions and under TYPE_CHECKING too."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "limelight"

FLOORS = {
    "cli": 9,
    "serving": 8,
    "training": 8,
    "documents": 7,
    "evaluation": 7,
    "interop": 7,
    "translator": 6,
    "inspection": 5,
    "engines": 4,
    "bundle": 3,
    "corpus": 3,
    "planning": 3,
    "model": 2,
    "text": 2,
    "decoding": 2,
    "config": 1,
    "runtime": 1,
    "errors": 0,
    "files": 0,
    "chance": 0,
}


def room_of(module: str) -> str:
    """limelight.model.config -> model; limelight itself -> the empty string."""
    return module.split(".")[1] if "." in module else ""


def imports_of(tree: ast.AST) -> list[tuple[int, str]]:
    """Every module of ours that the code names: statements at any depth, and import_module or __import__ with a literal."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                found.append((node.lineno, "limelight." + "." * node.level))
            elif node.module == "limelight":
                found += [(node.lineno, f"limelight.{alias.name}") for alias in node.names]
            else:
                found.append((node.lineno, node.module or ""))
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__", "find_spec"):
                found.append((node.lineno, str(node.args[0].value)))
    return [(line, module) for line, module in found if module.split(".")[0] == "limelight"]


def violations(module: str, text: str) -> list[str]:
    """What breaks the rule in one file, as `module:line imports ...`."""
    here, result = room_of(module), []
    tree = ast.parse(text)
    for line, imported in imports_of(tree):
        there = room_of(imported)
        if imported.endswith(".") or there == "":
            result.append(f"{module}:{line} imports {imported!r}; write imports in full")
        elif there == here or here in ("", "__main__"):
            continue
        elif there not in FLOORS:
            result.append(f"{module}:{line} imports {imported}, whose room {there!r} stands on no floor")
        elif FLOORS[there] >= FLOORS[here]:
            result.append(f"{module}:{line} (floor {FLOORS[here]}) imports {imported} (floor {FLOORS[there]})")
    if here != "cli":
        result += [f"{module}:{line} imports inside a function; only cli may" for line in local_imports(tree)]
    if here in ("model", "decoding"):
        result += circles_with_config(module, tree)
    return result


def local_imports(tree: ast.AST) -> list[int]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [n.lineno for f in functions for n in ast.walk(f) if isinstance(n, ast.Import | ast.ImportFrom)]


def circles_with_config(module: str, tree: ast.AST) -> list[str]:
    """Configs import no torch, so that planning and `--help` start without it."""
    if not module.endswith(".config"):
        return []
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return [f"{module} imports torch" for name in names if name.split(".")[0] == "torch"]


def modules() -> list[tuple[str, Path]]:
    paths = sorted(SOURCE.rglob("*.py"))
    names = [
        ("limelight." + ".".join(p.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__") for p in paths
    ]
    return list(zip(names, paths, strict=True))


def test_imports_go_down_the_floors() -> None:
    found = [v for module, path in modules() for v in violations(module, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_every_room_stands_on_a_floor() -> None:
    rooms = {room_of(module) for module, _ in modules()} - {"", "__main__"}
    assert rooms <= FLOORS.keys()


def test_no_circle_of_files_inside_a_room() -> None:
    graph = {m: {i for _, i in imports_of(ast.parse(p.read_text("utf-8")))} for m, p in modules()}
    assert not circle(graph)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of imports, or nothing."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done or module not in graph:
            return []
        for imported in sorted(graph[module]):
            if found := visit(imported, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(graph) if (found := visit(module, []))), [])


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("limelight.model.attention", "from limelight.training.masters import MasterWeights"),
        ("limelight.model.attention", "import limelight.text.tokenizer"),
        ("limelight.model.attention", "def f():\n    from limelight.engines import torch"),
        (
            "limelight.decoding.beam",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from limelight.model import x",
        ),
        ("limelight.model.layers", "from ..training import masters"),
        ("limelight.errors", "from limelight import config"),
        ("limelight.corpus.readers", "import importlib\nimportlib.import_module('limelight.bundle')"),
        ("limelight.model.config", "import torch"),
        ("limelight.model.config", "from limelight.helpers import x"),
    ],
)
def test_a_planted_import_is_caught(module: str, planted: str) -> None:
    assert violations(module, planted)


def test_a_planted_circle_is_caught() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) == ["a", "b", "c", "a"]
    assert not circle({"a": {"b", "c"}, "b": {"c"}, "c": set()})


def test_an_import_downwards_is_allowed() -> None:
    assert not violations("limelight.translator", "from limelight.text import tokenizer\nimport limelight.errors")


def test_configs_load_without_torch() -> None:
    code = "import sys, limelight, limelight.model.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_importing_does_nothing() -> None:
    """No seed, no thread count, no environment variable, no logging handler at import time."""
    names = [module for module, _ in modules()]
    code = (
        "import logging, os, random, torch\n"
        "import polars, ray, rich.progress\n"  # these set variables of their own, or draw a number, when they are imported
        "before = (dict(os.environ), random.getstate(), torch.initial_seed(), torch.get_num_threads(), logging.root.handlers[:])\n"
        f"import importlib\nfor name in {names!r}: importlib.import_module(name)\n"
        "after = (dict(os.environ), random.getstate(), torch.initial_seed(), torch.get_num_threads(), logging.root.handlers[:])\n"
        "assert before == after"
    )
    assert importlib.util.find_spec("limelight") is not None
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_two_files_of_tests_have_one_name() -> None:
    """pytest would import the first for both, and collect nothing of the second."""
    names = [
        path.name for path in Path(__file__).parent.rglob("*.py") if path.name not in ("conftest.py", "__init__.py")
    ]
    assert sorted({name for name in names if names.count(name) > 1}) == []
