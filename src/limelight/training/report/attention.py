"""The attention card of a report shows what each head became, which one aligns, which rest, and how it came about."""

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from markupsafe import Markup

from limelight.errors import LimelightError
from limelight.inspection.analysis.alignment import scores
from limelight.inspection.drawing.colours import INK, QUIET, RULE, SPOT, cividis, readable_on
from limelight.inspection.drawing.heatmaps import KIND_NAMES, heatmap, hundredths
from limelight.inspection.drawing.svg import Picture, draw_picture, rect, words
from limelight.inspection.head_names import KINDS, Head, Kind
from limelight.inspection.trace import Array, Trace
from limelight.inspection.wire.trace_json import from_json
from limelight.reporting.blocks import (
    Block,
    Cell,
    Code,
    Confidence,
    Details,
    Paragraph,
    Pictures,
    Quote,
    Section,
    Strong,
    Table,
)
from limelight.reporting.units import Figure, decimal, figure, short_figure
from limelight.training.run_folder import DAMAGED, PROBE, PROBES, list_probed_steps

HEADS_SVG: Final = "heads.svg"
RESTS: Final = 0.9  # of the weight on the piece where heads rest: such a head does nothing
PICTURED: Final = 10  # source pieces of the sentence that is drawn, about
MOST_NAMED: Final = 24  # resting heads that are listed
CELL, MARGIN = 30.0, 16.0


@dataclass(frozen=True)
class HeadMeans:
    """Means are of one head over all probes. `spread`: its entropy as a part of the highest that is possible, 0 one piece, 1 all alike."""

    entropy: float
    spread: float
    diagonal: float
    end_mass: float


@dataclass(frozen=True)
class Attention:
    traces: Mapping[int, Sequence[Trace]]
    kept: int  # steps on disk
    size: int  # bytes of all of them

    @property
    def last(self) -> Sequence[Trace]:
        return self.traces[max(self.traces)]

    def means(self, step: int) -> dict[Head, HeadMeans]:
        sums: dict[Head, list[tuple[float, ...]]] = {}
        for trace in self.traces[step]:
            highest = {kind: highest_entropy(trace, kind) for kind in KINDS}
            for each in trace.heads:
                head = Head.parse(each.id)
                spread = each.entropy / highest[head.kind] if highest[head.kind] else 0.0
                sums.setdefault(head, []).append((each.entropy, spread, each.diagonal, each.end_mass))
        return {head: HeadMeans(*(math.fsum(c) / len(c) for c in zip(*all_, strict=True))) for head, all_ in sums.items()}

    @property
    def aligns(self) -> tuple[Head, int]:
        """Of the heads that align a sentence, the one with the best score over all of them; and how many it aligns."""
        named = Counter(trace.align.head for trace in self.last)
        scores_LH = np.mean([_scores(trace) for trace in self.last], axis=0)
        best = max(map(Head.parse, named), key=lambda head: float(scores_LH[head.layer, head.head]))
        return best, named[str(best)]

    @property
    def resting(self) -> list[Head]:
        return [head for head, each in self.means(max(self.traces)).items() if each.end_mass >= RESTS]


def _scores(trace: Trace) -> Array:
    """How well each head of the cross-attention aligns this sentence (layers, heads)."""
    rows = [at for at, token in enumerate(trace.target.tokens) if token.word is not None]
    columns = [at for at, token in enumerate(trace.source.tokens) if token.word is not None]
    return scores(trace.attention["cross"], rows, columns)


def highest_entropy(trace: Trace, kind: Kind) -> float:
    """In bits: of a head that looks at all it may alike."""
    rows, columns = trace.attention[kind].shape[2:]
    return float(np.log2(np.arange(1, rows + 1)).mean()) if kind == "dec" else math.log2(columns)


