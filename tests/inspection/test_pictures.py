"""Pictures of attention: what is drawn is what was weighed, masks are hatched, and any XML reader opens them."""

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from limelight.errors import ConfigError, RuntimeChoiceError
from limelight.inspection.drawing import svg
from limelight.inspection.drawing.colours import PAPER, QUIET, cividis, contrast, readable_on
from limelight.inspection.drawing.heatmaps import LEVELS, describe_changes, heatmap, overview, pool_max
from limelight.inspection.drawing.ribbon import FAINTEST, ribbon
from limelight.inspection.drawing.svg import Picture, columns_of, escape_xml, label, wrap_lines
from limelight.inspection.interventions import Changes
from limelight.inspection.trace import Trace
from limelight.translator.translate import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
SVG = "{http://www.w3.org/2000/svg}"
HATCHED = "url(#masked)"


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(BUNDLE, threads=1, engine="torch") as loaded:
        yield loaded


@pytest.fixture(scope="module")
def trace(translator: Translator) -> Trace:
    return translator.trace("three seven one")


def read(picture: Picture) -> ET.Element:
    return ET.fromstring(picture.svg.encode())


def cells(root: ET.Element) -> dict[tuple[float, float], str]:
    """What each place of the first map is filled with, by its corner; later shapes cover earlier ones."""
    shapes = next(g for g in root.iter(f"{SVG}g") if g.get("shape-rendering") == "crispEdges")
    rects = [{k: float(v) if k != "fill" else v for k, v in each.attrib.items()} for each in shapes]
    side = min(float(r["height"]) for r in rects)
    found: dict[tuple[float, float], str] = {}
    for r in rects:
        for i in range(round(float(r["height"]) / side)):
            for j in range(round(float(r["width"]) / side)):
                place = (
                    round((float(r["y"]) + i * side - float(rects[0]["y"])) / side),
                    round((float(r["x"]) + j * side - float(rects[0]["x"])) / side),
                )
                found[place] = str(r["fill"])
    return found


@pytest.mark.parametrize(("kind", "layer", "head"), [("cross", 1, 1), ("enc", 0, 3), ("dec", -1, None)])
def test_every_cell_has_the_colour_of_its_weight(trace: Trace, kind: str, layer: int, head: int | None) -> None:
    drawn = cells(read(heatmap(trace, kind, layer, head)))  # type: ignore[arg-type]
    every = trace.attention[kind][layer]  # type: ignore[index]
    weights = every.mean(axis=0) if head is None else every[head]
    assert set(drawn) == set(np.ndindex(weights.shape))
    for (row, column), fill in drawn.items():
        hidden = kind == "dec" and column > row
        assert fill == (HATCHED if hidden else cividis(round(float(weights[row, column]) * LEVELS) / LEVELS))


def test_hidden_source_pieces_are_hatched_and_a_weight_of_zero_is_not(trace: Trace) -> None:
    weights = trace.attention["cross"].copy()
    weights[:, :, :, 0] = 0
    changed = replace(trace, attention={**trace.attention, "cross": weights}, changes=Changes(mask_source=(1,)))
    drawn = cells(read(heatmap(changed, "cross", 0, 0)))
    assert {column for (_, column), fill in drawn.items() if fill == HATCHED} == {1}
    assert {fill for (_, column), fill in drawn.items() if column == 0} == {cividis(0)}


def test_axes_title_description_and_citation_are_words(trace: Trace) -> None:
    root = read(heatmap(trace, "cross", 1, 1))
    words = [each.text for each in root.iter(f"{SVG}text")]
    for token in (*trace.source.tokens, *trace.target.tokens):
        assert token.piece in words
    assert words[0] == "cross · layer 1 · head 1"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and title.text == "Attention: cross · layer 1 · head 1"
    row = trace.attention["cross"][1, 1][0]
    first = f"{trace.target.tokens[0].piece} at {trace.source.tokens[int(row.argmax())].piece} {row.max():.2f}"
    assert description is not None and first in (description.text or "")
    printed = " ".join(word for word in words if word)
    assert "Limelight · en-de" in printed and trace.model.sha in printed and "cross.1.1" in printed
    assert root.get("role") == "img"


def test_text_of_others_cannot_break_a_picture(trace: Trace) -> None:
    evil = '</text><script>alert("1")</script>&\x00\x1b\ufffe'
    tokens = [replace(trace.source.tokens[0], piece=evil[:20]), *trace.source.tokens[1:]]
    changed = replace(trace, source=replace(trace.source, text=evil, tokens=tokens))
    for picture in (heatmap(changed, "enc", 0, 0), overview(changed), ribbon(changed)):
        root = read(picture)
        assert not list(root.iter(f"{SVG}script"))
    assert evil[:20] in [each.text for each in read(heatmap(changed, "enc", 0, 0)).iter(f"{SVG}text")]
    assert escape_xml("a\x00b\ufffe") == "a\ufffdb\ufffd"


def test_an_overview_shows_every_head_and_frames_the_one_that_aligns(trace: Trace) -> None:
    root = read(overview(trace))
    words = {each.text: each for each in root.iter(f"{SVG}text")}
    names = [f"{kind[0]}{layer}.{head}" for kind in ("enc", "dec", "cross") for layer in range(2) for head in range(4)]
    assert all(name in words for name in names)
    frames = [each for each in root.iter(f"{SVG}rect") if each.get("stroke-width") == "3"]
    kind, layer, head = trace.align.head.split(".")
    named = words[f"{kind[0]}{layer}.{head}"]
    assert len(frames) == 1 and frames[0].get("x") == named.get("x")
    assert any(trace.align.head in (text or "") for text in words)


