"""Every cell of the course runs, in order, and prints what its page says; the notebook is the same pages."""

import ast
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))
notebook = importlib.import_module("notebook")
sys.path.pop(0)

TRAINED = "7-numbers.md"  # how near it comes depends on the machine's last digits
FOR_COMPARING = {"check", "pour", "pour_all", "their_search"}  # none of these is part of the reader's model
WORDS_A_MINUTE = 200


def read(path: Path) -> str:
    return path.read_bytes().decode()


@pytest.fixture
def torch_as_it_was() -> Iterator[None]:
    """The course changes what numbers torch makes."""
    usual, state, threads = torch.get_default_dtype(), torch.random.get_rng_state(), torch.get_num_threads()
    yield
    torch.set_num_threads(threads)
    torch.set_default_dtype(usual)
    torch.random.set_rng_state(state)


@pytest.mark.learns
@pytest.mark.slow
def test_every_cell_prints_what_its_page_says(torch_as_it_was: None) -> None:
    names: dict[str, Any] = {"__name__": "course"}
    for path in notebook.pages():
        for code, wanted in notebook.cells(read(path)):
            printed = notebook.run(code, names)
            if path.name == TRAINED:
                printed, wanted = (re.sub(r"\d+(\.\d+)?", "#", text) for text in (printed, wanted))
                if "looks at" in printed:
                    printed, wanted = (re.sub(r"looks at .*", "looks at", text) for text in (printed, wanted))
            assert printed == wanted, f"{path.name}\n{code}"
    assert 999 in names["unseen"], "the pages say so"
    [pouring] = [code for code, _ in notebook.cells(read(path)) if "their_search(theirs" in code]  # the last page's own exercise
    notebook.run("torch.manual_seed(1); model = Model(len(names), width=16, heads=1, layers=1)\n" + pouring.split("agree = 0")[0], names)
    source, target, _ = names["batch_of"]([221])
    names["check"](names["model"](source, target), names["theirs"](source, target))


def test_a_wrong_line_is_noticed(torch_as_it_was: None) -> None:
    """Without the division by the root of the width the first check fails."""
    names: dict[str, Any] = {"__name__": "course"}
    first = [code for code, _ in notebook.cells(read(notebook.pages()[0]))]
    with pytest.raises(AssertionError, match="differ"):
        for code in first:
            notebook.run(code.replace(" / math.sqrt(q.shape[-1])", ""), names)


def test_the_notebook_is_current() -> None:
    """If this fails: python docs/site/notebook.py"""
    assert read(notebook.NOTEBOOK) == notebook.notebook()
    cells = json.loads(read(notebook.NOTEBOOK))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert code == [code.strip("\n") for path in notebook.pages() for code, _ in notebook.cells(read(path))]
    assert len({cell["id"] for cell in cells}) == len(cells)


def test_it_is_as_long_as_it_says() -> None:
    pages = [read(path) for path in notebook.pages()]
    own = [
        line
        for page in pages
        for code, _ in notebook.cells(page)
        for part in ast.parse(code).body
        if isinstance(part, ast.FunctionDef | ast.ClassDef) and part.name not in FOR_COMPARING
        for line in ast.unparse(part).split("\n")
        if line.strip()
    ]
    assert 130 <= len(own) <= 170, len(own)
    words = sum(len(re.sub(r"^```.*?^```$", "", page, flags=re.M | re.S).split()) for page in pages)
    lines = sum(len(code.split("\n")) for page in pages for code, _ in notebook.cells(page))
    assert words / WORDS_A_MINUTE + lines / 15 <= 45, (words, lines)
    named = re.findall(r"\| (\d+) \|$", read(notebook.COURSE / "index.md"), flags=re.M)
    assert len(named) == len(pages) and sum(map(int, named)) <= 45
    for page in pages:
        assert page.split("\n## ")[-1].startswith("Change this and see\n\n- ")
