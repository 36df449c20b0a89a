"""CTranslate2 models read from their tensors: a real one of somebody else, every kind we can write, and damaged ones."""

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

from limelight.bundle import read
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Request, Specials
from limelight.engines.torch import TorchEngine
from limelight.errors import LimelightError, ModelFileError
from limelight.interop.ctranslate2.export import save
from limelight.interop.ctranslate2.file import read_model
from limelight.interop.ctranslate2.load import import_model, understand
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.translator.translate import Translator

DATA = os.environ.get("LIMELIGHT_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="LIMELIGHT_DATA is not set: the real model lies there")
PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(chr(0x100 + n) for n in range(60))]


def foreign() -> Path:
    return Path(DATA or "") / "weights" / "aren-transliteration"


def names(letters: set[str], count: int) -> list[str]:
    """Arabic words of news, of letters that the model has: most are names or as good as names."""
    with gzip.open(Path(DATA or "") / "ntrex" / "newstest2019.arb.gz") as file:
        words = dict.fromkeys(file.read().decode().split())
    return [word for word in words if len(word) > 2 and set(word) <= letters][:count]


@pytest.mark.slow
@needs_data
def test_a_real_model_of_somebody_else_gives_what_its_engine_gives():
    found = understand(foreign())
    words = names(set(found.source), 200)
    assert len(words) == 200
    model = Transformer(found.config)
    model.load_state_dict(found.weights)
    ours, theirs = TorchEngine(model, found.specials), ctranslate2.Translator(str(foreign()), compute_type="float32")
    place = {piece: number for number, piece in enumerate(found.source)}
    requests = [Request([place[letter] for letter in word]) for word in words]
    for beam in (1, 2, 4):
        settings = SearchSettings(beam=beam, length_penalty=1.0, length_norm="power", max_ratio=0.0, max_extra=60)
        wanted = theirs.translate_batch(
            [list(w) for w in words], beam_size=beam, max_decoding_length=60, min_decoding_length=0, return_scores=True,
            disable_unk=True,
        )  # fmt: skip
        for mine, other in zip(ours.search(requests, settings), wanted, strict=True):
            assert [found.target[number] for number in mine.hypotheses[0].ids] == other.hypotheses[0]
            assert mine.hypotheses[0].score == pytest.approx(other.scores[0], abs=1e-3)


@pytest.mark.slow
@needs_data
def test_the_real_model_becomes_a_bundle_that_translates_text(tmp_path: Path):
    import_model(foreign(), tmp_path / "ar-en", ("ar", "en"))
    with Translator.load(tmp_path / "ar-en", threads=1) as translator:
        made = translator.translate(["برلين", "باريس"], align=True)
    theirs = ctranslate2.Translator(str(foreign()), compute_type="float32").translate_batch([list("برلين"), list("باريس")])
    assert [one.text for one in made] == ["".join(one.hypotheses[0]) for one in theirs]
    assert made[0].text == "berlin"
    assert read(tmp_path / "ar-en").settings.source_ends is False
    assert made[0].alignment is not None and len(made[0].alignment.pieces) == 6


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_order": "post", "activation": "silu", "tie": "none", "output_bias": True},
        {"positions": "rotary", "norm": "rms", "activation": "swiglu", "bias": False, "num_kv_heads": 2},
        {"positions": "learned", "scale_embeddings": False, "tie": "decoder"},
        {"head_width": 8},
        {"position_layout": "tensor2tensor", "position_offset": 2, "encoder_layers": 3, "decoder_layers": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("quantize", ["float32", "int8", "bfloat16"])
def test_what_we_export_is_imported_again(changes: dict[str, Any], quantize: str, tmp_path: Path):
    torch.manual_seed(1)
    config = ModelConfig.preset("toy", len(PIECES), dropout=0.0, **changes)
    model = Transformer(config)
    heads = [(config.decoder_layers - 1, head) for head in range(4)]
    save(config, model.state_dict(), (PIECES, PIECES), Specials(), heads, tmp_path, quantize)
    found = understand(tmp_path)
    assert found.config.changed(dropout=0.0, source_vocab_size=config.source_vocab_size) == config
    assert found.weights.keys() == model.state_dict().keys()
    for name, weight in model.state_dict().items():
        if quantize == "float32":
            assert torch.equal(found.weights[name], weight), name
        else:
            assert torch.allclose(found.weights[name], weight, rtol=0, atol=0.02 * weight.abs().max().item()), name


def test_pieces_of_several_letters_need_their_sentencepiece_model(tmp_path: Path):
    pieces = [*PIECES[:-1], "ab"]
    config = ModelConfig.preset("toy", len(pieces))
    save(config, Transformer(config).state_dict(), (pieces, pieces), Specials(), [(0, 0)], tmp_path)
    with pytest.raises(ModelFileError, match=r"'ab'.*SentencePiece"):
        import_model(tmp_path, tmp_path / "out", ("en", "de"))


def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path):
    config = ModelConfig.preset("toy", len(PIECES))
    save(config, Transformer(config).state_dict(), (PIECES, PIECES), Specials(), [(0, 0)], tmp_path)
    (tmp_path / "shared_vocabulary.json").write_bytes(b'["<pad>", "<unk>", "<s>", "</s>", "a"]')
    with pytest.raises(ModelFileError, match="64 embeddings for 5 pieces"):
        understand(tmp_path)


@pytest.mark.slow
def test_no_damage_to_the_file_does_more_than_be_refused(tmp_path: Path):
    """Cut, flipped and inflated: an error of ours, or a model that differs in numbers only. Never a crash, never memory without end."""
    config = ModelConfig.preset("toy", len(PIECES), encoder_layers=1, decoder_layers=1)
    save(config, Transformer(config).state_dict(), (PIECES, PIECES), Specials(), [(0, 0)], tmp_path)
    good = (tmp_path / "model.bin").read_bytes()
    draw, refused, path = random.Random(0), 0, tmp_path / "damaged.bin"
    for number in range(300):
        damaged = bytearray(good)
        if number % 3 == 0:
            del damaged[draw.randrange(len(good)) :]
        else:
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(4000 if number % 3 == 1 else 200)
                damaged[at] = draw.randrange(256)
        path.write_bytes(bytes(damaged))
        try:
            read_model(path)
        except LimelightError:
            refused += 1
    assert refused > 150


def test_pieces_that_mean_something_else_on_the_other_side_are_refused(tmp_path: Path):
    """A source with its padding elsewhere would be read wrongly, and nobody would see it."""
    config = ModelConfig.preset("toy", len(PIECES), tie="none", source_vocab_size=len(PIECES))
    source = [*PIECES[4:8], *PIECES[:4], *PIECES[8:]]
    save(config, Transformer(config).state_dict(), (source, PIECES), Specials(), [(0, 0)], tmp_path)
    with pytest.raises(ModelFileError, match="pad_token is piece 0 of the target"):
        understand(tmp_path)


@pytest.mark.parametrize("change", [{"add_source_bos": True}, {"decoder_start_token": "<begin>"}])
def test_what_would_change_the_translation_is_refused(change: dict[str, Any], tmp_path: Path):
    config = ModelConfig.preset("toy", len(PIECES))
    save(config, Transformer(config).state_dict(), (PIECES, PIECES), Specials(), [(0, 0)], tmp_path)
    path = tmp_path / "config.json"
    path.write_bytes(json.dumps({**json.loads(path.read_bytes()), **change}).encode())
    with pytest.raises(ModelFileError, match="cannot be imported"):
        understand(tmp_path)
