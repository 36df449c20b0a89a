"""The report: its figures are those of the manifest, its sums add up, and no text in it does anything."""

import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import prepared_corpora
import pytest
from reported_manifests import ALL_DROPPED, CLEAN, DIRTY, EMPTY, Reader, manifest

from limelight.corpus.cleaning.reasons import EXPLAINED, Reason
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.encode import PIECE_LENGTHS
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.report import pictures
from limelight.corpus.report.report import describe, page
from limelight.reporting import charts
from limelight.reporting.formats import html_text, write_html
from limelight.reporting.units import share

HOSTILE = "<script>alert(1)</script> \"'><img src=x onerror=y> & \u2028\u202e \x1b[2J \x00 </style></details>"
SHAPES = {"svg", "g", "path", "defs", "use", "text", "clippath", "rect"}
FRAME = {"html", "head", "title", "meta", "style", "body", "main", "section", "h1", "h2", "figure", "figcaption"}
PLAIN = {"p", "strong", "code", "pre", "div", "span", "details", "summary"}
TABLES = {"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}


def number(printed: str) -> int:
    return int(re.sub(r"[=+\s]", "", printed))


@pytest.fixture(params=[DIRTY, CLEAN, EMPTY, ALL_DROPPED], ids=["dirty", "clean", "empty", "all dropped"])
def made(request: pytest.FixtureRequest) -> CorpusManifest:
    return manifest(request.param)


@pytest.mark.slow
def test_figures_of_each_corpus_are_those_of_the_manifest_and_add_up(made: CorpusManifest) -> None:
    records = Reader(page(made)).records("Pairs of each corpus")
    *rows, total = records
    for row, entry in zip(rows, made.corpora, strict=True):
        assert row.pop("corpus") == entry.name
        assert list(row)[:6] == ["read", "= kept", "+ dropped", "train", "valid", "test"]
        counts = {title: number(cell) for title, cell in row.items()}
        assert counts["read"] == entry.read
        assert row["= kept"].startswith("= ")
        assert row["+ dropped"].startswith("+ ")
        assert counts["read"] == counts["= kept"] + counts["+ dropped"]
        assert {split: counts[split] for split in ("train", "valid", "test") if counts[split]} == entry.kept
        reasons = {title.replace(" ", "_"): count for title, count in list(counts.items())[6:] if count}
        assert reasons == entry.dropped
    assert total.pop("corpus") == "all"
    for title, cell in total.items():
        assert number(cell) == sum(number(row[title]) for row in rows)


@pytest.mark.slow
def test_reasons_stand_in_the_order_of_the_filters_and_lead_from_read_to_kept(made: CorpusManifest) -> None:
    reader, left = Reader(page(made)), sum(entry.read for entry in made.corpora)
    rows = reader.records("Dropped pairs") if "Dropped pairs" in reader.tables else []
    reasons = [Reason[row["reason"].replace(" ", "_").upper()] for row in rows]
    assert reasons == sorted(reasons)
    assert set(reasons) == {Reason[reason.upper()] for entry in made.corpora for reason in entry.dropped}
    for why, row in zip(reasons, rows, strict=True):
        assert number(row["pairs"]) == sum(entry.dropped.get(why.label, 0) for entry in made.corpora)
        left -= number(row["pairs"])
        assert number(row["left"]) == left
        assert row["meaning"] == EXPLAINED[why]
    assert left == sum(sum(entry.kept.values()) for entry in made.corpora)


def test_lengths_and_pieces_are_those_of_the_manifest(made: CorpusManifest) -> None:
    reader, statistics = Reader(page(made)), made.statistics
    for row, side in zip(reader.records("Text of all kept pairs"), ("source", "target"), strict=True):
        pieces = sum(mine[side]["pieces"] for mine in statistics["pieces"].values())
        words, characters = statistics["tally"]["words"][side], statistics["tally"]["characters"][side]
        assert [number(row[key]) for key in ("words", "characters", "pieces")] == [words, characters, pieces]
        assert float(row["pieces per word"]) == pytest.approx(pieces / words, abs=0.005)
    for row in reader.records("Pieces of each split"):
        split, side = row["texts"].split()
        mine = statistics["pieces"][split][side]
        assert number(row["pairs"]) == sum(mine["lengths"])
        assert [number(row[key]) for key in ("pieces", "unknown pieces", "longest")] == [
            mine[key] for key in ("pieces", "unknown", "longest")
        ]
        bounds = [number(row[key]) for key in ("half have at most", "95 % at most", "99 % at most", "longest")]
        assert bounds == sorted(bounds)


def test_a_quantile_is_the_greatest_length_of_the_bin_where_it_is_reached() -> None:
    made = manifest()
    lengths = [0] * len(PIECE_LENGTHS)
    lengths[2], lengths[5], lengths[-1] = 60, 36, 4  # 8 to 11, 20 to 23, and more than all bounds
    made.statistics["pieces"]["train"]["source"] |= {"lengths": lengths, "longest": 777}
    row = Reader(page(made)).records("Pieces of each split")[0]
    assert [number(row[key]) for key in ("half have at most", "95 % at most", "99 % at most")] == [11, 23, 777]


def test_warnings_name_the_setting_that_would_drop_them() -> None:
    rows = Reader(page(manifest())).records("Pairs that are kept though a filter objects")
    assert [(row["warning"], number(row["pairs"]), row["to drop them"]) for row in rows] == [
        ("numbers", 13, "filters.numbers=drop"),
        ("leak", 2, "held_out.leaks=drop"),
    ]


def test_every_setting_that_the_report_names_exists() -> None:
    settings = PrepareSettings(languages=("en", "de"), corpora=[CorpusSettings(name="a", paths=["a"])])
    for row in Reader(page(manifest(ALL_DROPPED))).records("Dropped pairs"):
        group, key = row["decided by"].split(".")
        assert hasattr(getattr(settings, group), key)


@pytest.mark.slow
def test_leaks_are_counted_where_sets_were_given() -> None:
    words = " ".join("".join(Reader(page(manifest())).words).split())
    assert "7 dropped, 2 kept with a warning" in words
    off = manifest().settings["held_out"] | {"leaks": "off"}
    assert "held_out.leaks=off" in page(manifest(held_out=off))


def test_inputs_and_places_name_the_files() -> None:
    made = manifest()
    reader = Reader(page(made))
    files = [(row["file"], row["SHA-256"]) for row in reader.records("Files that were read")]
    assert files == [pair for entry in made.inputs for pair in zip(entry.paths, entry.sha256, strict=True)]
    places = [row["place"] for row in reader.records("First dropped as copied")]
    assert places == ["0.en plain:3 (plain)", "1.en plain:4 (plain)"]


@pytest.mark.slow
def test_hostile_text_is_inert() -> None:
    html = page(manifest(hostile=HOSTILE))
    reader = Reader(html)
    assert {tag for tag, _ in reader.tags} <= SHAPES | FRAME | PLAIN | TABLES
    for _, attributes in reader.tags:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "href", "action")]
        assert (attributes.get("xlink:href") or "#").startswith("#")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", html)
    same_tags = [tag for tag, _ in Reader(page(manifest())).tags]
    assert [tag for tag, _ in reader.tags] == same_tags
    assert "<script>alert(1)</script>" in "".join(reader.words)


