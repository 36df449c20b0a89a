"""`find` locates what must survive a translation: placeholders, tags, entities, addresses, paths, long numbers and emoji.

Text is hostile: Python's `re` goes back and tries again, so every repetition here is bounded, or ends where the next attempt begins.
What was decided by looking at catalogues: a file's bare name, a bare domain, @name and $1 are often translated, and are no spans.
"""

import html
import re
from collections.abc import Sequence
from functools import cache
from typing import Literal

from limelight.text import patterns
from limelight.text.careful.messages import is_message

LONGEST_BARE = 200  # characters: a longer text has words

Kind = Literal["placeholder", "tag", "entity", "address", "path", "number", "emoji", "mark"]
Numbers = Literal["long", "all"]
Range = tuple[int, int, Kind]

MARK = re.compile(r"⟦(0|[1-9][0-9]{0,2})⟧")  # as `tokenizer.placeholder` writes them
TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w:.-]*|\d{1,3}(?=\s{0,9}/?>))")  # <1> of react-i18next

# The repetitions of patterns.PLACEHOLDER are bounded here: "%000..." would take quadratic time. And some that no filter of a corpus needs.
_PLACEHOLDER = patterns.join_patterns(
    r"%%(?:\(\w{1,80}\)[a-z]|[A-Za-z]\b)?",  # 100%%; and %%a, which a program prints as %a
    r"(?<![\w%)])(?<![\w%)][ \u00a0\u202f])% [0-9]{0,4}(?:\.[0-9]{1,4})?[dif](?![\w'\u2019])",  # a sign or a blank; not 5 % d'eau
    r"%#@\w{1,80}@|%arg\b|\$t\([^()]{1,200}\)",  # the variations of Xcode; $t(key) of i18next
    r"%[{<]\w{1,80}[}>](?:[-+0]?\d{0,3}(?:\.\d{1,3})?[a-z]\b)?",  # Ruby: %{name} %<n>d
    r"%(?:\(\w{1,80}\)|\d{1,3}\$)?[-+#0',]{0,5}\*?\d{0,4}(?:\.(?:\d{1,4}|\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?:[sd@fg]|[A-Za-z]\b)",
    r"%L?\d{1,2}\b",
    r"%u(?=x%)|%\w{2,80}%(?!\w)",  # %ux%u is a size
    r"\[X[0-9]{1,6}X\]",  # what Weblate writes in the place of a placeholder
    r"\$\{[^{}]{1,200}\}|(?<!\$)\$\$(?=\d)",  # ${a + b} of JavaScript; $$5 is $5
    r"\{\{(?!\s{0,9}(?i:plural|gender|grammar)\b)[^{}]{0,200}\}\}",  # {{name | filter}}, not the {{PLURAL:$1|file|files}} of MediaWiki
    r"\{%[^{}]{0,200}%\}",  # {% if %}
    r"[$#]?\{\{?\s{0,9}[\w.:!$#\[\]-]{0,200}\s{0,9}\}\}?",  # "{End of Text}" is translated
    # {0,10} {0:#,##0} {:>10} {x!r:>10} {0,choice,0#no|1#{0}}
    r"\{\d{1,3}[,:][^{}]{0,80}(?:\{[^{}]{0,40}\}[^{}]{0,80}){0,9}\}|\{\w{0,80}(?:![rsa])?:[^{}|\s]{1,40}\}",
    r"\{\s{0,9}\w{1,80}\s{0,9},\s{0,9}(?:number|date|time|spellout|ordinal|duration)\b[^{}]{0,80}\}",
    r"\{\s{0,9}[A-Z]{2,20}\([^{}()]{0,200}\)\s{0,9}\}",  # { DATETIME($date) }
    r"\$\(\w{1,80}\)|\$\w{1,80}\$(?!\w)|\$[A-Za-z_]\w{0,80}",
    r"@[A-Za-z_]\w{0,80}@|__[A-Za-z]\w{0,80}?__",
    r"\\[nrt](?![a-z])",  # a line break as written in source code
)
_ENTITY = r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"

