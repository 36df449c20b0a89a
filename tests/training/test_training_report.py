"""The report of a run: there at every end, its figures those of the run's files, and no text in it does anything."""

import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import made_runs
import pytest
import typer
from made_runs import BEFORE_THE_FIRST_STEP, DIVERGED, HEALTHY, INTERRUPTED, Story
from markdown_it import MarkdownIt
from reported_manifests import Reader
from typer.testing import CliRunner

from limelight.cli import report
from limelight.errors import DataError
from limelight.reporting import charts
from limelight.reporting.formats import markdown_text
from limelight.reporting.units import time_taken
from limelight.training.config import Recipe
from limelight.training.events import StepReport, ValidReport, line_of, read_events
from limelight.training.report import curves as report_pictures
from limelight.training.report.learning import mark_words
from limelight.training.report.report import write_report
from limelight.training.report.run_record import read_run
from limelight.training.report.setup import defaults_of
from limelight.training.run_folder import FACTS, METRICS, PREPARED, RECIPE, SCORES, STATUS

HOSTILE = "<script>alert(1)</script> \"'><img src=x onerror=y> & \u2028\u202e \x1b[2J \x00 | `a` **b** [c](d) $e$ </style></details>"
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")  # as a forge would, and trusting all HTML
FLAT = (50.0, 54.0, 55.0, 55.5, 55.8, 55.9, 55.9, 56.0, 56.0, 56.0, 56.1, 56.1)
TABLE = ("table", "thead", "tbody", "tr", "th", "td")
ENDINGS = {
    "done": HEALTHY,
    "interrupted": INTERRUPTED,
    "diverged": DIVERGED,
    "before the first step": BEFORE_THE_FIRST_STEP,
    "resumed, skipped": HEALTHY.but(resumed=(451,), skipped=(300, 301, 640)),
    "one step": HEALTHY.but(steps=1, every=1, state="failed", problem="the disk is full", test_chrf=None),
    "killed after scoring": HEALTHY.but(state="scoring"),
    "not validated": HEALTHY.but(steps=50, state="interrupted", test_chrf=None),
}


def number(printed: str) -> float:
    return float(re.sub(r"[\s★]", "", printed))


def written(folder: Path, story: Story = HEALTHY, drawn: bool = False) -> tuple[Path, str, str]:
    """The run and its two reports. Pictures take a second, so they are drawn only where a test is about them."""
    run = made_runs.make(folder / "run", story)
    with pytest.MonkeyPatch.context() as patch:
        if not drawn:
            patch.setattr(charts, "INSTALLED", False)
        return run, *texts_of(write_report(run))


def texts_of(paths: tuple[Path, Path]) -> tuple[str, str]:
    markdown, html = (path.read_bytes().decode() for path in paths)
    return markdown, html


def markdown_rows(markdown: str, title: str) -> list[list[str]]:
    """Cells of the first table below a caption or a heading."""
    lines = markdown[markdown.index(title) :].split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("| --"))
    body = lines[first + 1 :]
    end = next((i for i, line in enumerate(body) if not line.startswith("|")), len(body))
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in body[:end]]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_both_reports_are_there_at_every_end(tmp_path: Path, ending: str) -> None:
    _, markdown, html = written(tmp_path, ENDINGS[ending], drawn=True)
    headings = [
        "Reproduce",
        "Data",
        "Model and compute",
        "Curves",
        "Quality",
        "Confidence",
        "Watch it learn",
        "Suspicious",
        "Attention",
        "Advice",
        "Next",
    ]
    assert [line[3:] for line in markdown.split("\n") if line.startswith("## ")] == headings
    assert [word for word in headings if word not in Reader(html).headings] == []
    sign = "✔" if ENDINGS[ending].state == "done" else "⚠"
    assert markdown.split("\n")[0].endswith(sign)
    assert "<h1>run" in html
    if ENDINGS[ending].problem:
        assert ENDINGS[ending].problem in markdown
        assert ENDINGS[ending].problem in html


def test_it_says_what_state_a_run_ended_in(tmp_path: Path) -> None:
    def after_the_verdict(name: str) -> str:
        return re.sub(r"\s", " ", written(tmp_path / name, ENDINGS[name])[1].split("\n\n")[2])

    assert after_the_verdict("interrupted").startswith("Interrupted at step 450 of 1 200. The same command goes on")
    assert after_the_verdict("diverged").startswith("Diverged at step 312 of 1 200.")
    assert "It ended before its first step." in after_the_verdict("before the first step")
    assert "It was not validated." in after_the_verdict("not validated")
    assert after_the_verdict("done") == "Best at step 1 100 of 1 200."


