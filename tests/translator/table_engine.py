"""An engine that answers from a function instead of a model and writes down what it was asked, to see what a translator does around it."""

import threading
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from limelight.bundle import BundleSettings
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Finish, Hypothesis, Outcome, Request
from limelight.engines.engine import Matrix
from limelight.model.config import ModelConfig
from limelight.text.normalize import DEFAULT_STEPS, Step
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator import Translator

SENTENCE = "the a cat dog sat ran on mat house is was red blue old big and to in it he she we you they see hear go come"
WORDS = SENTENCE.split(" ")  # of one piece each
Answer = Callable[[Request, SearchSettings], list[Hypothesis]]


@cache
def tokenizer() -> Tokenizer:
    texts = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
    return Tokenizer(learn(texts * 3, PieceSettings(size=420)))


def ids_of(text: str) -> list[int]:
    return list(tokenizer().encode_texts([text])[0])


def hypothesis(text: str, score: float = -1.0, finish: Finish = "eos") -> Hypothesis:
    ids = ids_of(text)
    ended = len(ids) + (finish == "eos")
    return Hypothesis(ids, score, [score / 2] * ended, finish)


def upside_down(request: Request, settings: SearchSettings) -> list[Hypothesis]:
    """The source's pieces from the last to the first: different for every source, and none is its own copy."""
    ids = list(reversed(request.source))
    return [Hypothesis(ids, -float(len(ids)), [-0.5] * (len(ids) + 1), "eos")]


class TableEngine:
    name = "table"
    batch_pieces = 4096

    def __init__(self, answer: Answer = upside_down, workers: int = 1, longest: int = 60, lacking: Sequence[str] = ()):
        self.answer, self.workers, self.longest, self.lacking = answer, workers, longest, list(lacking)
        self.batches: list[list[Request]] = []
        self.asked: list[SearchSettings] = []
        self.closed = False
        self._lock = threading.Lock()

    def lacks(self, settings: SearchSettings, requests: Sequence[Request]) -> list[str]:
        return self.lacking

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        assert requests and all(0 < len(request.source) <= self.longest for request in requests)
        with self._lock:
            self.batches.append(list(requests))
            self.asked.append(settings)
        return [Outcome(self.answer(request, settings)) for request in requests]

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """Each piece costs as much as the source has pieces."""
        return [[-float(len(source))] * (len(target) + 1) for source, target in zip(sources, targets, strict=True)]

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        """Each target piece looks at the source piece as far from the end as it is from the beginning."""
        found = []
        for source, target in zip(sources, targets, strict=True):
            weights = np.full((len(target) + 1, len(source) + 1), 0.01, np.float32)
            for row in range(len(target)):
                weights[row, max(0, len(source) - 1 - row)] = 1
            found.append(weights / weights.sum(axis=1, keepdims=True))
        return found

    @property
    def longest_source(self) -> int:
        return self.longest

    def close(self) -> None:
        self.closed = True


def translator(
    engine: TableEngine, languages: tuple[str, str] = ("en", "de"), normalization: tuple[Step, ...] = DEFAULT_STEPS
) -> Translator:
    config = ModelConfig.preset("toy", tokenizer().size)
    settings = BundleSettings(languages=languages, model=config, normalization=normalization)
    return Translator(engine, settings, tokenizer(), tokenizer())