# Letters that cannot stand just before a word which begins here; without them "aaaa..." would be tried from each letter on.
_BEGINS = r"(?<![\w.+@/%{}$~-])"
_ADDRESS = patterns.join_patterns(
    r"(?<![A-Za-z0-9+.-])(?:[A-Za-z][A-Za-z0-9+.-]{1,20}://|mailto:|www\.)(?!-)[^\s<>\"“”„«»⟦⟧]{0,2000}",
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{1,20}://",  # as in "eine http://-Adresse"
    rf"{_BEGINS}[\w.+-]{{1,64}}@[A-Za-z0-9-]{{1,63}}(?:\.[A-Za-z0-9-]{{1,63}}){{1,8}}",
    rf"{_BEGINS}(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}[a-z]{{2,12}}/[^\s<>\"“”„«»⟦⟧]{{1,2000}}",  # example.org/page
)
_STEP = r"[\w.@+~%${}*-]"  # the letters of a folder's name
_ROOTED = patterns.join_patterns(
    rf"{_BEGINS}(?<!\*)(?:~|\.\.?)?/{_STEP}{{1,255}}(?:/{_STEP}{{1,255}}){{0,40}}/?",
    r"(?<!\\)\\\\[\w.-]{1,100}\\[^\s<>\"|?*“”„«»⟦⟧,;]{1,1000}",  # \\server\folder
)
_PATH = patterns.join_patterns(
    r"[A-Za-z]:\\(?:Program Files(?: \(x86\))?\\)?[^\s<>\"|?*“”„«»⟦⟧,;]{0,1000}",
    rf"{_BEGINS}[\w-]{{1,100}}(?:/[\w.+-]{{1,255}}){{1,40}}\.[a-z][a-z0-9]{{1,5}}\b",  # src/main.py
)
_TAG = patterns.join_patterns(
    r"<(?P<empty>[A-Za-z][\w:.-]{0,80})(?:\s[^<>]{0,400})?></(?P=empty)>",  # with nothing inside: one span, so that it stays so
    # By the grammar of attributes, whose values may hold a >.
    r"</?[A-Za-z][\w:.-]{0,80}(?:\s{1,99}[\w:.@-]{1,80}(?:\s{0,9}=\s{0,9}(?:\"[^\"<]{0,4000}\"|'[^'<]{0,4000}'|[^\s\"'<>=]{1,2000}))?){0,50}\s{0,99}/?>",
    r"</?[A-Za-z][\w:.-]{0,80}(?:[\s/][^<>]{0,4000})?>",  # and broken ones
    r"</?\d{1,3}\s{0,9}/?>",
    r"<!--[^<>]{0,4000}-->|<!(?:[A-Za-z]|\[CDATA\[)[^<>]{0,4000}>|<\?[A-Za-z][^<>]{0,4000}\?>|<%[=\s-][^<>]{0,4000}%>",
)
_LONG = patterns.join_patterns(
    # IBAN
    r"(?<!\w)(?=[A-Z0-9 ]{15,42}(?!\w))(?=(?:[A-Z ]{0,9}[0-9]){10})[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)",
    r"(?<![\w.,])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\w|[.,][0-9])(?::[0-9]{1,5}\b)?",  # 192.168.0.1:80
    # Codes with five digits or more: AB-12345, 2024-05-03; not 2013-2014, where a good translation has another dash
    r"(?<![\w.,-])(?![0-9]{1,4}-[0-9]{1,4}(?![\w-]))(?=(?:[A-Z_-]{0,20}[0-9]){5})[A-Z0-9]{1,60}(?:[-_][A-Z0-9]{1,60}){0,20}(?!\w|-[0-9]|[.,][0-9])",
    r"(?<![\w.,-])(?=(?:[a-f-]{0,20}[0-9]){5})[0-9a-f]{7,64}(?:-[0-9a-f]{2,32}){0,9}(?![\w-]|[.,][0-9])",
    r"(?<![\w.,-])[A-Za-z]{1,20}[0-9]{5,60}(?!\w|[.,][0-9])",
    # 10:35 and 10:35:07; not 3:30 pm, which is 15:30 elsewhere, and not 16:9
    r"(?<![\w.,:])[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?![\w:]|[.,][0-9]|\s{0,2}[AaPp]\.?[Mm]\b)",
    r"(?<![\w.,])[0-9]{5,}(?![0-9]|[.,][0-9])",
)
# Dates, times and versions are numbers whose parts are joined; the digits of "MP3" are part of a word.
_EVERY = r"(?<![A-Za-z_\d])(?<!\d[.,])(?:\d{1,3}(?: \d{3}){1,9}\b(?:[.,]\d{1,40})?|\d{1,4000}(?:[.,:/'\u2019\u00a0\u202f-]\d{1,400}){0,99})"

