"""docs/paper.md points at lines of code; every line must be the one that it says. Run as a program, it renumbers the page."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "paper.md"
LINK = re.compile(
    r"\[`(?P<file>\w+\.py):(?P<line>\d+)`\]"
    r"\(\.\./src/limelight/(?P<room>[\w/]+)/\w+\.py#L(?P<anchor>\d+)\) `(?P<code>[^`]+)`"
)


def lines_with(room: str, file: str, code: str) -> list[int]:
    """Where the fragment stands, counted from 1."""
    text = (ROOT / "src" / "limelight" / room / file).read_text("utf-8")
    return [number for number, line in enumerate(text.split("\n"), start=1) if code in line]


def broken(page: str) -> list[str]:
    """Links whose line does not hold the fragment, or whose fragment stands in more than one place."""
    result = []
    for link in LINK.finditer(page):
        found = lines_with(link["room"], link["file"], link["code"])
        if found != [int(link["line"])] or link["line"] != link["anchor"]:
            result.append(f"{link['file']}:{link['line']} `{link['code']}` stands at {found}")
    return result


def renumbered(page: str) -> str:
    def replace(link: re.Match[str]) -> str:
        line = lines_with(link["room"], link["file"], link["code"])[0]
        return f"[`{link['file']}:{line}`](../src/limelight/{link['room']}/{link['file']}#L{line}) `{link['code']}`"

    return LINK.sub(replace, page)


def test_every_line_is_what_the_page_says() -> None:
    page = PAGE.read_text("utf-8")
    rows = [line for line in page.split("\n") if line.startswith("| ") and not line.startswith(("| paper", "| ---"))]
    assert len(LINK.findall(page)) == len(rows) >= 50
    assert not broken(page), "run `python tests/test_paper.py` to renumber:\n" + "\n".join(broken(page))


def test_a_wrong_line_is_caught() -> None:
    page = PAGE.read_text("utf-8")
    link = next(LINK.finditer(page))
    wrong = page.replace(link[0], link[0].replace(f":{link['line']}`", f":{int(link['line']) + 1}`"), 1)
    assert broken(wrong)


def test_each_equation_of_the_paper_stands_in_one_docstring() -> None:
    source = {path.name: path.read_text("utf-8") for path in (ROOT / "src" / "limelight" / "model").glob("*.py")}
    equations = {
        "softmax(Q K^T / sqrt(d_k)) V": "attention.py",
        "MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O": "multi_head.py",
        "FFN(x) = max(0, x W_1 + b_1) W_2 + b_2": "feedforward.py",
        "PE(pos, 2i)   = sin(pos / 10000^(2i/d_model))": "positions.py",
        "LayerNorm(x + Dropout(Sublayer(x)))": "layers.py",
    }
    for equation, home in equations.items():
        assert [name for name, text in source.items() if equation in text] == [home], equation


if __name__ == "__main__":
    PAGE.write_text(renumbered(PAGE.read_text("utf-8")), encoding="utf-8", newline="\n")
