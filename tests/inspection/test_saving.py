"""A trace as a file: whole or absent, and every number in it that of the trace."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from limelight.errors import ConfigError, ModelFileError
from limelight.inspection.drawing.heatmaps import heatmap, overview
from limelight.inspection.head_names import stage_names
from limelight.inspection.saving import page as page_file
from limelight.inspection.saving.files import save, table
from limelight.inspection.saving.page import PAGE, PLACE, embed_json, page_with
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.inspection.wire.trace_json import from_json
from limelight.translator.translate import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
EVIL = "</script><script>alert(1)</script><!-- <script> ]]> & \u2028\u2029 \" ' \\"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(BUNDLE, threads=1, engine="torch") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def trace(translator: Translator) -> LiveTrace:
    return translator.trace("three seven one")


class Page(HTMLParser):
    """Elements of a page in order, and what stands in the script called trace."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.inside, self.found = False, ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.inside = tag == "script" and ("id", "trace") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_comment(self, data: str) -> None:
        self.elements.append("comment")

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.found += data


def small_page(folder: Path) -> Path:
    (folder / "desk.html").write_bytes(b"<!doctype html><html><body>" + PLACE + b"<script>1</script></body></html>")
    return folder / "desk.html"


def test_no_text_gets_out_of_the_page(trace: LiveTrace, tmp_path: Path) -> None:
    values = replace(trace, source=replace(trace.source, text=EVIL)).as_json()
    page = page_with(values, small_page(tmp_path))
    empty = Page(small_page(tmp_path).read_bytes().decode())
    read = Page(page.decode())
    assert read.elements == empty.elements == ["html", "body", "script", "script"]
    assert json.loads(read.found) == values and json.loads(read.found)["source"]["text"] == EVIL
    inside = page.split(page_file.BEGIN)[1].split(page_file.END)[0]
    assert b"<" not in inside and b">" not in inside


def test_a_text_that_is_no_unicode_is_still_json() -> None:
    assert json.loads(embed_json({"a": "x\udc80"})) == {"a": "x\udc80"}


def test_a_page_that_was_not_built_says_how(tmp_path: Path, trace: LiveTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelFileError, match="make web"):
        page_with({}, tmp_path / "desk.html")
    (tmp_path / "desk.html").write_bytes(b"<html></html>")
    with pytest.raises(ModelFileError, match="make web"):
        page_with({}, tmp_path / "desk.html")


@pytest.mark.skipif(not PAGE.is_file(), reason="the page of the desk was not built (make web)")
def test_the_built_page_holds_the_trace(trace: LiveTrace, tmp_path: Path) -> None:
    save(trace, tmp_path / "a.html")
    read = Page((tmp_path / "a.html").read_bytes().decode())
    assert json.loads(read.found) == trace.as_json()


def test_json_is_the_trace_and_comes_back(trace: LiveTrace, tmp_path: Path) -> None:
    save(trace, tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_bytes()) == trace.as_json()
    save(trace, str(tmp_path / "b.json"), encoding="f32")
    back = from_json(json.loads((tmp_path / "b.json").read_bytes()))
    assert all(np.array_equal(back.attention[kind], trace.attention[kind]) for kind in trace.attention)
    assert (tmp_path / "b.json").stat().st_size > (tmp_path / "a.json").stat().st_size


def test_npz_has_every_stage_under_its_name(trace: LiveTrace, tmp_path: Path) -> None:
    save(trace, tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as found:
        names = stage_names(trace.model.enc_layers, trace.model.dec_layers)
        assert set(names) < set(found.files)
        for name in ("enc.0.scores", "dec.1.cross.attn", "dec.0.self.masked", "logits", "tgt.ids"):
            assert np.array_equal(found[name], trace[name]), name
        assert list(found["pieces.source"]) == [each.piece for each in trace.source.tokens]
        assert list(found["pieces.inputs"]) == trace.target.inputs


def test_csv_has_the_weights_of_one_head_and_nothing_where_it_is_masked(trace: LiveTrace, tmp_path: Path) -> None:
    save(trace, tmp_path / "a.csv", head="dec.1.2")
    content = (tmp_path / "a.csv").read_bytes().decode()
    rows = list(csv.reader(io.StringIO(content, newline="")))
    weights = trace.attention["dec"][1, 2]
    assert rows[0] == ["dec.1.2", *trace.target.inputs]
    for at, (piece, *cells) in enumerate(rows[1:]):
        assert piece == trace.target.tokens[at].piece
        assert cells[at + 1 :] == [""] * (len(weights) - at - 1)
        assert [float(cell) for cell in cells[: at + 1]] == pytest.approx(weights[at, : at + 1].tolist(), abs=1e-6)
    assert table(trace).startswith(trace.align.head + ",")


def test_svg_is_the_named_head_or_the_one_that_aligns_or_another_picture(trace: LiveTrace, tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    save(trace, path, head="enc.1.3")
    assert path.read_bytes().decode() == heatmap(trace, "enc", 1, 3).svg
    trace.save(path)
    kind, layer, head = trace.align.head.split(".")
    assert path.read_bytes().decode() == heatmap(trace, "cross", int(layer), int(head)).svg and kind == "cross"
    save(trace, path, picture=overview(trace))
    assert path.read_bytes().decode() == overview(trace).svg


@pytest.mark.parametrize("name", ["a.pdf", "a", "a.html.gz"])
def test_an_unknown_ending_is_refused_with_those_that_are_known(trace: LiveTrace, tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match=r"\.html, \.svg, \.png, \.json, \.csv, \.npz"):
        save(trace, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_file_is_whole_or_absent(trace: LiveTrace, tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_bytes(b"before")
    with pytest.raises(ConfigError, match="has layers 0 to 1"):
        save(trace, tmp_path / "a.svg", head="cross.7.0")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("a.svg", b"before")]
    with pytest.raises(ConfigError, match="cannot be written"):
        save(trace, tmp_path / "nowhere" / "a.svg")
