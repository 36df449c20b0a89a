"""Keyboard accelerators are lifted off a label before its translation and placed again after it. They are the letter that opens a menu:
"_File" (GTK), "E&xit" (Qt, Windows), "Save ~As" (LibreOffice).

A sign inside a word hides the word from a model. So a label is translated without it:

    lift_accelerator("E&xit")                                -> "Exit", Accelerator("&", "x")
    place_accelerator("Beenden", Accelerator("&", "x"))      -> "&Beenden"
    place_accelerator("終了...", Accelerator("&", "x"))       -> "終了(&X)..."

Programs write the same signs for other ends: AT&T, foo_bar, __init__, ~/.config. When in doubt a sign is left alone, for a letter
without its key does less harm than a broken name.
"""

import re
from dataclasses import dataclass

from limelight.text.careful.spans import find

SIGNS = "_&~"
LONGEST = 200  # characters; a longer text is no label
MOST_WORDS = 15  # of 6,400 catalogue entries of up to this many words with one underscore before a word, 97 in 100 have one in German too
MOST_WORDS_INSIDE = 8  # a sign inside a word of a longer text is mostly part of a name

_LETTER = r"[^\W\d_]"
_APPENDED = re.compile(rf"(?:[ \u00a0]|(?<![A-Za-z0-9_]))[(\uff08]([{SIGNS}])({_LETTER})[)\uff09]")  # File (_F)
_SHORTENED = re.compile(r"(?i)\b(?:\w&\w|drag&drop|(?:copy|cut)&paste|plug&play|(?:find|search)&replace|black&white)\b")
# Scripts that are not typed letter by letter, or whose letters have vowel signs around them: the custom is "(_F)" at the end.
# Compiled by the first label that needs it, as any class of so many ranges: that takes milliseconds.
_NO_KEYS = (
    "[\u0900-\u109f\u1100-\u13ff\u1780-\u17ff\u3040-\u30ff\u3105-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u9fff\ua840-\ud7ff"
    "\uf900-\ufaff\uff66-\uffdc\U00020000-\U0003ffff]"
)
_ENDING = " \u00a0.:,;!?\u2026\u3002\uff0e\uff1a"
_CODE = re.compile(r"[\"'`()<>=\[\]“”„«»]")


@dataclass(frozen=True)
class Accelerator:
    sign: str
    letter: str


def lift_accelerator(text: str) -> tuple[str, Accelerator | None]:
    """The text without its one sign, and what the sign said. A text without one, or with several, comes back as it is."""
    if len(text) > LONGEST or not any(sign in text for sign in SIGNS):
        return text, None
    if len(appended := list(_APPENDED.finditer(text))) == 1:
        before, sign, after = text[: appended[0].start()], appended[0][1], text[appended[0].end() :]
        if text.count(sign) == 1 and not after.strip(_ENDING):  # "File (_F)..." and not "call f (_x) now"
            return before + after, Accelerator(sign, appended[0][2])
    places = [at for sign in SIGNS if (at := _only(text, sign)) is not None and _is_label(text, at)]
    return _without(text, places[0]) if len(places) == 1 else (text, None)


def place_accelerator(translation: str, accelerator: Accelerator) -> str:
    """The translation with the sign, once: before the same letter, best where a word begins, else before the first letter of all."""
    if (own := lift_accelerator(translation)[1]) is not None and own.sign == accelerator.sign:
        return translation
    sign, letter = accelerator.sign, accelerator.letter
    letters = [i for i, is_free in enumerate(_free(translation)) if is_free and translation[i].isalpha()]
    if not letters or re.search(_NO_KEYS, translation):
        at = len(translation.rstrip(_ENDING))
        return f"{translation[:at]}({sign}{letter.upper()}){translation[at:]}"
    begins = [i for i in letters if i == 0 or not translation[i - 1].isalnum()]
    same = (i for i in (*begins, *letters) if translation[i].casefold() == letter.casefold())
    at = next(same, (begins or letters)[0])
    return translation[:at] + sign + translation[at:]


def lift_pair(source: str, target: str) -> tuple[str, str] | None:
    """Both sides of a training pair without their signs. None unless both have the same one.

    Where the source certainly has a sign, a single one in the target is one too, even in "Fenster b_linkt".
    """
    bare_source, accelerator = lift_accelerator(source)
    if accelerator is None:
        return None
    bare_target, other = lift_accelerator(target)
    if other is None and (at := _only(target, accelerator.sign)) is not None:
        bare_target, other = _without(target, at)
    return (bare_source, bare_target) if other is not None and other.sign == accelerator.sign else None


def _without(text: str, at: int) -> tuple[str, Accelerator]:
    return text[:at] + text[at + 1 :], Accelerator(text[at], text[at + 1])


def _only(text: str, sign: str) -> int | None:
    """Where the text has this sign before a letter, if in one place only. The & of "Cut & Paste" is no sign, and "__" is an underscore."""
    if sign not in text:
        return None
    free = _free(text)
    signs = (match.span() for match in re.finditer(rf"(?<!{sign}){sign}(?={_LETTER})", text))
    places = [start for start, end in signs if free[start] and free[end]]
    underscores = sum(is_free and char == "_" for is_free, char in zip(free, text, strict=True)) if sign == "_" else 0
    return places[0] if len(places) == 1 and underscores <= 1 else None


def _is_label(text: str, at: int) -> bool:
    """Whether a sign that stands alone in its text is one that a program hides: before a word, or inside one that is no name."""
    words = len(text.split())
    start = at
    while start and text[start - 1].isalnum():
        start -= 1
    if text[at] == "~" and not (text[start:at] + text[at + 1 :])[0].isupper():
        return False  # "about ~half" is half or so
    if start == at:
        return words <= MOST_WORDS and not (text[:at].endswith("(") and text[at - 2 : at - 1].isalnum())  # f(_x)
    head, sign, tail = text[start:at], text[at], re.split(r"[\W_]", text[at + 1 :], maxsplit=1)[0]
    if words > MOST_WORDS_INSIDE or not head.isalpha() or not tail[0].islower():  # AT&T, KP_Delete, ACQ_REL
        return False
    if sign != "_":
        return head[0].isupper() and _SHORTENED.search(text) is None  # not rock&roll
    if head[0].isupper():
        return len(head) == 1 or head[1:].islower()  # R_oom, Form_at
    # foo_bar is a name. In a label, "Delete t_hread" and "Whole wor_ds only" are the rule where it is cut near an end.
    return words > 1 and text[0].isupper() and not _CODE.search(text) and (len(head) == 1 or len(tail) <= 2)


def _free(text: str) -> list[bool]:
    """For each character whether a sign there would be one. Spans are closed to it, and so is the character after one that is no tag."""
    free = [True] * (len(text) + 1)
    for start, end, kind in find(text):
        closed = end + (kind != "tag")
        free[start:closed] = [False] * (closed - start)
    return free[: len(text)]
