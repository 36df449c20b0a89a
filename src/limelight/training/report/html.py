"""An HTML page shows a report in one file: no script, nothing from another address, light and dark, wide and narrow.

It looks like that of a corpus.
"""

from collections.abc import Sequence
from typing import Final

from limelight.corpus.report.markup import (
    STYLE,
    Figure,
    Html,
    code,
    fold,
    paragraph,
    picture,
    table,
    text,
    whole_page,
)
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

RUN_STYLE: Final = """
.run-report h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
.run-report nav { display: flex; flex-wrap: wrap; gap: .2rem 1rem; margin: 1rem 0; font-size: .9rem; }
.run-report a { color: inherit; }
.run-report dl { display: grid; grid-template-columns: repeat(auto-fit, minmax(9rem, 1fr)); gap: .8rem; margin: 1rem 0; }
.run-report dl > div { background: var(--soft); padding: .6rem .8rem; border-radius: .3rem; }
.run-report dt { font-size: .8rem; opacity: .8; }
.run-report dd { margin: 0; font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.run-report mark { background: #d8701b33; color: inherit; border-bottom: 2px solid #d8701b; border-radius: 2px; }
.run-report .bar { display: inline-block; height: .7em; background: #3b8bc4; margin-right: .5em; min-width: 1px; }
.run-report .bars { display: block; width: 14rem; white-space: nowrap; }
.run-report .sure { display: inline-block; padding: 0 .4em; border-radius: .2em; }
.run-report details > .corpus-report { border-left: 3px solid var(--line); padding-left: 1rem; }
.run-report pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.run-report li { margin: .5rem 0; max-width: 46rem; }
.run-report li code, .run-report td code { overflow-wrap: anywhere; }
"""


def page(
    title: str,
    sentences: Sequence[str],
    numbers: Sequence[tuple[str, str]],
    head: Section,
    sections: Sequence[Section],
    verdict: Block | None = None,
) -> str:
    """`title` is the whole headline, and a verdict stands before all else; the figures in it stand again as tiles, to be seen from afar."""
    tiles = "".join(f"<div><dt>{text(label)}</dt><dd>{text(value)}</dd></div>" for label, value in numbers)
    links = "".join(f'<a href="#{section.anchor}">{text(section.title)}</a>' for section in sections)
    parts = [
        _block(verdict) if verdict else "",
        f'<p class="first">{text(" ".join(sentences))}</p>',
        f"<dl>{tiles}</dl>" if tiles else "",
        *(_block(block) for block in head.blocks),
        f'<nav aria-label="Sections">{links}</nav>',
        *(_section(section) for section in sections),
    ]
    content = "\n".join(part for part in parts if part)
    return whole_page(
        title, f'<div class="corpus-report run-report">\n<style>{STYLE}{RUN_STYLE}</style>\n{content}\n</div>'
    )


def _section(section: Section) -> str:
    inner = "\n".join(_block(block) for block in section.blocks)
    return f'<section id="{section.anchor}">\n<h2>{text(section.title)}</h2>\n{inner}\n</section>'


def _block(block: Block) -> str:
    match block:
        case Paragraph():
            return paragraph("".join(_cell(part) for part in block.parts))
        case Table():
            return table(block.caption, block.head, [[_in_table(cell) for cell in row] for row in block.rows])
        case Listing():
            # Line by line: a line's end is the only character here that may act.
            return "<pre>" + "\n".join(text(line) for line in block.text.split("\n")) + "</pre>"
        case Points():
            return "<ul>" + "".join(f"<li>{''.join(map(_cell, point))}</li>\n" for point in block.points) + "</ul>"
        case Pictures():
            drawn = "\n".join(picture(svg, caption) for svg, caption in block.pictures)
            return f'<div class="pictures">\n{drawn}\n</div>' if drawn else ""
        case RawHtml():
            return block.html
        case Details():
            return fold(block.summary, "\n".join(_block(each) for each in block.blocks))


def _in_table(cell: Cell) -> str:
    """A figure keeps its class, by which the table sets it to the right."""
    if isinstance(cell, str):
        return cell
    return Figure(_cell(cell)) if isinstance(cell, Confidence) else Html(_cell(cell))


def _cell(cell: Cell) -> str:
    match cell:
        case Code():
            return code(cell.text)
        case Strong():
            return f"<strong>{text(cell.text)}</strong>"
        case QuotedText():
            return _quote(cell)
        case Bar():
            width = f"{60 * max(0.0, min(1.0, cell.share)):.1f}%"
            return f'<span class="bars"><span class="bar" style="width: {width}"></span>{percent(cell.share)}</span>'
        case Confidence():
            shade = f"rgb(59 139 196 / {0.6 * max(0.0, min(1.0, cell.value)):.2f})"
            return f'<span class="sure" style="background: {shade}">{cell.value:.2f}</span>'
        case Html():
            return cell
        case str():
            return text(cell)


def _quote(said: QuotedText) -> str:
    language = f' lang="{text(said.language)}"' if said.language else ""
    inner = text(said.text)
    if said.reference is not None:
        runs = mark_words(said.text, said.reference)
        inner = "".join(text(run) if same else _mark(run) for run, same in runs)
    return f'<div class="text"{language} dir="auto">{inner}</div>'


def _mark(run: str) -> str:
    """The space after a marked word stays outside of the mark."""
    inner = run.rstrip()
    return f"<mark>{text(inner)}</mark>{text(run[len(inner) :])}"
