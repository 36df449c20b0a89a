"""Long test files begin first: with `--no-loadscope-reorder`, `--dist loadfile` hands files out in this order, and a long one that comes
last keeps one process busy alone.

An example may take its time: on a busy machine hypothesis's 200 ms say nothing about the code. (Where CI is set, it has no such limit.)"""

import os
from pathlib import Path

import pytest
from hypothesis import settings

if not os.environ.get("CI"):
    settings.register_profile("patient", deadline=None)
    settings.load_profile("patient")

TESTS = Path(__file__).parent
FIRST = ("training", "cli", "serving", "interop")  # folders


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.path.relative_to(TESTS)))  # a stable sort: within a file nothing moves


def _turn(path: Path) -> int:
    return FIRST.index(path.parts[0]) if path.parts[0] in FIRST else len(FIRST)
