"""Minimum Bayes risk with a chrF that is sacreBLEU's, only faster."""

import gzip
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as example_settings
from hypothesis import strategies as st
from sacrebleu.metrics import CHRF

from limelight.decoding.risk import choose, compute_utility, pairwise_chrf

few_letters = st.text(alphabet="aab cé 日\u2028\ud83d", max_size=20)
any_text = st.text(max_size=12)
ODD = [
    "",
    " ",
    "a",
    "aaaaaaaaaa",
    "aaaaa",
    "ab ab ab",
    "abab",
    "🙂🙃🙂",
    "e\u0301é",
    "x" * 300,
    "\u3000a\u00a0b",
    "A a",
]


def by_sacrebleu(texts: list[str]) -> np.ndarray:
    metric = CHRF()
    return np.array([[metric.sentence_score(h, [r]).score for r in texts] for h in texts]).reshape(len(texts), -1)


@pytest.mark.slow
@example_settings(derandomize=True, deadline=None)
@given(st.lists(few_letters | any_text, min_size=1, max_size=7))
def test_every_pair_has_the_score_that_sacrebleu_gives_it(texts):
    assert np.abs(pairwise_chrf(texts) - by_sacrebleu(texts)).max() < 1e-9


def test_odd_texts_have_the_scores_that_sacrebleu_gives_them():
    assert np.abs(pairwise_chrf(ODD) - by_sacrebleu(ODD)).max() < 1e-9


def translations(count: int, noise: int, seed: int = 0) -> list[str]:
    """German captions with some words exchanged, as samples of one sentence look."""
    if "LIMELIGHT_DATA" not in os.environ:
        pytest.skip("LIMELIGHT_DATA is not set: there is no real text")
    path = Path(os.environ["LIMELIGHT_DATA"]) / "multi30k" / "test_2016_flickr.de.gz"
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]
    generator = random.Random(seed)
    samples = []
    for _ in range(count):
        words = lines[7].split()
        for _ in range(noise):
            words[generator.randrange(len(words))] = generator.choice(generator.choice(lines).split())
        samples.append(" ".join(words))
    return samples


def test_real_text_has_the_scores_that_sacrebleu_gives_it():
    texts = translations(20, 5)
    assert np.abs(pairwise_chrf(texts) - by_sacrebleu(texts)).max() < 1e-9


def test_more_n_grams_than_are_compared_at_once_change_nothing(monkeypatch):
    texts = translations(9, 5) + ODD
    wanted = pairwise_chrf(texts)
    monkeypatch.setattr("limelight.decoding.risk.COLUMNS", 3)
    assert np.array_equal(pairwise_chrf(texts), wanted)


def test_the_utility_is_the_mean_over_all_samples_with_their_frequency():
    texts = ["ein Hund", "ein Hund", "ein Kind", "zwei Hunde", "ein Hund", "", "ein  Kind"]
    assert np.abs(compute_utility(texts) - by_sacrebleu(texts).mean(axis=1)).max() < 1e-9


@pytest.mark.slow
@example_settings(derandomize=True, deadline=None)
@given(st.lists(st.sampled_from(["ab", "abc", "abd", "xyz", "", "b a", "ba"]), max_size=12))
def test_the_order_is_that_of_the_utility_and_of_equals_the_first_comes_first(texts):
    order = choose(texts)
    utility = [round(u, 7) for u in (by_sacrebleu(texts).mean(axis=1) if texts else [])]
    assert order == sorted(range(len(texts)), key=lambda i: (-utility[i], i))


def test_the_choice_is_like_the_others_and_not_the_odd_one_out():
    assert choose(["ab", "xy", "ab"]) == [0, 2, 1]
    assert choose(["etwas ganz anderes", "der Hund läuft", "der Hund lief", "ein Hund läuft"])[0] == 1


def test_samples_that_are_as_good_as_each_other_stay_in_order():
    """A ring in which each shares letters with its neighbours: equal terms, added up in different orders."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for count in range(3, 27):
        ring = [f"{letters[i]}X{letters[(i + 1) % count]}{letters[(i + 2) % count]}" for i in range(count)]
        assert choose(ring) == list(range(count))


@pytest.mark.parametrize("texts", [[], [""], ["", " ", ""], ["a"]])
def test_few_or_empty_samples_stay_in_order(texts):
    assert choose(texts) == list(range(len(texts)))


def test_an_empty_sample_is_not_chosen_while_there_is_another():
    assert choose(["", "", "", "Hund"])[0] == 3


def test_256_samples_take_less_than_a_second():
    """sacreBLEU needs half a minute."""
    texts = translations(256, 5)
    began = time.perf_counter()
    choose(texts)
    assert time.perf_counter() - began < 1
