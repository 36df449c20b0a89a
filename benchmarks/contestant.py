"""An object in a process of its own, so that one's memory and threads neither help nor hurt another. Idle while others have their turn."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


class Contestant:
    """Contestant(Ours, "en-de", 2).ask("translate", lines) calls Ours("en-de", 2).translate(lines) over there.

    `rest`: seconds before each turn, until the threads of the one before have gone to sleep.
    """

    def __init__(self, make: Callable[..., Any], *given: Any, rest: float = 0.0) -> None:
        self.rest = rest
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve, args=(make, given, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def ask(self, what: str, *values: Any) -> Any:
        time.sleep(self.rest)
        self.pipe.send((what, values))
        return self.pipe.recv()

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join(timeout=10)


def _serve(make: Callable[..., Any], given: tuple[Any, ...], pipe: Connection) -> None:
    made = make(*given)
    while (asked := pipe.recv()) is not None:
        what, values = asked
        pipe.send(getattr(made, what)(*values))
