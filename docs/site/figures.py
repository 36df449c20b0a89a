"""Figures for the pages, computed by the package while they are built: figure("stages_of_attention") -> HTML.

A function of the modules below draws each, under its own name, and returns it with a caption: the figures in a caption are computed too.
"""

import io
import re
from html import escape
from typing import Any

import matplotlib as mpl

import figures_attention
import figures_benchmarks
import figures_layers
import figures_learning
import figures_search
from figures_style import INK, STYLE, Drawn

WIDE = 7  # inches
MODULES = (figures_attention, figures_benchmarks, figures_layers, figures_learning, figures_search)


def figure(name: str) -> str:
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        drawn = _draw(name)
        svg = _inline(drawn, name)
    return (
        f'<figure class="figure{" wide" if drawn.figure.get_figwidth() > WIDE else ""}" id="figure-{name}">'
        f'<div class="drawn">{svg}</div>'
        f"<figcaption>{drawn.caption}</figcaption></figure>"
    )


def picture(name: str) -> tuple[str, str, str]:
    """A figure as a file of its own, dark on white, as a forge may show it on any ground; its caption, and what it says."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        drawn = _draw(name)
        return _svg(drawn, facecolor="#ffffff").strip() + "\n", drawn.caption, drawn.says


def _draw(name: str) -> Drawn:
    draw = next((found for module in MODULES if (found := getattr(module, name, None))), None)
    if draw is None:
        raise LookupError(f"there is no figure {name!r}; figures are functions of docs/site/figures_*.py")
    drawn: Drawn = draw()
    return drawn


def _svg(drawn: Drawn, **ground: Any) -> str:
    target = io.StringIO()
    drawn.figure.savefig(target, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None}, **ground)
    svg = target.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    return re.sub(r"<!--.*?-->", "", svg, flags=re.S)


def _inline(drawn: Drawn, name: str) -> str:
    """In one line, as Markdown leaves HTML alone then; its text in the colour of the page, its names apart from those of other figures."""
    svg = _svg(drawn, transparent=True).replace(INK, "currentColor")
    svg = re.sub(r'\bid="(?!figure)', f'id="{name}-', svg)
    svg = re.sub(r'(url\(#|href="#)', rf"\1{name}-", svg)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(drawn.says)}" ', 1)
    return re.sub(r"\s*\n\s*", " ", svg).strip()
