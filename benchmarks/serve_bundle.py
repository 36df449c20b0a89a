"""A bundle to measure a server with, made on the spot: the size of a real one, and random weights.

It does not know when to end, so its translations are given the lengths of real ones: as many pieces as the source and a few more. No two
pieces occur together twice, else it would be searched again for saying the same over and over, and lines with numbers are left out, which
it would lose. What it says is nonsense; how long it takes is not.
"""

from collections.abc import Sequence
from pathlib import Path

import torch

from limelight.bundle import BundleSettings, read, relist, write
from limelight.bundle.layout import CONFIG
from limelight.decoding.config import SearchSettings
from limelight.interop.ctranslate2.export import export
from limelight.model import ModelConfig, Transformer
from limelight.text.careful.protect import find
from limelight.text.pieces.tokenizer import PieceSettings, learn
from translate_work import outspoken

PIECES = 4000
SEARCH = SearchSettings(beam=4, max_ratio=1.0, max_extra=3)


def random_bundle(folder: Path, lines: Sequence[str], size: str = "small", quantize: str = "float32") -> Path:
    """With its export for CTranslate2. `lines` are what the pieces are learnt from."""
    model = random_model(size)
    settings = BundleSettings(languages=("en", "de"), model=model.config, search=SEARCH)
    write(folder, settings, model.state_dict(), learn(list(lines), PieceSettings(size=PIECES)))
    export(read(folder), quantize, list(lines[:8]))
    # Only now: engines forbid repetitions each in its own way, and an export is compared with what it was made from.
    (folder / CONFIG).write_bytes(read(folder).settings.changed(search=SEARCH.changed(no_repeat_ngram=2)).encode())
    relist(folder)
    return folder


def plain(lines: Sequence[str]) -> list[str]:
    """Without numbers and whatever else must survive."""
    return [line for line in lines if line.strip() and not any(letter.isdigit() for letter in line) and not find(line)]


def random_model(size: str) -> Transformer:
    """Louder sub-layers and sharper attention than a model begins with: else it says the same whatever it is asked."""
    torch.manual_seed(0)
    return outspoken(Transformer(ModelConfig.preset(size, PIECES)).eval())
