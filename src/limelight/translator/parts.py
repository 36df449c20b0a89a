"""A `Cutter` cuts a text into sentences, and a `TranslationPlan` joins their translations again, with all spaces in place.

    "One.\n\n  Two. Three."  ->  "One." + "\n\n  ", "Two." + " ", "Three." + ""

A text of one line that the model can take stays whole, as in the lines of a test set, unless it is asked for. Of a message with plural
forms or selections, the texts inside are the parts, and the rest stands between them.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from limelight.bundle.confidence import multiply_known
from limelight.decoding.guards import HARMLESS, Notice
from limelight.text.careful import messages
from limelight.text.careful.protect import find
from limelight.text.careful.spans import is_bare
from limelight.text.segment import Segment, segments, split_long
from limelight.translator.alignment import WordCount
from limelight.translator.sentences import SourceSentence
from limelight.translator.translation import Alignment, Translation, nothing

_BREAK = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


@dataclass(frozen=True)
class Cutter:
    """A cutter parts texts. `length` counts pieces, of which a sentence may have `longest`; and of spans to be kept, `most`."""

    language: str
    length: Callable[[str], int]
    longest: int
    most: int | None

    def cut(self, text: str, always: bool | None, parse: bool = True) -> list[SourceSentence]:
        """`always` None: only where there is a line break or more than the model, or the search, can take. `parse`: read messages."""
        if parse and messages.is_message(text) and (places := messages.texts_of(text)) is not None:
            return self._message(text, places, always) if places else [SourceSentence("", before=text)]
        if is_bare(text):
            return [SourceSentence("", before=text)]
        core = text.strip()
        if not core:
            return [SourceSentence(text)]
        if always or (always is None and (_BREAK.search(core) or not self._fits(core))):
            found = segments(text, self.language)
            parts = [part for segment in found.parts for part in self._fitting(segment)] or [SourceSentence("")]
            return [replace(parts[0], before=found.lead), *parts[1:]]
        begin = text.index(core)
        return [SourceSentence(core, text[:begin], text[begin + len(core) :])]

    def _message(self, text: str, places: Sequence[tuple[int, int]], always: bool | None) -> list[SourceSentence]:
        parts: list[SourceSentence] = []
        message: Literal["plain", "doubled"] = "doubled" if "''" in text else "plain"
        lead = text[: places[0][0]]
        for (start, end), following in zip(places, [*(start for start, _ in places[1:]), len(text)], strict=True):
            inner = self.cut(messages.unescape(text[start:end]), always, parse=False)
            first = messages.escape(inner[0].before, message == "doubled")
            if parts:
                parts[-1] = replace(parts[-1], after=parts[-1].after + first)
            else:
                lead += first
            parts += [replace(part, before="", after=messages.escape(part.after, message == "doubled"), message=message) for part in inner]
            parts[-1] = replace(parts[-1], after=parts[-1].after + text[end:following])
        return [replace(parts[0], before=lead), *parts[1:]]

    def _fits(self, text: str) -> bool:
        # A piece has a byte at least, so what is short is not counted.
        short = len(text.encode("utf-8", "surrogatepass")) <= self.longest or self.length(text) <= self.longest
        return short and (self.most is None or len(text) <= self.most or len(find(text)) <= self.most)

    def _fitting(self, segment: Segment) -> list[SourceSentence]:
        if self._fits(segment.text):
            return [SourceSentence(segment.text, after=segment.after)]
        smaller = [part for each in split_long(segment.text, self.length, self.longest) for part in self._few_spans(each)]
        message = f"the sentence has more than the model can take at once and was translated in {len(smaller)} parts"
        parts = [SourceSentence(each.text, after=each.after) for each in smaller]
        parts[0] = replace(parts[0], split=(Notice("split", message),))
        parts[-1] = replace(parts[-1], after=parts[-1].after + segment.after)
        return parts

    def _few_spans(self, segment: Segment) -> list[Segment]:
        """In parts with no more spans than there are pieces to stand for them."""
        if self.most is None or len(find(segment.text)) <= self.most:
            return [segment]
        parts = split_long(segment.text, lambda text: len(find(text)), self.most)
        return [*parts[:-1], replace(parts[-1], after=parts[-1].after + segment.after)]


@dataclass(frozen=True)
class TranslationPlan:
    """A plan has in `asked` the sentences of all texts, one text after the other, and in `places` where those of each text are.

    A sentence is what is searched. A server, which has many texts at hand, may mix the sentences of all and join each text's own.
    """

    texts: list[str]
    asked: list[SourceSentence]
    places: list[range]
    may_lose: bool  # what must be kept: then a second search may be needed, which is slow

    def join(self, made: Sequence[Translation]) -> list[Translation]:
        """Join the translations of all sentences to one for each text."""
        return [self.join_text(text, [made[at] for at in places]) for text, places in enumerate(self.places)]

    def join_text(self, text: int, made: Sequence[Translation]) -> Translation:
        """One text, of the translations of its sentences."""
        return join_parts(self.texts[text], [self.asked[at] for at in self.places[text]], made)


def join_parts(given: str, parts: Sequence[SourceSentence], made: Sequence[Translation]) -> Translation:
    """One translation of the whole. Its score is the sum; with several parts there are no alternatives."""
    noticed = [_present(part, each) for part, each in zip(parts, made, strict=True)]
    if len(parts) == 1 and parts[0].given == given:
        return noticed[0]
    spoken = [each for each in noticed if each.finish != "empty_input"]
    lead = parts[0].before
    text = lead + "".join(each.text + part.after for part, each in zip(parts, noticed, strict=True))
    if not spoken:
        return replace(nothing(given), text=text)
    weights = [max(1, len(each.words)) for each in spoken]
    alternatives = noticed[0].alternatives if len(parts) == 1 else []
    return Translation(
        text=text,
        score=sum(each.score for each in spoken),
        confidence=sum(each.confidence * w for each, w in zip(spoken, weights, strict=True)) / sum(weights),
        pieces=[piece for each in spoken for piece in each.pieces],
        finish="length" if any(each.finish == "length" for each in spoken) else "eos",
        alignment=_join_alignments(parts, noticed),
        words=[word for each in spoken for word in each.words],
        source=given,
        source_pieces=sum(each.source_pieces for each in spoken),
        alternatives=[replace(one, text=lead + one.text + parts[0].after) for one in alternatives],
        degenerate=any(each.degenerate for each in spoken),
        protected=all(each.protected for each in spoken),
        warnings=_join_notices([notice for each in noticed for notice in each.warnings]),
        unedited=multiply_known([each.unedited for each in spoken]),
    )


def _join_notices(notices: Sequence[Notice]) -> list[Notice]:
    """How it was made is told once, and each fault for each sentence that has it."""
    told = dict.fromkeys((notice, 0 if notice.code in HARMLESS else at) for at, notice in enumerate(notices))
    return [notice for notice, _ in told]


def _present(part: SourceSentence, made: Translation) -> Translation:
    """The translation as it stands in its text. In a message, where its braces would end the message, the source instead."""
    if part.split:
        made = replace(made, warnings=[*part.split, *made.warnings])
    if not part.message:
        return made
    escape = partial(messages.escape, doubles=part.message == "doubled")
    if messages.fits(part.given, made.text):
        words = [word._replace(text=escape(word.text)) for word in made.words]
        return replace(made, text=escape(made.text), words=words, alternatives=[])
    why = "a text of the message is left as it was, since its translation has other braces"
    kept = escape(part.given)
    nothing_of_it: dict[str, Any] = {"words": [], "pieces": [], "alternatives": [], "alignment": None, "unedited": None, "confidence": 0.0}
    return replace(made, text=kept, **nothing_of_it, warnings=[*made.warnings, Notice("message", why)])


def _join_alignments(parts: Sequence[SourceSentence], made: Sequence[Translation]) -> Alignment | None:
    """Numbers of words and pieces go on from part to part."""
    if not any(each.alignment for each in made):
        return None
    words: list[tuple[int, int]] = []
    pieces: list[tuple[int, int]] = []
    source: list[str] = []
    before, after, spoken = WordCount(), WordCount(), 0
    before.add(parts[0].before)
    after.add(parts[0].before)
    for part, each in zip(parts, made, strict=True):
        if each.alignment is not None:
            # What follows without a space, as after a line break, goes on with the last word.
            s, t = before.words - before.inside, after.words - after.inside
            words += [(a + s, b + t) for a, b in each.alignment.words]
            pieces += [(a + len(source), b + spoken) for a, b in each.alignment.pieces]
            source += each.alignment.source
            spoken += len(each.pieces)
        before.add(part.given + part.after)
        after.add(each.text + part.after)
    return Alignment(sorted(set(words), key=lambda link: link[::-1]), pieces, source)
