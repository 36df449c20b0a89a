"""`read_lines` splits the bytes of a file into lines, at the byte 0x0A and nothing else, and decodes them.

`str.splitlines` and text files also split at U+2028, U+0085, lone carriage returns and more, on one side of a corpus
and not on the other. Here the number of lines is what `wc -l` counts, plus one for a last line without its newline.
The work is done by numpy on whole blocks; no line is a Python object unless its block is broken.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limelight.corpus.reading.raw import BATCH_BYTES, LONGEST_LINE, PREFIX, ROWS, RowFault
from limelight.corpus.reading.streams import ByteStream, open_bytes
from limelight.errors import DataError

READ = 4 << 20
NEWLINE = 10

_UTF8_MARK = b"\xef\xbb\xbf"
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_OTHER_MARKS = {
    b"\xff\xfe\0\0": "UTF-32LE",
    b"\0\0\xfe\xff": "UTF-32BE",
    b"\xff\xfe": "UTF-16LE",
    b"\xfe\xff": "UTF-16BE",
}


@dataclass(frozen=True)
class ByteLines:
    """These are lines as they stand in the file: line i is data[starts[i]:ends[i]], without its newline."""

    data: bytes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, i: int) -> bytes:
        return self.data[self.starts[i] : self.ends[i]]


@dataclass(frozen=True)
class DecodedLines:
    """These are lines as text: an Arrow string array, and a fault for each line."""

    texts: Any
    faults: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.faults)

    def part(self, start: int, count: int) -> "DecodedLines":
        return DecodedLines(self.texts.slice(start, count), self.faults[start : start + count])


def read_lines(address: str, rows: int = ROWS) -> Iterator[DecodedLines]:
    """The lines of a file, `rows` at a time, or fewer where they reach BATCH_BYTES. Same file, same batches."""
    with open_bytes(address) as stream:
        for lines in read_byte_lines(stream, rows):
            yield decode(lines)


def read_strings(address: str) -> Iterator[tuple[list[str], NDArray[np.uint8]]]:
    """The same as strings, and a fault for each: for texts of a few thousand lines, without Arrow."""
    with open_bytes(address) as stream:
        yield from map(decode_to_strings, read_byte_lines(stream))


def read_byte_lines(stream: ByteStream, rows: int = ROWS) -> Iterator[ByteLines]:
    """The same, not decoded. Of a line longer than LONGEST_LINE, one byte more than that is kept, so that it shows."""
    held = b""  # the bytes read and not yet yielded
    ends = np.empty(0, np.int64)  # where their newlines are
    for block in _blocks(stream):
        ends = np.concatenate([ends, np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE) + len(held)])
        held += block
        start, first = 0, 0  # the first byte and the first line not yet yielded
        while len(ends) - first >= rows or len(held) - start >= BATCH_BYTES:
            last = min(first + rows, int(np.searchsorted(ends, start + BATCH_BYTES)))
            yield _lines_between(held, start, ends[first:last])
            start, first = int(ends[last - 1]) + 1, last
        held, ends = held[start:], ends[first:] - start
    if held and not held.endswith(b"\n"):
        ends = np.append(ends, len(held))
    if len(ends):
        yield _lines_between(held, 0, ends)


def decode(lines: ByteLines) -> DecodedLines:
    """Text of the lines. A broken line gets U+FFFD for its bad bytes; one too long is cut to its first PREFIX bytes."""
    import pyarrow as pa

    count = len(lines)
    long = np.flatnonzero(lines.ends - lines.starts > LONGEST_LINE)
    # Without the newlines the lines lie side by side, as Arrow wants them; each end moves by the newlines before it.
    offsets = np.zeros(count + 1, np.int32)
    offsets[1:] = lines.ends - np.arange(count)
    joined = lines.data.replace(b"\n", b"")
    texts = pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(joined)])
    try:
        texts.validate(full=True)  # each line by itself: a sequence cut by a newline must not count as whole
        if not len(long):
            return DecodedLines(texts, np.zeros(count, np.uint8))
    except pa.ArrowInvalid:
        pass
    one_by_one, faults = zip(*(decode_line(lines.line(i)) for i in range(count)), strict=True)
    return DecodedLines(pa.array(one_by_one, pa.string()), np.array(faults, np.uint8))


def decode_to_strings(lines: ByteLines) -> tuple[list[str], NDArray[np.uint8]]:
    """The same for a format whose lines are parsed in Python: strings, three times as fast as by way of Arrow."""
    if int((lines.ends - lines.starts).max()) <= LONGEST_LINE:
        try:
            return lines.data.decode("utf-8").split("\n"), np.zeros(len(lines), np.uint8)
        except UnicodeDecodeError:
            pass
    one_by_one, faults = zip(*(decode_line(lines.line(i)) for i in range(len(lines))), strict=True)
    return list(one_by_one), np.array(faults, np.uint8)


def decode_line(line: bytes, encoding: str = "utf-8") -> tuple[str, RowFault]:
    if len(line) > LONGEST_LINE:
        return line[:PREFIX].decode(encoding, "ignore"), RowFault.TOO_LONG
    try:
        return line.decode(encoding), RowFault.NONE
    except UnicodeDecodeError:
        return line.decode(encoding, "replace"), RowFault.BROKEN_ENCODING


def _lines_between(held: bytes, start: int, ends: NDArray[np.int64]) -> ByteLines:
    ends = ends - start
    starts = np.zeros(len(ends), np.int64)
    starts[1:] = ends[:-1] + 1
    return ByteLines(held[start : start + int(ends[-1])], starts, ends)


def _blocks(stream: ByteStream) -> Iterator[bytes]:
    """The stream without its byte order mark and without the far ends of endless lines."""
    block = stream.read(READ)
    while len(block) < 4 and (more := stream.read(READ)):  # a mark has up to four bytes, and a read may be short
        block += more
    if (name := find_other_encoding(block)) is not None:
        raise DataError(
            f"{stream.address} seems to be {name}; convert it to UTF-8 first: iconv -f {name[:6]} -t UTF-8 {stream.address} > utf8.txt"
        )
    block = block.removeprefix(_UTF8_MARK)
    unfinished = 0  # bytes of the current line in earlier blocks
    while block:
        last = block.rfind(b"\n")
        kept = _cut_long_lines(block, unfinished)
        unfinished = len(block) - last - 1 + (unfinished if last < 0 else 0)
        if kept:
            yield kept
        block = stream.read(READ)


def _cut_long_lines(block: bytes, unfinished: int) -> bytes:
    """Drop what lines have beyond LONGEST_LINE + 1 bytes, so that a line of a gigabyte is never held."""
    if unfinished + len(block) <= LONGEST_LINE:
        return block
    ends = np.append(np.flatnonzero(np.frombuffer(block, np.uint8) == NEWLINE), len(block))
    starts = np.append(0, ends[:-1] + 1)
    room = np.full(len(ends), LONGEST_LINE + 1)
    room[0] = max(0, LONGEST_LINE + 1 - unfinished)
    pieces, copied = [], 0
    for i in np.flatnonzero(ends - starts > room):
        pieces.append(block[copied : starts[i] + room[i]])
        copied = int(ends[i])
    return b"".join([*pieces, block[copied:]]) if pieces else block


def find_other_encoding(head: bytes) -> str | None:
    """The encoding that a byte order mark says, if it is not UTF-8."""
    return next((name for mark, name in _OTHER_MARKS.items() if head.startswith(mark)), None)
