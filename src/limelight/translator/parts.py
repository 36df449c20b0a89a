"""A text is cut into sentences here, and their translations are joined again, with all spaces in place.

    "One.\n\n  Two. Three."  ->  lead "", "One." + "\n\n  ", "Two." + " ", "Three." + ""

A text of one line that the model can take stays whole, as in the lines of a test set, unless it is asked for. Of a message with plural
forms or selections, the texts inside are the parts, and the rest stands between them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from limelight.decoding.guards import Notice
from limelight.text.careful import messages
from limelight.text.careful.protect import find
from limelight.text.segment import Segment, segments, split_long
from limelight.translator.alignment import WordCount
from limelight.translator.translation import Alignment, Translation, nothing

_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class TextPart:
    """A text part is a sentence, what stands after it, and what is to be said about it."""

    text: str
    after: str = ""
    notices: tuple[Notice, ...] = ()
    in_message: bool = False  # then its text is as `messages.unescape` gives it


@dataclass(frozen=True)
class Cut:
    """A cut is a text in parts. Whole: one part that is the text itself."""

    given: str
    lead: str
    parts: tuple[TextPart, ...]

    @property
    def whole(self) -> bool:
        return len(self.parts) == 1 and self.parts[0].text == self.given


class Cutter:
    """A cutter parts texts. `length` counts the pieces of a text, of which the model takes `longest`; and of spans to be kept, `most`."""

    def __init__(self, language: str, length: Callable[[str], int], longest: int, most: int | None) -> None:
        self.language, self.length, self.longest, self.most = language, length, longest, most

    def cut(self, text: str, always: bool | None, longest: int, parse: bool = True) -> Cut:
        """`always` None: only where there is a line break or more than the model, or the search, can take. `parse`: read messages."""
        longest = min(longest, self.longest)
        if parse and messages.is_message(text) and (places := messages.texts_of(text)):
            return self._message(text, places, always, longest)
        core = text.strip()
        if always is False or not core or (always is None and self._fits(core, longest) and not _BREAK.search(core)):
            return _whole(text, core)
        found = segments(text, self.language)
        parts = tuple(part for segment in found.parts for part in self._fitting(segment, longest))
        return Cut(text, found.lead, parts) if parts else _whole(text, core)

    def _message(self, text: str, places: Sequence[tuple[int, int]], always: bool | None, longest: int) -> Cut:
        parts: list[TextPart] = []
        between, ends = text[: places[0][0]], [*(start for start, _ in places[1:]), len(text)]
        for (start, end), following in zip(places, ends, strict=True):
            inner = self.cut(messages.unescape(text[start:end]), always, longest, parse=False)
            parts += [replace(part, after=messages.escape(part.after), in_message=True) for part in inner.parts]
            parts[-1] = replace(parts[-1], after=parts[-1].after + text[end:following])
        return Cut(text, between, tuple(parts))

    def _fits(self, text: str, longest: int) -> bool:
        # A piece has a byte at least, so what is short is not counted.
        short = len(text.encode("utf-8", "surrogatepass")) <= longest or self.length(text) <= longest
        return short and (self.most is None or len(text) <= self.most or len(find(text)) <= self.most)

    def _fitting(self, segment: Segment, longest: int) -> list[TextPart]:
        if self._fits(segment.text, longest):
            return [TextPart(segment.text, segment.after)]
        smaller = split_long(segment.text, self.length, longest)
        smaller = [part for each in smaller for part in self._few_spans(each)]
        message = f"the sentence has more than the model can take at once and was translated in {len(smaller)} parts"
        parts = [TextPart(each.text, each.after) for each in smaller]
        parts[0] = replace(parts[0], notices=(Notice("split", message),))
        parts[-1] = replace(parts[-1], after=parts[-1].after + segment.after)
        return parts

    def _few_spans(self, segment: Segment) -> list[Segment]:
        """In parts with no more spans than there are pieces to stand for them."""
        if self.most is None or len(find(segment.text)) <= self.most:
            return [segment]
        parts = split_long(segment.text, lambda text: len(find(text)), self.most)
        return [*parts[:-1], replace(parts[-1], after=parts[-1].after + segment.after)]


def _whole(text: str, core: str) -> Cut:
    """The blanks around a text are kept too; a text of nothing else is nothing to translate."""
    begin = text.index(core)
    return (
        Cut(text, text[:begin], (TextPart(core, text[begin + len(core) :]),))
        if core
        else Cut(text, "", (TextPart(text),))
    )


def join_parts(cut: Cut, made: Sequence[Translation]) -> Translation:
    """One translation of the whole. Its score is the sum; with several parts there are no alternatives."""
    noticed = [
        replace(each, warnings=[*part.notices, *each.warnings]) for part, each in zip(cut.parts, made, strict=True)
    ]
    noticed = [_in_message(*pair) if pair[0].in_message else pair[1] for pair in zip(cut.parts, noticed, strict=True)]
    if cut.whole:
        return noticed[0]
    spoken = [each for each in noticed if each.finish != "empty_input"]
    text = cut.lead + "".join(each.text + part.after for part, each in zip(cut.parts, noticed, strict=True))
    if not spoken:
        return replace(nothing(cut.given), text=text)
    alone = len(cut.parts) == 1
    return Translation(
        text=text,
        score=sum(each.score for each in spoken),
        confidence=_mean([each.confidence for each in spoken], [max(1, len(each.words)) for each in spoken]),
        pieces=[piece for each in spoken for piece in each.pieces],
        finish="length" if any(each.finish == "length" for each in spoken) else "eos",
        alignment=_join_alignments(cut, noticed),
        words=[word for each in spoken for word in each.words],
        source=cut.given,
        source_pieces=sum(each.source_pieces for each in spoken),
        alternatives=[replace(one, text=cut.lead + one.text + cut.parts[0].after) for one in noticed[0].alternatives]
        if alone
        else [],
        degenerate=any(each.degenerate for each in spoken),
        protected=all(each.protected for each in spoken),
        warnings=[notice for each in noticed for notice in each.warnings],
    )


def _in_message(part: TextPart, made: Translation) -> Translation:
    """The same as a text of a message; where its braces would end the message, the source instead."""
    words = [word._replace(text=messages.escape(word.text)) for word in made.words]
    if messages.fits(part.text, made.text):
        return replace(made, text=messages.escape(made.text), words=words, alternatives=[])
    why = "a text of the message is left as it was, since its translation has other braces"
    kept = messages.escape(part.text)
    return replace(made, text=kept, words=[], alternatives=[], warnings=[*made.warnings, Notice("message", why)])


def _mean(values: Sequence[float], weights: Sequence[int]) -> float:
    return sum(value * weight for value, weight in zip(values, weights, strict=True)) / sum(weights)


def _join_alignments(cut: Cut, made: Sequence[Translation]) -> Alignment | None:
    """Numbers of words and pieces go on from part to part."""
    if not any(each.alignment for each in made):
        return None
    words: list[tuple[int, int]] = []
    pieces: list[tuple[int, int]] = []
    source: list[str] = []
    before, after, spoken = WordCount(), WordCount(), 0
    before.add(cut.lead)
    after.add(cut.lead)
    for part, each in zip(cut.parts, made, strict=True):
        if each.alignment is not None:
            # What follows without a space, as after a line break, goes on with the last word.
            s, t = before.words - before.inside, after.words - after.inside
            words += [(a + s, b + t) for a, b in each.alignment.words]
            pieces += [(a + len(source), b + spoken) for a, b in each.alignment.pieces]
            source += each.alignment.source
            spoken += len(each.pieces)
        before.add(part.text + part.after)
        after.add(each.text + part.after)
    return Alignment(sorted(set(words), key=lambda link: link[::-1]), pieces, source)