def test_the_verdict_comes_first_in_both_forms(tmp_path: Path) -> None:
    _, markdown, html = written(tmp_path, HEALTHY.but(test_chrf=60.0))
    assert markdown.split("\n\n")[1].startswith("**✔ Good within its kind of text: ")
    assert 0 < html.index("Good within its kind of text") < html.index("Best at step") < html.index("<dl>")


def test_a_useless_translator_gets_no_tick_whatever_else_was_seen(tmp_path: Path) -> None:
    """Neither loops nor advice: the scores alone are enough."""
    calm = HEALTHY.but(chrf=FLAT, test_chrf=28.0, long_chrf=28.0, suspicious={})
    _, markdown, html = written(tmp_path, calm)
    for text in (markdown, html):
        assert "✔" not in text and "Nothing serious" not in text and "NOT USABLE" in text


def test_what_is_for_gist_alone_gets_no_tick(tmp_path: Path) -> None:
    _, markdown, _ = written(tmp_path, HEALTHY.but(test_chrf=45.0, long_chrf=45.0))
    assert "✔" not in markdown and markdown.split("\n\n")[1].startswith("**⚠ For gist: ")


def test_without_a_test_set_the_verdict_says_that_it_is_by_validation(tmp_path: Path) -> None:
    _, markdown, _ = written(tmp_path, INTERRUPTED)
    assert "scores of validation" in markdown.split("\n\n")[1]
    _, markdown, _ = written(tmp_path / "2", BEFORE_THE_FIRST_STEP)
    assert markdown.split("\n\n")[1] == "**⚠ Not judged: there is no score of any kind.**"


def test_only_a_run_that_can_go_on_is_told_to(tmp_path: Path) -> None:
    """The same steps would diverge again, and the command says so instead of taking them."""
    for name, goes_on in (("interrupted", True), ("diverged", False), ("done", False)):
        assert ("# Go on from the last checkpoint" in written(tmp_path / name, ENDINGS[name])[1]) == goes_on


@pytest.mark.slow
def test_a_recipe_with_a_budget_is_not_said_to_take_the_same_steps(tmp_path: Path) -> None:
    run, markdown, _ = written(tmp_path)
    assert "but for the number of steps, which follows the clock" in markdown
    recipe = Recipe.load(run / RECIPE)
    recipe.changed(budget_seconds=None).save(run / RECIPE)
    assert "follows the clock" not in texts_of(write_report(run))[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", [FACTS, METRICS, RECIPE, SCORES, STATUS, f"{PREPARED}/manifest.json"])
@pytest.mark.parametrize("content", [None, b"", b"\xff{[", b"[]", b"{}"])
def test_a_missing_or_damaged_file_costs_its_own_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes | None
) -> None:
    monkeypatch.setattr(charts, "INSTALLED", False)
    run = made_runs.make(tmp_path / "run", HEALTHY.but(steps=120, planned=120, every=20))
    if content is None:
        (run / name).unlink()
    else:
        (run / name).write_bytes(content)
    markdown, html = texts_of(write_report(run))
    Reader(html)
    if name != METRICS:
        assert "| 100 | " in markdown
    if name != SCORES:
        assert "BLEU 38.4 ±1.1" in markdown.split("\n")[0]


@pytest.mark.slow
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    run = made_runs.make(tmp_path / "run")
    (run / SCORES).write_bytes(b'{"evaluation": {"scores": [{"name": 3}]}}')
    markdown, html = texts_of(write_report(run))
    assert "scores.json cannot be read (TypeError)" in markdown
    assert "scores.json cannot be read (TypeError)" in html
    assert "⚠" in markdown.split("\n")[0]


def test_an_empty_folder_has_a_report_that_says_so(tmp_path: Path) -> None:
    markdown, html = texts_of(write_report(tmp_path))
    assert "nothing was recorded ⚠" in markdown
    assert "It ended before its first step." in html


def test_a_damaged_line_of_metrics_costs_that_line_only(tmp_path: Path) -> None:
    run = made_runs.make(tmp_path / "run")
    lines = (run / METRICS).read_bytes().split(b"\n")
    (run / METRICS).write_bytes(b"\n".join([*lines[:100], b'{"event": "st\x00', *lines[101:]]))
    assert len(read_run(run).steps) == HEALTHY.steps - 1


