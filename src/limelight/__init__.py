"""Limelight trains, inspects and serves your own Transformer translator.

    from limelight import AsyncTranslator, Client, SearchSettings, Translator

Each is fetched when first used, so that `limelight --help` starts without loading torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.async_translator import AsyncTranslator
    from limelight.client import Client
    from limelight.decoding.config import SearchSettings
    from limelight.translator.translate import Translator

__all__ = ["AsyncTranslator", "Client", "SearchSettings", "Translator"]
_PLACES = {
    "AsyncTranslator": "async_translator",
    "Client": "client",
    "SearchSettings": "decoding.config",
    "Translator": "translator.translate",
}
__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"limelight has no {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(f"limelight.{_PLACES[name]}"), name)
