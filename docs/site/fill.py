"""Fills the marks of the pages in docs/ where they stand, so that code and figures are there on a forge and in an editor too.

python docs/site/fill.py             after a change of code that a page shows
python docs/site/fill.py --draw      the figures too: a minute
python docs/site/fill.py --check     ends with 1 and the names of the pages that are not current

A mark is kept, and what it asks for follows it up to `<!-- end -->`. Figures lie beside the page in `figures/`. The site takes the
filling out again (`emptied`) and puts in its own: with line numbers, and with figures in the colours of the page.
"""

import argparse
import re
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path

from pages import DOCS, MARK, decisions
from sources import ROOT, excerpt

MARKED = r"^<!-- (?:code|figure|decisions)"
FILLED = re.compile(rf"({MARK.pattern})\n(?:(?!{MARKED}).)*?^<!-- end -->$", flags=re.M | re.S)
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
COLOUR = re.compile(r"#([0-9a-f]{6})\b")
ID = re.compile(r"(?<=[#\"])[a-z]+[0-9a-f]{10}\b")  # a hash of what is drawn, so another one for another last digit
Draw = Callable[[str, Path], str]  # the name of a figure, the page -> Markdown


def emptied(markdown: str) -> str:
    """The page with its marks and nothing after them."""
    return FILLED.sub(r"\1", markdown)


def filled(markdown: str, page: Path, draw: Draw | None = None) -> str:
    """The page with code and pictures after each mark. Without `draw` a figure stays as it is."""
    drawn = {mark[3]: mark[0].partition("\n")[2] for mark in FILLED.finditer(markdown) if mark[2] == "figure"}

    def _filling(mark: re.Match[str]) -> str:
        if mark[1] == "figure":
            text = draw(mark[2], page) + "\n<!-- end -->" if draw else drawn.get(mark[2], "")
        else:
            text = (decisions() if mark[1] == "decisions" else _code(mark[2], page)) + "\n<!-- end -->"
        return f"{mark[0]}\n{text}"

    return MARK.sub(_filling, emptied(markdown))


def _code(name: str, page: Path) -> str:
    found = excerpt(name)
    up = "../" * len(page.relative_to(ROOT).parent.parts)
    return f"[`{found.path}`]({up}{found.path})\n\n```python\n{found.text}\n```"


def draw(name: str, page: Path) -> str:
    """Draws a figure into a file beside the page. If its numbers hardly moved it keeps its file: a last digit depends on the machine."""
    import figures  # matplotlib and a translator, which the code alone does not need

    svg, caption, says = figures.picture(name)
    path = page.parent / "figures" / f"{name}.svg"
    path.parent.mkdir(exist_ok=True)
    if not (path.is_file() and is_alike(path.read_bytes().decode(), svg)):
        path.write_bytes(svg.encode())
    words = unescape(re.sub(r"<[^>]+>", "", caption)).replace("<", "&lt;")
    return f"![{says}](figures/{path.name})\n\n*{words}*"


def is_alike(one: str, other: str, apart: float = 3.0) -> bool:
    """Whether two pictures have the same words and lines, and places and colours that are at most `apart` from each other."""
    one, other = (COLOUR.sub(_in_numbers, ID.sub("", svg)) for svg in (one, other))
    if NUMBER.sub("#", one) != NUMBER.sub("#", other):
        return False
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return all(abs(float(a) - float(b)) <= apart for a, b in pairs)


def _in_numbers(colour: re.Match[str]) -> str:
    return " ".join(str(channel) for channel in bytes.fromhex(colour[1]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--draw", action="store_true")
    given = parser.parse_args()
    old = []
    for page in sorted(DOCS.rglob("*.md")):
        markdown = page.read_bytes().decode()
        current = filled(markdown, page, draw if given.draw else None)
        if current != markdown:
            old.append(str(page.relative_to(ROOT)))
            if not given.check:
                page.write_bytes(current.encode())
    for name in old:
        sys.stdout.write(f"{name} {'is not current: python docs/site/fill.py' if given.check else 'filled'}\n")
    return given.check and bool(old)


if __name__ == "__main__":
    sys.exit(main())
