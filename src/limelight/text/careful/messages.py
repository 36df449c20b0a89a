"""ICU messages keep their skeleton of plural forms and selections, and the texts inside are translated:

    You have {n, plural, one {# file} other {# files}} in {folder}.
    texts    You have ... # file ... # files ... in {folder}.

A text is what stands between two of these constructs, with its plain arguments ({folder}). Apostrophes quote as in ICU: '' is one
apostrophe, '{' a brace. One pass, with a bounded depth.
"""

import re

DEEPEST = 8  # constructs inside of each other
_BEGINS = re.compile(r"\{\s{0,9}\w{1,80}\s{0,9},\s{0,9}(plural|selectordinal|select)\s{0,9},")
_OFFSET = re.compile(r"\s{0,9}offset\s{0,9}:\s{0,9}\d{1,9}\s")
_SELECTOR = re.compile(r"\s{0,99}(?:=\d{1,9}|[\w-]{1,80})\s{0,99}\{")
_CLOSES = re.compile(r"\s{0,99}\}")
_QUOTED = re.compile(r"'(?:'|[{}#|][^']*+(?:''[^']*+)*+'?)")
_QUOTES = re.compile(r"'(?=[{}'|]|\Z)")
_ORDINAL = re.compile(r"\s*#\w+\s*")  # 1st, 2nd: an ending of the source language


def is_message(text: str) -> bool:
    """Whether this is a message with plural forms or a selection: its braces hold text to be translated."""
    return "{" in text and _BEGINS.search(text) is not None


def texts_of(message: str) -> list[tuple[int, int]] | None:
    """Where its texts stand, without the blanks around them. None where its braces do not fit, or lie too deep."""
    reader = _Reader(message)
    return reader.found if reader.read_message(0) and reader.at == len(message) else None


def unescape(text: str) -> str:
    """A text of a message as a model reads it: with # as a placeholder, and apostrophes that stand for themselves."""
    return text.replace("''", "'").replace("#", "{#}")


def fits(shown: str, translation: str) -> bool:
    """Whether the translation of a text that was `shown` can stand in a message: a brace too many would end it."""
    return all(translation.count(sign) == shown.count(sign) for sign in "{}#")


def escape(shown: str, doubles: bool) -> str:
    """`doubles`: the message has '' for an apostrophe. Else only those are doubled that would quote a brace: Flutter shows both."""
    quoted = shown.replace("'", "''") if doubles else _QUOTES.sub("''", shown)
    return quoted.replace("{#}", "#")


class _Reader:
    """A reader goes through a message once, and notes its texts. Its steps say False where the braces are not those of a message."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.found = text, 0, list[tuple[int, int]]()

    def read_message(self, depth: int) -> bool:
        """One message, up to the brace that closes it or the end. A text that quotes a brace is none to be translated."""
        text, begin, worded, quoted = self.text, self.at, False, False
        while self.at < len(text) and text[self.at] != "}":
            sign = text[self.at]
            if sign == "{" and (construct := _BEGINS.match(text, self.at)):
                self._note(begin, worded and not quoted)
                if not self._read_construct(construct, depth + 1):
                    return False
                begin, worded, quoted = self.at, False, False
            elif sign == "{":
                if not self._skip_argument():
                    return False
            elif sign == "'" and (quote := _QUOTED.match(text, self.at)):
                quoted |= quote[0] != "''"
                self.at = quote.end()
            else:
                worded |= sign.isalpha()
                self.at += 1
        self._note(begin, worded and not quoted)
        return True

    def _read_construct(self, construct: re.Match[str], depth: int) -> bool:
        self.at = construct.end()
        if construct[1] != "select" and (offset := _OFFSET.match(self.text, self.at)):
            self.at = offset.end()
        branches = 0
        while selector := _SELECTOR.match(self.text, self.at):
            self.at = selector.end()
            if depth > DEEPEST or not self.read_message(depth) or not self.text.startswith("}", self.at):
                return False
            self.at += 1
            branches += 1
        closing = _CLOSES.match(self.text, self.at)
        self.at = closing.end() if closing else self.at
        return closing is not None and branches > 0

    def _skip_argument(self) -> bool:
        """{name}, {n, number, #,##0}: a style may have braces of its own."""
        depth = 0
        while self.at < len(self.text) and depth <= DEEPEST:
            sign = self.text[self.at]
            depth += (sign == "{") - (sign == "}")
            self.at += 1
            if not depth:
                return True
        return False

    def _note(self, begin: int, is_text: bool) -> None:
        core = self.text[begin : self.at].strip()
        if is_text and not _ORDINAL.fullmatch(core):
            start = begin + self.text[begin : self.at].index(core)
            self.found.append((start, start + len(core)))
