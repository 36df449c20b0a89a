"""A document is of a `Kind`, which is known by the end of its name, before anything is loaded that reads it."""

from pathlib import PurePath
from typing import Literal, get_args

from limelight.errors import ConfigError

Kind = Literal[
    "txt", "html", "srt", "po", "xliff", "tmx", "md", "json", "yaml", "xml", "resx", "properties", "strings", "xcstrings",
    "vtt", "csv", "tsv", "usfm", "docx", "pptx", "odt", "epub",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

_SUFFIXES: dict[str, Kind] = {f".{kind}": kind for kind in KINDS}
_SUFFIXES |= {".htm": "html", ".xhtml": "html", ".pot": "po", ".xlf": "xliff", ".markdown": "md", ".arb": "json", ".yml": "yaml"}
_SUFFIXES |= {".sfm": "usfm"}


def kind_of(name: str | PurePath) -> Kind:
    """kind_of("menu.po") -> "po", by the end of the name."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ConfigError(f"{name}: a document ends with one of {', '.join(_SUFFIXES)}; rename it, or convert it")
    return _SUFFIXES[suffix]
