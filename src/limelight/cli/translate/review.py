"""The review of translated documents lists what somebody should check, the worst first."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from limelight.cli.screen import group_digits
from limelight.cli.translate.output import to_one_line
from limelight.errors import ConfigError
from limelight.files import write_whole

if TYPE_CHECKING:
    from limelight.documents.translating import TranslatedDocument

MOST_ON_A_PAGE = 2_000  # rows: a browser shows more, and nobody reads them; the table has all


class ReviewRow(NamedTuple):
    file: str
    line: int
    confidence: float | None
    why: str
    source: str
    translation: str
    unedited: float | None  # how probably it needs no edit


def check_review(path: Path) -> None:
    """Whether the list can be written there, asked before a model is loaded."""
    if path.suffix.lower() not in (".html", ".tsv"):
        raise ConfigError(f"--review {path}: the list is a page or a table; end its name with .html or .tsv")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise ConfigError(f"--review {path} cannot be written; give the name of a file in a folder that exists")


def write_review(path: Path, documents: Sequence[tuple[Path, "TranslatedDocument"]], languages: tuple[str, str]) -> None:
    rows = _rows(documents)
    if path.suffix.lower() == ".tsv":
        lines = [ReviewRow._fields, *(_cells(row) for row in rows)]
        content = "".join("\t".join(map(to_one_line, line)) + "\n" for line in lines)
    else:
        content = _page(rows, documents, languages)
    write_whole(path.resolve(), content.encode())


def _rows(documents: Sequence[tuple[Path, "TranslatedDocument"]]) -> list[ReviewRow]:
    """Those with a reason: first what has no translation, then what has a fault, then by confidence."""
    from limelight.documents.segments import rank

    units = [(str(path), unit) for path, done in documents for unit in done.units if unit.reasons]
    rows = []
    for name, unit in sorted(units, key=lambda named: rank(named[1].confidence, named[1].reasons)):
        why = "; ".join(f"{reason.code}: {reason.message}" for reason in unit.reasons)
        rows.append(ReviewRow(name, unit.unit.line, unit.confidence, why, unit.source, unit.text, unit.unedited))
    return rows


def _cells(row: ReviewRow) -> list[str]:
    sure, unedited = ("" if share is None else f"{share:.3f}" for share in (row.confidence, row.unedited))
    return [row.file, str(row.line), sure, row.why, row.source, row.translation, unedited]


def _page(rows: Sequence[ReviewRow], documents: Sequence[tuple[Path, "TranslatedDocument"]], languages: tuple[str, str]) -> str:
    from limelight.reporting.blocks import Cell, Paragraph, Quote, Table
    from limelight.reporting.formats import write_html
    from limelight.reporting.units import Figure

    total = sum(done.counts.texts for _, done in documents)
    names = ", ".join(str(path) for path, _ in documents)
    first = (
        f"A machine translated {names} from {languages[0]} to {languages[1]}. Of {group_digits(total)} texts these "
        f"{group_digits(len(rows))} should be looked at by a person, the worst first: something was lost, or the machine is not sure."
    )
    expected = [unit.unedited for _, done in documents for unit in done.units if unit.unedited is not None]
    if expected:
        first += f" Of all, about {group_digits(round(sum(expected)))} should need no edit at all."
    if len(rows) > MOST_ON_A_PAGE:
        first += f" The first {group_digits(MOST_ON_A_PAGE)} are shown; a name that ends with .tsv gives all of them."
    cells: list[list[Cell]] = [
        [
            f"{row.file}:{row.line}",
            Quote(row.source, languages[0]),
            Quote(row.translation, languages[1]),
            Figure("none" if row.confidence is None else f"{row.confidence:.2f}"),
            *([Figure("" if row.unedited is None else f"{100 * row.unedited:.0f} of 100")] if expected else []),
            row.why,
        ]
        for row in rows[:MOST_ON_A_PAGE]
    ]
    head = ["place", "source", "translation", "confidence", *(["need no edit"] if expected else []), "why"]
    made = Table("What to look at", head, cells) if cells else "Nothing."
    return write_html("Translations to look at", [Paragraph([first], first=True), made], kind="review")
