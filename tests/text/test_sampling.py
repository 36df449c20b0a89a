"""Sampled segmentations depend on the draw alone, follow the stated distribution and decode to the text."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from limelight.errors import ConfigError, DataError
from limelight.text.pieces import sampling as module
from limelight.text.pieces.sampling import Merges, Sampler, uniform
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn, placeholder

STEMS = ["the", "then", "there", "their", "other", "mother", "brother"]
WORDS = [*STEMS, "weather", "whether", "together", "gather", "father", "further", "leather", "others"]
TEXTS = [" ".join(words) for words in itertools.permutations(WORDS, 2)] + ["Zoë übersetzte zwölf Häuser -- it's 10,000"] * 9
ODD = [
    "",
    " ",
    "  the  weather ",
    f"mother{placeholder(2)} {placeholder(0)}",
    "日本 🙂",
    "a\tb\nc",
    "theotherweather" * 20,
]

with_fixtures = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request):
    return Tokenizer(learn(TEXTS, PieceSettings(algorithm=request.param, size=400)))


@pytest.fixture(scope="module", params=[True, False], ids=["bytes", "unknown"])
def bpe(request):
    return Tokenizer(learn(TEXTS, PieceSettings(algorithm="bpe", size=400, byte_fallback=request.param)))


def draws(count, start=0):
    return np.arange(start, start + count, dtype=np.uint64)


def test_the_same_draws_give_the_same_ids_in_any_batch_order_and_process(tokenizer, monkeypatch):
    texts = TEXTS[:60] + ODD
    numbers = draws(len(texts), start=1000)
    wanted = Sampler(tokenizer).encode(texts, numbers).to_pylist()
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled = Sampler(tokenizer).encode([texts[i] for i in order], numbers[order]).to_pylist()
    assert [shuffled[place] for place in np.argsort(order)] == wanted
    monkeypatch.setattr(module, "SLICE", 7)
    monkeypatch.setattr(module, "REMEMBERED", 3)
    assert Sampler(tokenizer).encode(texts, numbers).to_pylist() == wanted
    alone = Sampler(tokenizer)
    assert [alone.encode([t], numbers[i : i + 1]).to_pylist()[0] for i, t in enumerate(texts)] == wanted


def test_other_draws_give_other_ids(tokenizer):
    sampler = Sampler(tokenizer, alpha=0.05, dropout=0.3)
    text = " ".join(WORDS)
    seen = {tuple(ids) for ids in sampler.encode([text] * 50, draws(50)).to_pylist()}
    assert len(seen) > 25
    twice = [
        "".join(f"-{piece}" for piece in tokenizer.pieces(ids)).split("-▁")[1:]
        for ids in sampler.encode(["weather weather"] * 50, draws(50)).to_pylist()
    ]
    assert any(first != second for first, second in twice)


@pytest.mark.parametrize("options", [{"alpha": math.inf, "dropout": 0.0}, {"candidates": 1}])
def test_without_chance_sampling_equals_encoding(tokenizer, options):
    texts = TEXTS + ODD
    assert Sampler(tokenizer, **options).encode(texts, draws(len(texts))) == tokenizer.encode(texts)


def test_a_sampled_segmentation_decodes_to_the_text(tokenizer):
    texts = TEXTS[:80] + ODD
    sampler = Sampler(tokenizer, alpha=0.0, dropout=0.5)
    for start in (0, 10**6):
        ids = sampler.encode(texts, draws(len(texts), start)).to_pylist()
        assert tokenizer.decode(ids) == texts


def test_placeholders_are_never_cut(tokenizer):
    sampler = Sampler(tokenizer, alpha=0.0, dropout=0.9, candidates=64)
    for ids in sampler.encode([f"x{placeholder(2)}the"] * 40, draws(40)).to_pylist():
        assert ids.count(tokenizer.placeholders()[2]) == 1


def test_draws_follow_the_probabilities_of_the_candidates(tokenizer):
    sampler = Sampler(tokenizer, alpha=0.3, dropout=0.3)
    stated = {tuple(ids): probability for ids, probability in sampler.segmentations("weather")}
    assert sum(stated.values()) == pytest.approx(1)
    assert len(stated) > 2
    drawn = [tuple(ids) for ids in sampler.encode(["weather"] * 20_000, draws(20_000)).to_pylist()]
    for ids, probability in stated.items():
        assert drawn.count(ids) / 20_000 == pytest.approx(probability, abs=0.015)


def test_unigram_probabilities_are_powers_of_the_models_own():
    """Against all 2 ** (n - 1) ways to cut a word, of which the sampler keeps the best."""
    tokenizer = Tokenizer(learn(TEXTS, PieceSettings(algorithm="unigram", size=400)))
    score_of = {piece: tokenizer.processor.get_score(i) for i, piece in enumerate(tokenizer.vocabulary)}
    word = "▁gather"
    ways = {}
    for cuts in itertools.product([False, True], repeat=len(word) - 1):
        edges = [0, *(at + 1 for at, cut in enumerate(cuts) if cut), len(word)]
        pieces = [word[a:b] for a, b in itertools.pairwise(edges)]
        if all(piece in score_of for piece in pieces):
            ways[tuple(pieces)] = math.exp(0.4 * sum(score_of[piece] for piece in pieces))
    best = sorted(ways.values(), reverse=True)[:8]
    got = Sampler(tokenizer, alpha=0.4, candidates=8).segmentations("gather")
    assert [p for _, p in got] == pytest.approx([weight / sum(best) for weight in best], rel=1e-4)
    for ids, probability in got:
        assert probability == pytest.approx(ways[tuple(tokenizer.pieces(ids))] / sum(best), rel=1e-4)


@pytest.mark.slow
@with_fixtures
@given(word=st.one_of(st.text(max_size=12), st.sampled_from([*WORDS, "⟦0⟧the", "日⟦1⟧本", "\u2581the"])))
def test_merging_without_dropout_equals_sentencepiece(bpe, word):
    merges = Merges(bpe)
    pieces = merges.merge(merges.symbols(bpe.processor.normalize(word)), 0.0, lambda: 0.0)
    assert merges.ids(pieces) == bpe.processor.encode(word)


def test_dropping_all_merges_leaves_characters(bpe):
    ids = Sampler(bpe, dropout=1.0).encode(["the other"], draws(1)).to_pylist()[0]
    assert bpe.pieces(ids) == list("▁the▁other")


def test_random_numbers_are_even_and_depend_on_draw_and_place():
    numbers = uniform(np.repeat(draws(300), 300), np.tile(np.arange(300), 300)).reshape(300, 300)
    assert 0 <= numbers.min() < numbers.max() < 1
    assert np.histogram(numbers, bins=10, range=(0, 1))[0] == pytest.approx(np.full(10, 9000), rel=0.05)
    assert len(np.unique(numbers)) > 0.999 * numbers.size
    assert abs(np.corrcoef(numbers[:-1].ravel(), numbers[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(numbers[:, :-1].ravel(), numbers[:, 1:].ravel())[0, 1]) < 0.02


def test_what_cannot_be_used_is_said_all_at_once(tokenizer):
    with pytest.raises(ConfigError) as caught:
        Sampler(tokenizer, alpha=-1, dropout=2, candidates=0)
    assert len(caught.value.problems) == 3
    with pytest.raises(DataError, match="2 texts need as many draws, not 3"):
        Sampler(tokenizer).encode(["a", "b"], draws(3))


def test_nothing_gives_nothing(tokenizer):
    assert Sampler(tokenizer).encode([], draws(0)).to_pylist() == []
