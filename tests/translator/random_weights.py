"""A translator that has learnt nothing at all: what survives it survives by construction."""

from pathlib import Path

import careful_sentences as careful
import torch

from limelight.bundle import BundleSettings, Learnt, read, write
from limelight.decoding.steps import Specials
from limelight.engines.torch import TorchEngine
from limelight.interop.ctranslate2.export import export
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator import Translator


def random_translator() -> Translator:
    settings, model, pieces = _random_parts()
    tokenizer = Tokenizer(pieces)
    return Translator(TorchEngine(model, Specials()), settings, tokenizer, tokenizer)


def random_bundle(folder: Path, **learnt: bool) -> Path:
    """The same, on disk and exported, for where there is no torch. `learnt`: what else it would have been taught."""
    settings, model, pieces = _random_parts()
    settings = settings.changed(learnt=Learnt(marks=16, **learnt))
    write(folder, settings, model.state_dict(), pieces)
    export(read(folder), "float32", [careful.TEMPLATES[0]])
    return folder


def _random_parts() -> tuple[BundleSettings, Transformer, bytes]:
    texts = [template.replace("{}", word) for template in careful.TEMPLATES for word in careful.WORDS]
    pieces = learn(texts, PieceSettings(size=600))
    torch.manual_seed(7)
    model = Transformer(ModelConfig.preset("toy", vocab_size=Tokenizer(pieces).size)).eval()
    return BundleSettings(languages=("en", "de"), model=model.config, learnt=Learnt(marks=16)), model, pieces
