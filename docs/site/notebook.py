"""The course is pages in docs/course and one notebook of all of them; both are made from what stands in the pages.

python docs/site/notebook.py             writes docs/course/from-zero.ipynb
python docs/site/notebook.py --run       runs every cell first, and writes what it prints below it: a minute

A cell is a block of Python; the block of `text` after it is what it prints.
"""

import argparse
import ast
import contextlib
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COURSE = Path(__file__).parents[1] / "course"
NOTEBOOK = COURSE / "from-zero.ipynb"
CELL = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", flags=re.M | re.S)


def pages() -> list[Path]:
    return sorted(COURSE.glob("[1-9]-*.md"))


def cells(page: str) -> Iterator[tuple[str, str]]:
    """Code, and what it prints."""
    for found in CELL.finditer(page):
        yield found[1], found[2] or ""


def run(code: str, names: dict[str, Any]) -> str:
    """What a cell prints. Its names stay for those after it."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.parse(code), "<course>", "exec"), names)
    return printed.getvalue()


def printed_below(page: str, names: dict[str, Any]) -> str:
    """The page with what its cells print now."""

    def _ran(cell: re.Match[str]) -> str:
        printed = run(cell[1], names)
        return f"```python\n{cell[1]}```" + (f"\n\n```text\n{printed}```" if printed else "")

    return CELL.sub(_ran, page)


def notebook() -> str:
    """All pages as one notebook, as nbformat 4.5 has it, to be run: what cells print stands in the pages."""
    made: list[dict[str, Any]] = []
    for path in [COURSE / "index.md", *pages()]:
        at, text = 0, path.read_bytes().decode()
        for cell in CELL.finditer(text):
            made += [_words(text[at : cell.start()]), _code(cell[1])]
            at = cell.end()
        made.append(_words(text[at:]))
    numbered = [{"id": f"cell-{number}", **cell} for number, cell in enumerate(each for each in made if each["source"])]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}, "language_info": {"name": "python"}}
    return json.dumps({"cells": numbered, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, ensure_ascii=False, indent=1) + "\n"


def _words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip("\n").splitlines(keepends=True)}


def _code(code: str) -> dict[str, Any]:
    source = code.strip("\n").splitlines(keepends=True)
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true")
    if parser.parse_args().run:
        names: dict[str, Any] = {"__name__": "course"}
        for path in pages():
            path.write_bytes(printed_below(path.read_bytes().decode(), names).encode())
            sys.stdout.write(f"{path.name} ran\n")
    NOTEBOOK.write_bytes(notebook().encode())


if __name__ == "__main__":
    main()
