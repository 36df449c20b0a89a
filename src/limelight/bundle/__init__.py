"""A bundle is a finished translator on disk, verified before use.

    en-de/
      config.json         BundleSettings: what is needed to translate beside pieces and weights
      model.safetensors
      pieces.model        SentencePiece; source.model and target.model when the sides have their own
      vocabulary.json     only if the ids are not those of SentencePiece; source. and target. when the sides have their own
      README.md           the model card
      manifest.json       size and sha256 of each file above, and a checksum of itself

    from limelight.bundle import read
    bundle = read(Path("en-de"))          nothing is parsed before every file is what the manifest says
    bundle.load_model()

Read in this order: layout, tags, settings, confidence, manifest, strict_json, versions, weights, card, bundle. The names are fetched
when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.bundle.bundle import Bundle, read, write
    from limelight.bundle.manifest import relist
    from limelight.bundle.settings import BundleSettings, Learnt, Score
    from limelight.bundle.tags import BundleTags

__all__ = ["Bundle", "BundleSettings", "BundleTags", "Learnt", "Score", "read", "relist", "write"]

_FILES = {"BundleSettings": "settings", "BundleTags": "tags", "Learnt": "settings", "Score": "settings", "relist": "manifest"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"limelight.bundle has no {name!r}; it offers {', '.join(__all__)}")
    return getattr(import_module(f"limelight.bundle.{_FILES.get(name, 'bundle')}"), name)
