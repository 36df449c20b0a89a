"""Optional files may fail on a full disk; a run says so once, goes on, and says when they are written again:

    spared = OptionalFiles(say)
    with spared("status.json"):
        write_status(...)

Checkpoints are not among them: `checkpoints.saver` tries them again, and ends the run after three failures in a row.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

logger = logging.getLogger(__name__)


class OptionalFiles:
    def __init__(self, say: Callable[[str], None] | None = None) -> None:
        self._say = say or logger.warning
        self._missing: set[str] = set()

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if what not in self._missing:
                self._missing.add(what)
                self._say(f"{what} cannot be written: {error.strerror or error}; training goes on without it")
        else:
            if what in self._missing:
                self._missing.remove(what)
                self._say(f"{what} is written again")
