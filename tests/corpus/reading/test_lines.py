"""Lines are what stands between bytes 0x0A: nothing else splits them, nothing is lost, and no line is held that is too long."""

import gzip
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import rows_and_peak

from limelight.corpus.reading import lines as module
from limelight.corpus.reading.lines import ByteLines, decode, decode_to_strings, read_byte_lines, read_lines
from limelight.corpus.reading.raw import LONGEST_LINE, PREFIX, RowFault
from limelight.errors import DataError


class Slow:
    """A stream that gives a few bytes at a time, as networks do."""

    address = "slow"

    def __init__(self, content: bytes, step: int) -> None:
        self.file, self.step = io.BytesIO(content), step

    def read(self, size: int) -> bytes:
        return self.file.read(min(size, self.step))


def texts_of(path: Path, content: bytes, rows: int = 1000) -> tuple[list[str], list[int]]:
    path.write_bytes(content)
    blocks = list(read_lines(str(path), rows))
    assert all(len(block) <= rows for block in blocks)
    return [t for block in blocks for t in block.texts.to_pylist()], [int(f) for block in blocks for f in block.faults]


def expected(content: bytes) -> list[bytes]:
    pieces = content.split(b"\n")
    return pieces if pieces[-1] else pieces[:-1]


@pytest.mark.slow
@given(st.binary(max_size=60).map(lambda b: b.replace(b"a", b"\n")), st.integers(1, 5), st.integers(1, 9))
def test_any_bytes_split_as_bytes_split_does(content: bytes, rows: int, step: int) -> None:
    content = b"x" + content
    found = [block.line(i) for block in read_byte_lines(Slow(content, step), rows) for i in range(len(block))]
    assert found == expected(content)


@pytest.mark.slow
@given(st.lists(st.one_of(st.text().map(str.encode), st.binary(max_size=8)).map(lambda b: b.replace(b"\n", b"")), min_size=1))
def test_a_row_is_broken_exactly_if_python_cannot_decode_it(rows: list[bytes]) -> None:
    ends = np.cumsum([len(row) + 1 for row in rows]) - 1
    lines = ByteLines(b"\n".join(rows), np.append(0, ends[:-1] + 1), ends)
    decoded = decode(lines)
    decoded.texts.validate(full=True)
    assert decoded.texts.to_pylist() == [row.decode("utf-8", "replace") for row in rows]
    for row, fault in zip(rows, decoded.faults, strict=True):
        try:
            row.decode()
            assert fault == RowFault.NONE
        except UnicodeDecodeError:
            assert fault == RowFault.BROKEN_ENCODING
    strings, faults = decode_to_strings(lines)
    assert strings == decoded.texts.to_pylist()
    assert (faults == decoded.faults).all()


def test_a_sequence_cut_by_a_newline_is_broken_on_both_sides(tmp_path: Path) -> None:
    texts, faults = texts_of(tmp_path / "a", "é".encode()[:1] + b"\n" + "é".encode()[1:] + b"\nok\n")
    assert texts == ["\ufffd", "\ufffd", "ok"]
    assert faults == [RowFault.BROKEN_ENCODING, RowFault.BROKEN_ENCODING, RowFault.NONE]


@pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_each_kind_of_invalid_utf8_is_found_in_its_row(tmp_path: Path, bad: bytes) -> None:
    texts, faults = texts_of(tmp_path / "a", b"one\ntwo " + bad + b" end\nthree\n")
    assert texts[0] == "one" and texts[2] == "three"
    assert "\ufffd" in texts[1]
    assert faults == [0, RowFault.BROKEN_ENCODING, 0]


def test_marks_returns_and_nul_stay_and_only_the_first_bom_goes(tmp_path: Path) -> None:
    content = "\ufeffa\r\n\0\nb\rc\u2028d\x85\n\ufeffe\n".encode()
    assert texts_of(tmp_path / "a", content)[0] == ["a\r", "\0", "b\rc\u2028d\x85", "\ufeffe"]


@pytest.mark.parametrize(("content", "count"), [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"\na", 2)])
def test_the_last_newline_may_be_missing(tmp_path: Path, content: bytes, count: int) -> None:
    assert len(texts_of(tmp_path / "a", content)[0]) == count


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_other_encodings_are_named_with_the_way_out(tmp_path: Path, encoding: str) -> None:
    name = encoding.upper().replace("-LE", "LE").replace("-BE", "BE")
    with pytest.raises(DataError, match=f"{name}.*iconv -f {name[:6]} "):
        texts_of(tmp_path / "a", "\ufeffa\n".encode(encoding))


def test_a_line_too_long_is_cut_and_its_neighbours_are_whole(tmp_path: Path) -> None:
    just = "é" * (LONGEST_LINE // 2)
    content = f"before\n{just}\n{just}x\nafter\n{'y' * 9_000_000}\n{'z' * 5_000_000}".encode()
    texts, faults = texts_of(tmp_path / "a", content)
    long = int(RowFault.TOO_LONG)
    assert faults == [0, 0, long, 0, long, long]
    assert texts == ["before", just, "é" * (PREFIX // 2), "after", "y" * PREFIX, "z" * PREFIX]


@pytest.mark.parametrize("step", [999, 4096, 70_000])
def test_batches_do_not_depend_on_how_the_bytes_arrive(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(module, "BATCH_BYTES", 20_000)
    monkeypatch.setattr(module, "LONGEST_LINE", 1_500)
    content = b"".join(b"%d:" % i + b"x" * (i * 37 % 2_000) + b"\n" for i in range(300))
    at_once = [(len(b), b.data) for b in read_byte_lines(Slow(content, len(content)), 40)]
    assert [(len(b), b.data) for b in read_byte_lines(Slow(content, step), 40)] == at_once
    assert sum(count for count, _ in at_once) == 300
    assert max(len(data) for _, data in at_once) <= 20_000


def test_text_is_read_in_batches_of_the_rows_asked_for(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x\n" * 25)
    assert [len(block) for block in read_lines(str(tmp_path / "a"), 10)] == [10, 10, 5]
    assert isinstance(next(read_lines(str(tmp_path / "a"))).texts, pa.StringArray)


@pytest.mark.process
def test_memory_does_not_grow_with_the_file_or_with_a_bomb(tmp_path: Path) -> None:
    line = b"a sentence of about a hundred bytes, as they are in most corpora of translated text, or so it seems\n"
    for name, count in (("small", 100_000), ("large", 800_000)):
        with (tmp_path / name).open("wb") as file:
            file.writelines(line * 10_000 for _ in range(count // 10_000))
    with gzip.open(tmp_path / "bomb.gz", "wb", compresslevel=1) as bomb:
        for _ in range(100):
            bomb.write(b"a" * 1_000_000)
        bomb.write(b"\n" + b"\n" * 1_000_000)
    small, large, bomb_peak = (rows_and_peak("lines", *[tmp_path / name] * 2) for name in ("small", "large", "bomb.gz"))
    assert (small[0], large[0], bomb_peak[0]) == (100_000, 800_000, 1_000_001)
    assert large[1] - small[1] <= 8
    assert bomb_peak[1] - small[1] <= 100
