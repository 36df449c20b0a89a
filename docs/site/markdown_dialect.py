r"""The pages are written as GitHub reads them. Python-Markdown, which the site is built with, wants two things more in lists:

- a blank line before the first item, where a sentence stands right above it;
- four columns for what belongs to an item, where GitHub asks for as many as its mark takes.

    for_python_markdown("Two:\n- a\n  - b")  ->  "Two:\n\n- a\n    - b"
"""

import re

ITEM = re.compile(r" *([-*+]|\d+\.) +")


def for_python_markdown(text: str) -> str:
    lines: list[str] = []
    inside: list[int] = []  # for each item that we are in, from the outermost: the column where its text begins
    for line in text.split("\n"):
        if not line.strip():
            lines.append(line)
            continue
        indent, item = len(line) - len(line.lstrip(" ")), ITEM.match(line)
        after_blank, in_list = not lines or not lines[-1].strip(), bool(inside)
        if item or after_blank:  # else it goes on with the paragraph before it, however it is indented
            while inside and indent < inside[-1]:
                inside.pop()
        if item and (indent < 4 or inside):
            if not in_list and not after_blank:
                lines.append("")
            lines.append(_moved(line, indent, inside))
            inside.append(len(item[0]))
        else:
            lines.append(_moved(line, indent, inside))
    return "\n".join(lines)


def _moved(line: str, indent: int, inside: list[int]) -> str:
    """To where Python-Markdown looks for it: four columns for each item, and what it is indented beyond that."""
    beyond = max(0, indent - inside[-1]) if inside else indent
    return " " * (4 * len(inside) + beyond) + line[indent:]