# Pictures as sequences: skin tones, joiners, flags, keycaps. A run of them is one span.
_PICTURES = "\U0001f000-\U0001faff\u2600-\u27bf\u2b50\u2b55\u231a\u231b\u23e9-\u23f3"
# Pictures only when U+FE0F says so.
_SYMBOLS = r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299"
_ONE = rf"(?:[{_PICTURES}]\ufe0f?|[{_SYMBOLS}]\ufe0f|[0-9#*]\ufe0f?\u20e3)"
_EMOJI = rf"(?:{_ONE}[\U000e0020-\U000e007f]{{0,9}}(?:\u200d{_ONE}){{0,9}}){{1,99}}"


@cache  # compiled when the first text needs it: that takes as long as translating a sentence
def _scanner(numbers: Numbers) -> re.Pattern[str]:
    """One pattern for all. Two guards tell quickly that nothing begins at a letter inside a word, where most attempts are made."""
    number = _LONG if numbers == "long" else f"{_LONG}|{_EVERY}"
    signs = {
        "mark": MARK.pattern.replace("(", "(?:"),
        "tag": _TAG,
        "entity": _ENTITY,
        "path_1": _ROOTED,
        "placeholder": _PLACEHOLDER,
        "emoji_1": _EMOJI,
    }
    words = {"address": _ADDRESS, "path_2": _PATH, "emoji_2": rf"(?=[0-9]\ufe0f?\u20e3){_EMOJI}", "number": number}
    at_sign, at_word = ("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in k.items()) for k in (signs, words))
    return re.compile(rf"(?=[⟦<&/~.%{{$#@_\\*\[{_PICTURES}{_SYMBOLS}])(?:{at_sign})|(?<![A-Za-z0-9])(?=\w)(?:{at_word})")


# Cheap to look for: a text without these has no span.
_ANY: dict[Numbers, re.Pattern[str]] = {
    "long": re.compile(rf"[⟦<&/%{{$@\\\ufe0f\u20e3{_PICTURES}]|__|\[X|www\.|mailto:|[0-9]:[0-9]|(?:[0-9][A-Za-z_. -]{{0,20}}){{5}}"),
    "all": re.compile(rf"[⟦<&/%{{$@\\\ufe0f\u20e3{_PICTURES}\d]|__|\[X|www\.|mailto:"),
}
_PERCENTAGE = re.compile(r"(?<![%\w.,])\d[\d.,]*+%")  # as in "20%ige"
_GOES_ON = re.compile(r"['\u2019]?\w")
_QUOTES = frozenset("'\"‘’‚‛“”„‟«»‹›")  # noqa: RUF001
# Filled in one after the other, so their order is their meaning: %s %-10s %*d, and {} {:>10} {!r} of Python. %m takes nothing.
_IN_TURN = (
    re.compile(r"%[-+#0', ]{0,5}\*?\d{0,4}(?:\.(?:\d{1,4}|\*))?(?:hh|h|ll|l|q|j|z|t|L)?(?!m)[A-Za-z@]"),
    re.compile(r"\{(?:![rsa])?(?::[^{}]*)?\}"),
)
_DATE = re.compile(r"%[-_0^#]?[ABDHIMNPRVWYZabhjklryz]")  # no printf has these; the parts of a date may change places
_NO_DATE = re.compile(r"%[^%]*[sui@]")  # which hardly any date has: beside them %Z is a conversion of a program's own, as GCC's
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,80}|\d{1,3})\s{0,99}>")
_KNOWN = re.compile(patterns.KNOWN_TAGS, re.IGNORECASE)
# /Edit/Preferences is a menu: a path begins with a folder that systems have, ends with a suffix, or knows no capital letter.
_ROOTS = re.compile(
    r"/(?:bin|boot|dev|etc|home|lib\d*|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var|Applications|Library|System|Users|Volumes)\b"
)


