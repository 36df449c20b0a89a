"""Language tags in files and file names (en, en-US, en_GB, EN, eng, eng_Latn) are recognized and compared.

closeness("en", "en-US") -> 1; closeness("de", "ger") -> 1
guess_languages("train.en.gz", "train.de.gz") -> ("en", "de")
state_languages("menu.de.po", "po") -> StatedLanguages(None, "de"): TMX, XLIFF and the header of a catalogue say it inside
"""

import codecs
import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple, TypeVar

from limelight.corpus.reading.streams import open_bytes, without_packing
from limelight.text.language_names import are_written_alike, is_two_letters, list_codes, usual_tag
from limelight.text.languages import lower_code

# In names of files these are no languages, though some are codes of ISO 639-3.
_NO_LANGUAGES = re.compile("all|bpe|cln|dev|hyp|low|new|old|one|out|raw|ref|seg|spm|src|tgt|tok|trg|two|txt|xml")

Codes = TypeVar("Codes", bound=tuple[str, ...])  # of a language, or of the two of a pair

HEAD = 64 << 10  # bytes that are looked at: what a file says of itself stands at its beginning

_SOURCE = re.compile(r"""\s(?:source-language|srcLang|srclang)\s*=\s*["']([\w*-]{2,20})["']""")
_TARGET = re.compile(r"""\s(?:target-language|trgLang)\s*=\s*["']([\w-]{2,20})["']""")
_VARIANT = re.compile(r"""<tuv\b[^>]{0,200}?\s(?:xml:)?lang\s*=\s*["']([\w-]{2,20})["']""")
_HEADER = re.compile(r'^"?Language:[ \t]*([\w-]{2,20})', re.MULTILINE)


@functools.lru_cache(maxsize=1_000)
def closeness(wanted: str, tag: str) -> int | None:
    """How well a tag serves the language wanted: 0 the same, 1 a kind of it or another code of it, 2 more general, 3 written the same way
    and called otherwise (zh-CN and zh-Hans, no and nb), None another."""
    if lower_code(wanted) == lower_code(tag):
        return 0
    ours, theirs = (lower_code(usual_tag(each)) for each in (wanted, tag))
    if ours == theirs or theirs.startswith(ours + "-"):
        return 1
    if theirs and ours.startswith(theirs + "-"):
        return 2
    return 3 if are_written_alike(ours, theirs) else None


def find_nearest(wanted: Sequence[str | None], known: Iterable[Codes]) -> Codes | None:
    """Of languages, or of pairs of them, what serves best: find_nearest(("en", "por"), [("en", "pt-BR"), ("en", "pt")]) -> ("en", "pt").

    Of equals the first; a language that is None is any. None: nothing serves.
    """
    apart = {each: [0 if ours is None else closeness(ours, tag) for ours, tag in zip(wanted, each, strict=True)] for each in known}
    serving = {each: sum(filter(None, found)) for each, found in apart.items() if None not in found}
    return min(serving, key=lambda each: serving[each], default=None)


def guess_languages(source_path: str, target_path: str) -> tuple[str, str] | None:
    """From two names that differ in nothing but their language, or None."""
    for separators in (r"([./\\])", r"([./\\_\-])"):  # first whole, for en-US; then in pieces, for train_en.txt
        source, target = (re.split(separators, without_packing(path)) for path in (source_path, target_path))
        if len(source) != len(target):
            continue
        different = {(a, b) for a, b in zip(source, target, strict=True) if a != b}
        if len(different) == 1:
            (pair,) = different
            if is_language(pair[0]) and is_language(pair[1]):
                return pair
    return None


def is_language(text: str) -> bool:
    """en, eng, en-US, zh_Hant and eng_Latn are; src, txt and train are not."""
    code, *rest = re.split("[-_]", text)
    code = code.lower()
    if not all(re.fullmatch("[A-Za-z]{2,4}|[0-9]{3}", piece) for piece in rest) or len(rest) > 2:
        return False
    return is_two_letters(code) or bool(re.fullmatch("[a-z]{3}", code) and not _NO_LANGUAGES.fullmatch(code))


def name_without_language(address: str, language: str, other: str) -> list[str]:
    """What a name could be called apart from its language: one key for each place the language stands in, one for all.

    corpus.en-de.en -> corpus.*-de.en, corpus.en-de.*, corpus.*-de.*
    """
    codes = [language]
    if (names := list_codes(language))[0] != list_codes(other)[0]:
        codes += names
    alternatives = "|".join(re.escape(code).replace(r"\-", "[-_]").replace("_", "[-_]") for code in codes)
    # A region is upper case and a script has a capital, so that `en-de` is two languages and `en-DE` one.
    pattern = re.compile(rf"(?<![^\W_])(?i:{alternatives})(?:[-_](?:[A-Z]{{2}}|[A-Z][a-z]{{3}}))?(?![^\W_])")
    name = without_packing(address)
    places = [match.span() for match in pattern.finditer(name)]
    keys = [name[:start] + "*" + name[end:] for start, end in places]
    return [*keys, pattern.sub("*", name)] if len(keys) > 1 else keys


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
