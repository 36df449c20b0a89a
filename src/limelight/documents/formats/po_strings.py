r"""`format_string` writes a text as gettext does, with C escapes and wrapped at the width of a page.

format_string("msgstr", "Datei öffnen\n", ...)  ->  msgstr "Datei öffnen\n"
a text that does not fit, or has line breaks inside, begins with an empty string:

msgstr ""
"Die erste Zeile\n"
"und die zweite"
"""

import re
import unicodedata

from limelight.corpus.reading.po import ESCAPED

WIDEST = 77  # columns between the quotes: lines of gettext have 79

_ESCAPES = {character: f"\\{letter}" for letter, character in ESCAPED.items()}
# Others by three digits, so that no digit of the text is read with them.
_TABLE = str.maketrans({**{chr(code): f"\\{code:03o}" for code in (*range(0x20), 0x7F)}, **_ESCAPES})
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\s*\S+\s*|\s+")


def escape(text: str) -> str:
    return text.translate(_TABLE)


def format_string(keyword: str, text: str, newline: str, wrap: bool) -> str:
    """A keyword and its string, on one line if it fits."""
    lines = _LINE.findall(text)
    one = f'{keyword} "{escape(text)}"'
    if len(lines) <= 1 and (not wrap or columns(one) <= WIDEST + 2):
        return one
    pieces = [piece for line in lines for piece in (_wrap(line) if wrap else [escape(line)])]
    return newline.join([f'{keyword} ""', *(f'"{piece}"' for piece in pieces)])


def columns(text: str) -> int:
    """How wide a text is on a terminal: Chinese characters take two columns."""
    if text.isascii():
        return len(text)
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in text)


def _wrap(line: str) -> list[str]:
    pieces, width = [""], 0
    for word in map(escape, _WORD.findall(line)):
        size = columns(word)
        if pieces[-1] and width + size > WIDEST:
            pieces.append("")
            width = 0
        pieces[-1] += word
        width += size
    return pieces
