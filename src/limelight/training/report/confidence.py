"""The section about confidence tells whether 0.8 is right in eight of ten cases, as a picture and in figures."""

from typing import Any, Final

from markupsafe import Markup

from limelight.evaluation.confidence.calibration import TOO_FEW, ConfidenceCheck
from limelight.evaluation.confidence.reliability import Bin, Reliability
from limelight.reporting import charts
from limelight.reporting.blocks import Details, Pictures, Section, Table
from limelight.reporting.charts import BLUE, INK, ORANGE, chart
from limelight.reporting.units import Figure, decimal, figure

TITLE: Final = "Confidence"
FAR: Final = 0.05  # an error above this is said to be one
CAPTION: Final = "Share of right words by confidence, on the test set. On the diagonal it is what it says. Below: how many words."


def confidence(checked: ConfidenceCheck | None, lines: int | None) -> Section:
    """`lines` of the validation set were fitted on; None when there were too few, or when the run did not come so far."""
    if lines is None:
        told = f"It was not calibrated: the run did not come so far, or its validation set is too small ({TOO_FEW})."
        return Section(TITLE, [told])
    if checked is None:
        fitted = f"Calibrated on {figure(lines)} sentences of the validation set. There is no test set to look at how it holds."
        return Section(TITLE, [fitted])
    rows = [
        ["words", *_figures(checked.words)],
        ["sentences, by their words", *_figures(checked.sentences)],
        ["sentences, by their probability", *_figures(checked.whole)],
    ]
    if checked.unedited is not None:
        rows.append(["sentences, word for word right", *_figures(checked.unedited)])
    bins = [[_between(each), figure(each.count), decimal(each.confidence, 3), decimal(each.right, 3)] for each in checked.words.bins]
    head = ["of", "number", "right", "error", "error as claimed", "right above wrong"]
    by_confidence = Table("Words by confidence", ["confidence", "words", "mean", "right"], bins)
    blocks = [
        _describe_reliability(checked.words, lines),
        Pictures([(_picture(checked.words), CAPTION)]) if charts.INSTALLED else charts.MISSING,
        Table("On the test set", head, rows),
        Details("Words by confidence", [by_confidence]),
    ]
    return Section(TITLE, blocks)


def _describe_reliability(words: Reliability, lines: int) -> str:
    told = (
        f"Of words with the confidence 0.8, eight in ten should be in the reference. Fitted on {figure(lines)} sentences of the "
        f"validation set, confidence is off by {words.error:.3f} on average on the test set (expected calibration error); "
        f"what the model claims by itself is off by {words.claimed_error:.3f}."
    )
    if words.error > FAR:
        told += " That is much: the two sets may be of different kinds of text."
    if words.auc is not None:
        told += f" Of a right and a wrong word the right one has the higher confidence in {100 * words.auc:.0f} of 100 cases{words.doubt}."
    return told


def _figures(found: Reliability) -> list[Figure]:
    shares = (found.right, found.error, found.claimed_error, found.auc)
    return [figure(found.count), *(decimal(each, 3) for each in shares)]


def _between(each: Bin) -> str:
    return f"{each.low:.1f} to {each.high:.1f}"


def _picture(words: Reliability) -> Markup:
    def draw(axes: "charts.Axes") -> None:
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 3)))
        lines: list[tuple[tuple[Bin, ...], dict[str, Any]]] = [
            (words.claimed_bins, {"label": "as the model claims", "color": ORANGE, "linestyle": "--", "marker": "s"}),
            (words.bins, {"label": "calibrated", "color": BLUE, "marker": "o"}),
        ]
        for bins, look in lines:
            axes.plot([each.confidence for each in bins], [each.right for each in bins], markersize=5, **look)
        axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="share right")
        axes.tick_params(labelbottom=False)
        axes.legend(frameon=False, loc="upper left")
        below = axes.figure.add_axes((0.15, 0.12, 0.82, 0.17))
        most = max(each.count for each in words.bins)
        for each in words.bins:
            below.bar(each.low, each.count / most, width=each.high - each.low, align="edge", color=BLUE, alpha=0.75)
        below.set(xlim=(0, 1), ylim=(0, 1.05), xlabel="confidence")
        below.set_yticks([])

    told = (f"{_between(each)}: {each.right:.2f} of {each.count}" for each in words.bins)
    alt = f"Share of right words by confidence. {', '.join(told)}"
    return chart(draw, "run confidence", alt, 4.2, (0.15, 0.33, 0.82, 0.64))