def test_steps_done_again_after_a_restart_count_once_and_the_later_ones_stay(tmp_path: Path) -> None:
    run = made_runs.make(tmp_path / "run")
    events = read_events(run / METRICS)
    lost = [event for event in events if isinstance(event, StepReport | ValidReport) and 300 < event.step <= 420]
    spoilt = [
        dataclasses.replace(event, step=event.step, seconds=99.0, nll=9.0, **({"chrf": 99.0} if hasattr(event, "chrf") else {}))
        for event in lost
    ]
    at = next(i for i, event in enumerate(events) if event.step == 301)
    (run / METRICS).write_bytes("".join(map(line_of, [*events[:at], *spoilt, *events[at:]])).encode())
    record = read_run(run)
    assert record.steps == tuple(event for event in events if isinstance(event, StepReport))
    assert record.validations == tuple(event for event in events if isinstance(event, ValidReport))


def test_validations_are_those_of_the_metrics(tmp_path: Path) -> None:
    run, markdown, html = written(tmp_path)
    valids = [event for event in read_events(run / METRICS) if isinstance(event, ValidReport)]
    assert len(valids) == 12
    rows = Reader(html).records("By validation")
    best = max(valids, key=lambda valid: valid.chrf).step
    for row, cells, valid in zip(rows, markdown_rows(markdown, "**By validation**"), valids, strict=True):
        assert number(row["step"]) == number(cells[0]) == valid.step
        expected = [valid.nll, math.exp(valid.nll), valid.bleu, valid.chrf]
        for name, cell, value in zip(("loss", "perplexity", "BLEU", "chrF"), cells[1:], expected, strict=False):
            assert row[name] == cell
            assert number(cell) == pytest.approx(value, abs=0.0005 if name == "loss" else 0.05)
        assert (row["best"] == "★") == (cells[5] == "★") == (valid.step == best)


def test_costs_are_those_of_the_metrics(tmp_path: Path) -> None:
    run, markdown, html = written(tmp_path, HEALTHY.but(padding=0.07, waited=0.025, skipped=(300, 640)))
    steps = [event for event in read_events(run / METRICS) if isinstance(event, StepReport)]
    costs = {row["what"]: row["how much"] for row in Reader(html).records("What it took")}
    assert costs == dict(markdown_rows(markdown, "**What it took**"))
    seconds = sum(step.seconds for step in steps)
    pieces = sum(step.source_pieces + step.target_pieces for step in steps)
    assert number(costs["steps"]) == len(steps)
    assert number(costs["source pieces seen"]) == sum(step.source_pieces for step in steps)
    assert number(costs["target pieces seen"]) == sum(step.target_pieces for step in steps)
    assert number(costs["source + target pieces/s, data included"]) == round(pieces / seconds)
    assert costs["cells of batches that hold nothing"].split() == ["7.0", "%"]
    assert costs["training time spent waiting for data"].split() == ["2.5", "%"]
    outside = 100 * (1 - 0.975 * seconds / (1.02 * 1200))
    assert number(costs["training time outside the model"].rstrip("%\u202f")) == pytest.approx(outside, abs=0.05)
    assert costs["steps left out"] == "2"
    flops = 4.1e7 * sum(step.target_pieces for step in steps) / (0.975 * seconds)
    assert costs["operations per second"].split() == [f"{flops / 1e9:.1f}", "GFLOP/s"]


def test_padding_is_that_of_all_cells_and_not_the_mean_of_the_steps(tmp_path: Path) -> None:
    """100 pieces in 200 cells and 900 in 1,000 are 1,000 in 1,200."""
    record = read_run(made_runs.make(tmp_path / "run", HEALTHY.but(steps=2, test_chrf=None)))
    sizes = ((60, 40, 0.5), (400, 500, 0.1))
    steps = tuple(
        dataclasses.replace(step, source_pieces=source, target_pieces=target, padding=padding)
        for step, (source, target, padding) in zip(record.steps, sizes, strict=True)
    )
    assert dataclasses.replace(record, steps=steps).padding == pytest.approx(1 / 6)


def test_tiles_hold_the_figures_of_the_headline(tmp_path: Path) -> None:
    html = written(tmp_path)[2]
    tiles = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", re.sub(r"\s", " ", html))
    assert tiles == [
        ("BLEU", "38.4 ±1.1"),
        ("chrF", "57.2 ±0.8"),
        ("TER, lower is better", "44.4 ±1.2"),
        ("best step of 1 200", "1 100"),
        ("wall clock", "23 min 14 s"),
        ("source + target pieces/s", "5 857"),
    ]


