"""The log of the server has one JSON object a line, and nothing that a user sent.

Messages of exceptions and the arguments of log calls may quote a text, so neither is written: an error is its type and the places in the
code that it came through.

    {"time": "2026-11-15T21:40:31.120+00:00", "level": "error", "logger": "uvicorn.error", "event": "Exception in ASGI application",
     "error": ["ValueError"], "places": ["serving/native/routes.py:88"]}
"""

import json
import logging
import re
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any

Value = str | int | float | bool | list[str] | None
Log = Callable[[Mapping[str, Value]], None]

DEEPEST = 8  # places and causes of one error
# Their messages are fixed sentences, with what varies as arguments; of anybody else's we know nothing.
TRUSTED = ("limelight", "uvicorn")
ARGUMENT = re.compile(r"%[-#0 +]*+[\d.]*+[a-z]")  # Finished server process [%d]


def json_lines(stream: IO[bytes]) -> Log:
    """Writes each record as one line, whatever is in it: everything but ASCII is escaped."""
    lock = threading.Lock()

    def write(record: Mapping[str, Value]) -> None:
        line = json.dumps({name: value for name, value in record.items() if value is not None}) + "\n"
        with lock:
            try:
                stream.write(line.encode("ascii"))
                stream.flush()
            except (OSError, ValueError):  # full, closed, gone: no reason to refuse a translation
                pass

    return write


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def kinds_of(error: BaseException) -> list[str]:
    """Types, from what was raised to what began it: ["Failed", "RuntimeError"]"""
    return [type(each).__name__ for each in _chain(error)]


def places_of(error: BaseException) -> list[str]:
    """Where it began, outermost first: ["serving/queue/service.py:120", "translator/pipeline.py:61"]"""
    frames = traceback.extract_tb(_chain(error)[-1].__traceback__)
    return [f"{'/'.join(Path(frame.filename).parts[-2:])}:{frame.lineno}" for frame in frames[-DEEPEST:]]


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while len(chain) < DEEPEST:
        last = chain[-1]
        before = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if before is None or before in chain:
            break
        chain.append(before)
    return chain


class Records(logging.Handler):
    """`Records` writes what libraries log, in the same form and under the same rule."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.INFO)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        trusted = record.name.partition(".")[0] in TRUSTED
        self._log(
            {
                "time": now(),
                "level": record.levelname.lower(),
                "logger": record.name,
                "event": ARGUMENT.sub("...", str(record.msg)).strip() if trusted else f"{Path(record.pathname).name}:{record.lineno}",
                "error": kinds_of(error) if error else None,
                "places": places_of(error) if error else None,
            }
        )


def take_over(log: Log) -> Callable[[], None]:
    """From now on everything of this process that is logged, or dies unseen, goes to `log`. Returns the way back."""
    root, handler = logging.getLogger(), Records(log)
    before = root.handlers, root.level, sys.excepthook, threading.excepthook, sys.unraisablehook

    def died(kind: str, error: BaseException | None) -> None:
        log({"time": now(), "level": "error", "event": kind} | ({} if error is None else _about(error)))

    def main_died(_: type[BaseException], error: BaseException, __: TracebackType | None) -> None:
        died("the server died", error)

    def thread_died(what: threading.ExceptHookArgs) -> None:
        died("a thread died", what.exc_value)

    def unraisable(what: Any) -> None:
        died("an error that nobody could catch", what.exc_value)

    def undo() -> None:
        root.handlers, root.level, sys.excepthook, threading.excepthook, sys.unraisablehook = before
        logging.captureWarnings(False)
        for name in ("python_multipart", "uvicorn.access"):
            logging.getLogger(name).disabled = False

    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.asgi"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
        logging.getLogger(name).setLevel(logging.NOTSET)
    logging.getLogger("python_multipart").disabled = True  # it quotes what it could not read
    logging.getLogger("uvicorn.access").disabled = True  # it writes paths and queries; ours has a line for each request
    logging.captureWarnings(True)
    sys.excepthook, threading.excepthook, sys.unraisablehook = main_died, thread_died, unraisable
    return undo


def _about(error: BaseException) -> dict[str, Value]:
    return {"error": kinds_of(error), "places": places_of(error)}
