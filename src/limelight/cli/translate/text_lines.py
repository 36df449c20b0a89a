"""A reader gives lines as they come: at once when someone types, thousands at a time when a file is read."""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from limelight.cli.screen import group_digits
from limelight.errors import DataError

CHUNK_SECONDS = 5.0  # that a chunk should take: lines are sorted by length together, so longer chunks make better batches and later answers
FEWEST, MOST = 256, 4096  # lines of a chunk when there are enough
CHUNK_BYTES = 1 << 20
BLOCK = 1 << 16  # bytes read at once
LONGEST_LINE = 1 << 20  # bytes, as in `limelight prepare`: no sentence is this long, and a line is held whole
LOOK_UP = 0.2  # seconds: Polars handles Ctrl-C so that it does not end a wait, and it is only seen between waits
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Chunk:
    first: int  # number of its first line, from 1
    texts: list[str]
    bytes: int  # read so far, to the end of this chunk


class LineReader:
    """A reader gives the lines of a file descriptor.

    They end at 0x0A and nowhere else; the last may have none; a carriage return before it goes too.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._wanted = FEWEST
        self._waiting: deque[bytes] = deque()
        self._bytes = 0  # of the lines that wait
        self._ended = False
        self._error: DataError | None = None
        self._changed = threading.Condition()
        # A daemon: while it waits for a person to type, the program may end. It reads the descriptor itself, since a lock of a buffered
        # file that is held at the end would end the interpreter with an error.
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    def chunks(self) -> Iterator[Chunk]:
        """Yield chunks in order. A line that is not UTF-8 or too long is an error, after all before it were given."""
        number, done = 1, 0
        while lines := self._take():
            if number == 1:
                _refuse_other_encodings(lines[0])
                lines[0] = lines[0].removeprefix(BOM)
            texts = []
            for line in lines:
                try:
                    texts.append(line.removesuffix(b"\r").decode("utf-8"))
                except UnicodeDecodeError as error:
                    if texts:
                        yield Chunk(number, texts, done)
                    raise DataError(
                        f"line {number + len(texts)} is not UTF-8 at byte {error.start}; convert the text, "
                        "for example with iconv -f WINDOWS-1252 -t UTF-8"
                    ) from None
            done += sum(map(len, lines)) + len(lines)
            began = time.monotonic()
            yield Chunk(number, texts, done)
            if len(lines) == self._wanted:
                fitting = CHUNK_SECONDS * len(lines) / max(time.monotonic() - began, 1e-6)
                self._wanted = round(min(max(fitting, FEWEST), MOST))
            number += len(lines)

    def _take(self) -> list[bytes]:
        """Take what is there, as far as a chunk goes: at least one line, none at the end."""
        with self._changed:
            while not self._waiting and not self._ended:
                self._changed.wait(LOOK_UP)
            taken: list[bytes] = []
            size = 0
            while self._waiting and len(taken) < self._wanted and size < CHUNK_BYTES:
                taken.append(self._waiting.popleft())
                size += len(taken[-1])
            self._bytes -= size
            self._changed.notify_all()
            if not taken and self._error is not None:
                raise self._error
            return taken

    def _read(self) -> None:
        rest: list[bytes] = []  # of a line whose end has not come
        held = count = 0  # bytes of the rest; lines before it
        try:
            while block := os.read(self._descriptor, BLOCK):
                *lines, begun = block.split(b"\n")
                if held + len(lines[0] if lines else begun) > LONGEST_LINE:
                    self._error = DataError(
                        f"line {count + 1} is longer than {group_digits(LONGEST_LINE)} bytes; "
                        "end each line with the byte 0x0A, a sentence or paragraph on each"
                    )
                    rest = []
                    break
                if lines:
                    lines[0] = b"".join([*rest, lines[0]])
                    rest, held = [], 0
                    count += len(lines)
                    self._put(lines)
                rest.append(begun)
                held += len(begun)
        except OSError as error:
            self._error = DataError(f"the input cannot be read after line {count} ({error.strerror}); check where it comes from")
        last = b"".join(rest)
        self._put([last] if last else [])
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _put(self, lines: list[bytes]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < MOST and self._bytes < CHUNK_BYTES)
            self._waiting.extend(lines)
            self._bytes += sum(map(len, lines))
            self._changed.notify_all()


def _refuse_other_encodings(head: bytes) -> None:
    from limelight.corpus.reading.lines import find_other_encoding

    if (name := find_other_encoding(head)) is not None:
        raise DataError(f"the input seems to be {name}; convert it to UTF-8 first: iconv -f {name[:6]} -t UTF-8")
