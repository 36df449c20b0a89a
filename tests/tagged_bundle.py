"""A translator of three languages and two names that has learnt nothing: what it is told changes what it says, and nothing else does."""

from functools import cache
from pathlib import Path
from typing import Any

import torch

from limelight.bundle import BundleSettings, BundleTags, write
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials
from limelight.engines.torch import TorchEngine
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tags import TagSet, language_piece, name_piece
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator import Translator

SENTENCE = "the a cat dog sat ran on mat house is was red blue old big and to in it he she we you they see hear go come"
WORDS = SENTENCE.split(" ")
TAGS = TagSet(languages=("de", "fr", "en"), names=("formal", "ui"))
DIRECTIONS = (("en", "de"), ("en", "fr"), ("de", "en"), ("fr", "en"))
TEXTS = ["the cat sat on the mat", "he was in it", "big blue house and red dog", "you see 12 %s", "a dog\nwe hear they go"]


@cache
def tokenizer() -> Tokenizer:
    texts = [" ".join(WORDS[i:] + WORDS[:i]) for i in range(len(WORDS))]
    return Tokenizer(learn(texts * 3, PieceSettings(size=90, byte_fallback=False, placeholders=4, tags=2, named=TAGS.pieces)))


def tags_of(**changes: Any) -> BundleTags:
    own = tokenizer()
    known = {
        "target": {code: own.id_of_control(language_piece(code)) for code in TAGS.languages},
        "names": {name: own.id_of_control(name_piece(name)) for name in TAGS.names},
        "directions": DIRECTIONS,
    }
    return BundleTags(**{**known, **changes})


@cache
def model() -> Transformer:
    torch.manual_seed(11)
    own, shape = tokenizer(), {"encoder_layers": 1, "decoder_layers": 1, "max_length": 40}
    made = Transformer(ModelConfig.preset("toy", own.size, **shape, tie="none", output_bias=True))
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(1.5)  # so that a tag is not lost among the pieces
        unsaid = {own.unknown, *own.controls(), *own.placeholders().values()} - {own.end}
        made.output_bias[sorted(unsaid)] = -30.0  # as if it had learnt that much
    return made.eval()


def settings_of(**changes: Any) -> BundleSettings:
    known = {"languages": ("en", "de"), "model": model().config, "tags": tags_of(), "search": SearchSettings(beam=3, max_length=12)}
    return BundleSettings(**{**known, **changes})


def translator(**changes: Any) -> Translator:
    return Translator(TorchEngine(model(), Specials()), settings_of(**changes), tokenizer(), tokenizer())


def write_tagged(folder: Path, **changes: Any) -> Path:
    write(folder, settings_of(**changes), model().state_dict(), tokenizer().model)
    return folder
