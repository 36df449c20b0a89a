"""An ensemble is one model whose probabilities are the mean of several."""

import math

import numpy as np
import pytest
import torch
from slow_search import differences, reference_beam
from table_models import SMALL, LookingTableModel, TableModel, find, random_rows, sentence

from limelight.decoding.config import SearchSettings
from limelight.decoding.ensemble import Ensemble
from limelight.decoding.search import search
from limelight.decoding.steps import Request
from limelight.engines.torch import OnHost
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

NUMBERS = range(100, 106)
REQUESTS = [sentence(number) for number in NUMBERS]


def mean_of(models: list[TableModel], weights: list[float]) -> TableModel:
    """The same as one table, in float64."""

    def rows(number, prefix):
        probabilities = [np.exp(model.rows(number, prefix).astype(np.float64)) for model in models]
        with np.errstate(divide="ignore"):
            return np.log(np.average(probabilities, axis=0, weights=weights)).astype(np.float32)

    return TableModel(rows, models[0].vocab_size)


def tables(*kinds: str) -> list[TableModel]:
    return [TableModel(random_rows(6, seed, kind), 6) for seed, kind in enumerate(kinds)]


@pytest.mark.parametrize("weights", [None, [1, 1, 1], [3, 1, 0.5]])
@pytest.mark.parametrize("width", [1, 4])
def test_a_search_with_an_ensemble_equals_a_search_of_the_mean(weights, width):
    models = tables("plain", "holes", "eos_first")
    settings = SearchSettings(beam=width, nbest=width, max_length=7)
    mean = mean_of(models, weights or [1, 1, 1])
    found = search(Ensemble(models, weights), REQUESTS, settings, SMALL)
    for number, outcome in zip(NUMBERS, found, strict=True):
        assert not differences(outcome.hypotheses, reference_beam(mean, number, settings))


def test_an_ensemble_of_a_model_with_itself_is_that_model():
    model, settings = tables("holes")[0], SearchSettings(beam=3, nbest=3, max_length=7)
    alone, together = find(model, REQUESTS, settings), search(Ensemble([model] * 3), REQUESTS, settings, SMALL)
    for a, b in zip(alone, together, strict=True):
        assert not differences(b.hypotheses, a.hypotheses)


def test_only_the_proportion_of_weights_matters():
    models, settings = tables("plain", "shy"), SearchSettings(max_length=7)
    a, b = (search(Ensemble(models, w), REQUESTS, settings, SMALL) for w in ([1, 3], [20, 60]))
    assert [[h.ids for h in o.hypotheses] for o in a] == [[h.ids for h in o.hypotheses] for o in b]


def step_once(rows: list[list[float]]) -> np.ndarray:
    tabled = [np.array(row, np.float32) for row in rows]
    models = [TableModel(lambda number, prefix, row=row: row, len(row)) for row in tabled]
    ensemble = Ensemble(models)
    state = ensemble.start(np.array([[100, 1]]))
    return ensemble.step(np.array([SMALL.start]), state)[0][0]


def test_what_one_model_thinks_impossible_another_may_bring_in():
    inf = math.inf
    mean = step_once([[-inf, -inf, math.log(0.5), -inf], [-inf, 0.0, math.log(0.25), -inf]])
    assert mean.tolist() == pytest.approx([-inf, math.log(0.5), math.log(0.375), -inf], abs=1e-6)


def test_what_is_no_number_in_one_model_is_none_in_the_mean():
    mean = step_once([[math.nan, 0.0, math.inf], [0.0, -1.0, -math.inf]])
    assert np.isnan(mean[0]) and np.isfinite(mean[1]) and mean[2] == math.inf
    broken = TableModel(lambda number, prefix: np.full(6, np.nan if number == 102 else -1.0, np.float32), 6)
    found = search(Ensemble([*tables("plain"), broken]), REQUESTS, SearchSettings(max_length=5), SMALL)
    assert [o.invalid_scores for o in found] == [number == 102 for number in NUMBERS]


