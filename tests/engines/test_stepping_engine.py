"""What CTranslate2 computes, searched step by step, is what torch finds with the same weights: in every kind of search."""

from collections.abc import Iterator

import pytest
from batch_invariance import VOCABULARY, random_model, random_sentences

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Request, Specials
from limelight.engines.ctranslate2 import CTranslate2Engine
from limelight.engines.engine import Engine
from limelight.engines.stepping import SteppingEngine
from limelight.engines.torch import TorchEngine
from limelight.interop.ctranslate2.export import save

PIECES = [f"<{number}>" for number in range(VOCABULARY)]
SHORT = {"max_ratio": 0.0, "max_extra": 12}
SEARCHES = {
    "greedy": (SearchSettings(beam=1, **SHORT), {}),
    "beam": (SearchSettings(beam=4, nbest=4, **SHORT), {}),
    "classical beam": (SearchSettings(beam=3, patience=None, **SHORT), {}),
    "phrases": (SearchSettings(beam=4, **SHORT), {"phrases": [[20, 21], [30]]}),
    "marks": (SearchSettings(beam=4, **SHORT), {"once": (40, 41, 42), "nested": ((40, 41),)}),
    "marks in order": (SearchSettings(beam=1, **SHORT), {"once": (40, 41, 42), "ordered": ((42, 40, 41),)}),
    "prefix": (SearchSettings(beam=2, **SHORT), {"prefix": [17, 18]}),
    "no repeats": (SearchSettings(beam=4, no_repeat_ngram=2, **SHORT), {}),
    "drawn": (SearchSettings(sampling=Sampling(top_k=5, seed=3), nbest=2, **SHORT), {}),
    "groups": (SearchSettings(beam=4, groups=2, nbest=2, **SHORT), {}),
}


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, Engine]]:
    model, folder = random_model(), tmp_path_factory.mktemp("export")
    save(model.config, model.state_dict(), (PIECES, PIECES), Specials(), [(1, 2)], folder)
    fast = CTranslate2Engine(folder, (PIECES, PIECES), Specials(), model.config.max_length - 1)
    yield SteppingEngine(fast), TorchEngine(model)
    fast.close()


@pytest.mark.parametrize("kind", SEARCHES)
def test_every_search_finds_what_torch_finds(engines: tuple[Engine, Engine], kind: str) -> None:
    settings, more = SEARCHES[kind]
    requests = [Request(each.source, key=number, **more) for number, each in enumerate(random_sentences(6))]
    assert engines[0].lacks(settings, requests) == []
    for stepped, own in zip(*(engine.search(requests, settings) for engine in engines), strict=True):
        assert [h.ids for h in stepped.hypotheses] == [h.ids for h in own.hypotheses]
        assert [h.finish for h in stepped.hypotheses] == [h.finish for h in own.hypotheses]
        for a, b in zip(stepped.hypotheses, own.hypotheses, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-4)
            assert a.log_probs == pytest.approx(b.log_probs, abs=1e-4)


def test_what_it_cannot_do_is_said(engines: tuple[Engine, Engine]) -> None:
    assert engines[0].lacks(SearchSettings(coverage_penalty=0.2), [Request([5])]) == ["coverage_penalty"]


def test_a_sentence_whose_time_is_over_is_late(engines: tuple[Engine, Engine]) -> None:
    over = [Request([5, 6], is_over=lambda: True), Request([7, 8])]
    found = engines[0].search(over, SearchSettings(beam=2, **SHORT))
    assert [outcome.is_late for outcome in found] == [True, False]
