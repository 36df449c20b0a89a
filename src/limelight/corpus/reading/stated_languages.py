"""`state_languages` reads the languages that a file says it is in, from its content or from its name. TMX, XLIFF and the header of a
catalogue say it inside; else a catalogue is known by its name.

state_languages("menu.de.po", "po")  ->  StatedLanguages(None, "de")
"""

import codecs
import re
from pathlib import PurePath
from typing import NamedTuple

from limelight.corpus.reading.language_tags import closeness, is_language
from limelight.corpus.reading.streams import open_bytes, without_packing

HEAD = 64 << 10  # bytes that are looked at: what a file says of itself stands at its beginning

_SOURCE = re.compile(r"""\s(?:source-language|srcLang|srclang)\s*=\s*["']([\w*-]{2,20})["']""")
_TARGET = re.compile(r"""\s(?:target-language|trgLang)\s*=\s*["']([\w-]{2,20})["']""")
_VARIANT = re.compile(r"""<tuv\b[^>]{0,200}?\s(?:xml:)?lang\s*=\s*["']([\w-]{2,20})["']""")
_HEADER = re.compile(r'^"?Language:[ \t]*([\w-]{2,20})', re.MULTILINE)


class StatedLanguages(NamedTuple):
    """A language is None where nothing is said."""

    source: str | None = None
    target: str | None = None


def state_languages(address: str, kind: str) -> StatedLanguages:
    """What a file says of itself, if it is of a kind that can."""
    if kind not in ("tmx", "xliff", "po"):
        return StatedLanguages()
    with open_bytes(address) as stream:
        data = stream.read(HEAD)
    marked = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    text = data.decode("utf-16" if marked else "utf-8", "replace")
    if kind == "po":
        header = "".join(re.split(r"(?m)^msgid", text, maxsplit=2)[:2])  # what a later text says is no header
        return StatedLanguages(None, find_header_language(header) or _find_path_language(address))
    source = _language(_SOURCE.search(text))
    if kind == "xliff":
        return StatedLanguages(source, _language(_TARGET.search(text)))
    others = {tag for tag in _VARIANT.findall(text) if source is not None and closeness(source, tag) is None}
    return StatedLanguages(source, others.pop() if len(others) == 1 else None)


def find_header_language(header: str) -> str | None:
    """The `Language:` of a catalogue; sr@latin is a way to write sr."""
    return _language(_HEADER.search(header))


def _language(match: re.Match[str] | None) -> str | None:
    return match[1] if match is not None and is_language(match[1]) else None


def _find_path_language(address: str) -> str | None:
    """de.po, menu.de.po, de/LC_MESSAGES/menu.po. Codes of two letters only: a program may well be called `app`."""
    path = PurePath(without_packing(address))
    candidates = [path.stem.rpartition(".")[2]]
    if path.parent.name == "LC_MESSAGES":
        candidates.append(path.parent.parent.name)
    return next((tag for tag in candidates if re.match(r"[a-z]{2}(?![a-z])", tag) and is_language(tag)), None)
