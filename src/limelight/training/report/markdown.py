"""Markdown shows a report in forges, in diffs and in an editor. Text of users stays text.

markdown("en-de", [Paragraph(["Best at step 900."])], sections) -> "# en-de\\n\\nBest at step 900.\\n..."
"""

import html
import re
from collections.abc import Sequence

from limelight.corpus.report.markup import Figure, Html, text
from limelight.training.report.advice_learning import percent
from limelight.training.report.blocks import (
    Bar,
    Block,
    Cell,
    Code,
    Confidence,
    Details,
    Listing,
    Paragraph,
    Pictures,
    Points,
    QuotedText,
    RawHtml,
    Section,
    Strong,
    Table,
    mark_words,
)

BLOCKS = 20  # characters of a whole bar


def markdown(title: str, head: Sequence[Block], sections: Sequence[Section]) -> str:
    parts = [f"# {plain(title)}", *(_block(block) for block in head)]
    for section in sections:
        parts += [f"## {plain(section.title)}", *(_block(block) for block in section.blocks)]
    return "\n\n".join(part for part in parts if part) + "\n"


def plain(value: str) -> str:
    """Text that no forge takes for markup: plain("a|b <i> *c*") -> "a\\\\|b &lt;i&gt; \\\\*c\\\\*"."""
    calm = text(value).replace("&#x27;", "'").replace("&quot;", '"')
    # An underscore inside of a word emphasizes nothing, and file names are full of them.
    return re.sub(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)", r"\\\g<0>", calm)


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return "".join(_cell(part) for part in block.parts)
        case Table():
            return _table(block)
        case Listing():
            return _fence(block.text)
        case Points():
            return "\n".join("- " + "".join(_cell(part) for part in point) for point in block.points)
        case Details():
            # The summary of a single table says what its caption says.
            alone = len(block.blocks) == 1
            inner = [part for each in block.blocks if (part := _block(_bare(each) if alone else each))]
            return "\n\n".join([f"### {plain(block.summary)}", *inner]) if inner else ""
        case Pictures() | RawHtml():
            return ""


def _bare(block: Block) -> Block:
    return Table("", block.head, block.rows) if isinstance(block, Table) else block


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    right = [isinstance(cell, Figure | Confidence) for cell in table.rows[0]]
    lines = [
        [plain(title) for title in table.head],
        ["--:" if each else "---" for each in right],
        *([_cell(cell) for cell in row] for row in table.rows),
    ]
    caption = f"**{plain(table.caption)}**\n\n" if table.caption else ""
    return caption + "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(cell: Cell) -> str:
    match cell:
        case Code():
            return _code(cell.text)
        case Strong():
            return f"**{plain(cell.text)}**"
        case QuotedText():
            if cell.reference is None:
                return plain(cell.text)
            return "".join(_mark(run, same) for run, same in mark_words(cell.text, cell.reference))
        case Bar():
            return f"{'█' * round(BLOCKS * cell.share)} {percent(cell.share)}".strip()
        case Confidence():
            return f"{cell.value:.2f}"
        case Html():
            return str(cell)
        case str():
            return plain(cell)


def _mark(run: str, same: bool) -> str:
    """Stars must touch a word, or they are stars."""
    inner = run.strip()
    if same or not inner:
        return plain(run)
    return run.replace(inner, f"**{plain(inner)}**", 1)


def _code(value: str) -> str:
    """Between as many backquotes as the text does not have. In a table a bar would end the cell."""
    calm = _calm(value).replace("|", "\\|")
    fence = "`" * (_longest_run(calm) + 1)
    space = " " if calm.startswith("`") or calm.endswith("`") else ""
    return f"{fence}{space}{calm}{space}{fence}" if calm else ""


def _fence(value: str) -> str:
    fence = "`" * max(3, _longest_run(value) + 1)
    return f"{fence}sh\n" + "\n".join(_calm(line) for line in value.split("\n")) + f"\n{fence}"


def _calm(value: str) -> str:
    """With what acts spelt out, and nothing escaped: between backquotes all is text already."""
    return html.unescape(text(value))


def _longest_run(value: str) -> int:
    return max((len(run) for run in re.findall("`+", value)), default=0)
