"""Limelight trains, inspects and serves your own Transformer translator.

    from limelight import Translator

`Translator` is fetched when first used, so that `limelight --help` starts without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.translator.translate import Translator

__all__ = ["Translator"]
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"limelight has no {name!r}; it offers {', '.join(__all__)}")
    return import_module("limelight.translator.translate").Translator
