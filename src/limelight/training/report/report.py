"""A report, as `report.md` and `report.html`, is written into the run folder at every end, good or bad."""

from pathlib import Path

from limelight.files import write_whole
from limelight.reporting.blocks import Paragraph, Tiles
from limelight.reporting.formats import write_html, write_markdown
from limelight.training.report import attention, confidence, curves, learning, setup
from limelight.training.report.advice import advise
from limelight.training.report.headline import describe_verdict, headline, numbers, sentences, short_title, title
from limelight.training.report.run_record import read_run
from limelight.training.run_folder import REPORT_HTML, REPORT_MD


def write_report(run: Path) -> tuple[Path, Path]:
    """Markdown and HTML. Raises only where a file cannot be written."""
    record, looked = read_run(run), attention.read_attention(run)
    advice = advise(record, looked)
    verdict, told, head = describe_verdict(record, advice), " ".join(sentences(record)), headline(record, advice)
    sections = [
        setup.reproduce(record),
        setup.data(record),
        setup.compute(record),
        curves.curves(record),
        learning.quality(record),
        confidence.confidence(record.scores.confidence if record.scores else None, record.facts.calibrated),
        learning.samples(record),
        learning.suspicious(record),
        attention.attention(looked, record.languages),
        learning.advice(advice),
        setup.following(record),
    ]
    markdown = [verdict, told, *learning.summarize_learning(record), *head, *sections]
    first = [verdict, Paragraph([told], first=True), Tiles(numbers(record)), *head]
    write_whole(run / REPORT_MD, write_markdown(title(record, advice), markdown).encode())
    write_whole(run / REPORT_HTML, write_html(short_title(record, advice), first, sections).encode())
    heads = run / attention.HEADS_SVG
    heads.unlink(missing_ok=True)  # of an earlier report
    if looked is not None:
        write_whole(heads, attention.heads_picture(looked).svg.encode())
    return run / REPORT_MD, run / REPORT_HTML
