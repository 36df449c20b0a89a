"""Pieces that others numbered: ids there and back, what SentencePiece does not know, and what no text may become."""

import io
from typing import Any

import numpy as np
import pytest
from sentencepiece import SentencePieceTrainer

from limelight.errors import ConfigError
from limelight.text.pieces.sampling import Sampler
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.text.pieces.vocabulary import Vocabulary

TEXTS = ["the cat sat on the mat", "a cat and a hat", "that mat is flat"] * 20


def model(algorithm: str = "bpe", **more: Any) -> bytes:
    written = io.BytesIO()
    options = {"model_type": algorithm, "vocab_size": 40, "hard_vocab_limit": False, "minloglevel": 2, **more}
    SentencePieceTrainer.train(sentence_iterator=iter(TEXTS), model_writer=written, **options)
    return written.getvalue()


def backwards(spm: bytes, *more: str, left_out: tuple[str, ...] = ()) -> Vocabulary:
    """Marian's way: the end first, the padding last, and the rest not as SentencePiece has it."""
    kept = [piece for piece in reversed(Tokenizer(spm).learnt[3:]) if piece not in left_out]
    pieces = ("</s>", "<unk>", *more, *kept, "<pad>")
    control = tuple(i for i, piece in enumerate(pieces) if piece.startswith(">>"))
    return Vocabulary(pieces=pieces, pad=len(pieces) - 1, unknown=1, end=0, control=control)


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc"])
def test_a_text_has_the_same_pieces_with_other_ids_and_comes_back(algorithm: str, rule: str) -> None:
    spm = model(algorithm, normalization_rule_name=rule)
    own, other = Tokenizer(spm), Tokenizer(spm, backwards(spm))
    for ids, numbered in zip(own.encode(TEXTS).to_pylist(), other.encode(TEXTS).to_pylist(), strict=True):
        assert ids != numbered and own.pieces(ids) == other.pieces(numbered)
    assert other.decode(other.encode(TEXTS).to_pylist()) == TEXTS
    assert (other.pad, other.unknown, other.start, other.end) == (other.size - 1, 1, -1, 0)


def test_a_piece_that_the_vocabulary_has_not_is_unknown() -> None:
    spm = model()
    tokenizer = Tokenizer(spm, backwards(spm, left_out=("▁cat",)))
    whole = Tokenizer(spm).pieces(Tokenizer(spm).encode(["a cat"]).to_pylist()[0])
    assert "▁cat" in whole
    found = tokenizer.encode(["a cat"]).to_pylist()[0]
    assert found[whole.index("▁cat")] == tokenizer.unknown and len(found) == len(whole)


def test_what_sentencepiece_does_not_know_the_vocabulary_may() -> None:
    """ß, which only the other side's model has."""
    spm = model()
    tokenizer = Tokenizer(spm, backwards(spm, "ß", "ßß"))
    assert "ß" not in Tokenizer(spm).learnt
    sharp = tokenizer.vocabulary.index("ß")
    assert sharp in tokenizer.encode(["ß"]).to_pylist()[0]
    assert tokenizer.encode(["the cat ß"]).to_pylist()[0][-1] == sharp
    assert tokenizer.unknown in tokenizer.encode(["a Ω"]).to_pylist()[0]
    assert tokenizer.decode([[*tokenizer.encode(["the cat"]).to_pylist()[0], sharp]]) == ["the catß"]


def test_no_text_becomes_a_control_piece() -> None:
    spm = model(user_defined_symbols=[">>de<<"])
    tokenizer = Tokenizer(spm, backwards(spm))
    language = tokenizer.vocabulary.index(">>de<<")
    for text in (">>de<<", "</s>", "<pad>", ">>de<< cat"):
        assert not set(tokenizer.encode([text]).to_pylist()[0]) & {language, tokenizer.end, tokenizer.pad}
    assert tokenizer.decode([[language, *tokenizer.encode(["the mat"]).to_pylist()[0], tokenizer.end, tokenizer.pad]]) == ["the mat"]
    assert tokenizer.controls() == {language, tokenizer.end, tokenizer.pad}


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
def test_sampling_draws_the_same_pieces_with_other_ids(algorithm: str) -> None:
    spm = model(algorithm)
    own, other = Tokenizer(spm), Tokenizer(spm, backwards(spm))
    draws = np.arange(len(TEXTS), dtype=np.uint64)
    one, two = (Sampler(tokenizer, alpha=0.2, dropout=0.3).encode(TEXTS, draws).to_pylist() for tokenizer in (own, other))
    assert [own.pieces(ids) for ids in one] == [other.pieces(ids) for ids in two]
    assert one != own.encode(TEXTS).to_pylist()


def test_ids_from_memory_are_those_of_the_vocabulary() -> None:
    spm = model(normalization_rule_name="identity", remove_extra_whitespaces=False)
    tokenizer = Tokenizer(spm, backwards(spm))
    assert tokenizer.by_words
    first = tokenizer.encode(["the cat", " mat"]).to_pylist()
    assert tokenizer.encode(["the cat", " mat"]).to_pylist() == first == [tokenizer.encode([t]).to_pylist()[0] for t in ("the cat", " mat")]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"pad": 9}, "pad=9 is not among"),
        ({"start": 9}, "start=9"),
        ({"control": (9,)}, "control has id 9"),
        ({"unknown": 0}, "unknown=0 is also"),
        ({"pad": 0}, "pad=0 is the end too"),
        ({"pieces": ("</s>", "<unk>", "a", "a", "<pad>")}, "'a' occurs twice"),
        ({"pieces": ("</s>", "<unk>", "a", "", "<pad>")}, "pieces.3"),
        ({"ends": 3}, "did you mean `end`"),
    ],
)
def test_a_vocabulary_that_contradicts_itself_is_refused(changes: dict[str, Any], said: str) -> None:
    right = {"pieces": ("</s>", "<unk>", "a", "b", "<pad>"), "pad": 4, "unknown": 1, "end": 0}
    Vocabulary(**right)
    with pytest.raises(ConfigError) as caught:
        Vocabulary(**{**right, **changes})
    assert said in str(caught.value)
