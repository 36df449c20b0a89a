r"""`find_markup` finds emphasis, links, code and tags inside a paragraph of Markdown, as CommonMark does, and `escape` keeps text text:

    Open *the* [`limits`](a.md "b")    ->  open `*`, close `*`, open `[`, single `limits` with its ticks, close `](a.md "b")`
    escape("2*3 [x](y)")               ->  2\*3 [x\](y)

Every place is looked at a bounded number of times, whatever the paragraph.
"""

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Container
from html import unescape
from typing import NamedTuple

from limelight.documents.sentences import InlineItem
from limelight.documents.units import replace_controls

LONGEST_LABEL = 1000  # characters, as CommonMark has it
DEEPEST_SEARCH = 50  # open brackets and emphases that an end is looked for in
BREAK = "line break"  # the name of what parts two stretches, which no tag can have

_SIGN = r"[!-/:-@\[-`{-~]"
# A formula has a sign or is short, and before its first command no word stands between blanks: $5/day or 10$ is text.
_MATH = r"(?<![\w$])\$(?=[^$]{0,300}[\\^_={}+*/<>]|[^\W\d]{1,3}\$)(?![^$\\]{0,300}\s[^\W\d_]{2,30}\s)(?!\s)[^$]{1,300}(?<![\s\\])\$(?!\w)"
# Lines that other dialects read as marks: fences of :::, !!! and ??? of admonitions, === of tabs, [!NOTE] of a quotation, formulas
# between $$. A sentence after such signs is text.
_LINE = (
    r":{3,}[ \t]{0,9}(?:(?:[\w-]{1,40}|\{[^\n{}]{1,200}\})?[ \t]{0,9}:{0,99}|(?:[a-z][\w-]{0,40}|\{[^\n{}]{1,200}\})[ \t\[{][^\n]{0,200})"
    r'|(?:!!!|\?\?\?\+?)[ \t]{1,9}(?:[\w-]{1,40}(?:[ \t]{1,9}(?:inline|end)){0,2}|(?:[\w-]{1,40}[ \t]{1,9}){0,4}"[^\n]{0,200}")'
    r'|===[!+]{0,2}[ \t]{1,9}"[^\n]{0,200}"'
    r"|\[![A-Za-z]{1,20}\](?![(\[])(?:[-+]?|[^\n]{0,200}(?=\n))|\$\$[^$]{1,2000}\$\$"
)
_TOKEN = re.compile(
    rf"""(?P<line>(?:\A|\n|(?<=\n))(?:(?:{_LINE})[ \t]{{0,99}}(?:\n|\Z)|\[\^[^\s\[\]]{{1,99}}\]:[ \t]*)|\n:[ \t]+)
    | \\{_SIGN}
    | (?P<math>\$\$[^$]{{1,2000}}\$\$|{_MATH})
    | (?P<code>`++) | (?P<comment><!--)
    | (?P<single><(?:[A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]{{0,2000}}|[\w.+-]{{1,64}}@[\w.-]{{1,255}})>|https?://[^\s<>()\[\]*`|]{{1,2000}})
    | (?P<tag></?(?P<name>[A-Za-z][A-Za-z0-9-]{{0,30}})(?:\s[^<>]{{0,1000}})?/?>)
    | (?P<hard>(?<!\ )\ {{2,}}+\n|\\\n)
    | (?P<run>\*++|(?<!_)_++|~~)
    | (?P<open>!?\[) | (?P<close>\])""",
    re.VERBOSE,
)
_TICKS = re.compile("`+")
_TARGET = re.compile(
    r"""\(\s{0,9}(?:<[^<>\n]{0,2000}>|(?:[^\s()<>]|\([^\s()]{0,200}\)){0,2000})"""
    r"""(?:\s{1,9}(?:"[^"]{0,1000}"|'[^']{0,1000}'|\([^()]{0,1000}\)))?\s{0,9}\)"""
)
_LABEL = re.compile(r"\[([^\[\]]{0,999})\]")
_ASIDE = re.compile(r"\[(?:\^[^\s\[\]]{1,99}|[ xX]|![A-Za-z]{1,20}(?!\][(\[]))\]")  # a footnote, a task, the kind of a note
_REFERENCE = re.compile(rf"\\({_SIGN})|(&(?:#[0-9]{{1,7}}|#[xX][0-9a-fA-F]{{1,6}}|[A-Za-z][A-Za-z0-9]{{1,31}});)")
_MARKS = re.compile(
    rf"""\\(?={_SIGN}|$)|`|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)|<(?=[A-Za-z/!?])"""
    rf"""|&(?=\#?\w{{1,32}};)|\](?=[(\[:])|(?=\$\$[^$]{{1,2000}}\$\$|{_MATH})"""
)
_BRACKETS = re.compile(r"(?<!\\)[\[\]]")
_BREAKS = re.compile(r"(?<![ \t])[ \t]*+[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*+")
_VOID = frozenset(("br", "hr", "img", "input", "wbr"))


class _Open(NamedTuple):
    sign: str  # [ or ![, or what a run of emphasis is made of
    start: int
    end: int
    both: bool = False  # could also have been an end


def find_markup(text: str, references: Container[str]) -> list[InlineItem]:
    """Tags and singles in order, without the texts between them. `references`: the labels of links, in capital letters."""
    scanner = _MarkupScanner(text, references)
    at = 0
    while token := _TOKEN.search(text, at):
        at = scanner.take(token)
    return sorted(scanner.found, key=lambda item: (item.start, item.end))


