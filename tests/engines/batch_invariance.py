"""A sentence's translation must not depend on its neighbours: the same sentences in batches of other sizes and in other orders."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Outcome, Request
from limelight.engines.engine import Engine
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

VOCABULARY = 400


@dataclass(frozen=True)
class Agreement:
    sentences: int
    same: int
    furthest: float  # greatest difference of scores, where the pieces are the same

    @property
    def share(self) -> float:
        return self.same / self.sentences


def random_model(seed: int = 0, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    # Its own output matrix: with a tied one a random model repeats its last piece for ever, whatever the source.
    model = Transformer(ModelConfig.preset("toy", VOCABULARY, **{"dropout": 0.0, "tie": "none", **changes})).eval()
    with torch.no_grad():  # sharper, and looking more at the source, as a trained model: else all translations would be alike
        (model.output if model.config.tie == "none" else model.target_embedding).weight.mul_(3)
        for light in model.spotlights():
            if light.kind == "cross":
                light.attention.out.weight.mul_(3)
                light.attention.q.weight.mul_(3)
    return model


def random_sentences(count: int, seed: int = 1) -> list[Request]:
    """1 to 80 pieces."""
    draw = random.Random(seed)
    return [Request([draw.randrange(4, VOCABULARY) for _ in range(draw.randint(1, 80))]) for _ in range(count)]


def agreement(engine: Engine, requests: Sequence[Request], sizes: Sequence[int], orders: Sequence[int], beam: int) -> Agreement:
    """Against each sentence by itself."""
    settings = SearchSettings(beam=beam, nbest=1, max_ratio=1.0, max_extra=10)
    alone = [engine.search([request], settings)[0] for request in requests]
    compared = same = 0
    furthest = 0.0
    for size in sizes:
        for order in orders:
            for mine, other in zip(alone, _batched(engine, requests, settings, size, order), strict=True):
                compared += 1
                if mine.hypotheses[0].ids == other.hypotheses[0].ids:
                    same += 1
                    furthest = max(furthest, abs(mine.hypotheses[0].score - other.hypotheses[0].score))
    return Agreement(compared, same, furthest)


def _batched(engine: Engine, requests: Sequence[Request], settings: SearchSettings, size: int, order: int) -> list[Outcome]:
    places = list(range(len(requests)))
    random.Random(order).shuffle(places)
    found: dict[int, Outcome] = {}
    for at in range(0, len(places), size):
        some = places[at : at + size]
        found.update(zip(some, engine.search([requests[i] for i in some], settings), strict=True))
    return [found[i] for i in range(len(requests))]
