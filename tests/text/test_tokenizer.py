"""Encoding by words gives what SentencePiece gives for whole texts; learning is repeatable and fits its data."""

import gzip
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from limelight.errors import ConfigError, DataError
from limelight.text.pieces import tokenizer as module
from limelight.text.pieces import word_memory
from limelight.text.pieces.few_words import LONGEST, FewWords
from limelight.text.pieces.tokenizer import (
    END,
    PAD,
    START,
    UNKNOWN,
    PieceSettings,
    Tokenizer,
    learn,
    placeholder,
    suggest_size,
    tag,
)

SUBJECTS = ["the old dog", "a small cat", "my neighbour", "der alte Hund", "eine kleine Katze", "mein Nachbar", "Zoë"]
VERBS = ["sees", "follows", "remembered", "sieht", "verfolgt", "erinnerte sich an", "übersetzte"]
OBJECTS = [
    "the translation.",
    "twelve houses, two towers",
    "die Übersetzung!",
    "zwölf Häuser",
    "10,000 km",
    "it's -- here",
]
TEXTS = [f"{s} {v} {o}" for s in SUBJECTS for v in VERBS for o in OBJECTS]
KINDS = [("bpe", True), ("bpe", False), ("unigram", True), ("unigram", False)]

fragments = st.one_of(
    st.sampled_from([" ", "  ", "\t", "\n", "\u2581", "⟦0⟧", "⟦15⟧", "⟦1", "<tag:0>", "</s>", "<0x41>", "the", "Hund"]),
    st.sampled_from(["Übersetzung", " house", "....", "日本", "🙂", "\u00a0", "\u2028", "\0", "e\u0301"]),
    st.text(max_size=6),
)
columns = st.lists(st.lists(fragments, max_size=8).map("".join), max_size=5)
with_fixtures = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}-{'bytes' if kind[1] else 'unknown'}")
def tokenizer(request):
    algorithm, byte_fallback = request.param
    size = 420 if byte_fallback else 160
    return Tokenizer(learn(TEXTS, PieceSettings(algorithm=algorithm, byte_fallback=byte_fallback, size=size)))


def imported(**options):
    """A model learnt with other options than ours."""
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=written,
        vocab_size=150,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        **options,
    )
    return Tokenizer(written.getvalue())


def assert_same_or_tied(tokenizer, texts):
    """Equal to whole texts; unigram may choose another segmentation if both score the same but for rounding."""
    tied = 0
    for text, got in zip(texts, tokenizer.encode(texts).to_pylist(), strict=True):
        wanted = tokenizer.processor.encode(text)
        if got != wanted:
            assert tokenizer.facts.algorithm == "unigram", text
            score = tokenizer.processor.get_score
            assert sum(map(score, got)) == pytest.approx(sum(map(score, wanted)), rel=1e-5), text
            assert tokenizer.decode([got]) == tokenizer.decode([wanted])
            tied += 1
    return tied


@pytest.mark.slow
@with_fixtures
@given(texts=columns)
def test_encoding_by_words_equals_whole_texts(tokenizer, texts):
    assert tokenizer.by_words
    assert_same_or_tied(tokenizer, texts)


@pytest.mark.slow
@with_fixtures
@given(texts=columns)
def test_decoding_gives_back_every_text_but_for_blocks(tokenizer, texts):
    if tokenizer.processor.piece_to_id("<0x00>") == tokenizer.unknown:
        texts = [text for text in texts if tokenizer.unknown not in tokenizer.processor.encode(text)]
    ids = tokenizer.encode(texts).to_pylist()
    assert tokenizer.decode(ids) == [text.replace("\u2581", " ") for text in texts]


def test_spaces_at_either_end_and_in_a_row_are_kept(tokenizer):
    texts = ["", " ", "  ", " a", "a ", "a  b", "   the   dog   ", ""]
    assert tokenizer.encode(texts).to_pylist() == [tokenizer.processor.encode(text) for text in texts]
    assert tokenizer.decode(tokenizer.encode(texts).to_pylist()) == texts


def test_batched_equals_one_by_one(tokenizer):
    ids = tokenizer.encode(TEXTS)
    assert ids.type == pa.list_(pa.int32())
    alone = [Tokenizer(tokenizer.model).encode([text]).to_pylist()[0] for text in TEXTS[::40]]
    assert ids.to_pylist()[::40] == alone


@pytest.mark.slow
@with_fixtures
@given(
    st.lists(
        st.text(st.one_of(st.sampled_from("ab é漢 \u27e61\u27e7\u2581\t"), st.characters(codec="utf-8")), max_size=20),
        max_size=5,
    )
)
def test_a_few_texts_get_the_ids_of_a_column(tokenizer, texts):
    column = tokenizer.encode(texts).to_pylist()
    assert tokenizer.encode_texts(texts) == column
    assert Tokenizer(tokenizer.model, tokenizer.numbers).encode_texts(texts) == column, "with nothing remembered"