def test_text_keeps_what_belongs_to_a_spelling_and_spells_out_what_acts() -> None:
    assert html_text("क्\u200dष 東京 <b>") == "क्\u200dष 東京 &lt;b&gt;"
    assert html_text("a\x1b\u2028\ud800") == "a\\u001b\\u2028\\ud800"


def test_a_share_is_never_rounded_to_nothing_or_to_all() -> None:
    printed = [re.sub(r"\s", " ", share(part, 100_000)) for part in (0, 1, 22_100, 99_999, 100_000)]
    assert printed == ["0.0 %", "< 0.1 %", "22.1 %", "> 99.9 %", "100.0 %"]


def test_no_address_but_those_of_namespaces(made: CorpusManifest) -> None:
    html = page(made)
    addresses = set(re.findall(r"\w+://[^\"'\s<]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in html
    assert re.findall(r"url\((?!#)", html) == []


@pytest.mark.slow
def test_equal_manifests_give_equal_bytes(made: CorpusManifest) -> None:
    assert page(CorpusManifest.model_validate_json(made.model_dump_json())) == page(made)


@pytest.mark.process
def test_another_process_writes_the_same_bytes() -> None:
    """Names in pictures and the order of sets must not depend on the process."""
    made = manifest()
    code = "import sys; from limelight.corpus.manifest import CorpusManifest; from limelight.corpus.report.report import page; "
    code += "sys.stdout.buffer.write(page(CorpusManifest.model_validate_json(sys.stdin.read())).encode())"
    command = [sys.executable, "-c", code]
    other = subprocess.run(command, input=made.model_dump_json().encode(), stdout=subprocess.PIPE, check=True)
    assert other.stdout == page(made).encode()


def test_pictures_scale_follow_the_colours_of_the_page_and_say_what_they_show() -> None:
    pytest.importorskip("matplotlib")
    html = page(manifest())
    drawn = [attributes for tag, attributes in Reader(html).tags if tag == "svg"]
    assert len(drawn) == 3
    for attributes in drawn:
        assert attributes["aria-label"]
        assert attributes["viewbox"]
        assert "width" not in attributes
        assert attributes["role"] == "img"
    assert "currentColor" in html
    assert charts.INK not in html
    assert not re.search(r"<svg.*?<style", html, flags=re.DOTALL)
    named = [attributes["id"] for _, attributes in Reader(html).tags if "id" in attributes]
    assert len(named) == len(set(named))


def test_the_waterfall_prints_every_count() -> None:
    pytest.importorskip("matplotlib")
    svg = pictures.waterfall(1000, [("empty", 41), ("duplicate", 250)], "alt")
    printed = [word.replace("\u202f", "") for word in Reader(svg).words]
    assert {"read", "1000", "empty", "\u221241", "duplicate", "\u2212250", "kept", "709"} <= set(printed)


def test_without_matplotlib_the_tables_stay_and_one_sentence_says_how_to_get_pictures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables = Reader(page(manifest())).tables
    monkeypatch.setattr(charts, "INSTALLED", False)
    html = page(manifest())
    assert Reader(html).tables == tables
    assert "<svg" not in html
    assert unescape(html).count("pip install 'limelight[report]'") == 1


@pytest.mark.process
def test_the_report_loads_where_matplotlib_is_not_installed() -> None:
    code = "import sys; sys.modules['matplotlib'] = None; from limelight.corpus.report import pictures, report; "
    code += "assert not pictures.charts.INSTALLED"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_same_blocks_stand_one_level_lower_inside_of_another_report() -> None:
    alone, inside = (Reader(write_html("", describe(manifest(), level))) for level in (2, 3))
    assert inside.tables == alone.tables and not inside.headings and len(alone.headings) == 8
    assert [tag.replace("h2", "h3") for tag, _ in alone.tags] == [tag for tag, _ in inside.tags]
    assert not [tag for tag, attributes in inside.tags if tag == "section" and attributes]  # the names are the other's


def test_a_manifest_without_statistics_still_has_a_report(tmp_path: Path) -> None:
    made = CorpusManifest.load(prepared_corpora.make(tmp_path / "prepared", rows=((3, 2),), names=("a", "b"), weights=(1.0, 1.0)))
    headings = Reader(page(made)).headings
    assert "What became of each corpus" in headings
    assert "Lengths" not in headings
