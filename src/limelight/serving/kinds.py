"""What the sentences of a batch have in common, and how such a batch is run."""

from collections.abc import Sequence
from dataclasses import dataclass

from limelight.decoding.config import SearchSettings
from limelight.errors import DeadlineError
from limelight.serving.models import Served
from limelight.serving.work import Unfinished
from limelight.translator.careful import Asked
from limelight.translator.planned import Wanted
from limelight.translator.running import Postponed
from limelight.translator.translation import Scored, Translation

AGAIN_PIECES = 256  # of a batch: such a search is slow, and those in it wait for each other


@dataclass(frozen=True)
class OneModel:
    """Sentences for the same model."""

    served: Served

    @property
    def model(self) -> str:
        return self.served.id

    @property
    def batch_pieces(self) -> int:
        return self.served.translator.batch_pieces


@dataclass(frozen=True)
class Translating(OneModel):
    """The same search and wishes too."""

    search: SearchSettings
    wanted: Wanted

    def run(self, payloads: Sequence[Asked]) -> list[Translation | Unfinished | DeadlineError | None]:
        made = self.served.translator.begin(payloads, self.search, self.wanted)
        further = SearchingAgain(self.served, self.search, self.wanted)
        return [
            Unfinished(further, each) if isinstance(each, Postponed) else _in_time(asked, each)
            for asked, each in zip(payloads, made, strict=True)
        ]


@dataclass(frozen=True)
class SearchingAgain(OneModel):
    """What the first search lost something of, or cannot do: under constraints, with an engine that has them."""

    search: SearchSettings
    wanted: Wanted

    @property
    def batch_pieces(self) -> int:
        return AGAIN_PIECES

    def run(self, payloads: Sequence[Postponed]) -> list[Translation | DeadlineError | None]:
        made = self.served.translator.end(payloads, self.search, self.wanted)
        return [_in_time(each.asked, translation) for each, translation in zip(payloads, made, strict=True)]


@dataclass(frozen=True)
class Scoring(OneModel):
    """Pairs of source and target."""

    def run(self, payloads: Sequence[tuple[str, str]]) -> list[Scored]:
        return self.served.translator.score([source for source, _ in payloads], [target for _, target in payloads])


def _in_time(asked: Asked, made: Translation | None) -> Translation | DeadlineError | None:
    """None is left for a model whose scores are no numbers."""
    return DeadlineError("its time was over before it was translated") if made is None and asked.is_over() else made
