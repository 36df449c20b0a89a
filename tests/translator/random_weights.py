"""A translator that has learnt nothing at all: what survives it survives by construction."""

import careful_sentences as careful
import torch

from limelight.bundle import BundleSettings, Learnt
from limelight.decoding.steps import Specials
from limelight.engines.torch import TorchEngine
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator import Translator


def random_translator() -> Translator:
    texts = [template.replace("{}", word) for template in careful.TEMPLATES for word in careful.WORDS]
    tokenizer = Tokenizer(learn(texts, PieceSettings(size=600)))
    torch.manual_seed(7)
    model = Transformer(ModelConfig.preset("toy", vocab_size=tokenizer.size)).eval()
    settings = BundleSettings(languages=("en", "de"), model=model.config, learnt=Learnt(marks=16))
    return Translator(TorchEngine(model, Specials()), settings, tokenizer, tokenizer)
