"""From the pages in docs/ to those that the site is built of.

Marks are filled in, each alone in its line (`fill.py` fills them for readers of the repository):

    <!-- code: limelight.model.attention.attend_in_stages -->       the definition, from the source
    <!-- figure: stages_of_attention -->                            drawn by a function of the same name, now
    <!-- decisions -->                                              a list of the decisions

and links that lead out of docs/ are led to pages of the site: README.md to the front page, Python to a page with the file.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from markdown_dialect import for_python_markdown
from mathml import with_equations
from sources import ROOT, excerpt

DOCS = ROOT / "docs"
OTHERS = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
}
WITH_EQUATIONS = ("transformer", "course")  # the folders
MARK = re.compile(r"^<!-- (code|figure|decisions)(?:: ([\w.]+))? -->$", flags=re.M)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
CODE = re.compile(r"(^```.*?^```$)", flags=re.M | re.S)

Figure = Callable[[str], str]  # its name -> HTML


class Site:
    """Pages are written below `folder`. Which files of the source they lead to is remembered, and `write_sources` makes a page of each."""

    def __init__(self, folder: Path, figure: Figure) -> None:
        self.folder, self.figure = folder, figure
        self.sources: set[PurePosixPath] = set()

    def write(self, page: str, markdown: str, origin: PurePosixPath) -> None:
        """`page` of the site, made of `markdown`, which lies at `origin` in the repository."""
        parts = CODE.split(markdown)
        text = "".join(part if CODE.fullmatch(part) else self._outside_code(part, page, origin) for part in parts)
        if PurePosixPath(page).parts[0] in WITH_EQUATIONS:
            text = with_equations(text)
        text = MARK.sub(lambda mark: self._filled(mark[1], mark[2], page), text)
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def write_sources(self) -> None:
        for source in sorted(self.sources):
            code = (ROOT / source).read_text("utf-8")
            text = f'---\nsearch:\n  exclude: true\n---\n\n# {source.name}\n\n`{source}`\n\n```python linenums="1"\n{code}```\n'
            path = self.folder / _source_page(source)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")

    def _outside_code(self, text: str, page: str, origin: PurePosixPath) -> str:
        return for_python_markdown(LINK.sub(lambda link: self._led(link, page, origin), text))

    def _filled(self, kind: str, name: str, page: str) -> str:
        if kind == "figure":
            return self.figure(name)
        if kind == "decisions":
            return decisions()
        found = excerpt(name)
        link = _relative(self._page_of(PurePosixPath(found.path.as_posix())), page)
        place = f"[`{found.path}`, line {found.first}]({link}#L-0-{found.first}){{ .source }}"
        return f'{place}\n\n```python linenums="{found.first}"\n{found.text}\n```'

    def _led(self, link: re.Match[str], page: str, origin: PurePosixPath) -> str:
        picture, words, address = link[1], link[2], link[3]
        if re.match(r"[a-z]+:|#", address):
            return link[0]
        path, _, place = address.partition("#")
        target = PurePosixPath(os.path.normpath(origin.parent / path))
        inside = target.is_relative_to("docs") and (ROOT / target).is_file()
        if inside:
            there = str(target.relative_to("docs"))
        elif str(target) in OTHERS:
            there = OTHERS[str(target)]
        elif target.suffix == ".py" and (ROOT / target).is_file():
            there, place = self._page_of(target), re.sub(r"^L(\d+)$", r"L-0-\1", place)
        else:
            return f"{picture}{words}" if (ROOT / target).exists() else link[0]  # a folder, a file that is no page; or broken: to be found
        return f"{picture}[{words}]({_relative(there, page)}{'#' + place if place else ''})"

    def _page_of(self, source: PurePosixPath) -> str:
        self.sources.add(source)
        return _source_page(source)


def _source_page(source: PurePosixPath) -> str:
    return str(PurePosixPath("source") / source.with_suffix(".md"))


def _relative(there: str, page: str) -> str:
    return os.path.relpath(there, PurePosixPath(page).parent)


def decisions() -> str:
    rows = []
    for path in sorted((DOCS / "decisions").glob("[0-9]*.md")):
        title = path.read_text("utf-8").split("\n", 1)[0].removeprefix("# ").strip()
        number, words = re.fullmatch(r"(\d{4})[.:]? (.*)", title).groups()  # type: ignore[union-attr]
        rows.append(f"| {number} | [{words}](decisions/{path.name}) |")
    return "\n".join(["| | |", "| --- | --- |", *rows])
