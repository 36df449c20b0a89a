"""`protect` masks what must survive a translation by marks that a model copies; `restore` puts it back:

    protect("Open <b>%s</b>").text          -> "Open ⟦0⟧⟦1⟧⟦2⟧", and spans <b>, %s, </b>

A translation is right when it has each mark once, the marks of paired tags are nested, and what a program fills in one after the other
(%s, %d, {}) keeps its order; then the spans of both texts are the same.
No sentence that is made here holds any of the text: it may be written to a log.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from limelight.text.careful.messages import is_message
from limelight.text.careful.spans import MARK, TAG_NAME, Kind, Numbers, Range, find, in_turn
from limelight.text.pieces.tokenizer import placeholder

__all__ = (
    "Kind", "Protected", "Span", "find", "find_placeholder_faults", "mask_like", "mask_pair", "protect", "renumber",
    "text_faults",
)  # fmt: skip

_MESSAGE = "a message with plural forms or a selection (ICU) whose braces could not be read, or are not to be, is not protected"
_UNORDERED = "placeholders without numbers are in another order, and a program would fill in the wrong values"


@dataclass(frozen=True)
class Span:
    text: str
    kind: Kind


@dataclass(frozen=True)
class Protected:
    """A protected text has marks. Span i stands where the mark `placeholder(numbers[i])` is."""

    text: str
    spans: tuple[Span, ...]
    numbers: tuple[int, ...]
    nested: tuple[tuple[int, int], ...]  # (opening span, closing span), tags that belong together
    problem: str | None  # why not all is masked
    ordered: tuple[tuple[int, ...], ...] = ()  # groups of spans that keep their order


def protect(text: str, most: int = 16, numbers: Numbers = "long") -> Protected:
    """Mask at most `most` spans, from the left, since a model has no more marks. Marks that are in the text already come first."""
    ranges = find(text, numbers)
    problem = unreadable(text)
    if len(ranges) > most:
        problem = f"{len(ranges)} spans are to be protected, and there are marks for {most}; divide the text"
        ranges = _first(ranges, most)
    return _protect_ranges(text, ranges, range(len(ranges)), problem)


def renumber(protected: Protected, numbers: Sequence[int]) -> Protected:
    """The same spans by other marks."""
    anew = dict(zip(protected.numbers, map(placeholder, numbers), strict=True))
    return replace(protected, text=MARK.sub(lambda mark: anew[int(mark[1])], protected.text), numbers=tuple(numbers))


def unreadable(text: str) -> str | None:
    """Why nothing can be promised of a text, whatever a model can carry."""
    return _MESSAGE if is_message(text) else None


def find_placeholder_faults(marked: str, protected: Protected) -> str | None:
    """What is wrong with the marks of a translation, as a sentence. None: every mark is there once, nested and in order."""
    wanted, given = (Counter(_marks(text)) for text in (protected.text, marked))
    missing, more = wanted - given, given - wanted
    foreign = sum(count for number, count in more.items() if number not in wanted)
    counts = {"missing": missing.total(), "too often": more.total() - foreign, "not of this text": foreign}
    faults = [f"{count} {what}" for what, count in counts.items() if count]
    if faults:
        return f"of {wanted.total()} marks: {', '.join(faults)}"
    at = {number: i for i, number in enumerate(protected.numbers)}
    order = [at[number] for number in _marks(marked) if number in at]
    if not _is_nested(order, protected.nested):
        return "paired tags are not nested"
    place = {i: at for at, i in enumerate(order)}
    kept = all(place[a] < place[b] for group in protected.ordered for a, b in pairwise(group))
    return None if kept else _UNORDERED


def text_faults(source: str, translation: str) -> str | None:
    """The same question as `find_placeholder_faults` of plain texts: do both have the same spans, and the same tags around something?"""
    from_spans, to_spans = (_apart(_spans(text, find(text))) for text in (source, translation))
    if not from_spans and not to_spans:  # as most texts, which are asked twice
        return None
    wanted, given = Counter(from_spans), Counter(to_spans)
    missing, more = wanted - given, given - wanted
    faults = [
        f"{count} {kind}{('es' if kind.endswith('s') else 's') if count > 1 else ''} {what}"
        for spans, what in ((missing, "missing"), (more, "added"))
        for kind, count in Counter(span.kind for span in spans.elements()).items()
    ]
    if faults:
        return f"of {wanted.total()} protected spans: {', '.join(faults)}"
    if _count_pairs(from_spans) != _count_pairs(to_spans):
        return "paired tags are not nested"
    return None if _turns(from_spans) == _turns(to_spans) else _UNORDERED


def mask_pair(source: str, target: str, choose: Sequence[int]) -> tuple[str, str] | None:
    """Both sides of a training pair with the same marks; span i of the source gets mark choose[i].

    mask_pair("%s of %s", "%s von %s", [7, 3]) -> ("⟦7⟧ of ⟦3⟧", "⟦7⟧ von ⟦3⟧")

    None when there is no span, or more than marks, or the spans of both sides differ, or the target has them nested in another way or in
    an order that matters.
    """
    ranges = find(source)
    if not ranges or len(ranges) > len(choose):
        return None
    target_ranges = find(target)
    if len(ranges) != len(target_ranges) or is_message(source) or is_message(target):
        return None
    unused: defaultdict[str, deque[int]] = defaultdict(deque)
    for (start, end, _), number in zip(ranges, choose, strict=False):
        unused[source[start:end]].append(number)
    numbers = []
    for start, end, _ in target_ranges:
        same = unused.get(target[start:end])
        if not same:
            return None
        numbers.append(same.popleft())
    masked = _protect_ranges(source, ranges, choose[: len(ranges)], None)
    translation = _mask_ranges(target, target_ranges, numbers)
    return None if find_placeholder_faults(translation, masked) else (masked.text, translation)


def mask_like(text: str, marked: Iterable[tuple[str, int]], numbers: Numbers = "long", *, keep: bool) -> str:
    """A text beside another that was masked: spans of both have the marks that they have there. What the other has not stays as it is, but
    for marks, which stand for nothing of it; or goes, unless it is to `keep`.

    mask_like("%s öffnet %d", [("%d", 7)], keep=False) -> "öffnet ⟦7⟧"
    """
    unused, made, at = list(marked), "", 0
    for begin, end, kind in find(text, numbers):
        same = next((each for each in unused if each[0] == text[begin:end]), None)
        if same is not None:
            unused.remove(same)
        unknown = (text[begin:end].strip("⟦⟧") if kind == "mark" else text[begin:end]) if keep else ""
        made += text[at:begin] + (unknown if same is None else placeholder(same[1]))
        at = end
    made += text[at:]
    return made if keep else " ".join(made.split())


def _protect_ranges(text: str, ranges: Sequence[Range], numbers: Sequence[int], problem: str | None) -> Protected:
    spans = _spans(text, ranges)
    ordered = tuple(tuple(group) for group in in_turn([span.text for span in spans]) if len(group) > 1)
    return Protected(_mask_ranges(text, ranges, numbers), spans, tuple(numbers), _pairs(spans), problem, ordered)


def _first(ranges: Sequence[Range], most: int) -> list[Range]:
    """The first spans, but marks before all else: one that stayed could not be told from ours. If they are too many, nothing is masked."""
    marks = [one for one in ranges if one[2] == "mark"]
    others = [one for one in ranges if one[2] != "mark"]
    return sorted([*marks, *others[: most - len(marks)]]) if len(marks) <= most else []


def _mask_ranges(text: str, ranges: Iterable[Range], numbers: Iterable[int]) -> str:
    parts = []
    at = 0
    for (start, end, _), number in zip(ranges, numbers, strict=True):
        parts += [text[at:start], placeholder(number)]
        at = end
    return "".join([*parts, text[at:]])


def _marks(text: str) -> list[int]:
    return [int(number) for number in MARK.findall(text)]


def _spans(text: str, ranges: Iterable[Range]) -> tuple[Span, ...]:
    return tuple(Span(text[start:end], kind) for start, end, kind in ranges)


def _apart(spans: Iterable[Span]) -> list[Span]:
    """An element with nothing inside as two tags: "<b>x</b>" may have become "<b></b>"."""
    texts = ((span, *span.text.rpartition("</")) for span in spans)
    return [
        Span(text, span.kind)
        for span, opening, sign, closing in texts
        for text in ((opening, sign + closing) if span.kind == "tag" and opening.endswith(">") else (span.text,))
    ]


def _pairs(spans: Sequence[Span]) -> tuple[tuple[int, int], ...]:
    """Opening and closing tags that belong together, never crossing. In <p><br></p> the <br>, in <b><i></b></i> the <i> are alone."""
    pairs = []
    opened: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    for i, span in enumerate(spans):
        name = TAG_NAME.match(span.text) if span.kind == "tag" else None
        if name is None or span.text.endswith("/>") or "></" in span.text:
            continue
        closes, called = name[1], name[2].lower()
        if not closes:
            opened.append((called, i))
            waiting[called] += 1
        elif waiting[called]:  # then it is on the stack, and what lies above it is never closed
            while True:
                top, opening = opened.pop()
                waiting[top] -= 1
                if top == called:
                    break
            pairs.append((opening, i))
    return tuple(sorted(pairs))


def _turns(spans: Sequence[Span]) -> list[list[str]]:
    texts = [span.text for span in spans]
    return [[texts[i] for i in group] for group in in_turn(texts)]


def _count_pairs(spans: Sequence[Span]) -> Counter[tuple[str, str]]:
    return Counter((spans[opening].text, spans[closing].text) for opening, closing in _pairs(spans))


def _is_nested(order: Iterable[int], nested: Iterable[tuple[int, int]]) -> bool:
    """Whether each closing tag closes the one opened last. All are there, so none stays open then."""
    opening_of = {closing: opening for opening, closing in nested}
    openings = set(opening_of.values())
    opened = []
    for i in order:
        if i in openings:
            opened.append(i)
        elif i in opening_of and (not opened or opened.pop() != opening_of[i]):
            return False
    return True
