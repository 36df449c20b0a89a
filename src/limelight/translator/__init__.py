"""A translator turns a person's text into an engine's ids, and the ids that it finds into text again.

    from limelight.translator import Translator

    translator = Translator.load("en-de")
    translator.translate(["A cat sits on the mat."])[0].text

Read in this order: pipeline (the whole way: cut, protect, encode, search, restore), sentences (what goes it), parts (a text in
sentences), protected (what must survive a sentence), searching, second_search (what was lost), presenting with confidence, alignment
and aligning, translation (what comes out); arguments, loading (which engine), directions (views of one model) and translate are the
door. The names are fetched when first used, so that the room alone loads nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limelight.translator.translate import Translator
    from limelight.translator.translation import Alignment, Alternative, Notice, Piece, Scored, Translation, Word

__all__ = ["Alignment", "Alternative", "Notice", "Piece", "Scored", "Translation", "Translator", "Word"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"limelight.translator has no {name!r}; it offers {', '.join(__all__)}")
    file = "limelight.translator.translate" if name == "Translator" else "limelight.translator.translation"
    return getattr(import_module(file), name)
