"""The notebook runs from top to bottom: its cells are executed in order, in a process of their own, as a person would."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
# What a notebook shows is the value of a cell's last line, if that is an expression.
RUN = """
import ast, json, sys
names, shown = {}, []
for cell in json.loads(sys.stdin.read()):
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is not None:
        shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
trace, dark = names["trace"], names["dark"]
told = {
    "right": names["right"], "of": len(names["translations"]), "text": trace.target.text, "dark": dark.target.text,
    "less": dark.baseline.delta_logp, "pictures": sum("<svg" in each._repr_svg_() for each in shown if hasattr(each, "_repr_svg_")),
}
print("TOLD", json.dumps(told))
"""


def cells(notebook: Path) -> list[str]:
    written = json.loads(notebook.read_bytes())
    return ["".join(cell["source"]) for cell in written["cells"] if cell["cell_type"] == "code"]


def test_there_is_a_notebook_and_it_holds_no_outputs() -> None:
    assert NOTEBOOKS
    for notebook in NOTEBOOKS:
        written = json.loads(notebook.read_bytes())
        assert written["nbformat"] == 4
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in written["cells"])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_numbers_runs_from_top_to_bottom(tmp_path: Path) -> None:
    [notebook] = [path for path in NOTEBOOKS if path.name == "numbers.ipynb"]
    given = json.dumps(cells(notebook)).encode()
    done = subprocess.run([sys.executable, "-c", RUN], input=given, cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-3000:]
    told: dict[str, Any] = json.loads(done.stdout.decode().rpartition("TOLD ")[2])
    assert told["of"] >= 40
    assert told["right"] >= 0.8 * told["of"]
    assert told["text"] == "einundzwanzig"
    assert told["dark"] != told["text"] or told["less"] < -1
    assert told["pictures"] == 2
