"""The CTranslate2 engine against the torch engine with the same weights: every kind of model it can run, and what it says of the others."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from batch_invariance import VOCABULARY, agreement, random_model, random_sentences
from torch import Tensor

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Request, Specials
from limelight.engines.ctranslate2 import GNMT_AS_POWER, CTranslate2Engine
from limelight.engines.torch import TorchEngine
from limelight.errors import ModelFileError
from limelight.interop.ctranslate2.export import save
from limelight.interop.ctranslate2.spec import lacks
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

PIECES = [f"<{number}>" for number in range(VOCABULARY)]
SHORT = SearchSettings(beam=4, nbest=4, max_ratio=0.0, max_extra=24)  # the same limit for all
HEADS = [(1, 2)]

VARIANTS: dict[str, dict[str, Any]] = {
    "pre-norm": {},
    "post-norm": {"norm_order": "post"},
    "tied": {"tie": "all"},
    "tied to the decoder": {"tie": "decoder"},
    "halves": {"position_layout": "halves"},
    "tensor2tensor, from 2": {"position_layout": "tensor2tensor", "position_offset": 2},
    "learned": {"positions": "learned"},
    "learned, from 2, post": {"positions": "learned", "position_offset": 2, "norm_order": "post"},
    "rotary": {"positions": "rotary"},
    "rotary, halves": {"positions": "rotary", "position_layout": "halves"},
    "rms": {"norm": "rms"},
    "no bias": {"bias": False},
    "output bias": {"output_bias": True},
    "embeddings not scaled": {"scale_embeddings": False},
    "deep encoder, shallow decoder": {"encoder_layers": 6, "decoder_layers": 1},
    "coarse norm": {"norm_eps": 0.1},
    "grouped heads": {"num_kv_heads": 2},
    "one head for all": {"num_kv_heads": 1, "positions": "rotary", "norm": "rms"},
    **{name: {"activation": name} for name in ("gelu", "silu", "reglu", "geglu", "swiglu")},
    "all of it": {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "norm_order": "post"},
}
REFUSED: dict[str, dict[str, Any]] = {
    "position_offset": {"positions": "rotary", "position_offset": 1},
}


def both(model: Transformer, folder: Path, weights: Mapping[str, Tensor] | None = None, **numbers: str) -> Any:
    specials = Specials()
    heads = HEADS if model.config.decoder_layers > 1 else [(0, 2)]
    if model.config.kv_heads != model.config.num_heads:
        heads = [(1, head) for head in range(model.config.num_heads)]
    save(model.config, weights or model.state_dict(), (PIECES, PIECES), specials, heads, folder, **numbers)
    longest = model.config.max_length - 1
    return TorchEngine(model, specials, heads), CTranslate2Engine(folder, (PIECES, PIECES), specials, longest)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TorchEngine, CTranslate2Engine]]:
    ours, theirs = both(random_model(), tmp_path_factory.mktemp("export"))
    yield ours, theirs
    theirs.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_every_kind_of_model_translates_as_in_torch(name: str, tmp_path: Path):
    changes = VARIANTS[name]
    model = random_model(3, **changes)
    with torch.no_grad():
        if model.config.output_bias:
            torch.nn.init.normal_(model.output_bias, std=2.0)
        # Forbidden pieces are improbable in a trained model; here they would make the engine search again, by other sums.
        (model.output if model.config.tie == "none" else model.target_embedding).weight[:3] = 0.0
    assert not lacks(model.config)
    ours, theirs = both(model, tmp_path)
    requests = random_sentences(12, seed=5)
    sources, targets = [r.source for r in requests], [r.source for r in reversed(requests)]
    for mine, other in zip(ours.score(sources, targets), theirs.score(sources, targets), strict=True):
        assert np.allclose(mine, other, rtol=0, atol=1e-3), np.abs(np.array(mine) - other).max()
    for mine, other in zip(ours.attend(sources, targets), theirs.attend(sources, targets), strict=True):
        assert mine.shape == other.shape
        assert np.allclose(mine, other, rtol=0, atol=1e-4)
    for mine, other in zip(ours.search(requests, SHORT), theirs.search(requests, SHORT), strict=True):
        assert [h.ids for h in mine.hypotheses] == [h.ids for h in other.hypotheses]
        assert [h.finish for h in mine.hypotheses] == [h.finish for h in other.hypotheses]
        for a, b in zip(mine.hypotheses, other.hypotheses, strict=True):
            assert a.score == pytest.approx(b.score, abs=1e-3)
            assert a.mean_log_prob == pytest.approx(b.mean_log_prob, abs=1e-3)


@pytest.mark.parametrize("name", REFUSED)
def test_a_model_that_the_engine_cannot_run_is_named_with_its_reason(name: str):
    config = ModelConfig.preset("toy", VOCABULARY, **REFUSED[name])
    assert [reason for reason in lacks(config) if name in reason]


def test_a_transposed_weight_would_be_seen(engines: Any, tmp_path: Path):
    ours, _ = engines
    name = "decoder.blocks.0.cross_attention.out.weight"
    wrong = {**ours.model.state_dict(), name: ours.model.state_dict()[name].T}
    _, theirs = both(ours.model, tmp_path, wrong)
    source = [[5, 6, 7, 8]]
    assert not np.allclose(ours.score(source, source), theirs.score(source, source), atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize(
    "changes",
    [
        {"length_penalty": 0.0},
        {"length_penalty": 1.0, "length_norm": "power"},
        {"length_penalty": 0.6, "length_norm": "power", "patience": 2.0},
        {"min_length": 6},
        {"suppress": (5, 6, 7, 8, 9, 10), "allow_unknown": True},
    ],
    ids=str,
)
def test_searches_find_the_same_as_ours(engines: Any, changes: dict[str, Any], beam: int):
    ours, theirs = engines
    settings = SHORT.changed(beam=beam, nbest=beam, **changes)
    requests = random_sentences(10, seed=8)
    for mine, other in zip(ours.search(requests, settings), theirs.search(requests, settings), strict=True):
        assert [(h.ids, h.finish) for h in mine.hypotheses] == [(h.ids, h.finish) for h in other.hypotheses]
        assert np.allclose([h.score for h in mine.hypotheses], [h.score for h in other.hypotheses], atol=1e-3)


def test_more_pieces_than_the_model_can_write_are_not_asked_of_the_engine(engines: Any):
    _, theirs = engines
    most = theirs.longest_source
    settings = SHORT.changed(beam=1, nbest=1, min_length=most + 5, max_length=most + 9)
    found = theirs.search(random_sentences(2, seed=8), settings)
    assert all(len(outcome.hypotheses[0].ids) <= most for outcome in found)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_prefix_begins_the_translation_and_counts_in_its_score(engines: Any, beam: int):
    ours, theirs = engines
    settings = SHORT.changed(beam=beam, nbest=beam)
    prefixes = [[], [30, 31], [9]]
    requests = [Request(r.source, prefix) for r, prefix in zip(random_sentences(3, 4), prefixes, strict=True)]
    for request, mine, other in zip(requests, ours.search(requests, settings), theirs.search(requests, settings), strict=True):
        assert all(h.ids[: len(request.prefix)] == list(request.prefix) for h in other.hypotheses)
        # A beam may keep others when the prefix does not count in it; the best is the same.
        assert mine.hypotheses[0].ids == other.hypotheses[0].ids
        assert mine.hypotheses[0].score == pytest.approx(other.hypotheses[0].score, abs=1e-3)


@pytest.mark.parametrize("beam", [1, 4])
def test_no_sequence_comes_twice_and_scores_are_the_models_own(engines: Any, beam: int):
    """It forbids before its softmax, so that a beam may keep others than ours; what it gives obeys the rule and is scored rightly."""
    ours, theirs = engines
    requests = random_sentences(6, seed=8)
    settings = SHORT.changed(beam=beam, nbest=1, no_repeat_ngram=2)
    found = [outcome.hypotheses[0] for outcome in theirs.search(requests, settings)]
    for hypothesis in found:
        pairs = list(zip(hypothesis.ids, hypothesis.ids[1:], strict=False))
        assert len(set(pairs)) == len(pairs)
    scores = ours.score([request.source for request in requests], [hypothesis.ids for hypothesis in found])
    for hypothesis, log_probs in zip(found, scores, strict=True):
        assert np.allclose(hypothesis.log_probs, log_probs[: hypothesis.steps], atol=1e-3)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_sentence_may_have_the_suppressed_pieces_that_it_is_allowed(engines: Any, beam: int):
    """All pieces of its translation are suppressed. One who is allowed them translates as ever, its twin in the batch without."""
    _, theirs = engines
    (request,) = random_sentences(1, seed=8)
    settings = SHORT.changed(beam=beam, nbest=beam)
    (free,) = theirs.search([request], settings)
    pieces = sorted({piece for h in free.hypotheses for piece in h.ids})
    suppressed = settings.changed(suppress=tuple(pieces))
    allowed = Request(request.source, allowed=pieces)
    half = Request(request.source, allowed=pieces[::2])
    assert theirs.lacks(suppressed, [allowed]) == []
    twin, same, other = theirs.search([request, allowed, half], suppressed)
    assert [h.ids for h in same.hypotheses] == [h.ids for h in free.hypotheses]
    assert not any(set(pieces) & set(h.ids) for h in twin.hypotheses)
    assert not any(set(pieces[1::2]) & set(h.ids) for h in other.hypotheses)
    assert len({tuple(o.hypotheses[0].ids) for o in (twin, same, other)}) == 3


def test_sentences_that_are_searched_again_are_searched_together(engines: Any, monkeypatch: pytest.MonkeyPatch):
    _, theirs = engines
    requests, calls = random_sentences(24), list[int]()
    common = [outcome.hypotheses[0].ids[0] for outcome in theirs.search(requests, SHORT)]
    suppressed = SHORT.changed(suppress=tuple(set(common)))
    alone = [theirs.search([request], suppressed)[0].hypotheses[0].ids for request in requests]
    search = theirs._search
    monkeypatch.setattr(theirs, "_search", lambda some, *rest: calls.append(len(some)) or search(some, *rest))
    assert [outcome.hypotheses[0].ids for outcome in theirs.search(requests, suppressed)] == alone
    assert calls == [24, 24]  # one by one it would be 25 calls


def test_what_is_over_meanwhile_is_not_searched_again(engines: Any, monkeypatch: pytest.MonkeyPatch):
    _, theirs = engines
    calls = list[int]()
    requests = [replace(request, is_over=lambda: len(calls) > 1) for request in random_sentences(8)]
    common = sorted({outcome.hypotheses[0].ids[0] for outcome in theirs.search(requests, SHORT)})
    requests = [replace(request, allowed=(n,)) for n, request in enumerate(requests, 40)]  # each is a group of its own
    search = theirs._search
    monkeypatch.setattr(theirs, "_search", lambda some, *rest: calls.append(len(some)) or search(some, *rest))
    found = theirs.search(requests, SHORT.changed(suppress=(*common, *range(40, 48))))
    assert calls == [8, 1] and [outcome.is_late for outcome in found].count(True) == 7


def test_both_engines_allow_the_same(engines: Any):
    ours, theirs = engines
    requests = random_sentences(6, seed=8)
    pieces = sorted({piece for o in ours.search(requests, SHORT) for piece in o.hypotheses[0].ids})
    settings = SHORT.changed(nbest=1, suppress=tuple(pieces))
    some = [Request(r.source, allowed=pieces if i % 2 else ()) for i, r in enumerate(requests)]
    found = [[outcome.hypotheses[0].ids for outcome in engine.search(some, settings)] for engine in (ours, theirs)]
    assert found[0][1::2] == found[1][1::2] == [o.hypotheses[0].ids for o in ours.search(requests, SHORT)][1::2]
    assert not any(set(pieces) & set(ids) for engine in found for ids in engine[::2])


def test_each_sentence_has_its_own_limit(engines: Any):
    _, theirs = engines
    endless = SearchSettings(beam=2, max_ratio=1.0, max_extra=3, suppress=(), min_length=0)
    requests = [Request([7] * count) for count in (1, 5, 40)]
    for request, outcome in zip(requests, theirs.search(requests, endless), strict=True):
        assert all(h.steps <= endless.limit(len(request.source)) for h in outcome.hypotheses)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("penalty", [0.0, 0.6])
def test_neighbours_with_other_limits_and_prefixes_change_nothing(engines: Any, beam: int, penalty: float):
    _, theirs = engines
    settings = SearchSettings(beam=beam, nbest=min(2, beam), length_penalty=penalty, max_ratio=1.0, max_extra=4)
    requests = [Request([7, 9]), Request([11] * 30, [12]), *random_sentences(6, 2), Request([8], [5] * 30)]
    together = theirs.search(requests, settings)
    for request, outcome in zip(requests, together, strict=True):
        (alone,) = theirs.search([request], settings)
        assert [h.ids for h in outcome.hypotheses] == [h.ids for h in alone.hypotheses]


def test_a_prefix_longer_than_the_limit_is_kept_whole(engines: Any):
    ours, theirs = engines
    request, settings = Request([8], [5, 6] * 20), SearchSettings(beam=2, max_length=6)
    for engine in (ours, theirs):
        (outcome,) = engine.search([request], settings)
        assert outcome.hypotheses[0].ids[:40] == [5, 6] * 20


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_a_translation_does_not_depend_on_its_batch_there_either(engines: Any, beam: int):
    found = agreement(engines[1], random_sentences(40), sizes=(2, 7, 32), orders=(0,), beam=beam)
    assert found.share >= 0.999
    assert found.furthest <= 1e-4


def test_eight_bits_stay_near(tmp_path: Path):
    """Much nearer than a stranger: how near depends on the processor's kernels."""
    ours, eight = both(random_model(2, d_model=64), tmp_path, quantize="int8")
    stranger = TorchEngine(random_model(3, d_model=64), Specials())
    assert "int8" in eight.numbers
    sources = [r.source for r in random_sentences(6, 3)]
    scores = ours.score(sources, sources)

    def apart(other: Any) -> float:
        pairs = zip(scores, other.score(sources, sources), strict=True)
        return float(np.mean([np.abs(np.array(mine) - theirs).mean() for mine, theirs in pairs]))

    assert 0 < apart(eight) < apart(stranger) / 5


