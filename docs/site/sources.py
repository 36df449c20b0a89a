"""Code for the pages, taken from the package when they are built, so that it cannot be old.

excerpt("limelight.model.attention.attend_in_stages")  ->  Excerpt(path, first line, text)
"""

import ast
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
Defined = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Excerpt:
    """`path` from the root of the repository; lines are counted from 1."""

    path: Path
    first: int
    text: str


def excerpt(name: str) -> Excerpt:
    """The definition of `package.module.thing` or `package.module.Class.method`, with its decorators, as it stands in the file."""
    path, inside = _file_of(name)
    text = path.read_text("utf-8")
    found: ast.Module | Defined = ast.parse(text)
    for part in inside:
        found = _member(found, part, name)
    assert not isinstance(found, ast.Module), f"{name} names a file; name something in it"
    first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
    lines = text.split("\n")[first - 1 : found.end_lineno]
    return Excerpt(path.relative_to(ROOT), first, textwrap.dedent("\n".join(lines)))


def _file_of(name: str) -> tuple[Path, list[str]]:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        path = SOURCE.joinpath(*parts[:cut]).with_suffix(".py")
        if path.is_file():
            return path, parts[cut:]
    raise LookupError(f"{name}: there is no such file below {SOURCE}")


def _member(place: ast.Module | Defined, part: str, name: str) -> Defined:
    for node in place.body:
        if isinstance(node, Defined) and node.name == part:
            return node
    raise LookupError(f"{name}: {part} is not there; was it renamed?")
