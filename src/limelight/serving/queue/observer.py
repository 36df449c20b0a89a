"""An observer is told by the service of batches and stages, for metrics and traces."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class BatchReport:
    """The report is of a batch that the engine has translated. `fill` is the share of the room that it took, at most 1."""

    model: str
    rows: int
    pieces: int
    fill: float
    seconds: float


class ServiceObserver(Protocol):
    def batch(self, report: BatchReport) -> None: ...

    def stage(self, name: str, seconds: float) -> None:
        """How long a request spent in one stage: prepare, wait, translate."""


class NullObserver:
    """This observer ignores everything."""

    def batch(self, report: BatchReport) -> None:
        pass

    def stage(self, name: str, seconds: float) -> None:
        pass