def test_half_a_character_is_refused_in_a_few_texts_too(tokenizer):
    with pytest.raises(DataError, match="half a character"):
        tokenizer.encode_texts(["a", "b \ud83d"])


def test_neither_slices_nor_forgetting_change_the_ids(tokenizer, monkeypatch):
    wanted = tokenizer.encode(TEXTS[:50]).to_pylist()
    monkeypatch.setattr(module, "SLICE", 7)
    monkeypatch.setattr(word_memory, "REMEMBERED", 5)
    small = Tokenizer(tokenizer.model)
    assert small.encode(TEXTS[:50]).to_pylist() == wanted
    assert small.encode(TEXTS[:50]).to_pylist() == wanted
    assert len(small._memory.row_of_word) < len({word for text in TEXTS[:50] for word in text.split(" ")})


def test_a_part_of_a_column_and_chunks_are_encoded_like_a_list(tokenizer):
    wanted = tokenizer.encode(TEXTS[3:9]).to_pylist()
    assert tokenizer.encode(pa.array(TEXTS).slice(3, 6)).to_pylist() == wanted
    assert tokenizer.encode(pa.chunked_array([TEXTS[3:5], TEXTS[5:9]])).to_pylist() == wanted
    for other in (pa.large_string(), pa.string_view()):
        assert tokenizer.encode(pa.array(TEXTS[3:9], other)).to_pylist() == wanted
    assert tokenizer.encode([]).to_pylist() == []


def test_reserved_ids_are_where_the_model_config_expects_them(tokenizer):
    assert (tokenizer.pad, tokenizer.unknown, tokenizer.start, tokenizer.end) == (PAD, UNKNOWN, START, END)
    assert (PAD, UNKNOWN, START, END) == (0, 1, 2, 3)


def test_placeholders_are_one_piece_inside_text_and_tags_never_come_from_text(tokenizer):
    ids = tokenizer.encode([f"the{placeholder(3)}dog {placeholder(15)}", tag(0)]).to_pylist()
    assert ids[0].count(tokenizer.placeholders()[3]) == ids[0].count(tokenizer.placeholders()[15]) == 1
    assert not set(ids[1]) & {tokenizer.tag(i) for i in range(16)}
    assert tokenizer.decode([[tokenizer.tag(1), *ids[0], tokenizer.end]]) == [f"the{placeholder(3)}dog {placeholder(15)}"]
    with pytest.raises(DataError, match=r"<tag:16>.*learn it again"):
        tokenizer.tag(16)


def test_pieces_spell_the_text(tokenizer):
    ids = tokenizer.encode(["the old dog"]).to_pylist()[0]
    assert "".join(tokenizer.pieces(ids)) == "▁the▁old▁dog"


@pytest.mark.parametrize(
    "options",
    [
        {"split_by_whitespace": False, "normalization_rule_name": "identity", "remove_extra_whitespaces": False},
        {"normalization_rule_name": "nmt_nfkc", "remove_extra_whitespaces": False},
        {"normalization_rule_name": "identity"},
        {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "add_dummy_prefix": False},
        {"normalization_rule_name": "identity", "treat_whitespace_as_suffix": True},
    ],
    ids=["pieces cross spaces", "characters change", "spaces are removed", "no space in front", "space behind"],
)
@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_imported_models_that_are_not_like_ours_see_whole_texts(algorithm, options):
    tokenizer = imported(model_type=algorithm, **options)
    assert not tokenizer.by_words
    texts = [*TEXTS[:20], "", " ", "  the  dog ", "\ufb01ne \uff21", "the dog\tsees"]
    assert tokenizer.encode(texts).to_pylist() == [tokenizer.processor.encode(text) for text in texts]


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_learning_twice_gives_the_same_bytes(algorithm):
    chosen = PieceSettings(algorithm=algorithm, size=400, sample=60)
    assert learn(iter(TEXTS), chosen) == learn(iter(TEXTS), chosen)
    assert learn(TEXTS, chosen) != learn(TEXTS, chosen.changed(seed=1))


def test_the_sample_bounds_what_is_read_of_each_side():
    one = PieceSettings(size=330, sample=1, joint=False, byte_fallback=False)
    texts = ["aaa bbb ccc"] * 5 + ["xyz"] * 5
    seen = {"".join(Tokenizer(learn(texts, one.changed(seed=seed))).vocabulary[36:]) for seed in range(6)}
    assert all(("a" in pieces) != ("x" in pieces) for pieces in seen)
    assert len(seen) == 2


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
@pytest.mark.parametrize("size", [64, 100_000])
def test_a_size_that_does_not_fit_the_texts_is_made_to_fit_and_said(algorithm, size, caplog):
    learnt = Tokenizer(learn(TEXTS, PieceSettings(algorithm=algorithm, size=size))).size
    assert 64 < learnt < 100_000
    assert f"asked for {size} pieces" in caplog.text
    assert f"has {learnt}" in caplog.text


