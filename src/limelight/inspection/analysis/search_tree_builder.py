"""The tree of a search is built here: every beginning that was in the beam, and at each step the best cut ones.

0 <s> ─ 1 ▁Die ─ 3 ▁Katze ─ 7 ▁saß ─ ...  done
   │       └┄┄┄┄ 4 ▁Kat                   cut: kept is False
   └┄┄┄┄ 2 ▁Eine
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.record import Branches, Record, RecordedStep
from limelight.inspection.trace import NO_PARENT, BeamTree, Node

MOST_NODES = 4_000

Pieces = Callable[[int], str]  # id -> piece


def beam_tree(record: Record, sentence: int, pieces: Pieces, most: int = MOST_NODES) -> BeamTree | None:
    """Build the tree of one sentence, with at most `most` nodes; None when nothing was noted, as of a search that draws."""
    steps = [(step, list(step.number).index(sentence)) for step in record.steps if sentence in step.number]
    if not steps or record.settings is None or record.specials is None:
        return None
    growing = _TreeBuilder(record.settings.beam, record.specials.start, pieces)
    for step, place in steps:
        growing.grow(step, place)
    return BeamTree(record.settings.beam, _at_most(growing.nodes, most, record.settings))


class _TreeBuilder:
    """A tree while it grows. `rows` are the nodes that the rows of the beam stand at; None: there is no hypothesis."""

    def __init__(self, width: int, start: int, pieces: Pieces) -> None:
        self.width, self.pieces = width, pieces
        self.nodes = [Node(0, NO_PARENT, 0, start, pieces(start), 0.0, 0.0, kept=True, done=False)]
        self.rows: list[int | None] = [0] * width
        self._known: dict[tuple[int, int], int] = {}

    def grow(self, step: RecordedStep, place: int) -> None:
        rows: list[int | None] = [None] * self.width
        for column in self._alive(step.taken, place):
            done = bool(step.done[place, column])
            node = self._add(step.taken, place, column, kept=True, done=done)
            if column < self.width and not done:
                rows[column] = node
        for column in self._alive(step.cut, place):
            self._add(step.cut, place, column, kept=False, done=False)
        self.rows = rows

    @staticmethod
    def _alive(branches: Branches, place: int) -> Iterable[int]:
        return (column for column, total in enumerate(branches.sums[place]) if abs(total) < float("inf"))

    def _add(self, branches: Branches, place: int, column: int, kept: bool, done: bool) -> int:
        """Groups of a beam may come to the same node; what one of them keeps is kept."""
        parent = self.rows[int(branches.parents[place, column])]
        assert parent is not None, "a hypothesis that is alive goes on from one that was"
        piece = int(branches.tokens[place, column])
        known = self._known.get((parent, piece))
        if known is not None:
            before = self.nodes[known]
            self.nodes[known] = replace(before, kept=before.kept or kept, done=before.done or done)
            return known
        number = self._known[parent, piece] = len(self.nodes)
        lp, cum = float(branches.log_probs[place, column]), float(branches.sums[place, column])
        text, t = self.pieces(piece), self.nodes[parent].t + 1
        self.nodes.append(Node(number, parent, t, piece, text, lp, cum, kept, done))
        return number


def _at_most(nodes: Sequence[Node], most: int, settings: SearchSettings) -> list[Node]:
    """All of them, or whole paths while they fit: first to the best ends, then to what was kept, then to what was cut."""
    if len(nodes) <= most:
        return list(nodes)
    inner = {node.p for node in nodes}
    leaves = [node for node in nodes if node.done or node.n not in inner]
    leaves.sort(key=lambda node: (not node.done, not node.kept, -node.cum / length_penalty(max(1, node.t), settings)))
    chosen = {0}
    for leaf in leaves:
        path, at = [], leaf.n
        while at not in chosen:
            path.append(at)
            at = nodes[at].p
        if len(chosen) + len(path) <= most:
            chosen.update(path)
    number = {old: new for new, old in enumerate(sorted(chosen))} | {NO_PARENT: NO_PARENT}
    return [replace(nodes[old], n=number[old], p=number[nodes[old].p]) for old in sorted(chosen)]
