"""One process at a time writes into a run. The lock goes with the process, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from limelight.errors import ConfigError

LOCK = ".lock"


@contextmanager
def alone_in(run: Path) -> Iterator[None]:
    with (run / LOCK).open("wb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"another process is training in {run}; wait for it, or give another folder with -o"
            ) from None
        yield
