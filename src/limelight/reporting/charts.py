"""Charts are drawn as SVG for the inside of a page.

They take the colour of its text and the fonts from there, in light and in dark. They have no date and no random names: equal counts give
equal bytes. Text that users wrote never goes into a chart. Without matplotlib a chart is empty text.
"""

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from markupsafe import Markup

from limelight.reporting.blocks import Code, HtmlOnly, Paragraph
from limelight.reporting.formats import html_text
from limelight.reporting.units import figure

try:  # Pictures are an extra: a cluster node that only prepares text need not install a drawing library.
    import matplotlib.style
    from matplotlib import ticker as ticker
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Drawing
except ModuleNotFoundError:
    INSTALLED = False
else:
    INSTALLED = True

WIDTH: Final = 5.6  # inches; narrow, so that the text is still read on a phone
INK: Final = "#010203"  # drawn with this, then replaced by the colour of the page's text
BLUE, ORANGE, GREEN = (
    "#3b8bc4",
    "#d8701b",
    "#2a9d6f",
)  # told apart by colour-blind people, and seen on black and on white
LOOK: Final = {
    "svg.fonttype": "none",  # letters stay letters: small, searchable, in the font of the page
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK),
}
_WHY_NONE: Final = "The pictures are missing because matplotlib is not installed: "
MISSING: Final = HtmlOnly([Paragraph([_WHY_NONE, Code("pip install 'limelight[report]'"), " brings it."])])


def chart(
    draw: Callable[["Axes"], None],
    name: str,
    alt: str,
    height: float = 3.0,
    box: tuple[float, float, float, float] = (0.15, 0.17, 0.82, 0.71),
) -> Markup:
    """`draw` is given axes that fill this box. Each chart of a page has another name; `alt` tells in words what it shows."""
    if not INSTALLED:
        return Markup("")
    # Names of shapes are hashes, and random without a salt.
    with matplotlib.style.context(["default", {**LOOK, "svg.hashsalt": name}]):
        drawing = Drawing(figsize=(WIDTH, height))
        draw(drawing.add_axes(box))
        file = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        drawing.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _for_a_page(file.getvalue(), alt)


def _for_a_page(svg: str, alt: str) -> Markup:
    """As wide as its place, and without what would reach beyond it."""
    svg = re.sub(r"<metadata>.*?(?:</metadata>|\Z)|<style.*?(?:</style>|\Z)", "", svg, flags=re.DOTALL)
    svg = re.sub(r' id="[\w.]+_\d+"', "", svg)
    svg = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font-size: \1px", svg)
    svg = re.sub(r" font-family: [^;\"]*;?", "", svg).replace(INK, "currentColor")
    box = re.search(r'viewBox="[^"]*"', svg)
    assert box is not None
    namespaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    content = svg[svg.index(">", box.end()) + 1 :].rstrip()
    return Markup(f'<svg {namespaces} {box[0]} role="img" aria-label="{html_text(alt)}">{content}')


def bars(axes: "Axes", rows: Sequence[tuple[str, float, float, str, str]]) -> None:
    """Draw rows from the top: a label, where its bar begins and ends, what is printed beside it, and its colour."""
    for row, (_, start, end, printed, colour) in enumerate(rows):
        # The outline keeps a bar of a few among a million visible.
        drawn = axes.barh(row, end - start, 0.62, left=start, color=colour, edgecolor=colour, linewidth=1.2)
        drawn[0].set_clip_on(False)
        axes.text(1.27, row, printed, transform=axes.get_yaxis_transform(), ha="right", va="center")
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), [label for label, *_ in rows])
    axes.tick_params(axis="y", length=0)


def count_axis(axis: Any, most: int = 4) -> None:
    """Whole numbers, in groups of three digits."""
    axis.set_major_locator(ticker.MaxNLocator(most, integer=True))
    axis.set_major_formatter(lambda value, _: figure(round(value)))
