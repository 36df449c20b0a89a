"""The map of the house is made from the first sentences of its docstrings: every file in ARCHITECTURE.md, the rooms in README.md.

python docs/site/house_map.py           write both
python docs/site/house_map.py --check   end with 1 if either is not current
"""

import ast
import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCE: Final = ROOT / "src" / "limelight"
SENTENCE: Final = re.compile(r"(.+?)(?:(?<!et al)[.:](?=\s|$)|$)", re.DOTALL)  # up to a full stop, or the colon before an example


def first_sentence(path: Path) -> str:
    docstring = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    found = SENTENCE.match(docstring.partition("\n\n")[0])
    assert found is not None, f"{path} has no docstring"
    return " ".join(found[1].split())


def folders() -> list[Path]:
    """The package and all folders with code, each before what is inside it."""
    return sorted(path.parent for path in SOURCE.rglob("__init__.py"))


def draw_map() -> str:
    """A heading for each room; for each folder and file a line."""
    lines: list[str] = []
    for folder in folders():
        name = folder.relative_to(SOURCE).as_posix()
        if name == ".":
            lines += ["### limelight", "", "The files that every room may use.", ""]
        elif "/" not in name:
            lines += ["", f"### {name}", "", f"{first_sentence(folder / '__init__.py')}.", ""]
        else:
            lines += [f"- **{name}/** {first_sentence(folder / '__init__.py')}"]
        deep = "  " if "/" in name else ""
        files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        lines += [f"{deep}- `{path.name}` {first_sentence(path)}" for path in files]
    return "\n".join(lines)


def draw_tree() -> str:
    """One line for each room, from the top floor down, as ARCHITECTURE.md has them."""
    floors = re.findall(r"^    ..  ?(\w+) ", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), flags=re.M)
    rooms = [name for name in floors if (SOURCE / name / "__init__.py").is_file()]
    lines = [f"{name + '/':13}{first_sentence(SOURCE / name / '__init__.py')}" for name in rooms]
    return "\n".join(["```", "src/limelight/", *(f"  {line}" for line in lines), "```"])


def replace_between(text: str, mark: str, new: str) -> str:
    before, rest = text.split(f"<!-- {mark} -->", 1)
    after = rest.split(f"<!-- /{mark} -->", 1)[1]
    return f"{before}<!-- {mark} -->\n{new}\n<!-- /{mark} -->{after}"


def current_pages() -> dict[Path, str]:
    pages = {ROOT / "ARCHITECTURE.md": ("map", draw_map()), ROOT / "README.md": ("tree", draw_tree())}
    return {page: replace_between(page.read_text("utf-8"), mark, new) for page, (mark, new) in pages.items()}


def main() -> int:
    old = {page: text for page, text in current_pages().items() if page.read_text("utf-8") != text}
    if "--check" in sys.argv[1:]:
        return bool(old)
    for page, text in old.items():
        page.write_text(text, "utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
