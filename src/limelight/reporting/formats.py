"""Two formats write the same blocks: HTML for a browser, Markdown for forges, diffs and editors. Text of users stays text in both."""

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from limelight.reporting.blocks import Block, Cell, Confidence, Paragraph, Section
from limelight.reporting.units import Figure, hundredths

JOINERS: Final = "\u200c\u200d"  # invisible, yet they belong to the spelling of Persian, Hindi and others
TEMPLATES: Final = Path(__file__).parent / "templates"


def write_html(title: str, blocks: Sequence[Block], sections: Sequence[Section] = (), kind: str = "report") -> str:
    """Links lead from before the `sections` to each of them. `kind` is the class of the whole, for style of its own."""
    return str(_page("html", html_text, "\n")(title, blocks, sections, kind)) + "\n"


def write_markdown(title: str, blocks: Sequence[Block]) -> str:
    return str(_page("markdown", markdown_text, "\n\n")(title, blocks)) + "\n"


def spell_out(value: str) -> str:
    """Characters that act instead of being seen are spelt out: spell_out("a\\x1b[2J") -> "a\\\\u001b[2J".

    A terminal obeys control characters, U+2028 breaks a line, and direction marks show a text in another order than it has.
    """
    acts = (unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign not in JOINERS for sign in value)
    return "".join(f"\\u{ord(sign):04x}" if acting else sign for sign, acting in zip(value, acts, strict=True))


def html_text(value: str) -> Markup:
    return Markup(html.escape(spell_out(value)))


def markdown_text(value: str) -> Markup:
    """Text that no forge takes for markup: markdown_text("a|b <i> *c*") -> "a\\\\|b &lt;i&gt; \\\\*c\\\\*"."""
    calm = html.escape(spell_out(value), quote=False)
    # An underscore inside of a word emphasizes nothing, and file names are full of them.
    return Markup(re.sub(r"[\\`*\[\]|~$]|(?<!\w)_|_(?!\w)", r"\\\g<0>", calm))


def _lines(value: str) -> Markup:
    """A line's end is the only character here that may act."""
    return Markup("\n").join(map(html_text, value.split("\n")))


def _emphasize(run: str) -> Markup:
    """Stars must touch a word, or they are stars."""
    before, inner, after = re.split(r"(\S(?:.*\S)?|\Z)", run, maxsplit=1, flags=re.DOTALL)
    return markdown_text(before) + Markup(f"**{markdown_text(inner)}**" if inner else "") + markdown_text(after)


def _code(value: str) -> Markup:
    """Between as many backquotes as the text does not have, all is text already. In a table a bar would end the cell."""
    calm = spell_out(value).replace("|", "\\|")
    fence = "`" * (_longest_run(calm) + 1)
    space = " " if calm.startswith("`") or calm.endswith("`") else ""
    return Markup(f"{fence}{space}{calm}{space}{fence}" if calm else "")


def _fence(value: str) -> Markup:
    fence = "`" * max(3, _longest_run(value) + 1)
    return Markup(f"{fence}sh\n" + "\n".join(map(spell_out, value.split("\n"))) + f"\n{fence}")


def _longest_run(value: str) -> int:
    return max((len(run) for run in re.findall("`+", value)), default=0)


@cache
def _page(name: str, text: Callable[[str], Markup], between: str) -> Callable[..., Markup]:
    """The macro of a whole page. `text` makes markup of all that is none yet, `between` stands between two blocks."""

    def show(cells: Iterable[Cell]) -> Markup:
        return Markup("").join(text(cell) if isinstance(cell, str) else macro_of(cell) for cell in cells)

    def write(blocks: Iterable[Block]) -> Markup:
        written = (macro_of(Paragraph([block]) if isinstance(block, str) else block) for block in blocks)
        return Markup(between).join(block for block in written if block)

    def macro_of(item: Cell | Block) -> Markup:
        return Markup(macros[type(item).__name__](item).strip("\n"))

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        finalize=lambda value: value if isinstance(value, Markup) else text(str(value)),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"show": show, "write": write}
    environment.filters |= {
        "code": _code,
        "emphasize": _emphasize,
        "fence": _fence,
        "lines": _lines,
        "percent": hundredths,
    }
    environment.tests["figure"] = lambda cell: isinstance(cell, Figure | Confidence)
    macros = vars(environment.get_template(f"{name}.jinja").module)
    return lambda *given: Markup(macros["page"](*given).strip("\n"))
