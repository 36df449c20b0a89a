"""The section about confidence tells whether 0.8 is right in eight of ten cases, as a picture and in figures."""

from typing import Any, Final

from limelight.corpus.report import pictures
from limelight.corpus.report.markup import Figure, figure
from limelight.corpus.report.pictures import BLUE, INK, LOOK, ORANGE, WIDTH
from limelight.corpus.report.report import NO_PICTURES
from limelight.evaluation.confidence.calibration import TOO_FEW, ConfidenceCheck
from limelight.evaluation.confidence.reliability import Bin, Reliability
from limelight.training.report import curves
from limelight.training.report.blocks import Block, Cell, Details, Paragraph, Pictures, RawHtml, Section, Table, decimal

try:  # an extra, as for the curves
    import matplotlib.style
    from matplotlib.figure import Figure as Drawing
except ModuleNotFoundError:
    pass

TITLE: Final = "Confidence"
FAR: Final = 0.05  # an error above this is said to be one


def confidence(checked: ConfidenceCheck | None, lines: int | None) -> Section:
    """`lines` of the validation set were fitted on; None when there were too few, or when the run did not come so far."""
    if lines is None:
        told = f"It was not calibrated: the run did not come so far, or its validation set is too small ({TOO_FEW})."
        return Section(TITLE, [Paragraph([told])])
    if checked is None:
        fitted = f"Calibrated on {figure(lines)} sentences of the validation set. There is no test set to look at how it holds."
        return Section(TITLE, [Paragraph([fitted])])
    drawn: Block = Pictures([(_picture(checked.words), _CAPTION)]) if curves.INSTALLED else _MISSING
    rows: list[list[Cell]] = [
        ["words", *_figures(checked.words)],
        ["sentences, by their words", *_figures(checked.sentences)],
        ["sentences, by their probability", *_figures(checked.whole)],
    ]
    bins: list[list[Cell]] = [
        [_between(each), figure(each.count), decimal(each.confidence, 3), decimal(each.right, 3)]
        for each in checked.words.bins
    ]
    return Section(
        TITLE,
        [
            Paragraph([_describe_reliability(checked.words, lines)]),
            drawn,
            Table("On the test set", _HEAD, rows),
            Details("Words by confidence", [Table("Words by confidence", _BINS, bins)]),
        ],
    )


_MISSING: Final = RawHtml(f"<p>{NO_PICTURES}</p>")
_HEAD: Final = ["of", "number", "right", "error", "error as claimed", "right above wrong"]
_BINS: Final = ["confidence", "words", "mean", "right"]
_CAPTION: Final = (
    "Share of right words by confidence, on the test set. On the diagonal it is what it says. Below: how many words."
)


def _describe_reliability(words: Reliability, lines: int) -> str:
    told = (
        f"Of words with the confidence 0.8, eight in ten should be in the reference. Fitted on {figure(lines)} sentences of the "
        f"validation set, confidence is off by {words.error:.3f} on average on the test set (expected calibration error); "
        f"what the model claims by itself is off by {words.claimed_error:.3f}."
    )
    if words.error > FAR:
        told += " That is much: the two sets may be of different kinds of text."
    if words.auc is not None:
        told += f" Of a right and a wrong word the right one has the higher confidence in {100 * words.auc:.0f} of 100 cases."
    return told


def _figures(found: Reliability) -> list[Figure]:
    shares = [decimal(found.right, 3), decimal(found.error, 3), decimal(found.claimed_error, 3), decimal(found.auc, 3)]
    return [figure(found.count), *shares]


def _between(each: Bin) -> str:
    return f"{each.low:.1f} to {each.high:.1f}"


def _picture(words: Reliability) -> str:
    alt = "Share of right words by confidence. " + ", ".join(
        f"{_between(each)}: {each.right:.2f} of {each.count}" for each in words.bins
    )
    with matplotlib.style.context(["default", LOOK]):
        picture = Drawing(figsize=(WIDTH, 4.2))
        axes = picture.add_axes((0.15, 0.33, 0.82, 0.64))
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        lines: list[tuple[tuple[Bin, ...], str, dict[str, Any]]] = [
            (words.claimed_bins, "as the model claims", {"color": ORANGE, "linestyle": "--", "marker": "s"}),
            (words.bins, "calibrated", {"color": BLUE, "marker": "o"}),
        ]
        for bins, label, look in lines:
            axes.plot(
                [each.confidence for each in bins], [each.right for each in bins], label=label, markersize=5, **look
            )
        axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
        axes.tick_params(labelbottom=False)
        axes.legend(frameon=False, loc="upper left")
        below = picture.add_axes((0.15, 0.12, 0.82, 0.17))
        most = max(each.count for each in words.bins)
        for each in words.bins:
            below.bar(each.low, each.count / most, width=each.high - each.low, align="edge", color=BLUE, alpha=0.75)
        below.set(xlim=(0, 1), ylim=(0, 1.05), xlabel="confidence")
        below.set_yticks([])
        return pictures.svg(picture, "run confidence", alt)
