"""Figures of the page on the search. Its model is a table, as in the tests: the search knows nothing else of a model than two methods."""

import math
from collections import defaultdict

import numpy as np
from matplotlib.axes import Axes

from figures_style import INK, SECOND, SPOT, THIRD, Drawn, figure
from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.record import Record
from limelight.decoding.search import search
from limelight.decoding.steps import Floats, Integers, Request
from limelight.inspection.analysis.search_tree_builder import beam_tree
from limelight.inspection.trace import BeamTree, Node

PIECES = ["", "?", "<s>", "</s>", "the", "a", "dog", "cat", "runs"]
# Which piece comes next, given the one before. The best first piece leads to worse second ones.
TABLE = {
    "<s>": {"the": 0.55, "a": 0.45},
    "the": {"dog": 0.36, "cat": 0.34, "runs": 0.30},
    "a": {"dog": 0.90, "cat": 0.10},
    "dog": {"runs": 0.95, "</s>": 0.05},
    "cat": {"runs": 0.90, "</s>": 0.10},
    "runs": {"</s>": 1.00},
}


class NoMemory:
    """The piece before is all that counts, and the search hands it in."""

    def reorder(self, rows: Integers) -> None: ...

    def select(self, sentences: Integers) -> None: ...


class TableModel:
    def start(self, source: Integers, width: int = 1) -> NoMemory:
        return NoMemory()

    def step(self, token: Integers, state: NoMemory) -> tuple[Floats, NoMemory]:
        rows = [[TABLE.get(PIECES[int(t)], {"</s>": 1.0}).get(piece, 0.0) for piece in PIECES] for t in token]
        with np.errstate(divide="ignore"):  # what the table does not have is impossible
            return np.log(np.array(rows, np.float32)), state


def _searched(beam: int) -> tuple[BeamTree, str, float]:
    """Tree, best text and its probability."""
    record = Record()
    settings = SearchSettings(beam=beam, length_penalty=0.0)
    (outcome,) = search(TableModel(), [Request([4])], settings, record=record)
    tree = beam_tree(record, 0, lambda piece: PIECES[piece])
    assert tree is not None
    best = outcome.hypotheses[0]
    return tree, " ".join(PIECES[i] for i in best.ids), math.exp(sum(best.log_probs))


def greedy_and_beam() -> Drawn:
    drawn, axes = figure(8.6, 3.2, columns=2)
    told = []
    for place, beam in zip(axes, (1, 2), strict=True):
        tree, text, probability = _searched(beam)
        _draw_tree(place, tree)
        place.set_title("greedy" if beam == 1 else f"a beam of {beam}")
        told.append((text, probability))
    (greedy, p_greedy), (beamed, p_beam) = told
    caption = (
        "The same table of probabilities, searched twice. Filled dots were kept, hollow ones cut, squares are "
        "ends; the number is the probability "
        f"of the text up to there. Greedy takes <i>the</i>, the likelier first word, and ends with "
        f"<i>{greedy}</i>, p = {p_greedy:.3f}. A beam of two "
        f"keeps <i>a</i> for a moment longer and finds <i>{beamed}</i>, p = {p_beam:.3f}."
    )
    return Drawn(drawn, caption, "Two search trees: greedy and a beam of two")


def _draw_tree(place: Axes, tree: BeamTree) -> None:
    heights = _heights(tree)
    for node in tree.nodes:
        x, y = node.t, heights[node.n]
        if node.p >= 0:
            parent = tree.nodes[node.p]
            place.plot(
                [parent.t, x],
                [heights[parent.n], y],
                color=SPOT if node.kept else "#999999",
                linewidth=1.6 if node.kept else 0.8,
                linestyle="-" if node.kept else ":",
                zorder=1,
            )
        shape, fill = ("s" if node.done else "o"), (SPOT if node.kept else "none")
        place.plot(x, y, marker=shape, markersize=6, color=SPOT if node.kept else "#999999", markerfacecolor=fill, zorder=2)
        number = "" if node.p < 0 else f"\n{math.exp(node.cum):.3f}"
        place.text(x, y - 0.18, f"{node.piece}{number}", ha="center", va="top", fontsize=7.5, color=INK)
    place.set_axis_off()
    place.margins(0.1, 0.16)


def _heights(tree: BeamTree) -> dict[int, float]:
    """Leaves one below the other, each node in the middle of its children."""
    children: dict[int, list[Node]] = defaultdict(list)
    for node in tree.nodes[1:]:
        if math.isfinite(node.cum):
            children[node.p].append(node)
    found: dict[int, float] = {}
    leaves = iter(range(0, -len(tree.nodes), -1))

    def visit(n: int) -> float:
        inner = [visit(child.n) for child in children[n]]
        found[n] = float(np.mean(inner)) if inner else float(next(leaves))
        return found[n]

    visit(0)
    return {node.n: found.get(node.n, 0.0) for node in tree.nodes}


def long_or_short() -> Drawn:
    """Scores of a short and a long translation, for growing alpha."""
    alphas = np.linspace(0, 1.5, 61)
    candidates = {"6 pieces, log p = −4": (6, -4.0), "10 pieces, log p = −4.7": (10, -4.7)}  # noqa: RUF001
    drawn, (place,) = figure(5.6, 2.6)
    scores = {}
    for (name, (pieces, total)), colour in zip(candidates.items(), (SECOND, SPOT), strict=True):
        scores[name] = np.array([total / length_penalty(pieces, SearchSettings(length_penalty=a)) for a in alphas])
        place.plot(alphas, scores[name], color=colour, label=name)
    short, long = scores.values()
    crossing = float(alphas[int(np.argmax(long > short))])
    place.axvline(0.6, color=THIRD, linewidth=0.8, linestyle=":")
    place.set(xlabel="α", ylabel="score")  # noqa: RUF001
    place.legend()
    caption = (
        f"Two finished translations and their scores. Without a penalty (α = 0) the shorter always has an "  # noqa: RUF001
        f"advantage. From α = {crossing:.2f} on the "  # noqa: RUF001
        "longer wins here; the paper uses 0.6, the dotted line."
    )
    return Drawn(drawn, caption, "Scores of two translations of different length, by alpha")
