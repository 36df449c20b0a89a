"""The rules of the house that are about files and words."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import limelight.model

sys.path.insert(0, str(Path(__file__).parent))
from house_rules import ROOT, offences, parse, tracked

SOURCES = sorted((ROOT / "src" / "limelight").rglob("*.py"))


@pytest.mark.process
def test_tracked_files_keep_the_rules() -> None:
    found = [offence for path in tracked() for offence in offences(path, (ROOT / path).read_bytes())]
    assert not found, "\n".join(found)


def test_planted_offences_are_caught() -> None:
    assert offences(Path("a.txt"), b"no newline")
    assert offences(Path("a.bin"), b"\0" * 500_001)
    assert offences(Path("src/limelight/model/attention.py"), b"x\n" * 251)
    assert offences(Path("src/limelight/text/utils.py"), b"x\n")
    assert offences(Path("n.ipynb"), b'{"cells": [{"outputs": [1]}]}\n')
    assert not offences(Path("a.txt"), b"fine\n")


@pytest.mark.slow
def test_no_function_is_longer_than_a_screen() -> None:
    long = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None and node.end_lineno - node.lineno >= 60
    ]
    assert not long


@pytest.mark.process
def test_package_inits_load_nothing_of_ours() -> None:
    """A docstring, or public names that are fetched when used; either way importing a room does not load its files."""
    rooms = sorted({".".join(path.parent.relative_to(ROOT / "src").parts) for path in SOURCES if path.name == "__init__.py"})
    assert "limelight.model" in rooms
    code = (
        f"import importlib, sys\nfor room in {rooms!r}: importlib.import_module(room)\n"
        f"extra = [name for name in sys.modules if name.startswith('limelight') and name not in {rooms!r}]\n"
        "assert not extra and 'torch' not in sys.modules, extra"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_public_names_are_there() -> None:
    for name in limelight.model.__all__:
        assert getattr(limelight.model, name).__name__ == name
    with pytest.raises(AttributeError, match="it offers"):
        _ = limelight.model.Transfromer


@pytest.mark.slow
def test_every_file_says_what_it_is_in_its_docstring() -> None:
    assert not [path for path in SOURCES if not ast.get_docstring(parse(path.read_text("utf-8")))]
