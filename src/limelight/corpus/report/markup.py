"""Small HTML builders write the escaped text, figures, tables and style of a report. Tables scroll in their own box.

No script and nothing from another address: a report opens without network, on a phone, and years later.
"""

import html
import unicodedata
from collections.abc import Sequence
from typing import Final

JOINERS: Final = "\u200c\u200d"  # invisible, yet they belong to the spelling of Persian, Hindi and others
THIN_SPACE: Final = "\u202f"  # no line breaks at it, so a figure stays in one piece


class Html(str):
    """The string is markup. Every other string is text and gets escaped on its way into a table."""


class Figure(Html):
    """A figure is a number as it is printed; tables align it to the right."""


def text(value: str) -> str:
    """Escaped, and with characters that act instead of being seen spelt out: text("<b>\\x1b[2J") -> "&lt;b&gt;\\\\u001b[2J".

    A terminal obeys control characters, U+2028 breaks a line, and direction marks show a text in another order than it has.
    """
    return html.escape("".join(_spelt_out(character) if _acts(character) else character for character in value))


def _acts(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") and character not in JOINERS


def _spelt_out(character: str) -> str:
    return f"\\u{ord(character):04x}"


def figure(number: int, sign: str = "") -> Figure:
    """figure(166241) -> "166 241", which no language reads as a decimal."""
    return Figure(sign + f"{number:,}".replace(",", THIN_SPACE))


def share(part: int, whole: int) -> Figure:
    """Never rounds something to nothing, nor a part to the whole: share(5, 29000) -> "< 0.1 %"."""
    percent = 100 * part / max(1, whole)
    if part and percent < 0.05:
        return Figure(f"&lt;{THIN_SPACE}0.1{THIN_SPACE}%")
    if part < whole and percent >= 99.95:
        return Figure(f"&gt;{THIN_SPACE}99.9{THIN_SPACE}%")
    return Figure(f"{percent:.1f}{THIN_SPACE}%")


def name(label: str) -> str:
    """name("wrong_script") -> "wrong script"."""
    return label.replace("_", " ")


def code(value: str) -> Html:
    return Html(f"<code>{text(value)}</code>")


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    total: Sequence[str] | None = None,
    groups: Sequence[tuple[str, int]] = (),
) -> str:
    """The first cell of each row is its heading; `groups` are titles over several columns. A table without rows is left out."""
    if not rows:
        return ""
    titles = "".join(
        f'<th scope="col"{_align_cell(below)}>{_content(title)}</th>'
        for title, below in zip(head, rows[0], strict=True)
    )
    over = "".join(f'<th scope="colgroup" colspan="{columns}">{_content(title)}</th>' for title, columns in groups)
    heads = f"<tr>{over}</tr>\n<tr>{titles}</tr>" if over else f"<tr>{titles}</tr>"
    body = "\n".join(_row(row) for row in rows)
    foot = f"\n<tfoot>\n{_row(total)}\n</tfoot>" if total else ""
    return (
        f'<div class="box" role="region" tabindex="0" aria-label="{text(caption)}"><table>\n'
        f"<caption>{text(caption)}</caption>\n<thead>\n{heads}\n</thead>\n<tbody>\n{body}\n</tbody>{foot}\n</table></div>"
    )


def _row(cells: Sequence[str]) -> str:
    rest = "".join(f"<td{_align_cell(cell)}>{_content(cell)}</td>" for cell in cells[1:])
    return f'<tr><th scope="row">{_content(cells[0])}</th>{rest}</tr>'


def _content(cell: str) -> str:
    return cell if isinstance(cell, Html) else text(cell)


def _align_cell(cell: str) -> str:
    return ' class="figure"' if isinstance(cell, Figure) else ""


def paragraph(content: str) -> str:
    return f"<p>{content}</p>"


def picture(svg: str, caption: str) -> str:
    """Nothing where there is no picture."""
    return f"<figure>\n{svg}\n<figcaption>{text(caption)}</figcaption>\n</figure>" if svg else ""


def fold(summary: str, content: str) -> str:
    """Closed until asked for. Works without script."""
    return f"<details><summary>{text(summary)}</summary>\n{content}\n</details>"


STYLE: Final = """
.corpus-report { --line: #8886; --soft: #8881; font: 1rem/1.5 system-ui, sans-serif; }
.corpus-report h2 { font-size: 1.2rem; line-height: 1.3; margin: 2.2rem 0 .5rem; }
.corpus-report p { max-width: 46rem; margin: .5rem 0; }
.corpus-report p.first { font-size: 1.1rem; }
.corpus-report code, .corpus-report pre { font: .85em/1.5 ui-monospace, monospace; }
.corpus-report .box, .corpus-report pre { overflow-x: auto; margin: .8rem 0; }
.corpus-report pre { background: var(--soft); padding: .8rem; }
.corpus-report table { border-collapse: collapse; font-size: .9rem; }
.corpus-report caption { text-align: left; padding: 0 0 .4rem; }
.corpus-report th, .corpus-report td { padding: .3rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.corpus-report th { font-weight: 600; }
.corpus-report thead th { vertical-align: bottom; }
.corpus-report thead th[colspan] { border-bottom: 0; padding-bottom: 0; }
.corpus-report tbody th, .corpus-report tfoot th { white-space: nowrap; }
.corpus-report tfoot > tr > * { border-bottom: 0; border-top: 2px solid var(--line); font-weight: 600; }
.corpus-report td { min-width: 12rem; }
.corpus-report td.figure { min-width: 3rem; white-space: nowrap; }
.corpus-report .figure { text-align: right; font-variant-numeric: tabular-nums; }
.corpus-report .place, .corpus-report .text { overflow-wrap: anywhere; white-space: pre-wrap; }
.corpus-report .place { min-width: 9rem; max-width: 20rem; font-weight: 400; }
.corpus-report .text { min-width: 14rem; max-width: 30rem; }
.corpus-report .muted { opacity: .7; }
.corpus-report summary { cursor: pointer; padding: .2rem 0; }
.corpus-report .pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 1rem 2rem; }
.corpus-report figure { margin: .8rem 0; max-width: 38rem; }
.corpus-report figcaption { font-size: .9rem; }
.corpus-report svg { display: block; width: 100%; height: auto; }
"""

PAGE_STYLE: Final = """
:root { color-scheme: light dark; }
body { margin: 0; color: #1b1b1b; background: #fff; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem 1.2rem 3rem; }
h1 { font: 600 1.6rem/1.25 system-ui, sans-serif; margin: .6rem 0; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #16181b; } }
"""


def whole_page(title: str, content: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{PAGE_STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{text(title)}</h1>\n"
        f"{content}\n</main>\n</body>\n</html>\n"
    )
