"""What a run says of itself: `report.md` and `report.html`, written into its folder at every end, good or bad.

    write_report(Path("en-de")) -> (Path("en-de/report.md"), Path("en-de/report.html"))

Everything comes from the files of the run, so a report can be written again at any time. A part that is missing is said to be missing.
Equal runs give equal bytes.
"""

from pathlib import Path

from limelight.corpus.markup import figure
from limelight.files import write_whole
from limelight.training import report_attention, report_confidence, report_html, report_learning, report_origin
from limelight.training.advice import advise
from limelight.training.advice_learning import Advice
from limelight.training.layout import REPORT_HTML, REPORT_MD
from limelight.training.record import RunRecord, read_run
from limelight.training.report_headline import headline, judged, numbers, sentences, short_title, title
from limelight.training.report_markdown import markdown
from limelight.training.report_parts import Block, Cell, Paragraph, Said, Section, Table, decimal


def write_report(run: Path) -> tuple[Path, Path]:
    """Markdown and HTML. Raises only where a file cannot be written."""
    record, looked = read_run(run), report_attention.read_attention(run)
    advice = advise(record, looked)
    told, sections = sentences(record), sections_of(record, advice, looked)
    top, verdict = headline(record, advice), judged(record, advice)
    written = run / REPORT_MD, run / REPORT_HTML
    head: list[Block] = [verdict, Paragraph([" ".join(told)]), *_learning(record), *top.blocks]
    write_whole(written[0], markdown(title(record, advice), head, sections).encode())
    write_whole(
        written[1],
        report_html.page(short_title(record, advice), told, numbers(record), top, sections, verdict).encode(),
    )
    heads = run / report_attention.HEADS_SVG
    heads.unlink(missing_ok=True)  # of an earlier report
    if looked is not None:
        write_whole(heads, report_attention.heads_picture(looked).svg.encode())
    return written


def sections_of(record: RunRecord, advice: list[Advice], looked: report_attention.Attention | None) -> list[Section]:
    return [
        report_origin.reproduce(record),
        report_origin.data(record),
        report_origin.compute(record),
        report_learning.curves(record),
        report_learning.quality(record),
        report_confidence.confidence(record.scores.confidence if record.scores else None, record.facts.calibrated),
        report_learning.samples(record),
        report_learning.suspicious(record),
        report_attention.attention(looked, record.languages),
        report_learning.advice(advice),
        report_learning.following(record),
    ]


def _learning(record: RunRecord) -> list[Block]:
    """The head of report.md: some validations, and what was said for one sentence then."""
    chosen = report_learning.shown_validations(record)
    if not chosen:
        return []
    sample = chosen[-1].samples[0]
    target = record.languages[1] if record.languages else None
    rows: list[list[Cell]] = [
        [
            str(figure(valid.step)),
            decimal(valid.nll, 2),
            decimal(valid.bleu, 1),
            decimal(valid.chrf, 1),
            Said(valid.samples[0].translation, target),
        ]
        for valid in chosen
    ]
    head = ["step", "validation loss", "BLEU", "chrF", f"what it said for “{sample.source}”"]
    return [Table("", head, rows)]