def test_scores_and_headline_are_those_of_the_scores(tmp_path: Path) -> None:
    run, markdown, html = written(tmp_path)
    stored = json.loads((run / SCORES).read_bytes())["evaluation"]
    caption = "Scores on test_2016_flickr.en, 1,000 pairs, beam 4"
    rows = Reader(html).records(caption)
    for row, cells, score in zip(rows, markdown_rows(markdown, caption), stored["scores"], strict=True):
        assert row["metric"] == cells[0] == score["name"]
        assert row["value"] == cells[1] == f"{score['value']:.1f}"
        assert row["±"] == cells[2] == f"{(score['high'] - score['low']) / 2:.1f}"
        assert row["signature"] == cells[4].strip("`").replace("\\|", "|") == score["signature"]
    bleu, chrf, _ = stored["scores"]
    head = f"run — BLEU {bleu['value']:.1f} ±1.1 · chrF {chrf['value']:.1f} ±0.8 · "
    assert markdown.startswith(f"# {head}")
    assert re.sub(r"\s", " ", markdown.split("\n")[0]).endswith(" · 23 min 14 s · 5 857 source + target pieces/s ✔")
    for row, cells, bucket in zip(
        Reader(html).records("By length of the source"),
        markdown_rows(markdown, "**By length of the source**"),
        stored["buckets"],
        strict=True,
    ):
        assert number(row["sentences"]) == number(cells[1]) == bucket["sentences"]
        for cell, score in zip(cells[2:], bucket["scores"], strict=True):
            assert row[score["metric"]] == cell == f"{score['value']:.1f} ±{(score['high'] - score['low']) / 2:.1f}"


def test_the_recipe_is_told_by_what_differs_from_its_preset(tmp_path: Path) -> None:
    run, markdown, _ = written(tmp_path)
    rows = markdown_rows(markdown, "**Where the recipe differs from the preset small and the defaults**")
    told = {cells[0].strip("`"): (cells[1].strip("`"), cells[2].strip("`")) for cells in rows}
    assert told["model.dropout"] == ("0.2", "0.1")
    assert told["schedule.steps"] == ("1200", "10000")
    assert told["budget_seconds"] == ("1800.0", "not set")
    assert not [key for key in told if key.startswith(("data", "model.d_", "model.vocab"))]
    recipe = read_run(run).recipe
    assert recipe is not None
    assert defaults_of(defaults_of(recipe)[1])[1] == defaults_of(recipe)[1]


def test_a_model_of_no_preset_is_told_against_the_paper(tmp_path: Path) -> None:
    recipe = made_runs.recipe(HEALTHY)
    other = recipe.changed(model=recipe.model.changed(d_ff=768).model_dump())
    preset, usual = defaults_of(other)
    assert preset is None
    assert (usual.model.d_ff, usual.model.vocab_size) == (2048, 8000)


def test_the_learning_of_a_sentence_is_shown_at_four_steps_with_differing_words_marked(tmp_path: Path) -> None:
    _, markdown, html = written(tmp_path)
    rows = Reader(html).records("Sentence 1")
    assert [re.sub(r"\s", " ", row["when"]) for row in rows] == [
        "source", "reference", "step 100", "step 400", "step 800", "step 1 100 ★",
    ]  # fmt: skip
    assert rows[4]["what it said"] == "Zwei Männer stehen auf einem Brücke."
    assert '<div class="text" lang="de" dir="auto">Zwei Männer stehen auf <mark>einem</mark> Brücke.</div>' in html
    assert '<div class="text" lang="en" dir="auto">Two men are standing on a bridge.</div>' in html
    assert "Zwei Männer stehen auf **einem** Brücke." in markdown
    head = markdown.split("\n")[6:11]
    assert head[0].endswith("| what it said for “Two men are standing on a bridge.” |")
    assert len(head) == 5


def test_marked_words_are_those_that_the_reference_does_not_have_there() -> None:
    assert mark_words("a red cat", "a cat") == [("a ", True), ("red ", False), ("cat", True)]
    assert mark_words("a cat", "a red cat") == [("a ", True), ("cat", True)]
    assert mark_words("", "a cat") == []
    assert mark_words("我愛狗", "我愛貓狗") == [("我愛", True), ("狗", True)]
    assert "".join(run for run, _ in mark_words("b a c", "a b c")) == "b a c"


