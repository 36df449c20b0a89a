"""Terms of real sentences, required of a Transformer with random weights, which would never say them by itself."""

import gzip
import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Hypothesis, Outcome, Request
from limelight.engines.torch import OnHost
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tokenizer import END, START, PieceSettings, Tokenizer, learn

BATCH = 100


@dataclass(frozen=True)
class Terminology:
    """The 500 sentences of WMT25's terminology task with the German terms that each must contain."""

    tokenizer: Tokenizer
    model: Transformer
    requests: list[Request]
    terms: list[list[str]]


@pytest.fixture(scope="module")
def terminology() -> Terminology:
    if "LIMELIGHT_DATA" not in os.environ:
        pytest.skip("LIMELIGHT_DATA is not set: there are no terms")
    path = Path(os.environ["LIMELIGHT_DATA"]) / "wmt25-terminology" / "test.en-de.jsonl.gz"
    rows = [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().split("\n") if line]
    tokenizer = Tokenizer(learn([row[side] for row in rows for side in ("en", "de")], PieceSettings(size=1500)))
    torch.manual_seed(0)
    model = Transformer(ModelConfig.preset("toy", vocab_size=tokenizer.size)).eval()
    terms = [list(row["proper"].values()) for row in rows]
    requests = [
        Request(source=source, phrases=tokenizer.encode(wanted).to_pylist())
        for source, wanted in zip(tokenizer.encode([row["en"] for row in rows]).to_pylist(), terms, strict=True)
    ]
    return Terminology(tokenizer, model, requests, terms)


def translate(terminology: Terminology, width: int, requests: list[Request]) -> list[Outcome]:
    """In batches of sources of about equal length, as a translator does."""
    settings = SearchSettings(beam=width, nbest=min(width, 2), max_ratio=0.5, max_extra=8)
    order = sorted(range(len(requests)), key=lambda i: len(requests[i].source))
    outcomes: dict[int, Outcome] = {}
    for at in range(0, len(order), BATCH):
        batch = order[at : at + BATCH]
        found = search(OnHost(terminology.model), [requests[i] for i in batch], settings)
        outcomes.update(zip(batch, found, strict=True))
    return [outcomes[i] for i in range(len(requests))]


def held(terminology: Terminology, outcomes: list[Outcome]) -> int:
    """How many sentences have all their terms in the text of every hypothesis."""
    count = 0
    for outcome, terms in zip(outcomes, terminology.terms, strict=False):
        texts = terminology.tokenizer.decode([h.ids for h in outcome.hypotheses])
        count += bool(texts) and all(term in text for text in texts for term in terms)
    return count


@torch.inference_mode()
def forced(model: Transformer, pairs: list[tuple[Request, Hypothesis]]) -> list[list[float]]:
    """The log-probabilities when the whole translation is read at once."""
    source = pad_sequence([torch.tensor([*r.source, END]) for r, _ in pairs], batch_first=True)
    target = pad_sequence([torch.tensor([START, *h.ids]) for _, h in pairs], batch_first=True)
    log_probs = model(source, target).log_softmax(-1)
    pieces = [torch.tensor([*h.ids, END])[: len(h.log_probs)] for _, h in pairs]
    return [log_probs[i, : len(ids)].gather(1, ids[:, None])[:, 0].tolist() for i, ids in enumerate(pieces)]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "sentences"), [(4, 500), (1, 500), (8, 150)])
def test_every_term_occurs_in_every_translation_with_the_models_own_scores(terminology, width, sentences):
    requests = terminology.requests[:sentences]
    assert len(requests) == sentences
    outcomes = translate(terminology, width, requests)
    assert held(terminology, outcomes) == sentences
    pairs = [(r, h) for r, o in zip(requests, outcomes, strict=True) for h in o.hypotheses]
    pairs.sort(key=lambda pair: len(pair[0].source))
    worst = 0.0
    for at in range(0, len(pairs), BATCH):
        for (_, h), wanted in zip(pairs[at : at + BATCH], forced(terminology.model, pairs[at : at + BATCH]), strict=True):
            assert len(h.log_probs) == len(wanted)
            worst = max(worst, *(abs(a - b) for a, b in zip(h.log_probs, wanted, strict=True)))
            assert h.score == pytest.approx(sum(h.log_probs) / ((5 + len(wanted)) / 6) ** 0.6, abs=1e-3)
    assert worst < 1e-4


@pytest.mark.slow
def test_without_constraints_hardly_any_term_occurs(terminology):
    """The control: the terms came out because they were required."""
    free = [Request(source=request.source) for request in terminology.requests]
    assert held(terminology, translate(terminology, 4, free)) <= 5
