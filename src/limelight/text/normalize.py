"""`normalize` tidies a column of text in explicit, named steps, and `normalize_text` a single one. A translator applies the steps that its
training text went through.

invisible  soft hyphens, zero-width spaces, byte order marks, bidirectional embeddings and overrides go; joiners (U+200C, U+200D) stay,
           since Persian, Hindi and emoji need them
nfc        one code point sequence for what looks the same: e + combining acute -> é
spaces     every run of white space, line breaks too, becomes one space; none at the ends
quotes     typographic quotation marks and apostrophes become " and '; off by default, since good typography is worth learning
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import polars as pl

Step = Literal["nfc", "invisible", "spaces", "quotes"]
STEPS: tuple[Step, ...] = get_args(Step)
DEFAULT_STEPS: tuple[Step, ...] = ("nfc", "invisible", "spaces")

INVISIBLE = r"[\x{AD}\x{200B}\x{2060}\x{FEFF}\x{202A}-\x{202E}\x{2066}-\x{2069}]"
# Every character that NFC changes or joins to the one before it, and some more: text without them is NFC already (Unicode's quick check).
MAY_COMPOSE = (
    r"[\p{M}\x{340}-\x{37E}\x{387}\x{1100}-\x{11FF}\x{1F71}-\x{1FFD}\x{2000}\x{2001}\x{2126}\x{212A}\x{212B}\x{2329}\x{232A}\x{2ADC}"
    r"\x{958}-\x{95F}\x{9DC}-\x{9DF}\x{A33}-\x{A5E}\x{B5C}\x{B5D}\x{F43}-\x{FB9}\x{F900}-\x{FAFF}\x{FB1D}-\x{FB4E}"
    r"\x{1D15E}-\x{1D1C0}\x{2F800}-\x{2FA1D}]"
)
UNTIDY_SPACES = r"[^\S ]|  |^ | $"
UNUSUAL = "|".join((INVISIBLE, MAY_COMPOSE, UNTIDY_SPACES))  # no step but `quotes` changes a text without any of these
_DOUBLE, _SINGLE = "\u00ab\u00bb\u201c\u201d\u201e\u201f", "\u2018\u2019\u201a\u201b\u2039\u203a"
QUOTES = {**dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_SINGLE, "'")}
_QUOTES = str.maketrans(QUOTES)


def _compile(pattern: str) -> re.Pattern[str]:
    """A pattern of Polars for Python, which has other words for characters by number, and none for marks."""
    return re.compile(re.sub(r"\\x\{(\w+)\}", lambda code: chr(int(code[1], 16)), pattern.replace(r"\p{M}", "")))


_INVISIBLE, _MAY_COMPOSE = _compile(INVISIBLE), _compile(MAY_COMPOSE)
# Unicode's White_Space, which `\s` is in Polars; in Python it has four signs more.
_MARKS = re.compile(r"[^\w\x00-\x7f]{30,}")  # or other signs; no text has so many marks on a letter
_WHITE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")


def may_compose(letter: str) -> bool:
    """MAY_COMPOSE for a single character."""
    return unicodedata.category(letter).startswith("M") or _MAY_COMPOSE.match(letter) is not None


def is_invisible(letter: str) -> bool:
    return _INVISIBLE.match(letter) is not None


def is_white(letter: str) -> bool:
    return _WHITE.match(letter) is not None


def recompose(text: str, form: Literal["NFC", "NFD"] = "NFC") -> str:
    """`unicodedata.normalize`, in linear time: that one brings the marks of a letter into their order by exchanging neighbours, and holds
    all threads meanwhile: a minute for 100,000 marks."""
    return unicodedata.normalize(form, text if text.isascii() else _MARKS.sub(_order_marks, text))


def _order_marks(run: re.Match[str]) -> str:
    found, letters = list[tuple[int, int, str]](), 0
    for sign in "".join(unicodedata.normalize("NFD", sign) for sign in run[0]):
        order = unicodedata.combining(sign)
        letters += order == 0
        found.append((letters, order, sign))
    return "".join(sign for _, _, sign in sorted(found, key=itemgetter(0, 1)))


def normalize_text(text: str, steps: Sequence[Step]) -> str:
    """The same as `normalize` of a column: normalize_text("a  b", ["spaces"]) -> "a b"."""
    if "invisible" in steps:
        text = _INVISIBLE.sub("", text)
    if "nfc" in steps:
        text = recompose(text)
    if "spaces" in steps:
        text = _WHITE.sub(" ", text).strip(" ")
    return text.translate(_QUOTES) if "quotes" in steps else text


def normalize(texts: "pl.Series", steps: Sequence[Step]) -> "pl.Series":
    """normalize(["a  b"], ["spaces"]) -> ["a b"]. The steps run in the order given here above, whatever the order asked for."""
    texts = where(texts, texts.str.contains(UNUSUAL), lambda some: _tidy(some, steps))
    if "quotes" in steps:
        texts = texts.str.replace_many(list(QUOTES), list(QUOTES.values()))
    return texts


def _tidy(texts: "pl.Series", steps: Sequence[Step]) -> "pl.Series":
    if "invisible" in steps:
        texts = texts.str.replace_all(INVISIBLE, "")
    if "nfc" in steps:  # after what may stand between a letter and its accent
        texts = texts.str.normalize("NFC")
    if "spaces" in steps:
        texts = texts.str.replace_all(r"\s+", " ").str.strip_chars()
    return texts


def where(texts: "pl.Series", touched: "pl.Series", change: "Callable[[pl.Series], pl.Series]") -> "pl.Series":
    """`change` applied to some rows only: most text is tidy, and looking is ten times cheaper than rewriting."""
    rows = touched.arg_true()
    return texts if rows.is_empty() else texts.clone().scatter(rows, change(texts.gather(rows)))