def read_attention(run: Path) -> Attention | None:
    """The first, the middle and the last step; those that cannot be read are left out. None if there are none."""
    steps = list_probed_steps(run / PROBES)
    wanted = sorted({steps[0], steps[(len(steps) - 1) // 2], steps[-1]}) if steps else []
    traces = {step: found for step in wanted if (found := list(_traces(run / PROBES, step)))}
    if not traces:
        return None
    size = sum(path.stat().st_size for path in (run / PROBES).glob(f"*/*{PROBE}"))
    return Attention(traces, len(steps), size)


def _traces(folder: Path, step: int) -> Iterator[Trace]:
    for path in sorted(folder.glob(f"*/{step}{PROBE}")):
        try:
            yield from_json(json.loads(gzip.decompress(path.read_bytes())))
        except (*DAMAGED, EOFError, zlib.error, LimelightError):
            continue


def attention(found: Attention | None, languages: tuple[str, str] | None) -> Section:
    if found is None:
        return Section("Attention", ["No sentence was traced while it learned (probes.sentences)."])
    (head, count), last = found.aligns, found.last
    sentences = f"{len(last)} sentences" if len(last) != 1 else "1 sentence"
    told = [
        f"Where its heads look, in {sentences} that were traced at {found.kept} validations "
        f"({short_figure(found.size, 'B')}). Weights show where a head looked, not why the model chose a word: mute it to test. ",
        Strong(f"{head} aligns best"),
        f" ({count} of {len(last)} by itself). ",
        *_resting(found.resting, len(last[0].heads)),
    ]
    heads = _inline(heads_picture(found), 0)
    every: list[list[Cell]] = [[Code(str(head)), *_figures([each])] for head, each in found.means(max(found.traces)).items()]
    blocks: list[Block] = [
        Paragraph(told),
        _by_kind(found),
        Pictures([(heads, f"Every head, as it was at the end; the same picture as {HEADS_SVG}")]),
        *_as_it_learned(found, head, languages),
        Details("Every head in figures", [Table("Every head", ["head", *FIGURES], every)]),
    ]
    return Section("Attention", blocks)


def _resting(heads: Sequence[Head], of: int) -> list[Cell]:
    if not heads:
        return ["No head rests."]
    told = f"{len(heads)} of {of} rest, with {RESTS:.0%} of their weight or more on the end of the source or the start of the target: "
    named: list[Cell] = [told]
    for head in heads[:MOST_NAMED]:
        named += [Code(str(head)), ", "]
    more = f" and {len(heads) - MOST_NAMED} more" if len(heads) > MOST_NAMED else ""
    return [*named[:-1], f"{more}."]


FIGURES: Final = ("entropy, bits", "diagonal", "at rest")


def _figures(some: Sequence[HeadMeans]) -> list[Figure]:
    columns = zip(*((each.entropy, each.diagonal, each.end_mass) for each in some), strict=True)
    return [decimal(math.fsum(column) / len(some), 2) for column in columns]


def _by_kind(found: Attention) -> Table:
    rows = []
    for kind in KINDS:
        for step in sorted(found.traces):
            some = [each for head, each in found.means(step).items() if head.kind == kind]
            rows.append([KIND_NAMES[kind], str(figure(step)), *_figures(some)])
    return Table("Mean of all heads", ["attention", "step", *FIGURES], rows)


def _as_it_learned(found: Attention, head: Head, languages: tuple[str, str] | None) -> tuple[Table, Pictures]:
    """One sentence at the first, the middle and the last step, by the head that aligns at the end."""
    number = min(range(len(found.last)), key=lambda i: abs(len(found.last[i].source.tokens) - PICTURED))
    source = found.last[number].source.text
    rows: list[list[Cell]] = []
    pictures = []
    for step, traces in sorted(found.traces.items()):
        for trace in [each for each in traces if each.source.text == source][:1]:
            sure = math.exp(min(0.0, trace.target.logp / max(1, len(trace.target.tokens))))  # of a piece, on average
            said = Quote(trace.target.text, languages[1] if languages else None)
            rows.append([f"step {figure(step)}", said, Confidence(sure)])
            svg = _inline(heatmap(trace, head.kind, head.layer, head.head), len(rows))
            pictures.append((svg, f"{head} at step {figure(step)}"))
    return Table(f"What it said for “{source}”", ["when", "what it said", "confidence"], rows), Pictures(pictures)


def heads_picture(found: Attention) -> Picture:
    """Three maps, layers by heads. Colour: how concentrated a head looks; number: how diagonally."""
    means, (aligns, _) = found.means(max(found.traces)), found.aligns
    heads = 1 + max(head.head for head in means)
    width, y = max(2 * MARGIN + 64 + CELL * heads, 460.0), MARGIN + 14
    parts = [words(MARGIN, y, "Heads", INK, 'font-size="15" font-weight="600"')]
    y += 22
    for line in (
        "colour: blue looks at all pieces alike, yellow at one",
        "number: 1.0 looks at its own place, as a monotone translation would",
        f"framed: {aligns} aligns; struck out: rests at the end or the start",
    ):
        parts.append(words(MARGIN, y, line, QUIET, 'font-size="11"'))
        y += 15
    for kind in KINDS:
        y += 18
        parts.append(words(MARGIN, y, KIND_NAMES[kind], INK, 'font-weight="600"'))
        layers = 1 + max(head.layer for head in means if head.kind == kind)
        for layer in range(layers):
            parts.append(words(MARGIN, y + 8 + CELL * (layer + 0.65), f"layer {layer}", QUIET, 'font-size="11"'))
        for head in (head for head in means if head.kind == kind):
            parts += _cell(head, means[head], MARGIN + 64 + CELL * head.head, y + 8 + CELL * head.layer, head == aligns)
        y += 8 + CELL * layers + 6
    told = "; ".join(f"{head} spread {each.spread:.2f}, diagonal {each.diagonal:.2f}" for head, each in means.items())
    return draw_picture(width, y + MARGIN, "Attention heads at the end of training", f"By head: {told}.", parts)


def _cell(head: Head, means: HeadMeans, x: float, y: float, aligns: bool) -> Iterator[str]:
    colour = cividis(1 - means.spread)
    yield rect(x + 1, y + 1, CELL - 2, CELL - 2, colour, f'stroke="{RULE}"')
    ink = readable_on(colour)
    yield words(x + CELL / 2, y + CELL / 2 + 4, hundredths(means.diagonal), ink, 'font-size="10" text-anchor="middle"')
    if means.end_mass >= RESTS:
        yield f'<line x1="{x + 3:g}" y1="{y + CELL - 3:g}" x2="{x + CELL - 3:g}" y2="{y + 3:g}" stroke="{ink}" stroke-width="2"/>'
    if aligns:
        yield rect(x + 1, y + 1, CELL - 2, CELL - 2, "none", f'stroke="{SPOT}" stroke-width="3"')


def _inline(picture: Picture, place: int) -> Markup:
    """For the inside of a page: as wide as its place, with names that no other picture on it has."""
    head, rest = picture.svg.split(">", 1)
    head = " ".join(part for part in head.split(" ") if not part.startswith(("width=", "height=")))
    svg = f"{head}>{rest}"
    for name in ("masked", "scale"):
        svg = svg.replace(f'id="{name}"', f'id="attention-{name}-{place}"').replace(f"url(#{name})", f"url(#attention-{name}-{place})")
    return Markup(svg.strip())