class _MarkupScanner:
    def __init__(self, text: str, references: Container[str]) -> None:
        self.text, self.references = text, references
        self.found: list[InlineItem] = []
        self.open: list[_Open] = []
        self.ticks: dict[int, list[int]] = defaultdict(list)
        for run in _TICKS.finditer(text):
            self.ticks[len(run[0])].append(run.start())
        self.last_comment = text.rfind("-->")

    def take(self, token: re.Match[str]) -> int:
        """Note what a token is, and return where the next is looked for."""
        start, end, kind = token.start(), token.end(), token.lastgroup
        if kind == "code":
            places = self.ticks[end - start]
            after = bisect_left(places, end)
            if after < len(places):
                return self._add_single(start, places[after] + end - start)
        elif kind == "comment":
            if end <= self.last_comment:
                return self._add_single(start, self.text.index("-->", end) + 3)
        elif kind in ("single", "math", "hard", "line"):
            return self._add_single(start, end, "" if kind in ("single", "math") else BREAK)
        elif kind == "tag":  # the last group that closed
            self._take_tag(token)
        elif kind == "run":
            self._take_run(token[0][0], start, end)
        elif kind == "open":
            if aside := _ASIDE.match(self.text, start):
                return self._add_single(start, aside.end())
            self.open.append(_Open(token[0], start, end))
        elif kind == "close":
            return self._close_link(start, end)
        return end

    def _add_single(self, start: int, end: int, name: str = "") -> int:
        self.found.append(InlineItem("single", start, end, name=name))
        return end

    def _take_tag(self, token: re.Match[str]) -> None:
        name = token["name"].lower()
        single = name in _VOID or token[0].endswith("/>")
        kind = "single" if single else "close" if token[0][1] == "/" else "open"
        self.found.append(InlineItem(kind, token.start(), token.end(), name=name))  # type: ignore[arg-type]

    def _close_link(self, start: int, end: int) -> int:
        """A link if something follows that says whereto, or if its own text is a label; else both brackets are text."""
        recent = range(len(self.open) - 1, max(-1, len(self.open) - 1 - DEEPEST_SEARCH), -1)
        opening = next((at for at in recent if "[" in self.open[at].sign), None)
        if opening is None:
            return end
        entry = self.open[opening]
        del self.open[opening:]  # emphasis that does not end inside a link is none
        label = self.text[entry.end : start] if start - entry.end < LONGEST_LABEL else ""
        target = _TARGET.match(self.text, end)
        written, named = "", None if target else _LABEL.match(self.text, end)
        if named and self._knows(named[1] or label):
            target = named
        elif target is None and not self._knows(label):
            return end
        stop = target.end() if target else end
        if target is None or (named and not named[1]):
            written = f"][{label}]"
        self.found.append(InlineItem("open", entry.start, entry.end, name=f"link {start}"))
        self.found.append(InlineItem("close", start, stop, name=f"link {start}", written=written))
        return stop

    def _knows(self, label: str) -> bool:
        return len(label) < LONGEST_LABEL and " ".join(label.split()).upper() in self.references

    def _take_run(self, sign: str, start: int, end: int) -> None:
        before, after = (_class_of(self.text[at : at + 1] if at >= 0 else "") for at in (start - 1, end))
        left = after != "blank" and (after != "sign" or before != "letter")
        right = before != "blank" and (before != "sign" or after != "letter")
        opens, closes = left, right
        if sign == "_":
            opens, closes = left and (not right or before == "sign"), right and (not left or after == "sign")
        both, size = opens and closes, end - start
        while closes and start < end and (depth := self._find_opening(sign, size, both)):
            entry = self.open[-depth]
            del self.open[-depth:]
            use = min(2, end - start, entry.end - entry.start)
            self.found.append(InlineItem("open", entry.end - use, entry.end, name=f"{sign} {start}"))
            self.found.append(InlineItem("close", start, start + use, name=f"{sign} {start}"))
            start += use
            if entry.end - use > entry.start:
                self.open.append(entry._replace(end=entry.end - use))
        if opens and start < end:
            self.open.append(_Open(sign, start, end, both))

    def _find_opening(self, sign: str, size: int, both: bool) -> int:
        """How far from the top the opening of a run stands; 0 where there is none."""
        for depth, entry in enumerate(reversed(self.open[-DEEPEST_SEARCH:]), start=1):
            if "[" in entry.sign:
                return 0
            total = size + entry.end - entry.start
            if entry.sign == sign and not ((both or entry.both) and total % 3 == 0 and size % 3):
                return depth
        return 0


def _class_of(char: str) -> str:
    if not char or char.isspace():
        return "blank"
    return "sign" if unicodedata.category(char)[0] in "PS" else "letter"


def read(raw: str) -> str:
    """As it is shown: a line break is a blank, escapes and entities are characters."""
    return _REFERENCE.sub(lambda found: found[1] or unescape(found[2]), raw.replace("\n", " "))


def escape(text: str, references: bool = False, cell: bool = False) -> str:
    """As text of Markdown, on one line: signs that would be markup get a backslash."""
    text = _MARKS.sub(r"\\\g<0>", replace_controls(_BREAKS.sub(" ", text)))
    if references or text.count("[") != text.count("]"):
        text = _BRACKETS.sub(r"\\\g<0>", text)
    return text.replace("|", r"\|") if cell else text