def find(text: str, numbers: Numbers = "long") -> list[Range]:
    """Character ranges of spans, in order, not overlapping. With numbers="all" every number, date and time is one too."""
    if not _ANY[numbers].search(text):
        return []
    scanner = _scanner(numbers)
    closed = frozenset(_CLOSING.findall(text))
    percentages = {match.end() - 1 for match in _PERCENTAGE.finditer(text)} if "%" in text else set[int]()
    message = is_message(text)
    found: list[Range] = []
    at = 0
    while match := scanner.search(text, at):
        start, hit = match.start(), match.group()
        kind: Kind = match.lastgroup.partition("_")[0]  # type: ignore[union-attr, assignment]
        length = len(hit)
        if kind == "tag":
            length *= _is_tag(hit, closed)
        elif kind == "placeholder":
            length *= not (start in percentages and _is_percentage(text, match)) and not (message and hit[0] == "{")
        elif kind == "entity" and ((meant := html.unescape(hit)).isalpha() or meant in _QUOTES):
            at = match.end()  # letters and quotation marks are text, and the digits of don&#39;t are no number
            continue
        elif kind == "address":
            length = _address_length(hit)
        elif kind == "path":
            length = _path_length(hit)
        if length:
            found.append((start, start + length, kind))
        at = start + (length or 1)
    return found


def is_bare(text: str) -> bool:
    """Whether a text has spans and no letters beside them, as `{n}% ({total})`: there is nothing in it to translate."""
    if len(text) > LONGEST_BARE or not (spans := find(text)):
        return False
    ends = [0, *(end for _, end, _ in spans)]
    starts = [*(start for start, _, _ in spans), len(text)]
    return not any(char.isalpha() for end, start in zip(ends, starts, strict=True) for char in text[end:start])


def in_turn(spans: Sequence[str]) -> list[list[int]]:
    """The numbers of the spans that must keep their order, in groups: in_turn(["%s", "<b>", "%d", "</b>", "{}"]) -> [[0, 2], [4]]"""
    date = any(map(_DATE.fullmatch, spans)) and not any(map(_NO_DATE.fullmatch, spans))
    groups = ([i for i, span in enumerate(spans) if kind.fullmatch(span)] for kind in _IN_TURN)
    return [group for group in groups if group and not (date and spans[group[0]][0] == "%")]


def _is_tag(hit: str, closed: frozenset[str]) -> bool:
    """A tag is known by its name, its closing form or its attributes. Usage texts say <file>, keys are <Ctrl>: translated, no tags."""
    parts = TAG_NAME.match(hit)
    if parts is None or hit.find("></") > 0:
        return True  # comments, declarations, elements with nothing inside
    slash, name, rest = parts[1], parts[2], hit[parts.end() : -1].strip()
    known = _KNOWN.fullmatch(name) is not None
    if not rest:
        return bool(slash) or known or name in closed  # <para>...</para>
    # "a <b and c> d" is no tag, <hr noshade> is one.
    return rest == "/" or "=" in rest or (known and len(rest.split()) == 1)


def _is_percentage(text: str, match: re.Match[str]) -> bool:
    """Whether the sign after a number says per cent: in "100%sure", "20%-a" and "5%d'eau" it does, in "0%d:0%d" and "10%s" it converts."""
    hit, end = match.group(), match.end()
    if hit.startswith("%%"):
        return False
    return hit.endswith("%") or re.fullmatch(r"%[-+,]\w", hit) is not None or bool(_GOES_ON.match(text, end))


def _address_length(hit: str) -> int:
    """Without what belongs to the sentence: "(see http://a.b/c_(d))." -> http://a.b/c_(d)"""
    end = min((at for sign in ("&lt;", "&gt;", "&quot;") if (at := hit.find(sign)) >= 0), default=len(hit))
    unopened = {close: hit.count(close, 0, end) - hit.count(sign, 0, end) for sign, close in ("()", "[]", "{}")}
    while end and (hit[end - 1] in ".,;:!?'’*…" or unopened.get(hit[end - 1], 0) > 0):  # noqa: RUF001
        if hit[end - 1] in unopened:
            unopened[hit[end - 1]] -= 1
        end -= 1
    for sign, close in ("()", "[]", "{}"):  # "smb://[your address]"
        if hit.count(sign, 0, end) > hit.count(close, 0, end):
            end = hit.rfind(sign, 0, end)
    return end if hit[:end] not in ("www", "mailto", "") else 0


def _path_length(hit: str) -> int:
    hit = hit.rstrip(".,;:!?'’)")  # noqa: RUF001
    if hit[:1] != "/":
        return len(hit) if hit.strip("~./") else 0
    steps = hit.strip("/").split("/")
    lower = len(steps) > 1 and hit == hit.lower() and all(step[:1].isalnum() for step in steps)
    suffixed = len(steps) > 1 and re.search(r"\w\.[a-z][a-z0-9]{0,4}$", steps[-1]) is not None
    return len(hit) if _ROOTS.match(hit) or lower or suffixed else 0