@pytest.mark.slow
def test_hostile_text_is_inert(tmp_path: Path) -> None:
    _, markdown, html = written(tmp_path / "hostile", HEALTHY.but(text=HOSTILE, skipped=(3,), resumed=(9,)), True)
    _, same_markdown, same = written(tmp_path / "same", HEALTHY.but(text="plain", skipped=(3,), resumed=(9,)), True)
    reader = Reader(html)
    assert [tag for tag, _ in reader.tags if tag != "mark"] == [tag for tag, _ in Reader(same).tags if tag != "mark"]
    for tag, attributes in reader.tags:
        assert tag not in ("script", "img", "iframe", "object", "link", "form")
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "action")]
        assert (attributes.get("href") or attributes.get("xlink:href") or "#").startswith("#")
    for text in (markdown, html):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", text)
    rendered, others = (Outline(MARKDOWN.render(each)).tags for each in (markdown, same_markdown))
    assert [tag for tag in rendered if tag != "strong"] == [tag for tag in others if tag != "strong"]
    assert set(rendered) <= {"h1", "h2", "h3", "p", "pre", "code", "strong", "ul", "li", *TABLE}


def test_markdown_text_stays_text() -> None:
    assert markdown_text("a|b <i> *c* `d` [e](f) $g$ _h_ snake_case \\") == (
        "a\\|b &lt;i&gt; \\*c\\* \\`d\\` \\[e\\](f) \\$g\\$ \\_h\\_ snake_case \\\\"
    )


def test_tables_of_markdown_have_as_many_cells_as_their_heads(tmp_path: Path) -> None:
    _, markdown, _ = written(tmp_path, HEALTHY.but(text=HOSTILE))
    widths = [len(re.split(r"(?<!\\)\|", line)) if line.startswith("|") else 0 for line in markdown.split("\n")]
    tables = [width for width in widths if width]
    assert tables
    assert all(a == b for a, b in pairwise(widths) if a and b)


