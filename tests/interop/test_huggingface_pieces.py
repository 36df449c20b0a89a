"""The tokenizers of transformers and ours cut real text of many scripts into the same ids, line by line."""

import gzip
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="compares with transformers; pip install limelight[compare]")
sys.path.insert(0, str(Path(__file__).parent))
from published_models import learnt, spm, write_json
from transformers import AutoTokenizer

from limelight.bundle import BundleSettings, read, write
from limelight.interop.exported_pieces import tokenizer_files
from limelight.interop.language_codes import M2M100, NLLB
from limelight.interop.published_pieces import read_pieces
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn

DATA = os.environ.get("LIMELIGHT_DATA")
pytestmark = [
    pytest.mark.reference,
    pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses"),
    pytest.mark.skipif(DATA is None, reason="needs the folder LIMELIGHT_DATA"),
]
# What tokenizers stumble over: spaces, signs of control, composed letters, emoji, bytes that no piece has.
ODD = [
    "a  b", " lead", "trail ", "tab\there", "new\u2028line", "no\u00a0break", "zero\u200bwidth", "soft\u00adhyphen", "e\u0301 é",
    "ﬁ ﬀ ①", "👩‍👩‍👧‍👦 🇩🇪", "한글 한", "\u202eabc", "\U0001d518\U0001d52b", "▁block", "ㅤ", "\ufeffmark",
    "½ ™ …", "<s> <pad>x", "a<0x41>", "𐍈𐎀", "",
]  # fmt: skip


UNLIKE = ["trail ", "<s> <pad>x"]


@cache
def lines(most_of_each: int) -> list[str]:
    """Of every language there is, the first so many of each file."""
    found = []
    for path in sorted(Path(str(DATA)).glob("ntrex/newstest2019.*.gz")) + sorted(Path(str(DATA)).glob("flores200/*.gz")):
        with gzip.open(path) as file:
            found += file.read().decode().split("\n")[:most_of_each]
    return [line.strip() for line in found if line.strip()]


@cache
def sample() -> list[str]:
    return lines(12)


def vocabulary_of(model: bytes, first: tuple[str, ...], last: tuple[str, ...] = ()) -> dict[str, int]:
    return {piece: number for number, piece in enumerate((*first, *learnt(model)[3:], *last))}


def marian(folder: Path) -> tuple[Any, Tokenizer, str]:
    """Source and target have models of their own and one list, from which the end of each was left out: there are unknown pieces."""
    half = len(sample()) // 2
    models = [
        spm(sample()[:half], 6000, character_coverage=0.995),
        spm(sample()[half:], 6000, character_coverage=0.995),
    ]
    pieces = sorted({piece for model in models for piece in learnt(model)[3:-200]})
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    write_json(folder / "vocab.json", {p: i for i, p in enumerate(("</s>", "<unk>", *pieces, "<pad>"))})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MarianTokenizer", "split_special_tokens": True})
    size = len(pieces) + 3
    config = ModelConfig(vocab_size=size, pad_token=size - 1, start_token=size - 1, end_token=0)
    found = read_pieces(folder, "marian", config)
    return AutoTokenizer.from_pretrained(folder), Tokenizer(found.models[0], found.vocabularies[0]), ""


def m2m100(folder: Path) -> tuple[Any, Tokenizer, str]:
    model = spm(sample(), 8000, "bpe", character_coverage=0.995)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    numbers = vocabulary_of(model, ("<s>", "<pad>", "</s>", "<unk>"))
    write_json(folder / "vocab.json", numbers)
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "M2M100Tokenizer", "split_special_tokens": True})
    config = ModelConfig(vocab_size=len(numbers) + len(M2M100) + 8, pad_token=1, start_token=2, end_token=2)
    found = read_pieces(folder, "m2m_100", config)
    tokenizer = Tokenizer(found.models[0], found.vocabularies[0])
    return AutoTokenizer.from_pretrained(folder, src_lang="sw"), tokenizer, "__sw__"


def nllb(folder: Path) -> tuple[Any, Tokenizer, str]:
    model = spm(sample(), 8000, "bpe", character_coverage=0.995)
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    write_json(folder / "config.json", {"model_type": "m2m_100"})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "NllbTokenizer", "additional_special_tokens": list(NLLB)})
    theirs = AutoTokenizer.from_pretrained(folder, src_lang="swh_Latn")
    theirs.save_pretrained(folder)  # writes tokenizer.json, as newer folders have it, with the ids that count
    config = ModelConfig(vocab_size=len(theirs) + 2, pad_token=1, start_token=2, end_token=2)
    found = read_pieces(folder, "m2m_100", config)
    return theirs, Tokenizer(found.models[0], found.vocabularies[0]), "swh_Latn"


