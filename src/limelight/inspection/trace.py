"""A `Trace` is one translation as data: pieces, probabilities, attention, head statistics, and what changes did.

The decoder reads `inputs` = <s> y0 ... y(n-1), and its row t predicts `tokens[t]`. S = source pieces with their end, T = predictions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from limelight.errors import ConfigError
from limelight.inspection.head_names import Head, Kind, attention_prefix, full_name, parse_attention
from limelight.inspection.interventions import Changes
from limelight.inspection.one_weight import Explanation, explain

NO_PARENT = -1  # of the root of a beam tree
LONGEST = 256  # pieces of a trace: attention grows with the square
Array = npt.NDArray[np.float32]
Stages = dict[str, npt.NDArray[np.generic]]  # by full name; ids are int64, all else float32
Link = tuple[int, int, float]  # source, target, weight; both counted from 0
Remake = Callable[[Sequence[str]], Stages]  # stages by full name, from one more pass


@dataclass(frozen=True)
class ModelFacts:
    """Model facts say which model it was. `sha`: a fingerprint of its weights."""

    id: str
    step: int | None
    sha: str
    enc_layers: int
    dec_layers: int
    heads: int
    d_model: int
    d_ff: int
    norm: Literal["pre", "post"]
    positions: Literal["sinusoidal", "learned", "rotary"]
    source: str  # its languages
    target: str
    vocab: int


@dataclass(frozen=True)
class SourceToken:
    """A source token is a piece and the characters that it stands for; an empty range for pieces that are no text, such as the end.

    `word`: the number of the word between spaces in which it begins; None for a piece that belongs to no word.
    """

    id: int
    piece: str
    start: int
    end: int
    word: int | None


@dataclass(frozen=True)
class Side:
    """A side is the source: `text` as the model was given it, normalized."""

    text: str
    tokens: list[SourceToken]


@dataclass(frozen=True)
class TargetToken:
    """A target token is a predicted piece. `logp` natural; `entropy` of the prediction in bits; `rank` 0: the most probable.

    `margin`: how much more log-probability it has than the best other piece; negative where it is not the first.
    `topk`: the most probable pieces here, as (id, piece, log-probability).
    """

    id: int
    piece: str
    word: int | None
    logp: float
    entropy: float
    rank: int
    margin: float
    topk: list[tuple[int, str, float]]


@dataclass(frozen=True)
class TargetSide:
    """A target side is the translation. `logp`: of its pieces, and of the end if it ended, without what was never a choice.

    `score`: what the search maximized; for a target that was given, what it would have got.
    """

    text: str
    finish: Literal["eos", "length"]
    logp: float
    score: float
    inputs: list[str]
    tokens: list[TargetToken]


@dataclass(frozen=True)
class Guess:
    """A guess is one of the best that the search found. `node`: where it ends in the beam tree."""

    text: str
    logp: float
    score: float
    node: int | None = None


@dataclass(frozen=True)
class Node:
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


@dataclass(frozen=True)
class Align:
    """An alignment links each target piece to its source piece, by one head. `words` are those between spaces, with the sum over the
    source pieces of a word and the mean over the target's."""

    method: str  # "head:cross.5.2"
    head: str
    links: list[Link]
    words: list[Link]


@dataclass(frozen=True)
class HeadStats:
    """Head statistics are defined in `analysis.head_stats`. `gate`: how far it is dimmed."""

    id: str
    entropy: float
    diagonal: float
    end_mass: float
    gate: float = 1.0
    importance: float | None = None


@dataclass(frozen=True)
class Verdict:
    """A verdict is on the changes. The baseline is what is translated without them, and `delta_logp` is its log-probability under the
    changes minus its own; `deltas` say it by piece, and `tokens` which these are. `chrf`: how alike the two texts are, 0 to 100."""

    text: str
    logp: float
    delta_logp: float
    deltas: list[float]
    chrf: float
    tokens: list[str] = field(default_factory=list)  # of a file that was written before there were any, none


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace has `attention` by kind, (layers, heads, queries, keys); rows sum to 1, and what is masked is exactly 0.

    `trace["enc.0.scores"]` is any stage of `head_names.stage_names`: kept if the trace was made with all, else made anew by one more
    pass of the same model under the same changes.
    """

    model: ModelFacts
    source: Side
    target: TargetSide
    attention: dict[Kind, Array]
    align: Align
    heads: list[HeadStats]
    coverage: list[float]
    coverage_deviation: float
    absent_in: float
    absent_out: float
    verified: bool  # the search and the pass that is shown here agree
    difference: float  # between the two log-probabilities
    changes: Changes = field(default_factory=Changes)
    nbest: list[Guess] = field(default_factory=list)
    beam: BeamTree | None = None
    baseline: Verdict | None = None
    timing: dict[str, float] = field(default_factory=dict)  # milliseconds
    kept: Stages = field(default_factory=dict, repr=False)
    remake: Remake | None = field(default=None, repr=False)
    v: int = 1

    def __getitem__(self, stage: str) -> npt.NDArray[np.generic]:
        return self.stages([stage])[stage]

    def stages(self, names: Iterable[str]) -> Stages:
        """Several at once, for the price of one pass."""
        wanted = {name: full_name(name) for name in names}
        known = {
            f"{attention_prefix(kind, layer)}.attn": weights
            for kind, layers in self.attention.items()
            for layer, weights in enumerate(layers)
        } | self.kept
        missing = sorted({name for name in wanted.values() if name not in known})
        if missing and self.remake is None:
            raise ConfigError(f"this trace was read from a file and has no {', '.join(missing)}; make it again with Translator.trace")
        made = self.remake(missing) if missing and self.remake is not None else {}
        return {name: known[full] if full in known else made[full] for name, full in wanted.items()}

    def explain(self, attention: str, head: int, row: int, column: int) -> Explanation:
        """How one weight comes about: print(trace.explain("cross.2", head=1, row=4, column=3)). Rows look, columns are looked at."""
        kind, layer = parse_attention(attention)
        sizes = self.attention[kind].shape
        if layer >= sizes[0]:
            raise ConfigError(f"there is no layer {layer}; {kind} has 0 to {sizes[0] - 1}")
        for name, number, size in zip(("head", "row", "column"), (head, row, column), sizes[1:], strict=True):
            if not 0 <= number < size:
                raise ConfigError(f"there is no {name} {number} in {attention}; they are 0 to {size - 1}")
        rows, columns = self.axes(kind)
        prefix, pieces = attention_prefix(kind, layer), (rows[row], columns[column])
        names = [f"{prefix}.{stage}" for stage in ("q", "k", "scores", "scaled", "masked", "attn")]
        stages = [stage[head] for stage in self.stages(names).values()]
        return explain(f"{kind}.{layer}.{head}", pieces, stages, (row, column), self.changes.attention_temperature)

    def axes(self, kind: Kind) -> tuple[list[str], list[str]]:
        """Pieces of the rows, which look, and of the columns, which are looked at."""
        source, target = [each.piece for each in self.source.tokens], [each.piece for each in self.target.tokens]
        return {"enc": (source, source), "dec": (target, self.target.inputs), "cross": (target, source)}[kind]

    def gate_of(self, head: Head) -> float:
        return next((each.gate for each in self.heads if each.id == str(head)), 1.0)