class Outline(HTMLParser):
    """Levels of the headings and all tags in their order, ids and links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.levels.append(int(tag[1]))
        self.ids += [value for key, value in attrs if key == "id" and value]
        self.links += [value for key, value in attrs if key == "href" and value]


def test_headings_go_down_one_level_at_a_time_and_links_lead_somewhere(tmp_path: Path) -> None:
    outline = Outline(written(tmp_path)[2])
    assert outline.levels[0] == 1
    assert outline.levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(outline.levels))
    assert 3 in outline.levels  # those of the corpus, one level lower than on its own page
    assert len(outline.ids) == len(set(outline.ids))
    assert len(outline.links) == 11
    assert {link[1:] for link in outline.links} <= set(outline.ids)


@pytest.mark.slow
def test_the_page_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    html = written(tmp_path, drawn=True)[2]
    addresses = set(re.findall(r"\w+://[^\"'\s<]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []
    assert html.count("<style") == 1  # the section of the corpus brings none of its own


def test_curves_are_thinned_to_points_of_the_run_and_keep_their_spikes() -> None:
    points = [(float(i), math.sin(i / 50)) for i in range(20_000)]
    points[7_003] = (7_003.0, 40.0)
    points[9_001] = (9_001.0, math.nan)
    drawn = report_pictures.thin(points)
    assert len(drawn) <= report_pictures.MOST
    assert set(drawn) <= set(points)
    assert (7_003.0, 40.0) in drawn
    assert drawn == sorted(drawn)
    assert report_pictures.thin(points[:300]) == points[:300]


def test_a_smoothed_curve_is_the_mean_of_its_neighbours() -> None:
    line = [(float(i), 3.0 * i) for i in range(1000)]
    assert [y for _, y in report_pictures.smooth(line)] == pytest.approx([y for _, y in line])
    zigzag = [(float(i), float(i % 2)) for i in range(1001)]
    assert all(abs(y - 0.5) < 0.03 for _, y in report_pictures.smooth(zigzag)[50:-50])
    assert report_pictures.smooth([(1.0, math.nan), (2.0, 5.0)]) == [(2.0, 5.0)]


@pytest.mark.slow
def test_every_picture_is_there_says_what_it_shows_and_takes_the_colour_of_the_page(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    html = written(tmp_path, HEALTHY.but(resumed=(451,), skipped=(300,)), drawn=True)[2]
    drawn = [attributes for tag, attributes in Reader(html).tags if tag == "svg"]
    shown = [attributes["aria-label"] or "" for attributes in drawn]
    assert sum("over the steps" in label or "of the validations" in label for label in shown) == 5
    assert all(attributes["role"] == "img" and "width" not in attributes for attributes in drawn)
    assert any("validation: 3.35 at step 100, 1.60 at step 1200" in label for label in shown)
    assert charts.INK not in html
    assert html.count("↻") >= 6  # in the words, and in each picture


@pytest.mark.slow
def test_a_long_run_has_no_larger_report(tmp_path: Path) -> None:
    short = written(tmp_path / "short", HEALTHY, drawn=True)[2]
    long = written(tmp_path / "long", HEALTHY.but(steps=6_000, planned=6_000, every=500), drawn=True)[2]
    assert len(long) < 1.2 * len(short)


@pytest.mark.slow
def test_without_matplotlib_the_figures_stay_and_a_sentence_says_how_to_get_pictures(tmp_path: Path) -> None:
    run, _, without = written(tmp_path)
    tables = Reader(texts_of(write_report(run))[1]).tables
    assert Reader(without).tables == tables
    curves = without[without.index('<section id="curves">') : without.index('<section id="quality">')]
    assert "<svg" not in curves
    assert "pip install 'limelight[report]'" in unescape(curves)


@pytest.mark.process
def test_the_report_loads_where_matplotlib_is_not_installed() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; import limelight.training.report.report as r; "
    code += "from limelight.training.report import curves as p; assert not p.charts.INSTALLED and p.draw_curves(None) == []"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.process
def test_equal_runs_give_equal_bytes_in_another_process(tmp_path: Path) -> None:
    run = made_runs.make(tmp_path / "run")
    markdown, html = texts_of(write_report(run))
    code = "import sys, pathlib; from limelight.training.report.report import write_report; write_report(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", code, str(run)], check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert (run / "report.md").read_bytes().decode() == markdown
    assert (run / "report.html").read_bytes().decode() == html


def test_commands_to_copy_are_those_of_the_run(tmp_path: Path) -> None:
    run, markdown, _ = written(tmp_path / "done")
    after = markdown[markdown.index("## Next") :]
    for command in (
        f"limelight translate {run} 'Two men are standing on a bridge.'",
        f"limelight evaluate {run} {run}/prepared",
        "limelight train train.en train.de -o en-de --budget 60m --seed 1",
        f"limelight report {run}",
    ):
        assert f"\n{command}\n" in after
    _, stopped, _ = written(tmp_path / "stopped", INTERRUPTED)
    after = stopped[stopped.index("## Next") :]
    assert "\nlimelight train train.en train.de -o en-de --budget 30m --seed 1\n" in after
    assert "60m" not in after


def test_a_run_without_a_translator_offers_no_translation(tmp_path: Path) -> None:
    markdown = written(tmp_path, BEFORE_THE_FIRST_STEP)[1]
    assert "limelight translate" not in markdown
    assert "limelight evaluate" not in markdown


def test_durations_are_short() -> None:
    printed = [time_taken(seconds).replace("\u202f", " ") for seconds in (0.42, 9.96, 59.7, 845, 16_680, 3600, 86_400)]
    assert printed == ["0.4 s", "10.0 s", "1 min", "14 min 5 s", "4 h 38 min", "1 h", "24 h"]


@pytest.fixture
def command() -> typer.Typer:
    app = typer.Typer()
    app.command("report")(report.report)
    return app


@pytest.mark.slow
def test_the_verb_writes_the_report_again(tmp_path: Path, command: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    run, _, _ = written(tmp_path)
    monkeypatch.setattr(charts, "INSTALLED", False)
    before = texts_of(write_report(run))
    for name in ("report.md", "report.html"):
        (run / name).unlink()
    result = CliRunner().invoke(command, [str(run), "--json"])
    assert result.exit_code == 0
    paths = json.loads(result.stdout)
    assert texts_of((Path(paths["markdown"]), Path(paths["html"]))) == before


def test_the_verb_refuses_a_folder_that_is_no_run(tmp_path: Path, command: typer.Typer) -> None:
    result = CliRunner().invoke(command, [str(tmp_path)])
    assert isinstance(result.exception, DataError)
    assert "is no run of `limelight train`" in str(result.exception)
    assert list(tmp_path.iterdir()) == []
