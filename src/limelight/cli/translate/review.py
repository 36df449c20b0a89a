"""The review of translated documents lists what somebody should check, the worst first.

`limelight translate --document ... --review FILE` writes it, as a page or as a table.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from limelight.cli.screen import group_digits
from limelight.cli.translate.output import to_one_line
from limelight.errors import ConfigError
from limelight.files import write_whole

if TYPE_CHECKING:
    from limelight.documents.document import TranslatedDocument

COLUMNS = ("file", "line", "confidence", "why", "source", "translation")
MOST_ON_A_PAGE = 2_000  # rows: a browser shows more, and nobody reads them; the table has all
# A row of six cells is no reading on a phone: there each cell is a line of its own.
NARROW = """
@media (max-width: 45rem) {
.review table, .review tbody, .review tr, .review th, .review td { display: block; min-width: 0; text-align: left; white-space: normal; }
.review thead { display: none; }
.review tbody tr { border-bottom: 2px solid var(--line); padding: .6rem 0; }
.review tbody th, .review tbody td { border: 0; padding: .1rem 0; }
.review .text { min-width: 0; max-width: none; }
}
"""


class ReviewRow(NamedTuple):
    file: str
    line: int
    confidence: float | None
    why: str
    source: str
    translation: str


def check_review(path: Path) -> None:
    """Whether the list can be written there, asked before a model is loaded."""
    if path.suffix.lower() not in (".html", ".tsv"):
        raise ConfigError(f"--review {path}: the list is a page or a table; end its name with .html or .tsv")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ConfigError(f"--review {path} cannot be written; give the name of a file in a folder that exists")


def write_review(
    path: Path, documents: Sequence[tuple[Path, "TranslatedDocument"]], languages: tuple[str, str]
) -> None:
    rows = _rows(documents)
    if path.suffix.lower() == ".tsv":
        lines = [COLUMNS, *(_cells(row) for row in rows)]
        content = "".join("\t".join(map(to_one_line, line)) + "\n" for line in lines)
    else:
        content = _page(rows, documents, languages)
    write_whole(path.resolve(), content.encode())


def _rows(documents: Sequence[tuple[Path, "TranslatedDocument"]]) -> list[ReviewRow]:
    from limelight.documents.review import sort_worst_first

    names = {id(unit): str(path) for path, done in documents for unit in done.units}
    units = sort_worst_first([unit for _, done in documents for unit in done.units])
    return [
        ReviewRow(names[id(unit)], unit.unit.line, unit.confidence, _why(unit.reasons), unit.source, unit.text)
        for unit in units
    ]


def _why(reasons: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{code}: {message}" for code, message in reasons)


def _cells(row: ReviewRow) -> list[str]:
    sure = "" if row.confidence is None else f"{row.confidence:.3f}"
    return [row.file, str(row.line), sure, row.why, row.source, row.translation]


def _page(
    rows: Sequence[ReviewRow], documents: Sequence[tuple[Path, "TranslatedDocument"]], languages: tuple[str, str]
) -> str:
    from limelight.corpus.report.markup import STYLE, Figure, Html, paragraph, table, text, whole_page

    def said(content: str, language: str) -> Html:
        inner = "\n".join(text(line) for line in content.split("\n"))
        return Html(f'<div class="text" lang="{text(language)}" dir="auto">{inner}</div>')

    total = sum(done.counts.texts for _, done in documents)
    names = ", ".join(str(path) for path, _ in documents)
    first = (
        f"A machine translated {names} from {languages[0]} to {languages[1]}. Of {group_digits(total)} texts these "
        f"{group_digits(len(rows))} should be looked at by a person, the worst first: something was lost, or the machine is not sure."
    )
    if len(rows) > MOST_ON_A_PAGE:
        first += f" The first {group_digits(MOST_ON_A_PAGE)} are shown; a name that ends with .tsv gives all of them."
    cells = [
        [
            f"{row.file}:{row.line}",
            said(row.source, languages[0]),
            said(row.translation, languages[1]),
            Figure("none" if row.confidence is None else f"{row.confidence:.2f}"),
            row.why,
        ]
        for row in rows[:MOST_ON_A_PAGE]
    ]
    made = table("What to look at", ["place", "source", "translation", "confidence", "why"], cells)
    content = f'<style>{STYLE}{NARROW}</style>\n<p class="first">{text(first)}</p>\n{made or paragraph("Nothing.")}'
    return whole_page("Translations to look at", f'<div class="corpus-report review">\n{content}\n</div>')