def ours(folder: Path) -> tuple[Any, Tokenizer, str]:
    """Learnt by Limelight, exported."""
    model = learn(sample(), PieceSettings(size=8000, tags=2, placeholders=3))
    config = ModelConfig.preset("toy", Tokenizer(model).size, d_model=8, d_ff=8, num_heads=1, max_length=8)
    with torch.random.fork_rng(devices=[]):
        write(folder / "b", BundleSettings(languages=("en", "de"), model=config), Transformer(config).state_dict(), model)
    for name, content in tokenizer_files(read(folder / "b")).items():
        (folder / name).write_bytes(content)
    return AutoTokenizer.from_pretrained(folder), read(folder / "b").source_tokenizer, ""


MAKERS = {"marian": marian, "m2m100": m2m100, "nllb": nllb, "ours": ours}


@pytest.fixture(scope="module", params=MAKERS)
def pair(
    starts_process: None, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Tokenizer, str]]:
    yield MAKERS[request.param](tmp_path_factory.mktemp(request.param))


def differences(pair: tuple[Any, Tokenizer, str], texts: list[str]) -> list[str]:
    theirs, tokenizer, language = pair
    before = [tokenizer.vocabulary.index(language)] if language else []
    found = tokenizer.encode(texts).to_pylist()
    expected = theirs(texts, verbose=False).input_ids
    if type(theirs).__name__ == "NllbTokenizer":  # it keeps a space at the end as a piece; see UNLIKE
        space = tokenizer.vocabulary.index("▁")
        expected = [[*ids[:-2], ids[-1]] if ids[-2] == space else ids for ids in expected]
    return [
        f"{text!r}: {[*before, *ids, tokenizer.end]} but {other}"
        for text, ids, other in zip(texts, found, expected, strict=True)
        if [*before, *ids, tokenizer.end] != other
    ]


def test_lines_of_every_script_get_the_ids_of_transformers(pair: tuple[Any, Tokenizer, str]) -> None:
    texts = lines(4)
    assert len(texts) > 300
    assert differences(pair, texts) == []


@pytest.mark.long
@pytest.mark.slow
def test_all_lines_of_every_script_get_the_ids_of_transformers(pair: tuple[Any, Tokenizer, str]) -> None:
    """All 111,258 lines with LIMELIGHT_LINES=10000, as `make claim-interop FULL=1` has it: minutes for each tokenizer."""
    texts = lines(int(os.environ.get("LIMELIGHT_LINES", "100")))
    assert len(texts) > 5_000
    assert differences(pair, texts) == []


def test_odd_texts_get_the_ids_of_transformers(pair: tuple[Any, Tokenizer, str]) -> None:
    unlike = UNLIKE if type(pair[0]).__name__ == "NllbTokenizer" else []
    assert differences(pair, [text for text in ODD if text not in unlike]) == []


@pytest.mark.process
def test_where_nllb_in_transformers_is_not_sentencepiece_we_follow_sentencepiece(tmp_path: Path) -> None:
    """The model was trained on what SentencePiece cuts: no space at the end, and no text that is taken for a control piece."""
    theirs, tokenizer, _ = nllb(tmp_path)
    for text in UNLIKE:
        assert theirs(text, add_special_tokens=False).input_ids != tokenizer.encode([text]).to_pylist()[0]
        spelt = tokenizer.processor.encode(text, out_type=str)
        expected = [tokenizer.vocabulary.index(p) if p in tokenizer.vocabulary else tokenizer.unknown for p in spelt]
        assert tokenizer.encode([text]).to_pylist()[0] == expected


def test_texts_come_back_as_transformers_gives_them(pair: tuple[Any, Tokenizer, str]) -> None:
    theirs, tokenizer, _ = pair
    texts = lines(1)
    ids = [row for row in tokenizer.encode(texts).to_pylist() if tokenizer.unknown not in row]
    assert len(ids) > 20
    expected = theirs.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    assert [text.strip() for text in tokenizer.decode(ids)] == [text.strip() for text in expected]
