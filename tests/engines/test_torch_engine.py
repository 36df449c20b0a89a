"""The torch engine behind the protocol: search, score and attend agree with each other, alone and in batches, in one thread and in two."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from batch_invariance import VOCABULARY, agreement, random_model, random_sentences

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Request
from limelight.engines.engine import Engine
from limelight.engines.torch import TorchEngine, WatchedModel, usual_heads
from limelight.model.attention import Visible

SHORT = SearchSettings(beam=3, nbest=3, max_ratio=1.0, max_extra=6)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return TorchEngine(random_model())


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_its_batch(engine: Engine, beam: int):
    found = agreement(engine, random_sentences(20), sizes=(2, 7, 16), orders=(0,), beam=beam)
    assert found.share >= 0.999
    assert found.furthest <= 1e-4


@pytest.mark.long
@pytest.mark.parametrize("beam", [1, 4])
def test_no_translation_depends_on_its_batch_in_any_order(engine: Engine, beam: int):
    """A part of `make claim-translate FULL=1`, which has 500 sentences."""
    found = agreement(engine, random_sentences(100), sizes=(2, 7, 64), orders=(0, 1, 2), beam=beam)
    assert found.share >= 0.999
    assert found.furthest <= 1e-4


@pytest.mark.slow
def test_padding_that_is_seen_would_be_caught(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    """The control: with padding visible, translations do depend on their batch."""
    monkeypatch.setattr(Visible, "pieces", classmethod(lambda cls, ids, pad: cls(keys=torch.ones_like(ids, dtype=torch.bool))))
    assert agreement(engine, random_sentences(20), sizes=(20,), orders=(0,), beam=1).share < 0.9


def test_forced_scores_are_those_of_the_search(engine: Engine):
    requests = random_sentences(9)
    outcomes = engine.search(requests, SHORT)
    for rank in range(3):
        chosen = [outcome.hypotheses[rank] for outcome in outcomes]
        scored = engine.score([request.source for request in requests], [hypothesis.ids for hypothesis in chosen])
        for log_probs, hypothesis in zip(scored, chosen, strict=True):
            assert len(log_probs) == len(hypothesis.ids) + 1
            np.testing.assert_allclose(log_probs[: len(hypothesis.log_probs)], hypothesis.log_probs, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_marks_occur_once_and_well_nested_and_do_not_depend_on_the_batch(engine: Engine, beam: int):
    """A Transformer that knows nothing of marks, which is the hardest: some sentences have them, others do not."""
    reserved, settings = tuple(range(4, 20)), SHORT.changed(beam=beam, nbest=beam, suppress=tuple(range(4, 20)))
    requests = [
        Request(r.source, once=reserved[: i % 4 * 3], nested=[(5, 4), (6, 8)][: i % 4]) if i % 4 != 1 else r
        for i, r in enumerate(random_sentences(12))
    ]
    outcomes = engine.search(requests, settings)
    for request, outcome in zip(requests, outcomes, strict=True):
        assert outcome.hypotheses
        for ids in (h.ids for h in outcome.hypotheses):
            assert sorted(set(ids) & set(reserved)) == list(request.once)
            assert len([piece for piece in ids if piece in reserved]) == len(request.once)
            places = [[ids.index(opening), ids.index(closing)] for opening, closing in request.nested]
            assert all(opening < closing for opening, closing in places)
            if len(places) == 2:
                (_, first_end), (second, second_end) = sorted(places)
                assert first_end < second or second_end < first_end
        (alone,) = engine.search([request], settings)
        assert [h.ids for h in alone.hypotheses] == [h.ids for h in outcome.hypotheses]


def test_attention_has_a_row_for_each_piece_and_sums_to_one(engine: Engine):
    sources, targets = [[5, 6, 7], [9]], [[8, 9, 10, 11], []]
    first, second = engine.attend(sources, targets)
    assert first.shape == (5, 4)
    assert second.shape == (1, 2)
    np.testing.assert_allclose(first.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(second.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(engine.attend(sources[1:], targets[1:])[0], second, atol=1e-5)


def test_attention_is_that_of_the_chosen_heads():
    model = random_model()
    seen: list[torch.Tensor] = []
    light = next(s for s in model.spotlights() if s.kind == "cross" and s.layer == 1).attention
    light.looks.append(lambda stage, value: seen.append(value) if stage == "weights" else None)
    with torch.inference_mode():
        model(torch.tensor([[5, 6, 7, 3]]), torch.tensor([[2, 8, 9]]))
    light.looks.clear()
    attended = TorchEngine(model, alignment=[(1, 3)]).attend([[5, 6, 7]], [[8, 9]])[0]
    np.testing.assert_allclose(attended, seen[0][0, 3], atol=1e-6)


def test_looking_shares_the_weights_and_leaves_the_model_alone():
    model = random_model()
    watched = WatchedModel(model, usual_heads(model.config))
    assert all(a is b for a, b in zip(model.parameters(), watched.model.parameters(), strict=True))
    assert all(a is b for a, b in zip(model.buffers(), watched.model.buffers(), strict=True))
    assert not any(light.attention.looks for light in model.spotlights())


def test_the_coverage_penalty_changes_scores_by_what_was_looked_at(engine: Engine):
    requests = random_sentences(4)
    for request, outcome in zip(requests, engine.search(requests, SHORT.changed(coverage_penalty=0.2)), strict=True):
        hypothesis = outcome.hypotheses[0]
        looked = engine.attend([request.source], [hypothesis.ids])[0][: len(hypothesis.log_probs), :-1]
        penalty = 0.2 * np.log(np.minimum(looked.sum(axis=0), 1)).sum()
        plain = sum(hypothesis.log_probs) / ((5 + len(hypothesis.log_probs)) / 6) ** 0.6
        assert hypothesis.score == pytest.approx(plain + penalty, abs=1e-4)


@pytest.mark.slow
def test_two_threads_find_what_one_finds(engine: Engine):
    batches = [random_sentences(6, seed) for seed in range(6)]
    settings = [SHORT.changed(coverage_penalty=0.1 * (i % 2)) for i in range(6)]
    alone = [engine.search(batch, setting) for batch, setting in zip(batches, settings, strict=True)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(engine.search, batches, settings))
    assert [[o.hypotheses[0].ids for o in batch] for batch in together] == [[o.hypotheses[0].ids for o in batch] for batch in alone]


@pytest.mark.slow
def test_double_precision_translates_as_well():
    model, requests = random_model(), random_sentences(3)
    expected = [outcome.hypotheses[0].ids for outcome in TorchEngine(model).search(requests, SHORT)]
    double = TorchEngine(random_model().double())
    assert [outcome.hypotheses[0].ids for outcome in double.search(requests, SHORT)] == expected
    assert double.search(requests, SHORT.changed(beam=1, nbest=1))
    assert double.search(requests, SHORT.changed(sampling=Sampling(top_p=0.9)))


def test_no_translation_is_longer_than_the_model_has_positions_for():
    model = random_model()
    model.config = model.config.changed(max_length=12)
    outcome = TorchEngine(model).search([Request([5] * 11)], SearchSettings(beam=2))[0]
    assert len(outcome.hypotheses[0].log_probs) <= 12


def test_pieces_of_a_translation_are_pieces_of_the_vocabulary(engine: Engine):
    outcome = engine.search(random_sentences(1), SHORT)[0]
    assert all(3 < piece < VOCABULARY for hypothesis in outcome.hypotheses for piece in hypothesis.ids)
