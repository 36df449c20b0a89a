"""Three kinds of batches run on a model: translating, searching again under constraints, and scoring."""

from collections.abc import Sequence
from dataclasses import dataclass

from limelight.decoding.config import SearchSettings
from limelight.errors import DeadlineError
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.work import Unfinished
from limelight.translator.pipeline import TranslationOptions
from limelight.translator.sentences import SourceSentence
from limelight.translator.translation import Scored, Translation

AGAIN_PIECES = 256  # of a batch: such a search is slow, and those in it wait for each other


@dataclass(frozen=True)
class OneModel:
    """A batch has sentences for the same model, which is a whole bundle where a sentence brings its direction and tags with it."""

    served: ServedModel

    @property
    def model(self) -> str:
        return self.served.bundle.id

    @property
    def batch_pieces(self) -> int:
        return self.served.translator.batch_pieces


@dataclass(frozen=True)
class TranslateKind(OneModel):
    """Its sentences have the same search and options too."""

    search: SearchSettings
    wanted: TranslationOptions

    def run(self, payloads: Sequence[SourceSentence]) -> list[Translation | Unfinished | DeadlineError | None]:
        made = self.served.translator.begin(payloads, self.search, self.wanted)
        further = SearchAgainKind(self.served, self.search, self.wanted)
        return [
            Unfinished(further, each) if isinstance(each, SourceSentence) else _in_time(asked, each)
            for asked, each in zip(payloads, made, strict=True)
        ]


class SearchAgainKind(TranslateKind):
    """Its sentences are those the first search lost something of, or cannot do: under constraints, with an engine that has them."""

    @property
    def batch_pieces(self) -> int:
        return AGAIN_PIECES

    def run(self, payloads: Sequence[SourceSentence]) -> list[Translation | Unfinished | DeadlineError | None]:
        made = self.served.translator.end(payloads, self.search, self.wanted)
        return [_in_time(each, translation) for each, translation in zip(payloads, made, strict=True)]


@dataclass(frozen=True)
class ScoreKind(OneModel):
    """Its sentences are pairs of source and target."""

    def run(self, payloads: Sequence[tuple[str, str]]) -> list[Scored]:
        return self.served.translator.score([source for source, _ in payloads], [target for _, target in payloads])


def _in_time(asked: SourceSentence, made: Translation | None) -> Translation | DeadlineError | None:
    """Return None only for a model whose scores are no numbers."""
    return DeadlineError("its time was over before it was translated") if made is None and asked.request.is_over() else made
