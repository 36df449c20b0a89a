"""An `Engine` searches, scores and attends on ids: the protocol that every engine has.

A translator asks `lacks` before it asks for anything unusual, so that an engine without a feature says so instead of ignoring it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Outcome, Request

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix = npt.NDArray[np.float32]
else:  # NumPy is loaded where one is made
    Matrix = Any


class Engine(Protocol):
    name: str  # "torch"
    workers: int  # batches that may run at once, each in a thread of the caller
    batch_pieces: int  # source pieces of a batch, padding included, with which it is fastest

    def lacks(self, settings: SearchSettings, requests: Sequence[Request]) -> list[str]:
        """What of this the engine cannot do, in words; empty when it can do all."""

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        """One batch, in its order. The caller has sorted and cut it; no source is empty or longer than `longest_source`.

        An engine looks at a request's `is_over` as often as it can: at every step, or, where a batch cannot be stopped, before each.
        """

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability of each target piece and of the end after them, one batch."""

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        """Where each target piece looked, one batch: (T + 1, S + 1) for T target pieces and their end, S source pieces and their end.

        Rows sum to 1. From the head or heads that align best, as far as the engine knows.
        """

    @property
    def longest_source(self) -> int:
        """Most pieces of a source, without its end."""

    def close(self) -> None: ...
