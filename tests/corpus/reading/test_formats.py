"""Line pairs, TSV, JSON lines and Parquet: row n is line n, and what cannot be used says so in its row."""

import gzip
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limelight.corpus.readers import read
from limelight.corpus.reading.drift import first_drifting_window
from limelight.corpus.reading.raw import LONGEST_LINE, CorpusPart, RowFault
from limelight.corpus.reading.raw_batches import RAW
from limelight.errors import DataError

LANGUAGES = ("en", "de")
ODD = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\ufeff\0"
LINE = st.lists(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"], exclude_characters="\n"))).map("".join)


def part(kind: str, *paths: Path, columns: tuple[str, str] | None = None) -> CorpusPart:
    return CorpusPart(3, 7, kind, tuple(map(str, paths)), LANGUAGES, columns)


def rows_of(what: CorpusPart, rows: int = 4) -> list[dict[str, Any]]:
    batches = list(read(what, rows))
    assert all(batch.schema == RAW and 0 < len(batch) <= rows for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()]


def pairs_of(what: CorpusPart) -> list[tuple[str, str]]:
    return [(row["source"], row["target"]) for row in rows_of(what)]


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def zstd(content: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


@pytest.mark.slow
@given(st.lists(st.tuples(LINE, LINE), min_size=1))
def test_line_i_meets_line_i_whatever_stands_in_them(lines: list[tuple[str, str]]) -> None:
    tagged = [(f"#{i}#{source}#{i}#", f"#{i}#{target}#{i}#") for i, (source, target) in enumerate(lines)]
    source, target = ("".join(pair[side] + "\n" for pair in tagged).encode() for side in (0, 1))
    tabless = [(a.replace("\t", " "), b.replace("\t", " ")) for a, b in tagged]
    tsv = "".join(f"{a}\t{b}\n" for a, b in tabless).encode()
    jsonl = "".join(json.dumps({"source": a, "target": b}, ensure_ascii=len(a) % 2 == 0) + "\n" for a, b in tagged)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for pack in (bytes, gzip.compress, zstd):
            files = written(place / "a", pack(source)), written(place / "b", pack(target))
            assert pairs_of(part("lines", *files)) == tagged
        assert pairs_of(part("tsv", written(place / "c", tsv))) == tabless
        assert pairs_of(part("jsonl", written(place / "d", jsonl.encode()))) == tagged


def test_a_row_carries_its_corpus_its_file_and_its_line(tmp_path: Path) -> None:
    files = written(tmp_path / "a", b"1\n2\n3\n4\n5\n"), written(tmp_path / "b", b"a\nb\n\xff\nd\ne\n")
    rows = rows_of(part("lines", *files), 2)
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
    assert {(row["corpus"], row["file"], row["segment"]) for row in rows} == {(3, 7, None)}
    assert [row["fault"] for row in rows] == [0, 0, RowFault.BROKEN_ENCODING, 0, 0]


def test_long_lines_on_one_side_do_not_shift_the_other(tmp_path: Path) -> None:
    source = b"".join(b"%d " % i + b"x" * 900_000 * (i % 2) + b"\n" for i in range(60))
    files = written(tmp_path / "a", source), written(tmp_path / "b", b"".join(b"%d\n" % i for i in range(60)))
    rows = [row for batch in read(part("lines", *files)) for row in batch.to_pylist()]
    assert [row["source"].split()[0] for row in rows] == [row["target"] for row in rows] == [str(i) for i in range(60)]


def parallel(count: int) -> tuple[list[bytes], list[bytes]]:
    chance = random.Random(1)
    lengths = [chance.randint(3, 200) for _ in range(count)]
    return [b"s" * n for n in lengths], [b"t" * round(n * chance.uniform(0.9, 1.3)) for n in lengths]


@pytest.mark.parametrize("lost", [500, 4_321, 7_900])
def test_a_lost_line_is_counted_and_its_place_is_found(tmp_path: Path, lost: int) -> None:
    source, target = parallel(10_000)
    del target[lost]
    files = written(tmp_path / "a", b"\n".join(source)), written(tmp_path / "b", b"\n".join(target) + b"\n")
    with pytest.raises(DataError, match=r"10,000 lines and .* has 9,999") as caught:
        for _ in read(part("lines", *files)):
            pass
    first = lost // 1000 * 1000 + 1
    # A window whose first half is still aligned may pass; the next one is then named.
    assert f"between lines {first:,}" in str(caught.value) or f"between lines {first + 1000:,}" in str(caught.value)


def test_a_file_cut_at_its_end_does_not_drift(tmp_path: Path) -> None:
    source, target = parallel(5_000)
    files = written(tmp_path / "a", b"\n".join(source)), written(tmp_path / "b", b"\n".join(target[:4_000]))
    assert first_drifting_window(*map(str, files)) is None
    with pytest.raises(DataError, match="cut at its end"):
        list(read(part("lines", *files)))


@pytest.mark.parametrize(("first", "second"), [(b"", b"a\n"), (b"a\nb\n", b"a\n"), (b"a\n", b"a\n\n")])
def test_few_lines_too_must_be_as_many(tmp_path: Path, first: bytes, second: bytes) -> None:
    with pytest.raises(DataError, match="as many on both sides"):
        list(read(part("lines", written(tmp_path / "a", first), written(tmp_path / "b", second)), 1))


def test_tsv_ignores_further_columns_and_marks_missing_ones(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", "a\tb\nc\td\te\nf\n\ng\t\n\th\n\xff\ti".encode("latin-1") + b"\r\n")
    rows = rows_of(part("tsv", path))
    bad, broken = int(RowFault.MALFORMED), int(RowFault.BROKEN_ENCODING)
    assert [(r["source"], r["target"], r["fault"]) for r in rows] == [
        ("a", "b", 0),
        ("c", "d", 0),
        ("", "", bad),
        ("", "", bad),
        ("g", "", 0),
        ("", "h", 0),
        ("\ufffd", "i\r", broken),
    ]
    assert [r["fault"] for r in rows_of(part("tsv", path, columns=("3", "1")))] == [bad, 0, bad, bad, bad, bad, broken]
    assert pairs_of(part("tsv", path, columns=("3", "1")))[1] == ("e", "c")
    with pytest.raises(DataError, match="numbers from 1"):
        rows_of(part("tsv", path, columns=("source", "2")))


@pytest.mark.parametrize(
    "record",
    [
        {"source": "a", "target": "b", "src": "x", "tgt": "y"},
        {"src": "a", "tgt": "b", "en": "x", "de": "y"},
        {"source": "a", "correction": "b", "translation": "x"},
        {"de": "b", "en": "a", "score": float("nan")},
        {"id": 1, "translation": {"de": "b", "en": "a", "fr": "c"}},
    ],
)
def test_the_fields_of_a_pair_are_known_by_their_names(tmp_path: Path, record: dict[str, Any]) -> None:
    path = written(tmp_path / "a.jsonl", (json.dumps(record) + "\n").encode() * 3)
    assert pairs_of(part("jsonl", path)) == [("a", "b")] * 3
    table = pa.Table.from_pylist([record] * 3)
    pq.write_table(table, tmp_path / "a.parquet")
    assert pairs_of(part("parquet", tmp_path / "a.parquet")) == [("a", "b")] * 3


def test_fields_can_be_given(tmp_path: Path) -> None:
    record = {"question": "a", "answer": {"text": "b"}}
    path = written(tmp_path / "a.jsonl", json.dumps(record).encode())
    pq.write_table(pa.Table.from_pylist([record]), tmp_path / "a.parquet")
    for kind, file in (("jsonl", path), ("parquet", tmp_path / "a.parquet")):
        assert pairs_of(part(kind, file, columns=("question", "answer.text"))) == [("a", "b")]
        with pytest.raises(DataError, match=r"it has: .*answer.*question|it has: .*question.*answer"):
            rows_of(part(kind, file))


BAD_JSON = [
    "",
    "  ",
    "not json",
    "null",
    "5",
    '"text"',
    '["source", "target"]',
    '{"source": "a"}',
    '{"source": "a", "target": 5}',
    '{"source": null, "target": "b"}',
    '{"source": "a", "target": "b"',
    '{"source": "a", "target": "b"} x',
    '{"source": "a", "target": "b"},{"source": "c", "target": "d"}',
    '{"source": "a", "target": ["b"]}',
    '{"source": "a\x01", "target": "b"}',
    '{"source": "a", "target": "b", "deep": ' + "[" * 100_000 + "]" * 100_000 + "}",
    '{"source": "a", "target": "b", "number": ' + "9" * 5_000 + "}",
    "\ufeff{}",
]


@pytest.mark.parametrize("bad", BAD_JSON, ids=range(len(BAD_JSON)))
def test_a_line_that_is_no_pair_is_malformed_and_shifts_nothing(tmp_path: Path, bad: str) -> None:
    good = '{"source": "#%d#", "target": "#%d#"}'
    lines = [good % (0, 0), bad, good % (2, 2)]
    rows = rows_of(part("jsonl", written(tmp_path / "a", "\n".join(lines).encode())))
    assert [(row["line"], row["source"], row["target"], row["fault"]) for row in rows] == [
        (1, "#0#", "#0#", 0),
        (2, "", "", RowFault.MALFORMED),
        (3, "#2#", "#2#", 0),
    ]


def test_odd_json_is_read_as_python_reads_it(tmp_path: Path) -> None:
    lines = [
        b'{"source": "a", "target": "b", "source": "last"}',
        b' \t{"source": "blank", "target": "b"} \r',
        b'{"source": "a\\ud800z", "target": "\\ud83d\\ude00"}',
        b'{"source": "\xff", "target": "b"}',
        b'{"source": "' + b"x" * LONGEST_LINE + b'", "target": "b"}',
        b'{"source": "nul\\u0000", "target": "\\n"}',
    ]
    rows = rows_of(part("jsonl", written(tmp_path / "a", b"\n".join(lines))), 10)
    broken, long = int(RowFault.BROKEN_ENCODING), int(RowFault.TOO_LONG)
    assert [row["fault"] for row in rows] == [0, 0, broken, broken, long, 0]
    assert [row["source"] for row in rows] == ["last", "blank", "a\ufffdz", "\ufffd", "", "nul\0"]
    assert rows[2]["target"] == "\U0001f600"


def test_a_json_array_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="jq -c"):
        rows_of(part("jsonl", written(tmp_path / "a.json", b'[\n{"source": "a", "target": "b"}\n]\n')))


def test_parquet_marks_nulls_broken_text_and_endless_text(tmp_path: Path) -> None:
    source = pa.array([b"a", None, b"\xff", b"x" * (LONGEST_LINE + 1), b"e"], pa.binary())
    source = pa.Array.from_buffers(pa.string(), 5, source.buffers(), source.null_count)
    target = pa.array(["b", "c", "d", "e", None]).dictionary_encode()
    pq.write_table(pa.table({"source": source, "target": target, "other": [1] * 5}), tmp_path / "a.parquet")
    rows = rows_of(part("parquet", tmp_path / "a.parquet"), 3)
    bad, broken, long = int(RowFault.MALFORMED), int(RowFault.BROKEN_ENCODING), int(RowFault.TOO_LONG)
    assert [row["fault"] for row in rows] == [0, bad, broken, long, bad]
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["target"] for row in rows] == ["b", "c", "d", "e", ""]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_every_kind_of_text_column_is_read(tmp_path: Path, kind: Any) -> None:
    table = pa.table({"en": pa.array(["a", None], kind), "de": pa.array(["b", "c"], kind)})
    pq.write_table(table, tmp_path / "a.parquet")
    assert pairs_of(part("parquet", tmp_path / "a.parquet")) == [("a", "b"), ("", "c")]


def test_parquet_that_is_cut_or_holds_no_text_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"source": ["a"] * 1000, "target": [5] * 1000}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column target holds int64"):
        rows_of(part("parquet", tmp_path / "a.parquet"))
    whole = (tmp_path / "a.parquet").read_bytes()
    for cut in (0, 3, len(whole) // 2, len(whole) - 1):
        with pytest.raises(DataError, match="cut short or damaged"):
            rows_of(part("parquet", written(tmp_path / "b.parquet", whole[:cut])))
