"""AT-21: twenty kinds of untidy files have the outcome that docs/corpus-battery.md states; planted errors show that the checks check."""

import gzip
import os
import re
from pathlib import Path

import corpus_battery
import polars as pl
import pytest
from corpus_battery import KINDS, PAIRS, counts, failure, leaks_found, prepared
from made_sentences import Pair
from prepare_command import FAST, measured, write_lines, write_pairs

from limelight.corpus.cleaning import clean, leaks
from limelight.corpus.exchange import settle
from limelight.corpus.reading import lines

TABLE = Path(__file__).parents[2] / "docs" / "corpus-battery.md"


@pytest.mark.process
@pytest.mark.parametrize("name", KINDS)
def test_each_kind_has_its_documented_outcome(name: str) -> None:
    assert failure(name) == ""


def test_every_row_of_the_table_is_exercised() -> None:
    rows = re.findall(r"^\| (.+?) \| .+ \|$", TABLE.read_bytes().decode(), re.MULTILINE)
    assert rows[0] == "kind" and rows[1] == "---"
    assert rows[2:] == list(KINDS)
    assert len(KINDS) == 20


def test_a_pair_lost_on_the_way_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the counting: a bucket loses a row before it is settled."""
    right = settle._without_repeats
    monkeypatch.setattr(settle, "_without_repeats", lambda rows, settings: right(rows, settings)[1:])
    assert failure("missing last newline")


def test_a_drop_that_is_not_counted_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Negative control: prepare itself refuses figures that do not add up."""
    right = settle.tally

    def forgetful(rows: object) -> dict[str, object]:
        return {**right(rows), "dropped": []}  # type: ignore[arg-type]

    monkeypatch.setattr(settle, "tally", forgetful)
    lines_of = write_lines([b"", *(s.encode() for s, _ in PAIRS)], [b"x", *(t.encode() for _, t in PAIRS)], tmp_path)
    outcome = prepared(tmp_path, *lines_of, *FAST)
    assert outcome.code == 70 and "fault of ours" in outcome.err
    assert failure("blank lines on one side")


@pytest.mark.parametrize(
    ("name", "plant"),
    [
        ("invalid UTF-8", (lines, "decode", lambda right: lambda some: lines.DecodedLines(right(some).texts, 0 * right(some).faults))),
        pytest.param("100 leaks of the test set", (leaks, "SHARED", lambda _: 2.0), marks=pytest.mark.slow),
        ("30 % duplicates", (clean, "thin", lambda right: lambda *rows: right(*rows).filter(pl.col("reason") == 0))),
    ],
)  # fmt: skip
def test_a_planted_error_fails_its_kind(name: str, plant: tuple, monkeypatch: pytest.MonkeyPatch) -> None:
    module, attribute, change = plant
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    if name == "invalid UTF-8":  # the sign of a failed decoding would still give it away
        monkeypatch.setattr(corpus_battery, "FAST", (*FAST, "filters.broken_text=off"))
    assert failure(name)


def test_a_refusal_leaves_no_file_behind(tmp_path: Path) -> None:
    assert prepared(tmp_path, *write_lines([b"a", b"b"], [b"c"], tmp_path), *FAST).code == 65
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_refused_input_does_not_cost_the_corpus_that_was_there(tmp_path: Path) -> None:
    assert prepared(tmp_path, *write_pairs(PAIRS, tmp_path), *FAST).code == 0
    uneven = write_lines([b"a", b"b"], [b"c"], tmp_path, "uneven")
    assert prepared(tmp_path, *uneven, *FAST, "--force").code == 65
    assert corpus_battery.kept_texts(tmp_path)


@pytest.mark.long
def test_a_bomb_of_short_lines_costs_no_more_memory_than_one_of_a_long_line(tmp_path: Path) -> None:
    """4 million equal pairs in 16 kB."""
    paths = [tmp_path / "train.en.gz", tmp_path / "train.de.gz"]
    for path in paths:
        path.write_bytes(4 * gzip.compress(b"yes\n" * 1_000_000))
    outcome = prepared(tmp_path, *paths, *FAST, run=measured)
    assert counts(outcome, 4_000_000) == (1, {"duplicate": 3_999_999})
    assert outcome.megabytes <= corpus_battery.MEGABYTES, outcome.megabytes


@pytest.mark.slow
def test_leaks_are_found_in_real_text_without_false_alarms(tmp_path: Path) -> None:
    """Encyclopaedia sentences planted among parliamentary debates, which cannot hold them by themselves."""
    data = os.environ.get("LIMELIGHT_DATA")
    if not data:
        pytest.skip("LIMELIGHT_DATA names no folder with samples")

    def pairs(name: str, codes: tuple[str, str], most: int) -> list[Pair]:
        sides = [gzip.decompress((Path(data) / f"{name}.{code}.gz").read_bytes()).decode().split("\n") for code in codes]
        return [(s, t) for s, t in zip(*sides, strict=True) if s and t][:most]

    held_out = pairs("flores200/devtest", ("eng_Latn", "deu_Latn"), 1_012)
    clean = pairs("europarl/train", ("en", "de"), 20_000)
    same, edited, false = leaks_found(tmp_path, held_out, clean)
    assert same == 50 and edited >= 48 and false <= 20, (same, edited, false)


@pytest.mark.process
def test_the_memory_of_the_command_is_measured() -> None:
    """Negative control: the figure is that of the command, neither nothing nor that of this process."""
    assert 5 < measured("--version").megabytes < 200
