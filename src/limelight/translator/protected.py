"""A `ProtectedSentence` has what must survive taken out before the search, looked for afterwards and put back.

    care = take_out("Open _File <b>%s</b>", ...)      care.text  "Open File ⟦0⟧⟦1⟧⟦2⟧"
    care.faults("Datei ⟦0⟧⟦2⟧ öffnen")                [Notice("unprotected", "of 3 marks: 1 missing")]
    care.restore("Datei ⟦0⟧⟦1⟧⟦2⟧ öffnen")            "_Datei <b>%s</b> öffnen"

A model that never learnt the reserved pieces is given the text as it is; then only looking is left, and demanding the words themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from limelight.decoding.guards import Notice
from limelight.text.careful.accelerators import Accelerator, lift_accelerator, place_accelerator
from limelight.text.careful.capitals import lower_capitals
from limelight.text.careful.capitals import uppercase as in_capitals
from limelight.text.careful.glossary import Term, unmet
from limelight.text.careful.numbers import differ, localize
from limelight.text.careful.protect import (
    Protected,
    find,
    find_placeholder_faults,
    mask_like,
    protect,
    text_faults,
    unreadable,
)
from limelight.text.careful.restore import restore
from limelight.text.careful.spans import MARK
from limelight.text.pieces.tokenizer import placeholder
from limelight.translator.alignment import WordCount, split_at_spaces
from limelight.translator.translation import UNPROTECTED

Which = Literal["long", "all"]  # numbers that are taken out: those that a model cannot know, or every one
NUMBERS, TERMS = "numbers", "terms"
_VERBATIM = Protected("", (), (), (), None)


@dataclass(frozen=True)
class ProtectedSentence:
    """A protected sentence is a text as it was given, as it is translated, and what has to be put back."""

    given: str
    text: str
    bare: str = ""  # as it was given, without an accelerator
    which: Which = "long"
    protected: Protected = _VERBATIM
    accelerator: Accelerator | None = None
    terms: tuple[Term, ...] = ()
    languages: tuple[str, str] = ("", "")
    shouted: bool = False  # it was all capitals, and so is its translation
    watched: bool = True  # else nothing is promised, and nothing is looked for
    own_words: tuple[int, ...] | None = None  # of a text that is translated without its tags, as `source_words` says it

    @property
    def marks(self) -> list[int]:
        """Numbers of the reserved pieces that each have to occur once."""
        return list(self.protected.numbers)

    @property
    def may_lose(self) -> bool:
        """Is there anything that a search could lose?"""
        return bool(self.terms or self.marks or (self.watched and find(self.given, "all")))

    @property
    def written(self) -> list[int]:
        """Numbers of the marks that stand in the text as it is translated."""
        return [int(number) for number in MARK.findall(self.text)]

    @property
    def nested(self) -> list[tuple[int, int]]:
        numbers = self.protected.numbers
        return [(numbers[opening], numbers[closing]) for opening, closing in self.protected.nested]

    @property
    def ordered(self) -> list[list[int]]:
        """Groups of them that keep their order."""
        return [[self.protected.numbers[i] for i in group] for group in self.protected.ordered]

    @property
    def demanded(self) -> list[str]:
        """What the translation has to contain word by word, where no piece can stand for it."""
        if not self.watched or self.marks:
            return []
        return [self.given[begin:end] for begin, end, _ in find(self.given)]

    def restore(self, marked: str) -> str:
        """The translation as a person sees it."""
        text = self._restore_spans(marked)
        return text if self.accelerator is None else place_accelerator(text, self.accelerator)

    def _restore_spans(self, marked: str) -> str:
        marked = in_capitals(marked, self.languages[1]) if self.shouted else marked
        return restore(marked, self.protected) if self.marks else marked

    def restore_piece(self, piece: str) -> str:
        if not self.marks or MARK.fullmatch(piece) is None:
            return piece
        spans = dict(zip(map(placeholder, self.marks), self.protected.spans, strict=True))
        return spans[piece].text if piece in spans else piece

    def protect_prefix(self, prefix: str) -> str:
        """What a translation is to begin with, with marks for what stands for something."""
        return mask_like(prefix, self._marked, self.which, keep=True)

    def protect_match(self, match: str) -> str:
        """What a memory has for a similar text, likewise; what the source has not goes, so that it is not copied."""
        bare = mask_like(lift_accelerator(match)[0], self._marked, self.which, keep=False)
        return lower_capitals(bare, self.languages[1]) or bare if self.shouted else bare

    @property
    def _marked(self) -> list[tuple[str, int]]:
        return [(span.text, number) for number, span in zip(self.marks, self.protected.spans, strict=True)]

    def faults(self, marked: str) -> list[Notice]:
        """All that is not as promised. Never the text itself."""
        if not self.watched and not self.terms:
            return []
        text, found = self._restore_spans(marked), []
        if self.watched and (why := self.explain_loss(marked)) is not None:
            found.append(Notice(UNPROTECTED, why))
        if self.watched and (why := differ(self.given, text, self.languages)) is not None:
            found.append(Notice(NUMBERS, why))
        if missing := unmet(self.terms, marked):
            found.append(Notice(TERMS, f"{len(missing)} of {len(self.terms)} terms of the glossary do not occur"))
        return found

    def loss(self, marked: str) -> int:
        """0: nothing. 1: all marks are there, but the text is not as it should be beside them. 2: marks are lost, or there are none."""
        if self.explain_loss(marked) is None:
            return 0
        return 1 if self.marks and not find_placeholder_faults(marked, self.protected) else 2

    def explain_loss(self, marked: str) -> str | None:
        """Why not all is kept that must not be translated. Marks alone do not tell: a model may write a placeholder of its own."""
        why = find_placeholder_faults(marked, self.protected) if self.marks else self.protected.problem
        return why or text_faults(self.bare, self._restore_spans(marked))

    def source_words(self) -> list[int]:
        """Of each word of `text`, the number of the given word that it ends in: "<a b>Foo" is two, "⟦0⟧Foo" is one."""
        if self.own_words is not None:
            return list(self.own_words)
        spans = {placeholder(n): span.text for n, span in zip(self.marks, self.protected.spans, strict=True)}
        found, at, given = list[int](), 0, WordCount()
        for word in split_at_spaces(self.text):
            begin, at = at, self.text.index(word, at) + len(word)
            given.add(MARK.sub(lambda mark: spans.get(mark[0], mark[0]), self.text[begin:at]))
            found.append(max(0, given.words - 1))
        return found

    def target_words(self, marked: str) -> list[int] | None:
        """Of each word of the marked translation, the number of the shown word that it ends in; None: the same numbers."""
        if not self.marks:
            return None
        found, at = [], 0
        for word in split_at_spaces(marked):
            at = marked.index(word, at) + len(word)
            found.append(max(0, len(split_at_spaces(self.restore(marked[:at]))) - 1))
        return found


def take_out(
    given: str,
    languages: tuple[str, str],
    most: int,
    terms: Sequence[Term] = (),
    numbers: Which = "long",
    watched: bool = True,
) -> ProtectedSentence:
    """A sentence without what must survive it, as far as a model can carry it, which knows `most` marks."""
    if not watched:
        return ProtectedSentence(given, given, given, terms=tuple(terms), watched=False)
    bare, accelerator = lift_accelerator(given)
    made = protect(bare, most, numbers) if most else replace(_VERBATIM, problem=unreadable(bare))
    if made.problem is not None:  # nothing of it can be promised, so nothing is taken out
        made = replace(_VERBATIM, problem=made.problem)
    if numbers == "all":
        styled = [replace(s, text=localize(s.text, *languages)) if s.kind == "number" else s for s in made.spans]
        made = replace(made, spans=tuple(styled))
    text = made.text if made.spans else bare
    calm = lower_capitals(text, languages[0])
    shouted = calm is not None
    return ProtectedSentence(given, calm or text, bare, numbers, made, accelerator, tuple(terms), languages, shouted)


def hide_spans(given: str) -> str:
    """The text in which terms are looked for: not in addresses, tags or placeholders, and under an accelerator."""
    bare = lift_accelerator(given)[0]
    return protect(bare, len(bare)).text if find(bare) else bare
