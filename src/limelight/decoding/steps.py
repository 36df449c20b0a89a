"""A search sees a model by two methods, is asked requests and gives outcomes; these types are defined here.

A model is two methods. So a search can be tested on a table of probabilities, and the same search runs one model or several.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Floats = npt.NDArray[np.floating[Any]]
    Integers = npt.NDArray[np.int64]
    Booleans = npt.NDArray[np.bool_]
else:  # NumPy is loaded where arrays are made: CTranslate2 searches without
    Floats = Integers = Booleans = Any
Finish = Literal["eos", "length"]
IsOver = Callable[[], bool]  # asked at every step, in the thread that searches; once it says yes, it says so for ever


def never() -> bool:
    """Return False: there is no deadline."""
    return False


class State(Protocol):
    """A state is what a model remembers of a batch between steps: B sentences with W rows each, sentence by sentence."""

    def reorder(self, rows: Integers) -> None:
        """Row i goes on from what row rows[i] was; both belong to the same sentence. (B * W,)"""

    def select(self, sentences: Integers) -> None:
        """Only these sentences stay, in this order, each with its W rows. One that is named twice is there twice."""


class Steppable(Protocol):
    """Row by row: the log-probabilities of the next piece."""

    def start(self, source: Integers, width: int = 1) -> Any:
        """Source ids (B, S), padded at the end -> the state of B sentences with `width` rows each."""

    def step(self, token: Integers, state: Any) -> tuple[Floats, Any]:
        """The newest piece of each row (B * W,) -> log-probabilities of the next (B * W, V), which the search may
        change, and the state one piece on."""


class Attentive(Steppable, Protocol):
    """An attentive model also tells where it looked, for the coverage penalty."""

    def attention(self, state: Any) -> Floats:
        """Where the newest step of each row looked: (B * W, S). Each row sums to 1, padding has 0."""


@dataclass(frozen=True)
class Specials:
    """Specials are the ids that mean something to a search."""

    pad: int = 0
    unknown: int | None = 1
    start: int = 2
    end: int = 3
    source_ends: bool = True  # does a source carry the end piece, as the model was taught?

    def add_end(self, source: Sequence[int]) -> list[int]:
        """A source as the model reads it."""
        return [*source, self.end] if self.source_ends else list(source)


@dataclass(frozen=True)
class Request:
    """A request is one sentence to translate. All ids without start and end: the search adds what it needs."""

    source: Sequence[int]
    prefix: Sequence[int] = ()  # the translation begins with these
    phrases: Sequence[Sequence[int]] = ()  # each of these occurs in it
    key: int = 0  # decides, with the seed, what is drawn: the same for the same sentence, in any batch
    given: int = 0  # ids of the prefix that were never a choice, such as a language: they have log-probability 0
    once: Sequence[int] = ()  # each of these pieces occurs exactly once (`marks`), also where the settings suppress it
    nested: Sequence[tuple[int, int]] = ()  # (opening, closing) among them: what is opened last is closed first
    ordered: Sequence[Sequence[int]] = ()  # groups among them: each keeps its order, whatever stands between
    allowed: Sequence[int] = ()  # pieces that may occur in this translation although the settings suppress them
    is_over: IsOver = field(default=never, compare=False)  # nobody waits for it any more: it leaves the batch


def room_for(request: Request) -> int:
    """Pieces that a translation needs to hold its prefix, all its phrases, the marks that are in neither, and the end."""
    held = {piece for ids in (request.prefix, *request.phrases) for piece in ids}
    marks = sum(mark not in held for mark in request.once)
    return len(request.prefix) + sum(map(len, request.phrases)) + marks + 1


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis is a translation as ids, without start and end. `log_probs` has one for each id, and one for the end if it came to it.

    An engine that tells only their sum leaves `log_probs` empty and gives it as `total`. `text` is what the ids spell, once somebody who
    has the pieces has read them.
    """

    ids: list[int]
    score: float  # the sum of log_probs over the length normalization, with the coverage penalty; what marks cost is not divided
    log_probs: list[float]
    finish: Finish
    total: float | None = None
    text: str = ""

    @property
    def steps(self) -> int:
        """Pieces, the end counted."""
        return len(self.ids) + (self.finish == "eos")

    @property
    def mean_log_prob(self) -> float:
        """Of its pieces and its end; 0 for none at all."""
        total = sum(self.log_probs) if self.total is None or self.log_probs else self.total
        return total / self.steps if self.steps else 0.0


@dataclass(frozen=True)
class Outcome:
    """An outcome is the hypotheses of one sentence, best first and distinct; samples as they were drawn.

    None when the model's scores were no numbers, or left nothing possible under the rules of the search; and where its time was over.
    """

    hypotheses: list[Hypothesis]
    is_late: bool = False

    @property
    def invalid_scores(self) -> bool:
        return not self.hypotheses and not self.is_late


LATE = Outcome([], is_late=True)
