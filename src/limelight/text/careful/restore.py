"""`restore` puts what was protected back in the place of the marks of a translation:

restore("⟦0⟧⟦1⟧⟦2⟧ öffnen", protect("Open <b>%s</b>"))  -> "<b>%s</b> öffnen"
"""

from limelight.text.careful.protect import Protected
from limelight.text.careful.spans import MARK
from limelight.text.pieces.tokenizer import placeholder

_NO_SPACE_BEFORE = ".,;:!?)]}»”"
_STOPS = (".", "!", "?")


def restore(marked: str, protected: Protected) -> str:
    """Marks become what they stand for. Blanks just inside paired tags move outside, unless the source has blanks there; what would run
    together with a letter or a number, and does not in the source, gets a blank: "⟦0⟧Uhr" -> "10:35 Uhr".

    restore(protect(text).text, protect(text)) == text, for every text.
    """
    parts = MARK.split(_blanks_outside(marked, protected))
    spans = dict(zip(protected.numbers, protected.spans, strict=True))
    glued = {(mark, after) for after in (False, True) for mark in _beside_letter(protected, after=after)}
    spaced = _beside_blank(protected)
    text = parts[0]
    for at in range(1, len(parts), 2):
        number, following = int(parts[at]), parts[at + 1]
        span = spans[number].text if number in spans else placeholder(number)
        apart = (number, False) in spaced and text[-1:] in _STOPS
        text += " " * (apart or (_run_together(text, span) and (number, False) not in glued)) + span
        apart = (number, True) in spaced and following[:1].isupper()
        text += " " * (apart or (_run_together(span, following) and (number, True) not in glued)) + following
    return text


def _blanks_outside(marked: str, protected: Protected) -> str:
    """Innermost tags first, so that a blank passes all that it must: "a⟦0⟧⟦1⟧ b" -> "a⟦0⟧ ⟦1⟧b" -> "a ⟦0⟧⟦1⟧b"."""
    source = MARK.split(protected.text)
    marks = range(1, len(source), 2)
    openings = {protected.numbers[opening] for opening, _ in protected.nested}
    openings -= {int(source[i]) for i in marks if source[i + 1].startswith(" ")}
    closings = {protected.numbers[closing] for _, closing in protected.nested}
    closings -= {int(source[i]) for i in marks if source[i - 1].endswith(" ")}
    parts = MARK.split(marked)  # text, number, text, number, ..., text
    last = len(parts) - 1
    for i in range(last - 1, 0, -2):
        if int(parts[i]) in openings and parts[i + 1].startswith(" "):
            parts[i + 1] = parts[i + 1].lstrip(" ")
            if (i > 1 or parts[0]) and not parts[i - 1].endswith(" "):
                parts[i - 1] += " "
    for i in range(1, last, 2):
        if int(parts[i]) in closings and parts[i - 1].endswith(" "):
            parts[i - 1] = parts[i - 1].rstrip(" ")
            if (i + 1 < last or parts[last]) and not parts[i + 1].startswith((" ", *_NO_SPACE_BEFORE)):
                parts[i + 1] = " " + parts[i + 1]
    return "".join(placeholder(int(part)) if i % 2 else part for i, part in enumerate(parts))


def _beside_letter(protected: Protected, *, after: bool) -> set[int]:
    """The marks that run together with what stands just after (or just before) them."""
    spans = dict(zip(protected.numbers, protected.spans, strict=True))
    parts = MARK.split(protected.text)
    found = set()
    for at in range(1, len(parts), 2):
        span, beside = spans.get(int(parts[at])), at + 1 if after else at - 1
        neighbour = parts[beside]
        if not neighbour and 0 < beside < len(parts) - 1:  # another mark
            other = spans.get(int(parts[beside + (1 if after else -1)]))
            neighbour = other.text if other else ""
        pair = (span.text if span else "", neighbour)
        if _run_together(*(pair if after else pair[::-1])):
            found.add(int(parts[at]))
    return found


def _beside_blank(protected: Protected) -> set[tuple[int, bool]]:
    """The placeholders with a blank before (False) or behind (True) them: nobody knows what a program puts there, so a sentence that ends
    before one, and a word with a capital behind one, stay apart."""
    values = {number for number, span in zip(protected.numbers, protected.spans, strict=True) if span.kind == "placeholder"}
    parts = MARK.split(protected.text)
    marks = [(int(parts[at]), at) for at in range(1, len(parts), 2) if int(parts[at]) in values]
    before = {(number, False) for number, at in marks if parts[at - 1].endswith(" ")}
    return before | {(number, True) for number, at in marks if parts[at + 1].startswith(" ")}


def _run_together(before: str, after: str) -> bool:
    """Whether both are letters that have capitals, or figures; scripts without spaces may follow each other."""
    return all(sign.isdigit() or sign.lower() != sign.upper() for sign in (before[-1:], after[:1]))
