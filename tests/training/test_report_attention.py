"""The attention card of a report, from traces of the stored translator of number words."""

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from limelight.inspection.head_names import Head
from limelight.inspection.trace import Trace
from limelight.inspection.wire.trace_json import as_json
from limelight.reporting.formats import write_markdown
from limelight.training.report.advice import advise
from limelight.training.report.attention import HEADS_SVG, attention, read_attention
from limelight.training.report.report import write_report
from limelight.training.report.run_record import read_run
from limelight.training.run_folder import PROBES
from limelight.translator import Translator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
SENTENCES = ["twenty-one", "six hundred and two", "nine thousand and forty-three"]


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    translator = Translator.load(STORED)
    return [translator.trace(text) for text in SENTENCES]


def run_of(folder: Path, traces: list[Trace], steps: tuple[int, ...]) -> Path:
    for number, trace in enumerate(traces):
        place = folder / PROBES / f"{number:02}"
        place.mkdir(parents=True)
        for step in steps:
            (place / f"{step}.json.gz").write_bytes(gzip.compress(json.dumps(as_json(trace)).encode()))
    return folder


def resting(trace: Trace, names: list[str]) -> Trace:
    return replace(trace, heads=[replace(each, end_mass=0.95 if each.id in names else 0.2) for each in trace.heads])


def test_the_means_are_those_of_the_traces(tmp_path, traces):
    found = read_attention(run_of(tmp_path, traces, (10, 20, 30, 40, 50)))
    assert found is not None and found.kept == 5 and list(found.traces) == [10, 30, 50]
    assert found.size == sum(path.stat().st_size for path in (tmp_path / PROBES).rglob("*.gz"))
    means = found.means(50)
    assert [str(head) for head in means] == [each.id for each in traces[0].heads]
    for place, (head, mean) in enumerate(means.items()):
        for name in ("entropy", "diagonal", "end_mass"):
            expected = sum(getattr(trace.heads[place], name) for trace in traces) / len(traces)
            assert getattr(mean, name) == pytest.approx(expected, abs=1e-4), (head, name)
        assert 0 <= mean.spread <= 1


def test_the_head_that_aligns_is_the_best_over_all_sentences_and_is_framed_and_named(tmp_path, traces):
    found = read_attention(run_of(tmp_path, traces, (10,)))
    assert found is not None
    head, first = found.aligns
    assert head.kind == "cross" and 1 <= first <= 3
    assert first == sum(trace.align.head == str(head) for trace in traces)
    written = write_report(tmp_path)
    for path in written:
        assert f"{head} aligns best" in path.read_text("utf-8")
    svg = (tmp_path / HEADS_SVG).read_text("utf-8")
    assert f"framed: {head} aligns" in svg and svg.count('stroke-width="3"') == 1


def test_both_reports_have_the_card_and_the_page_stays_in_one_file(tmp_path, traces):
    run_of(tmp_path, traces, (10, 20, 30))
    text, page = (path.read_text("utf-8") for path in write_report(tmp_path))
    card = text.split("## Attention")[1].split("\n## ")[0]
    html = page.split('<section id="attention">')[1].split("</section>")[0]
    for part in (card, html):
        assert "3 sentences" in part and "mute it to test" in part and "zweiundsechzig" not in part
        assert all(step in part for step in ("step 10", "step 20", "step 30")) and "cross.1.3" in part
    assert html.count("<svg") == 4 and html.count("</svg>") == 4
    names = re.findall(r' id="([^"]+)"', page)
    assert len(names) == len(set(names)), "a name that two pictures share means the first of them"
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(names)
    assert not re.search(r'(href|src)="(?!#)', html)
    for svg in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert ElementTree.fromstring(svg).get("viewBox") and "width=" not in svg.split(">")[0]
    assert ElementTree.fromstring((tmp_path / HEADS_SVG).read_bytes()).tag.endswith("svg")


def test_a_report_is_written_twice_with_the_same_bytes(tmp_path, traces):
    run_of(tmp_path, traces, (10, 20))
    first = [path.read_bytes() for path in (*write_report(tmp_path), tmp_path / HEADS_SVG)]
    assert first == [path.read_bytes() for path in (*write_report(tmp_path), tmp_path / HEADS_SVG)]


def test_heads_that_rest_are_named_and_struck_out(tmp_path, traces):
    names = ["enc.0.1", "cross.1.0"]
    found = read_attention(run_of(tmp_path, [resting(trace, names) for trace in traces], (10,)))
    assert found is not None and found.resting == [Head.parse(name) for name in names]
    told = write_markdown("run", [attention(found, None)])
    assert f"2 of {len(traces[0].heads)} rest" in told and "`enc.0.1`, `cross.1.0`." in told
    write_report(tmp_path)
    assert (tmp_path / HEADS_SVG).read_text("utf-8").count("<line") == 2
    assert not [each for each in advise(read_run(tmp_path), found) if each.code == "resting_heads"]


def test_when_most_heads_rest_fewer_are_advised(tmp_path, traces):
    most = [each.id for each in traces[0].heads][: len(traces[0].heads) // 2 + 1]
    found = read_attention(run_of(tmp_path, [resting(trace, most) for trace in traces], (10,)))
    (advice,) = [each for each in advise(read_run(tmp_path), found) if each.code == "resting_heads"]
    assert f"{len(most)} of {len(traces[0].heads)} heads rest" in advice.seen
    assert f"model.num_heads={traces[0].model.heads // 2}" in advice.do


def test_damaged_probes_are_left_out_and_without_any_the_report_says_so(tmp_path, traces):
    run_of(tmp_path, traces, (10, 20))
    (tmp_path / PROBES / "00" / "20.json.gz").write_bytes(b"\x1f\x8bno gzip")
    (tmp_path / PROBES / "01" / "20.json.gz").write_bytes(gzip.compress(b'{"v": 1}'))
    found = read_attention(tmp_path)
    assert found is not None and {step: len(some) for step, some in found.traces.items()} == {10: 3, 20: 1}
    for path in (tmp_path / PROBES).rglob("*.gz"):
        path.write_bytes(path.read_bytes()[:40])
    assert read_attention(tmp_path) is None
    (tmp_path / HEADS_SVG).write_bytes(b"of an earlier report")
    text, _ = write_report(tmp_path)
    assert "No sentence was traced" in text.read_text("utf-8") and not (tmp_path / HEADS_SVG).exists()


def test_text_of_a_user_stays_text(tmp_path, traces):
    side = replace(traces[0].source, text="<b>&|x")
    run_of(tmp_path, [replace(traces[0], source=side)], (10,))
    text, page = (path.read_text("utf-8") for path in write_report(tmp_path))
    assert "<b>&" not in page and "<b>" not in text.split("## Attention")[1]
