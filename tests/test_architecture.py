"""Imports go down the floors, never up and never sideways: in functions and under TYPE_CHECKING too."""

import ast
import functools
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from house_rules import parse, walk

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "limelight"
sys.path.insert(0, str(ROOT / "benchmarks"))
from house import House  # noqa: E402

FLOORS = {
    "cli": 10,
    "serving": 8,
    "training": 8,
    "learning": 9,
    "documents": 7,
    "evaluation": 7,
    "interop": 7,
    "async_translator": 7,
    "translator": 6,
    "inspection": 5,
    "engines": 4,
    "bundle": 3,
    "corpus": 3,
    "planning": 3,
    "model": 2,
    "text": 2,
    "decoding": 2,
    "cluster": 1,
    "addresses": 1,
    "config": 1,
    "reporting": 1,
    "runtime": 1,
    "safe_xml": 1,
    "store": 1,
    "errors": 0,
    "files": 0,
    "chance": 0,
    "client": 0,
}

HEAVY = (
    "torch",
    "polars",
    "pyarrow",
)  # seconds to load, hundreds of megabytes: a translation by CTranslate2 needs none of them
# A tenth of a second or more each, where a translation by CTranslate2 takes four: they are loaded where they are needed.
LATE = (*HEAVY, "numpy", "langcodes", "obstore", "tomlkit")
LIGHT = (
    "limelight.translator.translate",
    "limelight.serving.app",
    "limelight.documents.document",
    "limelight.decoding.search",
    "limelight.interop.huggingface.hub",
    "limelight.interop.opus",
)

# Inside the rooms that have sub-packages: files and sub-packages from the ground up. What stands in one line does not know its neighbours.
STOREYS = {
    "cli": (
        "language_arguments",
        "remote_folders",
        "completion report screen settings_arguments",
        "fetching",
        "memory",
        "evaluate export import_model mcp prepare serve translate",
        "train",
        "inspect learn plan",
        "demo",
        "doctor",
        "main",
    ),
    "corpus": (
        "config reading worker_processes",
        "manifest readers",
        "cleaning inputs tokenizers",
        "feeding work_folder",
        "encode remote",
        "exchange",
        "report",
        "prepare",
    ),
    "documents": (
        "encodings kinds splices",
        "units",
        "sentences translating",
        "formats segments tables",
        "archives",
        "document",
    ),
    "evaluation": (
        "confidence config inputs suspicions",
        "metrics translating",
        "evaluate",
        "verdict",
    ),
    "inspection": (
        "head_names one_weight",
        "interventions",
        "trace",
        "causes",
        "analysis drawing wire",
        "saving",
        "tracing",
    ),
    "interop": (
        "alignment_heads architecture file_names language_codes names offers onnx parity quarantine",
        "ctranslate2 opus published_pieces web",
        "exported_pieces stored_weights",
        "huggingface",
    ),
    "planning": (
        "corpus_work cost sizing_rules",
        "parallel_rule scaling serving_load time",
        "budget options shortfall",
    ),
    "serving": (
        "refusals settings",
        "queue",
        "agents http",
        "middleware",
        "access",
        "compat native",
        "desk review",
        "app",
        "server",
    ),
    "translator": (
        "confidence directions loading",
        "translation",
        "alignment",
        "protected",
        "sentences",
        "arguments parts searching",
        "aligning",
        "presenting",
        "pipeline",
        "second_search",
        "translate",
    ),
    "text": (
        "languages normalize patterns sentence_ends",
        "pair_checks pieces",
        "careful identify language_names",
        "segment",
    ),
    "training": (
        "config events run_folder",
        "processes",
        "checkpoints",
        "step",
        "recipe",
        "forecast report validation",
        "run",
    ),
}


def room_of(module: str) -> str:
    """limelight.model.config -> model; limelight itself -> the empty string."""
    return module.split(".")[1] if "." in module else ""


def imports_of(tree: ast.AST) -> list[tuple[int, str]]:
    """Every module of ours that the code names: statements at any depth, and import_module or __import__ with a literal."""
    found = []
    for node in walk(tree):
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
    tree = parse(text)
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
        result += [
            f"{module}:{line} imports {imported} inside a function; only cli may, and others what loads {', '.join(LATE)}"
            for line, imported in local_imports(tree)
            if not loads_one_of(LATE, imported)
        ]
    if here in ("model", "decoding"):
        result += circles_with_config(module, tree)
    return result


