"""A `BeamTree` is the tree of a search as data. It grows in `analysis.search_tree_builder`; this file needs no torch."""

from collections.abc import Sequence
from dataclasses import dataclass

NO_PARENT = -1  # of the root


@dataclass(frozen=True)
class Node:
    """A node has the names of the JSON."""

    n: int  # its number, which is its place among the nodes
    p: int  # the number of its parent, NO_PARENT for the root; always smaller than its own
    t: int  # pieces from the root to here, this one counted: the root has 0
    id: int
    piece: str
    lp: float  # log-probability of this piece after those before it
    cum: float  # the sum of them along the path
    kept: bool  # it was in the beam
    done: bool  # a hypothesis that ended here, or was at its limit


@dataclass(frozen=True)
class BeamTree:
    size: int  # of the beam
    nodes: Sequence[Node]

    def path(self, n: int) -> list[Node]:
        """From the first piece to node n; the root is not in it."""
        found = []
        while self.nodes[n].p != NO_PARENT:
            found.append(self.nodes[n])
            n = self.nodes[n].p
        return found[::-1]

    def find(self, ids: Sequence[int]) -> int | None:
        """The node that these ids lead to, the end piece among them if they have one; None if the tree does not have it."""
        children = {(node.p, node.id): node.n for node in self.nodes}
        at: int | None = 0
        for piece in ids:
            at = None if at is None else children.get((at, piece))
        return at
