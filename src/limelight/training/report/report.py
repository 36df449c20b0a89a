"""A report, as `report.md` and `report.html`, is written into the run folder at every end, good or bad:

    write_report(Path("en-de")) -> (Path("en-de/report.md"), Path("en-de/report.html"))

Everything comes from the files of the run, so a report can be written again at any time. A part that is missing is said to be missing.
Equal runs give equal bytes.
"""

from pathlib import Path

from limelight.corpus.report.markup import figure
from limelight.files import write_whole
from limelight.training.report import attention, confidence, html, learning, setup
from limelight.training.report.advice import advise
from limelight.training.report.advice_learning import Advice
from limelight.training.report.blocks import Block, Cell, Paragraph, QuotedText, Section, Table, decimal
from limelight.training.report.headline import describe_verdict, headline, numbers, sentences, short_title, title
from limelight.training.report.markdown import markdown
from limelight.training.report.run_record import RunRecord, read_run
from limelight.training.run_folder import REPORT_HTML, REPORT_MD


def write_report(run: Path) -> tuple[Path, Path]:
    """Markdown and HTML. Raises only where a file cannot be written."""
    record, looked = read_run(run), attention.read_attention(run)
    advice = advise(record, looked)
    told, sections = sentences(record), sections_of(record, advice, looked)
    top, verdict = headline(record, advice), describe_verdict(record, advice)
    written = run / REPORT_MD, run / REPORT_HTML
    head: list[Block] = [verdict, Paragraph([" ".join(told)]), *_learning(record), *top.blocks]
    write_whole(written[0], markdown(title(record, advice), head, sections).encode())
    write_whole(
        written[1],
        html.page(short_title(record, advice), told, numbers(record), top, sections, verdict).encode(),
    )
    heads = run / attention.HEADS_SVG
    heads.unlink(missing_ok=True)  # of an earlier report
    if looked is not None:
        write_whole(heads, attention.heads_picture(looked).svg.encode())
    return written


def sections_of(record: RunRecord, advice: list[Advice], looked: attention.Attention | None) -> list[Section]:
    return [
        setup.reproduce(record),
        setup.data(record),
        setup.compute(record),
        learning.curves(record),
        learning.quality(record),
        confidence.confidence(record.scores.confidence if record.scores else None, record.facts.calibrated),
        learning.samples(record),
        learning.suspicious(record),
        attention.attention(looked, record.languages),
        learning.advice(advice),
        learning.following(record),
    ]


def _learning(record: RunRecord) -> list[Block]:
    """The head of report.md: some validations, and what was said for one sentence then."""
    chosen = learning.choose_validations(record)
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
            QuotedText(valid.samples[0].translation, target),
        ]
        for valid in chosen
    ]
    head = ["step", "validation loss", "BLEU", "chrF", f"what it said for “{sample.source}”"]
    return [Table("", head, rows)]