def test_rows_and_sentences_of_all_models_move_together():
    models = [TableModel(random_rows(6, seed), 6) for seed in (1, 2)]
    ensemble, source = Ensemble(models), np.array([[100, 1], [101, 1], [102, 1]])
    state = ensemble.start(source, 2)
    for tokens in ([0] * 6, [2, 3, 4, 5, 2, 3]):
        _, state = ensemble.step(np.array(tokens), state)
    state.reorder(np.array([1, 0, 2, 2, 5, 4]))
    state.select(np.array([2, 0]))
    log_probs, _ = ensemble.step(np.array([4, 4, 5, 5]), state)
    mean = mean_of(models, [1, 1])
    wanted = [mean.rows(102, (3, 4)), mean.rows(102, (2, 4)), mean.rows(100, (3, 5)), mean.rows(100, (2, 5))]
    assert np.allclose(log_probs, np.stack(wanted), atol=1e-6)


def test_an_ensemble_looks_where_its_models_look_on_average():
    class Elsewhere(LookingTableModel):
        def attention(self, state):
            return super().attention(state)[::-1]

    looking = [kind(random_rows(5, 1), 5) for kind in (LookingTableModel, Elsewhere)]
    ensemble = Ensemble(looking, [3, 1])
    state = ensemble.start(np.array([[100, 100, 1], [101, 101, 1]]))
    _, state = ensemble.step(np.array([0, 0]), state)
    own = [model.attention(member) for model, member in zip(looking, state.members, strict=True)]
    assert not np.allclose(own[0], own[1])
    assert np.allclose(ensemble.attention(state), 0.75 * own[0] + 0.25 * own[1])


def test_an_ensemble_with_a_model_that_does_not_tell_where_it_looks_cannot_be_asked():
    mixed = Ensemble([TableModel(random_rows(5, 1), 5), LookingTableModel(random_rows(5, 1), 5)])
    state = mixed.start(np.array([[100, 1]]))
    _, state = mixed.step(np.array([0]), state)
    with pytest.raises(ConfigError, match="model 0 of this ensemble does not tell where it looks"):
        mixed.attention(state)


def test_models_of_different_vocabularies_are_refused():
    models = [TableModel(random_rows(size, 0), size) for size in (6, 7)]
    with pytest.raises(ConfigError, match="model 0 has 6 pieces and model 1 has 7"):
        search(Ensemble(models), REQUESTS, SearchSettings(max_length=5), SMALL)


@pytest.mark.parametrize(
    ("count", "weights", "message"),
    [
        (0, None, "it has no models"),
        (2, [1.0], "2 models have 1 weights"),
        (2, [1.0, 0.0], "weight 1 is 0.0"),
        (2, [math.nan, -1.0], "weight 0 is nan(?s:.)*weight 1 is -1.0"),
        (1, [math.inf], "weight 0 is inf"),
    ],
)
def test_an_ensemble_without_sense_is_refused(count, weights, message):
    with pytest.raises(ConfigError, match=message):
        Ensemble(tables(*["plain"] * count), weights)


@pytest.fixture(scope="module")
def transformers():
    config = ModelConfig(vocab_size=31, encoder_layers=1, decoder_layers=2, d_model=24, d_ff=40, num_heads=3, dropout=0.0)
    models = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = Transformer(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(2.5)  # far from uniform
        models.append(model)
    return models


@pytest.mark.parametrize("width", [1, 4])
def test_two_transformers_search_together_with_the_mean_of_their_probabilities(transformers, width):
    """Each score is what the two models give the pieces when all are read at once."""
    requests = [Request(source=[5 + i, 7, 9, 11][: 1 + i]) for i in range(4)]
    settings = SearchSettings(beam=width, nbest=width, max_length=9)
    with torch.inference_mode():
        found = search(Ensemble([OnHost(model) for model in transformers]), requests, settings)
        alone = search(OnHost(transformers[0]), requests, settings)
        for request, outcome in zip(requests, found, strict=True):
            for h in outcome.hypotheses:
                source = torch.tensor([[*request.source, 3]])
                target = torch.tensor([[2, *h.ids]])
                mean = torch.stack([model(source, target)[0].softmax(-1) for model in transformers]).mean(0).log()
                pieces = torch.tensor([*h.ids, 3])[: len(h.log_probs)]
                wanted = mean[: len(pieces)].gather(1, pieces[:, None])[:, 0].tolist()
                assert h.log_probs == pytest.approx(wanted, abs=1e-4)
    assert all(abs(a.hypotheses[0].score - b.hypotheses[0].score) > 0.01 for a, b in zip(found, alone, strict=True))
