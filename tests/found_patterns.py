"""Every regular expression of the package, found by looking: objects that modules and classes hold, and calls of `re` in functions.

How a pattern is used counts, too: one that is matched from a place on need not be quick to search for. What is written with the
values of a function (f"</{name}") gets the letter x for those.
"""

import ast
import importlib
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import limelight
from house_rules import parse, walk

SOURCE = Path(limelight.__file__).parent
SEARCHING = ("search", "finditer")
METHODS = {name: name for name in ("search", "match", "fullmatch", "finditer")}
FLAGS_AT = {"compile": 1, **dict.fromkeys(METHODS, 2), "findall": 2, "split": 3, "sub": 4, "subn": 4}
METHODS |= dict.fromkeys(("findall", "sub", "subn", "split"), "finditer")


class Used(NamedTuple):
    """A pattern, where it stands, and the ways in which it is asked for."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def patterns() -> list[Used]:
    """Sorted by place, each pattern once."""
    found: dict[tuple[Any, int], Used] = {}
    for module in modules():
        tree = parse(Path(str(module.__file__)).read_text("utf-8"))
        for used in (*_held(module, tree), *_called(module, tree)):
            key = used.pattern.pattern, used.pattern.flags
            known = found.get(key, used)
            found[key] = known._replace(methods=tuple(sorted({*known.methods, *used.methods})))
    return sorted(found.values(), key=lambda used: used.place)


def modules() -> Iterator[ModuleType]:
    """Those that use `re`; whoever imports a pattern from them does not make it another one."""
    for path in sorted(SOURCE.rglob("*.py")):
        if re.search(r"^(?:import re$|from re import)", path.read_text(), re.MULTILINE):
            yield importlib.import_module(".".join(["limelight", *path.relative_to(SOURCE).with_suffix("").parts]))


def _held(module: ModuleType, tree: ast.AST) -> Iterator[Used]:
    """By the names that a module knows them by, its own or imported ones; those in tuples and tables may be used in any way."""
    asked = _methods_of_names(tree)
    loaded = {node.id for node in walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for name, value in vars(module).items():
        if isinstance(value, type) and value.__module__ == module.__name__:
            held = list(vars(value).items())
        else:
            held = [(name, value)] if name in loaded else []
        for known_as, each in held:
            for pattern in _inside(each):
                yield Used(f"{module.__name__}.{known_as}", pattern, tuple(asked.get(known_as, ())) or SEARCHING)


def _inside(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _inside(each)
    elif isinstance(value, tuple | list | set | frozenset):
        for each in value:
            yield from _inside(each)


def _methods_of_names(tree: ast.AST) -> dict[str, set[str]]:
    """{"_TAG": {"match"}}: of `_TAG.match(...)`, and of `self._TAG.match(...)`."""
    found: dict[str, set[str]] = defaultdict(set)
    for node in walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            owner = node.value
            name = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
            found[name].add(METHODS[node.attr])
    return found


def _called(module: ModuleType, tree: ast.AST) -> Iterator[Used]:
    """re.sub(r"...", ...) anywhere, and re.compile(...) in functions with the method that follows it."""
    attributes = [node for node in walk(tree) if isinstance(node, ast.Attribute)]
    after = {id(node.value): METHODS[node.attr] for node in attributes if node.attr in METHODS}
    functions = [node for node in walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = {id(node) for function in functions for node in ast.walk(function)}
    for call in (node for node in walk(tree) if isinstance(node, ast.Call) and node.args):
        name = call.func.attr if isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "re" else ""
        if name not in FLAGS_AT or (name == "compile" and id(call) not in inside):
            continue
        written = _value(call.args[0], module)
        flags = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[FLAGS_AT[name] :][:1]
        if isinstance(written, str | bytes):
            pattern = re.compile(written, *(_value(flag, module) for flag in flags))
            methods = (METHODS[name],) if name in METHODS else (after[id(call)],) if id(call) in after else SEARCHING
            yield Used(f"{module.__name__}, line {call.lineno}", pattern, methods)


def _value(node: ast.expr, module: ModuleType) -> Any:
    if isinstance(node, ast.JoinedStr):
        return "".join(str(_value(part.value if isinstance(part, ast.FormattedValue) else part, module)) for part in node.values)
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))
    except Exception:
        return "x"
