"""`keeps_format` checks that a translation keeps what a program fills in, by the flags of its catalogue entry:

keeps_format("50% of %s", "50 % von %s", {"c-format"}) -> False: in C "% o" is a conversion, and "% v" is none
"""

import re
from collections import Counter
from collections.abc import Collection
from itertools import compress

_PERCENT = re.compile(r"%\{[^{}]{0,80}\}|%(?:\([^()]{0,80}\)|<[^<>]{0,80}>)?[-+ #0'I*.,:\d$]{0,40}(?:hh?|ll?|[qjzLt])?(?:.|$)", re.S)
_NUMBERED = re.compile(r"%L?[0-9]{1,2}|%n|%%")
_BRACES = re.compile(r"\{[^{}]{0,400}\}|[{}]")
_SHELL = re.compile(r"\$(?:\w{1,80}|\{[^{}]{0,80}\})")
_DIRECTIVES = {
    **dict.fromkeys(("qt", "qt-plural", "kde", "kde-kuit", "ycp"), _NUMBERED),
    **dict.fromkeys(("python-brace", "java", "csharp", "perl-brace", "c++", "rust"), _BRACES),
    "sh": _SHELL,
}
_OTHERS = frozenset(("lisp", "elisp", "librep", "scheme", "smalltalk"))  # with ~ or other signs: left to their tools
_ALL = frozenset(("python", "lua", "ruby"))  # to which every form of a plural must give all that is filled in by turns
_FREE = re.compile(r"%(?:[%m]|\d{1,3}\$|[({<])|\{\s{0,9}\w|\$")  # with a number or a name, or taking nothing
_QUOTED = re.compile(r"'[^']*+'?")


def keeps_format(source: str, translation: str, flags: Collection[str]) -> bool:
    """Whether a program that can use the source can use the translation."""
    return all(_directives(source, name) == _directives(translation, name) for name in _formats(flags))


def is_part(source: str, whole: str, flags: Collection[str]) -> bool:
    """Whether the directives of the source are those that the whole begins with: "one file" of "%d files"."""
    for name in _formats(flags):
        (free, turns), (all_free, all_turns) = _directives(source, name), _directives(whole, name)
        if free - all_free or turns != (all_turns if name in _ALL else all_turns[: len(turns)]):
            return False
    return True


def _formats(flags: Collection[str]) -> list[str]:
    """_formats({"c-format", "fuzzy", "no-python-format"}) -> ["c"]"""
    names = [flag.removesuffix("-format") for flag in flags if flag.endswith("-format")]
    return [name for name in names if not name.startswith(("no-", "possible-", "impossible-")) and name not in _OTHERS]


def _directives(text: str, name: str) -> tuple[Counter[str], list[str]]:
    """Those that may change places, counted, and those that are filled in one after the other."""
    if name == "java":  # what apostrophes quote is text, and '' is one of them
        text = _QUOTED.sub("", text.replace("''", ""))
    pattern = _DIRECTIVES.get(name, _PERCENT)
    found = [one for one in pattern.findall(text) if one != "%%"]
    free = [pattern is _NUMBERED or _FREE.match(one) is not None for one in found]
    return Counter(compress(found, free)), [one for one, is_free in zip(found, free, strict=True) if not is_free]
