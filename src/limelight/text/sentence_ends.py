"""`sentence_starts` finds where sentences of a line begin, by sentencex and by what it was seen to get wrong.

It is given a line as `unquote` shows it, since it keeps a quotation whole, however many sentences it has, and pairs quotation marks in the
wrong order where one is missing.
"""

import re
from collections.abc import Iterator

import sentencex  # type: ignore[import-untyped]

# sentencex takes time quadratic in a run of opening quotes, and loses the blank lines of a text above 10 kB: it is given no more than this.
WINDOW = 4_096  # characters

BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"  # what ends a line
_QUOTE = '"“”„‟«»'
_TERMINATOR = ".!?…。\uff01\uff1f"  # the last two are ! and ? of full width
_QUOTED_END = re.compile(rf"(?<![{_TERMINATOR}])([{_TERMINATOR}]+)([^\S{BREAKS}]?»|”|[{_QUOTE}](?!\w))(\s*[^\W\d_]|[.,;:])?")
_AFTER_WORD = re.compile(rf"(?<=\w)[{_QUOTE}]")
# Other spaces become plain ones: "B", a no-break space and "." make sentencex panic.
_SPACES = "\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_BLANKS = str.maketrans(dict.fromkeys(_QUOTE + _SPACES, " "))

# Where "19." means "the 19th", what follows is no new sentence. "Er kam am 5. Dann ging er." stays whole too, which does less harm.
_ORDINAL_DOT = frozenset(
    ("bs", "cs", "da", "de", "et", "fi", "fo", "hr", "hu", "is", "lb", "lv", "nb", "nn", "no", "pl", "sh", "sk", "sl", "sr", "tr")
)  # fmt: skip
_ORDINAL = re.compile(r"(?<![\w.,:/-])\d{1,3}\.\s*$")
_LIST_MARK = re.compile(r"\s*\(?(?:\d{1,3}|[A-Za-z])[.)]\s*$")

# Titles are followed by a name; sentencex knows those of English and German.
_TITLES = {
    "fr": "M MM Mr Mme Mmes Mlle Mlles Me Mgr Dr Drs Pr Prof St Ste",
    "es": "Sr Sra Sres Sras Srta Dr Dra Dres D Dña Prof Ud Uds Vd Vds Ing Lic Excmo Excma Gral",
    "pt": "Sr Sra Srs Sras Srta Dr Dra Drs Prof Profa Exmo Exma Eng D",
    "it": "Sig Sigg Dott Prof Avv Ing Arch On Sen Gen Mons Don S Dr",
    "nl": "Dhr dhr Mevr mevr Mw mw Dr dr Drs drs Ir ir Mr mr Prof prof Ds ds St",
    "en": "Mr Mrs Ms Messrs Dr Drs Prof Rev Hon St Sgt Capt Lt Col Gen Maj Gov Sen Rep Supt",
    "de": "Hr Fr Frl Dr Prof Ing Dipl St Hl",
}
_TITLE = {code: re.compile(rf"(?<!\w)(?:{names.replace(' ', '|')})\.\s*$") for code, names in _TITLES.items()}
_NUMBERED = re.compile(r"(?<!\w)(?:No|Nos|Nr|Nrn|Fig|Abb|Art|Abs|p|pp|S|vol|Vol|chap|Kap|ca|approx|env|n)\.\s*$")
_DOTTED = re.compile(r"\w[.-]+\w+\.\s*$")  # "p.-d.g. de", "av. J.-C. était"


def unquote(line: str) -> str:
    """The line without quotation marks and odd spaces, as long as before; a sentence that ended inside a quotation ends behind it.

    unquote('"Oh." She: "No?" he')  ->  ' Ohx. She:  Noxx he'
    A mark counts as closing when it follows a letter or the end of a sentence; what goes on with a small letter or a comma has not ended.
    """

    def behind(match: re.Match[str]) -> str:
        ends, marks, following = match[1], "x" * len(match[2]), match[3] or ""
        goes_on = following in (".", ",", ";", ":") or following.strip().islower()
        return ("x" * len(ends) + marks if goes_on else marks + ends) + following

    line = _QUOTED_END.sub(behind, line)
    return _AFTER_WORD.sub("x", line).translate(_BLANKS)


def sentence_starts(line: str, code: str) -> Iterator[int]:
    """Where sentences begin, but for the first. What a window ends with is looked at again, with what follows it."""
    at = 0
    while len(line) - at > WINDOW:
        window = line[at : at + WINDOW]
        # A sentence longer than that ends at a blank; it is too long for any model, too.
        for end in _ends(window, code)[:-1] or [_last_blank(window)]:
            yield at + end
        at += end
    yield from (at + end for end in _ends(line[at:], code)[:-1])


def _ends(window: str, code: str) -> list[int]:
    """Where the sentences of a window end; the last end is that of the window. What sentencex cannot take is one sentence."""
    pieces = list[str]()
    try:
        pieces = sentencex.segment(code, window)
    except UnicodeEncodeError:  # half a character, as damaged JSON has it
        pass
    except BaseException as error:  # a panic of Rust is no Exception, and must not end a server
        if type(error).__name__ != "PanicException":
            raise
    ends, start, end = list[int](), 0, 0
    for piece in pieces if "".join(pieces) == window else []:
        end += len(piece)
        if end < len(window) and not _goes_on(window[start:end], window[end : end + 40], code):
            ends.append(end)
            start = end
    return [*ends, len(window)]


def _goes_on(sentence: str, following: str, code: str) -> bool:
    """Is this no end of a sentence? A title, "19." of a century, "1." of a list, or a sign inside a word."""
    if not sentence[-1].isspace() and sentence[-1] in ".!?…" and not following[0].isspace():
        return True
    tail = sentence[-40:]
    return bool(
        (code in _TITLE and _TITLE[code].search(tail))
        or (code in _ORDINAL_DOT and _ORDINAL.search(tail))
        or (_NUMBERED.search(tail) and following[0].isdigit())
        or (_DOTTED.search(tail) and following[0].islower())
        or (len(sentence) < 10 and _LIST_MARK.match(sentence))
    )


def _last_blank(window: str) -> int:
    """Return the place behind the last blank of a window, or its end when it has none."""
    return next((at for at in range(len(window) - 1, 0, -1) if window[at - 1].isspace()), len(window))