def test_quantization_leaves_the_weights_it_was_given_alone(tmp_path: Path):
    model = random_model()
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    both(model, tmp_path, quantize="int8")
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())


@pytest.mark.parametrize("beam", [1, 4])
def test_scores_that_are_no_numbers_give_no_translation(tmp_path: Path, beam: int):
    model = random_model()
    with torch.no_grad():
        model.output.weight[17] = math.nan
    _, theirs = both(model, tmp_path)
    assert all(outcome.invalid_scores for outcome in theirs.search(random_sentences(4), SearchSettings(beam=beam)))


def test_what_the_engine_lacks_is_named(engines: Any):
    _, theirs = engines
    assert theirs.lacks(SearchSettings(), [Request([5])]) == []
    for settings, request, word in [
        (SearchSettings(), Request([5], phrases=[[6]]), "phrases"),
        (SearchSettings(), Request([5], once=[6]), "pieces that must occur once"),
        (SearchSettings(coverage_penalty=0.2), Request([5]), "coverage"),
        (SearchSettings(sampling=Sampling()), Request([5]), "sampling"),
        (SearchSettings(groups=2), Request([5]), "groups"),
        (SearchSettings(patience=None), Request([5]), "patience"),
    ]:
        assert [what for what in theirs.lacks(settings, [request]) if word in what]


def test_files_of_something_else_are_refused(tmp_path: Path):
    (tmp_path / "model.bin").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match="cannot be run by CTranslate2"):
        CTranslate2Engine(tmp_path, (PIECES, PIECES), Specials(), 10)


def test_it_does_not_drop_the_best_of_what_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A high length penalty, and an end that comes at any moment: ranked by the power that is asked for, the engine loses short texts."""
    model = random_model(output_bias=True)
    with torch.no_grad():
        model.output_bias[Specials().end] = 7.0
    ours, theirs = both(model, tmp_path)
    requests = [Request(request.source[:10]) for request in random_sentences(200)]
    search = SearchSettings(beam=4, length_penalty=1.8, max_ratio=2.0, max_extra=4)
    wanted = ours.search(requests, search)

    def count_worse(power: float) -> int:
        monkeypatch.setattr("limelight.engines.ctranslate2.GNMT_AS_POWER", power)
        return sum(
            a.hypotheses[0].score - b.hypotheses[0].score > 1e-3 for a, b in zip(wanted, theirs.search(requests, search), strict=True)
        )

    as_it_is, as_asked = count_worse(GNMT_AS_POWER), count_worse(1.0)
    theirs.close()
    assert as_it_is < as_asked
