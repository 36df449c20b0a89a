"""Lines end at 0x0A and nowhere else: nothing in the package may split or read text in a way that knows other ends of lines.

`str.splitlines` and `codecs.open` split at eight more characters, and a text file opened without newline="\\n" splits at a lone carriage
return and changes \\r\\n. On one side of a corpus and not on the other, that shifts every pair after it.
"""

import ast
from pathlib import Path

import pytest

from house_rules import parse

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src" / "limelight").rglob("*.py"))
OPENERS = ("open", "fdopen", "TextIOWrapper")
WHOLE_TEXTS = ("read_text", "write_text")


def offences(text: str) -> list[str]:
    """What splits lines its own way, as `line: what`."""
    found = []
    for node in ast.walk(parse(text)):
        if _name(node) == "splitlines":
            found.append(f'{node.lineno}: splitlines; split at "\\n"')  # type: ignore[attr-defined]
        elif isinstance(node, ast.ImportFrom) and node.module == "codecs":
            found += [f"{node.lineno}: codecs.{alias.name}" for alias in node.names if alias.name == "open"]
        elif isinstance(node, ast.Call) and (what := _reads_text(node)):
            found.append(f'{node.lineno}: {what}; read and write bytes, or say newline="\\n"')
    return found


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _reads_text(call: ast.Call) -> str | None:
    """How a call opens text without saying where its lines end, if it does."""
    name, owner = _name(call.func), _name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if owner == "codecs" and name == "open":
        return "codecs.open"
    newline = next((word.value for word in call.keywords if word.arg == "newline"), None)
    if isinstance(newline, ast.Constant) and newline.value == "\n":
        return None
    if name in WHOLE_TEXTS or name == "TextIOWrapper":
        return name
    # A class that opens something of its own is no file; os.open gives a number.
    if name not in OPENERS or owner[:1].isupper() or (owner == "os" and name == "open"):
        return None
    modes = [*call.args, *(word.value for word in call.keywords if word.arg == "mode")]
    binary = any(isinstance(m, ast.Constant) and isinstance(m.value, str) and _is_binary(m.value) for m in modes)
    return None if binary else f"{name} in text mode"


def _is_binary(mode: str) -> bool:
    return "b" in mode and bool(set(mode) & set("rwxa")) and not set(mode) - set("rwxab+")


@pytest.mark.slow
def test_no_file_splits_lines_its_own_way() -> None:
    found = [f"{path.relative_to(ROOT)}:{each}" for path in SOURCES for each in offences(path.read_bytes().decode())]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "planted",
    [
        "lines = text.splitlines()",
        "split = str.splitlines",
        "import codecs\ncodecs.open(path, 'rb')",
        "from codecs import open",
        "open(path)",
        "open(path, 'r', encoding='utf-8')",
        "open('b')",
        "open(path, newline='')",
        "open(path, mode='w')",
        "path.open()",
        "with Path(name).open('w') as file: pass",
        "gzip.open(path, 'rt')",
        "io.TextIOWrapper(stream)",
        "os.fdopen(number)",
        "path.read_text('utf-8')",
        "path.write_text(text)",
        "path.open(newline='\\r\\n')",
    ],
)
def test_a_planted_reader_of_text_is_caught(planted: str) -> None:
    assert offences(planted)


@pytest.mark.parametrize(
    "allowed",
    [
        "text.split('\\n')",
        "open(path, 'rb')",
        "path.open(mode='xb')",
        "filesystem.open(path, 'rb')",
        "path.open(newline='\\n')",
        "path.read_text(newline='\\n')",
        "path.read_bytes()",
        "Prepared.open(folder)",
        "os.open(path, os.O_RDONLY)",
    ],
)
def test_bytes_and_stated_newlines_are_allowed(allowed: str) -> None:
    assert not offences(allowed)