def test_a_ribbon_has_a_band_for_every_weight_that_is_seen(trace: Trace) -> None:
    root = read(ribbon(trace))
    _, layer, head = trace.align.head.split(".")
    weights = trace.attention["cross"][int(layer), int(head)]
    assert len(list(root.iter(f"{SVG}path"))) == int((weights >= FAINTEST).sum())
    words = [each.text for each in root.iter(f"{SVG}text")]
    for token in trace.target.tokens:
        assert f"{100 * math.exp(token.logp):.0f}" in words


def test_what_was_changed_stands_under_the_picture(translator: Translator) -> None:
    changed = translator.trace("three seven one", gates={"cross.1.1": 0.4}, mask_source=[2], positions="shift:1", temperature=2)
    printed = " ".join(each.text or "" for each in read(heatmap(changed)).iter(f"{SVG}text"))
    assert "changed: cross.1.1 at 0.4; source piece 2 hidden; positions shift:1; temperature 2" in printed
    assert describe_changes(Changes(gates={"*": 1.0})) == []


def test_a_large_map_is_small_and_its_labels_do_not_overlap(trace: Trace) -> None:
    many = 200
    tokens = [replace(trace.source.tokens[0], piece=f"p{i}") for i in range(many)]
    weights = np.zeros((2, 4, many, many), np.float32)
    weights[:, :, np.arange(many), np.arange(many)] = 1
    changed = replace(trace, attention={**trace.attention, "enc": weights}, source=replace(trace.source, tokens=tokens))
    picture = heatmap(changed, "enc", 0, 0)
    assert len(picture.svg) < 60_000
    rows = [
        float(each.get("y", 0))
        for each in read(picture).iter(f"{SVG}text")
        if re.fullmatch(r"p\d+", each.text or "") and not each.get("transform")
    ]
    gaps = np.diff(sorted(rows))
    assert len(rows) > 60 and gaps.min() >= 9


@pytest.mark.parametrize(("kind", "layer", "head"), [("cross", 2, 0), ("enc", 0, 4), ("dec", -3, None)])
def test_a_head_that_is_not_there_is_named_with_what_is(trace: Trace, kind: str, layer: int, head: int | None) -> None:
    with pytest.raises(ConfigError, match="has layers 0 to 1 and heads 0 to 3"):
        heatmap(trace, kind, layer, head)  # type: ignore[arg-type]


def test_pooling_keeps_the_brightest() -> None:
    whole = np.zeros((50, 40), np.float32)
    whole[49, 39] = whole[7, 3] = 0.9
    small = pool_max(whole, 16)
    assert small.shape == (16, 16) and small.max() == np.float32(0.9) and small[15, 15] == np.float32(0.9)
    assert (small > 0).sum() == 2


def test_cividis_is_even_and_text_on_it_can_be_read() -> None:
    colours = [cividis(n / 255) for n in range(256)]
    assert colours[0] == "#00224e" and colours[-1] == "#fee838" and cividis(7) == colours[-1] and cividis(-1) == colours[0]
    lightness = [contrast(colour, "#000000") for colour in colours]
    assert np.diff(lightness).min() > -0.01, "rounding to 255 levels aside, it only gets lighter"
    assert min(contrast(readable_on(colour), colour) for colour in colours) >= 4.5
    assert contrast(QUIET, PAPER) >= 4.5


def test_cividis_is_that_of_others() -> None:
    theirs = pytest.importorskip("matplotlib").colormaps["cividis"]
    for n in range(256):
        ours = bytes.fromhex(cividis(n / 255)[1:])
        assert max(abs(a - 255 * b) for a, b in zip(ours, theirs(n / 255)[:3], strict=True)) < 8


def test_a_png_has_the_size_of_the_drawing_times_its_sharpness(trace: Trace, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py")
    picture = heatmap(trace, "cross", 0, 0)
    picture.save(tmp_path / "a.png")
    content = (tmp_path / "a.png").read_bytes()
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))
    root = read(picture)
    assert content.startswith(b"\x89PNG") and abs(width - 2 * float(root.get("width", 0))) <= 2
    assert abs(height - 2 * float(root.get("height", 0))) <= 2


def test_without_the_extra_a_png_says_what_to_install(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(svg, "INSTALLED", False)
    with pytest.raises(RuntimeChoiceError, match=re.escape("pip install 'limelight[pictures]'")):
        heatmap(trace).png()


def test_a_picture_shows_itself_in_a_notebook_and_saves_itself(trace: Trace, tmp_path: Path) -> None:
    picture = heatmap(trace)
    assert picture._repr_html_() == picture._repr_svg_() == picture.svg
    picture.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_bytes().decode() == picture.svg


def test_widths_of_wide_and_combining_signs() -> None:
    assert [columns_of(text) for text in ("abc", "猫", "e\u0301", "ｱ", "\u200d", "한")] == [3, 2, 1, 1, 0, 2]
    assert label("x" * 30) == "x" * 23 + "…" and label("a\tb") == "a␣b"
    assert wrap_lines("ab cd ef", 5) == ["ab cd", "ef"] and wrap_lines("猫猫猫", 4) == ["猫猫", "猫"]
