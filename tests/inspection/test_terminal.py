"""Attention in a terminal: blocks where the weights are, columns that stay columns in any script."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from limelight.inspection.drawing.svg import columns_of
from limelight.inspection.drawing.terminal import BLOCKS, MASKED, block, every_head, heat, shorten, summary
from limelight.inspection.head_names import Head
from limelight.inspection.trace import Trace
from limelight.translator.translate import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(BUNDLE, threads=1, engine="torch") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace("three seven one")


def with_pieces(trace: Trace, pieces: list[str]) -> Trace:
    tokens = [replace(trace.source.tokens[0], piece=piece) for piece in pieces]
    size = len(pieces)
    weights = np.zeros((2, 4, size, size), np.float32)
    weights[:, :, np.arange(size), np.arange(size)] = 1
    return replace(trace, attention={**trace.attention, "enc": weights}, source=replace(trace.source, tokens=tokens))


def test_blocks_grow_with_the_weight() -> None:
    found = [block(n / 100) for n in range(101)]
    assert found[0] == found[4] == " " and found[-1] == "█"
    assert [BLOCKS.index(each) for each in found] == sorted(BLOCKS.index(each) for each in found)
    assert set(found) == set(BLOCKS)


def test_a_row_has_its_blocks_under_the_names_and_its_probability_at_the_end(trace: Trace) -> None:
    head = Head.parse(trace.align.head)
    title, names, *rows = heat(trace, head, 200)
    assert title == f"cross · layer {head.layer} · head {head.head}   aligns"
    weights = trace.attention["cross"][head.layer, head.head]
    for at, row in enumerate(rows):
        token, best = trace.target.tokens[at], int(weights[at].argmax())
        end = names.index(trace.source.tokens[best].piece) + len(trace.source.tokens[best].piece) - 1
        assert row.startswith(token.piece) and row[end] == block(float(weights[at, best]))
        assert f"{np.exp(token.logp):.2f}"[1:] in row or "1.0" in row
    assert names.endswith("  p")


def test_the_runner_up_is_told_only_where_it_is_close(trace: Trace) -> None:
    token = trace.target.tokens[0]
    near = replace(token, logp=float(np.log(0.6)), topk=[(token.id, token.piece, -0.5), (7, "▁sieben", float(np.log(0.3)))])
    far = replace(near, topk=[(token.id, token.piece, -0.5), (7, "▁sieben", float(np.log(0.05)))])
    for changed, told in ((near, True), (far, False)):
        tokens = [changed, *trace.target.tokens[1:]]
        row = heat(replace(trace, target=replace(trace.target, tokens=tokens)), Head("cross", 0, 0), 200)[2]
        assert row.endswith(".60   ▁sieben .30") is told and row.endswith(".60") is not told


def test_what_comes_later_is_masked_for_the_decoder(trace: Trace) -> None:
    rows = heat(trace, Head("dec", 0, 0), 200)[2:]
    size = len(trace.target.tokens)
    assert [row.count(MASKED) for row in rows] == [size - 1 - at for at in range(size)]
    assert not any(MASKED in row for row in heat(trace, Head("enc", 0, 0), 200))


def test_columns_stay_columns_with_wide_and_combining_signs(trace: Trace) -> None:
    pieces = ["▁猫が", "e\u0301e\u0301", "座った", "▁x"]
    rows = heat(with_pieces(trace, pieces), Head("enc", 0, 0), 200)[2:]
    assert [cell_len(row[: row.index("█") + 1]) for row in rows] == [13, 17, 24, 28], "as another library counts columns"


def test_a_map_that_is_too_wide_goes_on_below(trace: Trace) -> None:
    pieces = [f"▁piece{i}" for i in range(30)]
    lines = heat(with_pieces(trace, pieces), Head("enc", 0, 0), 60)
    assert max(map(columns_of, lines)) <= 60
    assert sum(line.count("█") for line in lines) == 30 and lines.count("") >= 3
    assert shorten("▁standing", 6) == "▁stan…" and shorten("猫猫猫猫", 6) == "猫猫…" and shorten("ab", 6) == "ab"


def test_changes_are_told_with_what_they_did(translator: Translator, trace: Trace) -> None:
    assert len(summary(trace)) == 2 and summary(trace)[0] == f"three seven one  →  {trace.target.text}"
    dark = translator.trace("three seven one", gates={"cross.*.*": 0})
    assert dark.baseline is not None
    said = summary(dark)[-1]
    assert said.startswith("without the changes: ") and f"{dark.baseline.delta_logp:+.2f}" in said
    assert "dimmed to 0" in heat(dark, Head("cross", 0, 0))[0]


def test_every_head_has_a_line_and_the_one_that_aligns_says_so(trace: Trace) -> None:
    lines = every_head(trace)
    assert len(lines) == 1 + 3 * 2 * 4
    assert [line.split()[0] for line in lines if "aligns" in line] == [trace.align.head]
    entropies = [float(line.split()[1]) for line in lines[1:9]]
    assert entropies == sorted(entropies)
