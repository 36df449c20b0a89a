"""The tutorials import a model of others; the tests of interop make such models."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))

from tutorial_session import Session


@pytest.fixture
def session_in() -> Iterator[Callable[[Path, bool], Session]]:
    opened: list[Session] = []

    def open_in(folder: Path, here: bool) -> Session:
        opened.append(Session(folder, here))
        return opened[-1]

    yield open_in
    for session in opened:
        session.close()