@pytest.mark.parametrize("texts", [[], ["", ""], ["  ", "\t"]])
def test_nothing_to_learn_from_is_said(texts):
    with pytest.raises(DataError, match="no text to learn"):
        learn(texts, PieceSettings())


def test_texts_with_tabs_are_learnt_from():
    vocabulary = Tokenizer(learn(["quux\tquux quux"] * 9, PieceSettings(byte_fallback=False))).vocabulary
    assert "▁quux" in vocabulary


def test_suggested_sizes_grow_with_the_corpus():
    sizes = [suggest_size(words) for words in (0, 10_000, 700_000, 3_000_000, 12_500_000, 60_000_000, 10**10)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 1000
    assert 4000 <= sizes[2] <= 8000
    assert sizes[4] == 16_000
    assert sizes[5] == sizes[6] == 32_000


def test_settings_refuse_what_cannot_be():
    with pytest.raises(ConfigError, match="algorithm"):
        PieceSettings(algorithm="wordpiece")


def test_saving_then_loading_is_identity(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "pieces.model")
    again = Tokenizer.load(tmp_path / "pieces.model")
    assert again.model == tokenizer.model
    assert again.encode(TEXTS[:5]) == tokenizer.encode(TEXTS[:5])
    assert [path.name for path in tmp_path.iterdir()] == ["pieces.model"]


@pytest.mark.parametrize("damage", [lambda m: b"", lambda m: b"no model", lambda m: m[: len(m) // 2], lambda m: m[:-3]])
def test_a_damaged_file_is_named(tokenizer, tmp_path, damage):
    path = tmp_path / "pieces.model"
    path.write_bytes(damage(tokenizer.model))
    with pytest.raises(DataError, match=r"pieces\.model.*damaged"):
        Tokenizer.load(path)
    with pytest.raises(DataError, match="does not exist"):
        Tokenizer.load(tmp_path / "absent.model")


def test_missing_texts_and_wrong_ids_are_located(tokenizer):
    with pytest.raises(DataError, match="text 1 is missing"):
        tokenizer.encode(pa.array(["a", None], pa.string()))
    with pytest.raises(DataError, match="half a character"):
        tokenizer.encode(["\ud800"])
    with pytest.raises(DataError, match=f"row 1 has id {tokenizer.size}"):
        tokenizer.decode([[4], [5, tokenizer.size]])
    assert tokenizer.decode([[], []]) == ["", ""]


def real_lines(corpus, most):
    folder = os.environ.get("LIMELIGHT_DATA")
    if not folder:
        pytest.skip("LIMELIGHT_DATA is not set to the folder with the corpora")
    with gzip.open(Path(folder) / corpus, "rb") as file:
        lines = [line.decode().removesuffix("\n") for line, _ in zip(file, range(most), strict=False)]
    return [json.loads(line)["tgt"] for line in lines] if "jsonl" in corpus else lines


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["multi30k/train.de.gz", "europarl/train.de.gz", "tatoeba/de-en/train.de.gz", "l10n/tm.en-de.jsonl.gz"])
@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_real_corpora_are_encoded_as_by_sentencepiece(corpus, algorithm):
    lines = real_lines(corpus, most=5000)
    tokenizer = Tokenizer(learn(lines[:1000], PieceSettings(algorithm=algorithm, size=2000)))
    assert assert_same_or_tied(tokenizer, lines) <= len(lines) / 1000
    assert tokenizer.decode(tokenizer.encode(lines[:500]).to_pylist()) == lines[:500]


def test_the_word_path_is_the_one_used(tokenizer, monkeypatch):
    """Fails if encode quietly went back to whole texts: distinct words are segmented once, and then remembered."""
    asked = []
    fresh = Tokenizer(tokenizer.model)
    segment = fresh.segment_words
    monkeypatch.setattr(fresh._memory, "_segment", lambda words: asked.extend(words) or segment(words))
    fresh.encode(["the dog the dog", "the cat"])
    fresh.encode(["the cat"])
    assert sorted(asked) == [" cat", " dog", " the", "the"]
    assert isinstance(fresh.processor, SentencePieceProcessor)


def test_long_words_are_not_remembered() -> None:
    """A text of a script without blanks is a single word: a few hundred of them would fill the memory of a server."""
    asked: list[str] = []

    def segment(words: Sequence[str]) -> list[list[int]]:
        asked.extend(words)
        return [[len(word)] for word in words]

    few, long = FewWords(segment), "字" * (LONGEST + 1)
    for _ in range(2):
        assert few.ids_of(["ab", long]) == {"ab": [2], long: [LONGEST + 1]}
    assert asked == ["ab", long, long] and list(few._ids) == ["ab"]