def local_imports(tree: ast.AST) -> list[tuple[int, str]]:
    functions = [node for node in walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [found for function in functions for node in ast.walk(function) for found in named_by(node)]


def named_by(node: ast.AST) -> list[tuple[int, str]]:
    if isinstance(node, ast.Import):
        return [(node.lineno, alias.name) for alias in node.names]
    return [(node.lineno, node.module or "")] if isinstance(node, ast.ImportFrom) else []


def loaded_with(body: list[ast.stmt]) -> set[str]:
    """What a file names as it is imported: at its top level, and not for the type checker alone."""
    found = set()
    for node in body:
        if isinstance(node, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.unparse(node).partition(":")[0]:
            found |= loaded_with([*node.body, *node.orelse])
        found |= {name for _, name in named_by(node)}
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@functools.cache
def named_at_the_top() -> dict[str, set[str]]:
    return {module: loaded_with(parse(path.read_text("utf-8")).body) for module, path in modules()}


def loads_heavy(module: str) -> bool:
    return loads_one_of(HEAVY, module)


@functools.cache
def loads_one_of(packages: tuple[str, ...], module: str) -> bool:
    """Does importing this load one of the packages, directly or by way of our own files?"""
    seen, waiting, named = set[str](), [module], named_at_the_top()
    while waiting:
        name = waiting.pop()
        if name.partition(".")[0] in packages:
            return True
        if name in named and name not in seen:
            seen.add(name)
            waiting += [*named[name], name.rpartition(".")[0]]
    return False


def circles_with_config(module: str, tree: ast.AST) -> list[str]:
    """Configs import no torch, so that planning and `--help` start without it."""
    if not module.endswith(".config"):
        return []
    names = [alias.name for node in walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in walk(tree) if isinstance(node, ast.ImportFrom)]
    return [f"{module} imports torch" for name in names if name.split(".")[0] == "torch"]


def modules() -> list[tuple[str, Path]]:
    paths = sorted(SOURCE.rglob("*.py"))
    names = [("limelight." + ".".join(p.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__") for p in paths]
    return list(zip(names, paths, strict=True))


@pytest.mark.slow
def test_imports_go_down_the_floors() -> None:
    found = [v for module, path in modules() for v in violations(module, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize("module", LIGHT)
def test_what_translates_loads_nothing_heavy(module: str) -> None:
    assert not loads_heavy(module)


@pytest.mark.slow
def test_what_loads_something_heavy_is_noticed() -> None:
    """The control."""
    assert loads_heavy("limelight.engines.torch") and loads_heavy("limelight.corpus.prepare") and loads_heavy("polars")


def test_every_room_stands_on_a_floor() -> None:
    rooms = {room_of(module) for module, _ in modules()} - {"", "__main__"}
    assert rooms <= FLOORS.keys()


def storey_of(module: str) -> tuple[str, int]:
    """limelight.training.step.optimizers -> ("step", 3); of what stands in no table, ("", -1)."""
    room, _, rest = module.partition(".")[2].partition(".")
    box = rest.partition(".")[0]
    found = [at for at, boxes in enumerate(STOREYS.get(room, ())) if box in boxes.split()]
    return (box, found[0]) if found else ("", -1)


def climbs(module: str, text: str) -> list[str]:
    """Imports that go up, or to a neighbour, inside a room."""
    here, storey = storey_of(module)
    result = []
    for line, imported in imports_of(parse(text)):
        there, below = storey_of(imported)
        if here and there and room_of(imported) == room_of(module) and here != there and below >= storey:
            result.append(f"{module}:{line} (storey {storey}) imports {imported} (storey {below})")
    return result


@pytest.mark.slow
def test_imports_go_down_the_storeys_of_a_room() -> None:
    found = [climb for module, path in modules() for climb in climbs(module, path.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_a_planted_climb_is_caught() -> None:
    assert climbs("limelight.training.step.optimizers", "from limelight.training.run.loop import TrainingLoop")
    assert climbs("limelight.training.report.setup", "import limelight.training.forecast.text_size")
    assert not climbs("limelight.training.run.loop", "from limelight.training.step.optimizers import Optimizers")


def test_every_part_of_a_room_has_its_storey() -> None:
    there = {room: sorted(" ".join(boxes).split()) for room, boxes in STOREYS.items()}
    packages = {room_of(module) for module, path in modules() if len(path.relative_to(SOURCE).parts) > 2}
    found = {
        room: sorted({module.split(".")[2] for module, _ in modules() if room_of(module) == room and module.count(".") > 1})
        for room in packages
    }
    assert there == found


@pytest.mark.slow
def test_folders_are_small_and_public_class_names_unique() -> None:
    house = House.read(ROOT)
    assert not house.large_folders()
    assert not house.names_used_twice()


@pytest.mark.slow
def test_no_circle_of_files_inside_a_room() -> None:
    graph = {m: {i for _, i in imports_of(parse(p.read_text("utf-8")))} for m, p in modules()}
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("limelight.model.attention", "from limelight.training.step.trained_model import MasterWeights"),
        ("limelight.model.attention", "import limelight.text.pieces.tokenizer"),
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


@pytest.mark.process
def test_configs_load_without_torch() -> None:
    code = "import sys, limelight, limelight.model.config; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.process
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
    names = [path.name for path in Path(__file__).parent.rglob("*.py") if path.name not in ("conftest.py", "__init__.py")]
    assert sorted({name for name in names if names.count(name) > 1}) == []
