"""Long test files begin first: with `--no-loadscope-reorder`, `--dist loadfile` hands files out in this order, and a long one that comes
last keeps one process busy alone."""

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
FIRST = ("training", "cli", "serving", "interop")  # folders


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _turn(item.path.relative_to(TESTS)))  # a stable sort: within a file nothing moves


def _turn(path: Path) -> int:
    return FIRST.index(path.parts[0]) if path.parts[0] in FIRST else len(FIRST)
