"""The site is built, and every link of it leads somewhere."""

import importlib
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("zensical", "latex2mathml", "matplotlib", "fastapi") if not importlib.util.find_spec(name)]
needs_docs = pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)} not there: pip install 'limelight[docs,serve]'")


def part(name: str) -> Any:
    """A module of docs/site, which is no package."""
    sys.path.insert(0, str(ROOT / "docs" / "site"))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def in_navigation(entries: Any) -> Iterator[str]:
    for entry in entries:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else in_navigation(value)


def test_every_page_is_in_the_navigation() -> None:
    settings = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))
    named = set(in_navigation(settings["project"]["nav"]))
    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert written - named == {page for page in written if page.startswith("decisions/")}  # these are listed in decisions.md
    assert {page for page in named - written if not page.startswith(("reference/", "project/"))} == set()


@pytest.mark.parametrize(
    ("html", "wrong"),
    [
        ('<a href="b.html">b</a>', None),
        ('<a href="b.html#here">b</a>', None),
        ('<a href="https://example.org/">elsewhere</a>', None),
        ('<iframe src="b.html#told"></iframe>', None),
        ('<iframe src="c.html#told"></iframe>', "there is no such file"),
        ('<a href="c.html">c</a>', "there is no such file"),
        ('<a href="b.html#there">b</a>', "there is no such place"),
        ('<a href="#nowhere">b</a>', "there is no such place"),
        ('<img src="c.png">', "there is no such file"),
        ('<script src="https://example.org/x.js"></script>', "comes from another host"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "comes from another host"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(html: str, wrong: str | None, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(html, "utf-8")
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1>', "utf-8")
    found = part("links").problems(tmp_path)
    assert [problem.rsplit(": ", 1)[1] for problem in found] == ([wrong] if wrong else [])


def test_code_is_taken_from_the_source_by_name() -> None:
    found = part("sources").excerpt("limelight.model.attention.Visible.mask")
    lines = (ROOT / found.path).read_text("utf-8").split("\n")
    assert found.text.split("\n")[0] == lines[found.first - 1].strip() == found.text.split("\n")[0].strip()
    with pytest.raises(LookupError, match="was it renamed"):
        part("sources").excerpt("limelight.model.attention.no_such_thing")


def test_the_code_that_a_page_shows_on_a_forge_is_the_code_of_today() -> None:
    """If this fails: python docs/site/fill.py"""
    fill = part("fill")
    pages = {page: page.read_bytes().decode() for page in sorted((ROOT / "docs").rglob("*.md"))}
    assert [page.name for page, text in pages.items() if fill.filled(text, page) != text] == []
    marks = sum(len(part("pages").MARK.findall(text)) for text in pages.values())
    assert marks == sum(len(fill.FILLED.findall(text)) for text in pages.values()) > 40
    attention = ROOT / "docs" / "transformer" / "attention.md"
    old = pages[attention].replace("masked_fill(~mask", "masked_fill(mask")
    assert old != pages[attention] == fill.filled(old, attention)


@needs_docs
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_figures_that_a_page_shows_on_a_forge_are_those_of_today(tmp_path: Path) -> None:
    """But for those of models that learn while they are drawn. If this fails: python docs/site/fill.py --draw"""
    fill, figures = part("fill"), part("figures")
    learning = vars(part("figures_learning"))
    with part("figures_style").translator():
        for path in sorted((ROOT / "docs").rglob("figures/*.svg")):
            if path.stem not in learning:
                assert fill.is_alike(path.read_bytes().decode(), figures.picture(path.stem)[0]), path.name
    assert not fill.is_alike('<path d="M 1 2"/>', '<path d="M 1 12"/>')
    assert not fill.is_alike("<text>one</text>", "<text>two</text>")


@pytest.mark.parametrize(
    ("github", "python"),
    [
        ("Two:\n- a\n- b", "Two:\n\n- a\n- b"),
        ("- a\n  - b\n    c", "- a\n    - b\n        c"),
        ("- a\n  more\n- b", "- a\n    more\n- b"),
        ("- a\n\n      $ code\n\ntext", "- a\n\n        $ code\n\ntext"),
        ("text\n\n    code", "text\n\n    code"),
    ],
)
def test_lists_are_written_as_the_site_reads_them(github: str, python: str) -> None:
    assert part("markdown_dialect").for_python_markdown(github) == python


@needs_docs
def test_an_equation_that_cannot_be_drawn_is_refused() -> None:
    assert "<math" in part("mathml").with_equations("of $x$")
    assert part("mathml").with_equations("`$x$`") == "`$x$`"
    with pytest.raises(ValueError, match="not all of it"):
        part("mathml").with_equations(r"of $\nosuchthing x$")


@pytest.fixture(scope="module")
def built(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, demo = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("demo")
    for name in ("index.html", "models.json"):
        (demo / name).write_text("{}", "utf-8")
    command = [sys.executable, str(ROOT / "docs" / "site" / "build.py"), "-o", str(folder), "--demo", str(demo)]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "docs"


@needs_docs
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_link_of_the_site_leads_somewhere(built: Path) -> None:
    """The build ends with 1 if one does not; here also: there are pages, and links were looked at."""
    pages = list(built.rglob("*.html"))
    assert len(pages) > 60
    assert all((built / page).is_file() for page in ("tutorials/first-translator.html", "reference/cli.html", "transformer/search.html"))


def test_the_first_page_has_a_place_for_a_translator_above_its_table() -> None:
    before, mark, after = (ROOT / "docs" / "index.md").read_text("utf-8").partition("\n\n<!-- try -->\n\n")
    assert mark and "| you want to |" not in before and "| you want to |" in after


@needs_docs
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_first_page_has_a_translator_in_it(built: Path) -> None:
    found = re.search(r'<iframe src="([^"#]+)#twenty-one"', (built / "index.html").read_text("utf-8"))
    assert found and (built / found[1]).read_text("utf-8") == "{}" and (built / "try" / "models.json").is_file()


@needs_docs
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_pages_are_filled_from_the_code(built: Path) -> None:
    attention = (built / "transformer" / "attention.html").read_text("utf-8")
    assert "<math" in attention and "$$" not in attention
    assert attention.count("<svg role=") == 2
    assert "masked_fill" in re.sub(r"<[^>]+>", "", attention)
    recipe = (built / "reference" / "recipe.html").read_text("utf-8")
    assert "label_smoothing" in recipe
    cli = (built / "reference" / "cli.html").read_text("utf-8")
    assert "--replay" in cli
    http = (built / "reference" / "http.html").read_text("utf-8")
    assert "/api/v1/translate" in http
    assert not [page for page in built.rglob("*.html") if re.search(r"<!-- (code|figure|decisions)", page.read_text("utf-8"))]


@needs_docs
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_search_finds_words_without_a_server(built: Path) -> None:
    index = json.loads((built / "search.js").read_text("utf-8").removeprefix("var __index = ").rstrip().rstrip(";"))
    found = {item["location"].split("#")[0] for item in index["items"] if "softmax" in item["text"]}
    assert "transformer/attention.html" in found
    assert "iframe-worker" in (built / "index.html").read_text("utf-8")
