"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017) is built here, one idea per file.

Read in this order: config, attention, multi_head, positions, embedding, feedforward, dropout, layers, encoder, decoder, transformer;
then grid, cache, initialization and loss.

    from limelight.model import Batch, ModelConfig, Transformer

The names are fetched when first used, so that `limelight.model.config` alone does not load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.model.config import ModelConfig
    from limelight.model.transformer import Batch, Spotlight, Transformer

__all__ = ["Batch", "ModelConfig", "Spotlight", "Transformer"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"limelight.model has no {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module("limelight.model.config" if name == "ModelConfig" else "limelight.model.transformer"), name)
