"""A second search, under constraints, brings back what must survive and the first search lost.

The first search is the usual one, with any engine. What it lost is found by comparing; few sentences go on from there. In the second, every
reserved piece must occur exactly once, well nested and in order, terms must occur, and numbers are reserved pieces too: so the promise
holds by construction. Where even that is impossible, or more is to be kept than a search can carry, the translation says so.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from limelight.decoding.guards import Notice
from limelight.decoding.steps import IsOver, never
from limelight.text.careful.glossary import Term
from limelight.text.careful.term_targets import TargetFinder
from limelight.translator.careful.protected import NUMBERS, TERMS, UNPROTECTED, Keeper, ProtectedSentence
from limelight.translator.searching import Candidate, SearchResult
from limelight.translator.sentences import Reader, SourceSentence

MOST_VARIANTS = 4  # of a term are tried, the likeliest translation wins
MOST_PIECES = 64  # of phrases and marks in one sentence: each needs a step and a share of the beam, and a text can ask for hundreds
Search = Callable[[Sequence[SourceSentence]], list[SearchResult]]
_REASONS = {
    UNPROTECTED: "so that what must not be translated is kept",
    NUMBERS: "with its numbers kept",
    TERMS: "with the terms of the glossary",
}


@dataclass(frozen=True)
class CarefulRequest:
    """A careful request is a sentence, and what its translation has to begin with and to contain."""

    care: ProtectedSentence
    prefix: str = ""
    phrases: tuple[str, ...] = ()
    is_over: IsOver = field(default=never, compare=False)  # nobody waits for it any more


@dataclass(frozen=True)
class CarefulResult:
    """A careful result is a sentence with its answer; `faults` are of the best candidate."""

    care: ProtectedSentence
    sentence: SourceSentence
    answer: SearchResult
    faults: tuple[Notice, ...] = ()

    @property
    def rank(self) -> tuple[int, ...]:
        """The smaller, the better: first what was promised, then what reads well."""
        codes = {fault.code for fault in self.faults}
        loss = self.care.loss(self.answer.candidates[0].text) if UNPROTECTED in codes else 0
        return loss, TERMS in codes, NUMBERS in codes, self.answer.degenerate


class CarefulSearch:
    """A search is `first` and `second`. `soft`: terms are told to the model beside the source, which it was taught to use."""

    def __init__(self, reader: Reader, keeper: Keeper, soft: bool) -> None:
        self.reader, self.keeper, self.soft = reader, keeper, soft

    def first(self, asked: Sequence[CarefulRequest], search: Search) -> list[CarefulResult]:
        """The usual search, and what is wrong with what it found."""
        return self._search(asked, search, hard=False)

    def second(
        self, asked: Sequence[CarefulRequest], first: Sequence[CarefulResult], again: Search
    ) -> list[CarefulResult]:
        """Where constraints can help, the better of what was found and of what `again` finds under them."""
        best = list(first)
        failed = [at for at, found in enumerate(first) if found.faults and found.answer.candidates]
        harder = [self.harder(asked[at], first[at]) for at in failed]
        second = iter(self._search(list(chain.from_iterable(harder)), again, hard=True))
        for at, tries in zip(failed, harder, strict=True):
            better = [found for _ in tries if (found := next(second)).answer.candidates]
            better.sort(key=lambda found: -found.answer.candidates[0].hypothesis.score)
            chosen = min([first[at], *better], key=lambda found: found.rank)
            best[at] = chosen if chosen is first[at] else _add_notice(chosen, first[at])
        return best

    def harder(self, asked: CarefulRequest, found: CarefulResult) -> list[CarefulRequest]:
        """The ways to search again; none where all is well, or constraints would change nothing."""
        codes = {fault.code for fault in found.faults}
        if not codes or not found.answer.candidates:
            return []
        # Numbers too, whatever was lost: a search that is bound elsewhere may be worse at them.
        bound = self.keeper.take(asked.care.given, asked.care.terms, "all")
        care = bound if bound.marks else asked.care
        if codes == {NUMBERS} and not care.marks:
            return []
        shown = TargetFinder(found.answer.candidates[0].text)
        ways = max((len(term.targets) for term in care.terms), default=1) if TERMS in codes else 1
        return [
            CarefulRequest(
                care,
                asked.prefix,
                (*asked.phrases, *care.demanded, *(_variant(term, shown, way) for term in care.terms)),
                asked.is_over,
            )
            for way in range(min(ways, MOST_VARIANTS))
        ]

    def _search(self, asked: Sequence[CarefulRequest], search: Search, hard: bool) -> list[CarefulResult]:
        sentences = self.reader.read(
            [each.care.text for each in asked],
            [each.care.protect_prefix(each.prefix) for each in asked],
            [each.phrases for each in asked],
            [[term.targets[0] for term in each.care.terms] if self.soft else [] for each in asked],
        )
        marked = [self._add_placeholders(s, each, hard) for s, each in zip(sentences, asked, strict=True)]
        places = [at for at, each in enumerate(marked) if not each.empty and not (hard and _is_bound(each))]
        answers = dict(zip(places, search([marked[at] for at in places]) if places else [], strict=True))
        found = []
        for at, (each, sentence) in enumerate(zip(asked, marked, strict=True)):
            answer = answers.get(at, SearchResult([]))
            faults = each.care.faults(answer.candidates[0].text) if answer.candidates else []
            found.append(CarefulResult(each.care, sentence, _drop_lossy(answer, each.care), tuple(faults)))
        return found

    def _add_placeholders(self, sentence: SourceSentence, asked: CarefulRequest, hard: bool) -> SourceSentence:
        care = asked.care
        ids = [self.keeper.ids[number] for number in care.marks]
        nested = [(self.keeper.ids[opening], self.keeper.ids[closing]) for opening, closing in care.nested]
        # Also what looks like a mark in the text of a model that was never taught any.
        written = [self.keeper.ids[number] for number in care.written if number in self.keeper.ids]
        request = replace(sentence.request, allowed=ids or written, is_over=asked.is_over)
        if hard:
            ordered = [[self.keeper.ids[number] for number in group] for group in care.ordered]
            request = replace(request, once=ids, nested=nested, ordered=ordered)
        return replace(sentence, given=care.given, request=request)


def _is_bound(sentence: SourceSentence) -> bool:
    """Whether more has to occur in its translation than is searched for."""
    return sum(map(len, sentence.request.phrases)) + len(sentence.request.once) > MOST_PIECES


def _variant(term: Term, shown: TargetFinder, way: int) -> str:
    """The form that occurs already, else the one whose turn it is."""
    there = list(filter(shown.has, term.targets))
    return there[0] if there else term.targets[min(way, len(term.targets) - 1)]


def _drop_lossy(answer: SearchResult, care: ProtectedSentence) -> SearchResult:
    """Without the alternatives that lost something; the best is looked at by itself."""
    if not care.watched or len(answer.candidates) < 2:
        return answer
    best, *others = answer.candidates
    kept: list[Candidate] = [each for each in others if not any(f.code == UNPROTECTED for f in care.faults(each.text))]
    return replace(answer, candidates=[best, *kept])


def _add_notice(second: CarefulResult, first: CarefulResult) -> CarefulResult:
    """What was lost in the first search, and is not now."""
    left = {fault.code for fault in second.faults}
    cured = [_REASONS[fault.code] for fault in first.faults if fault.code not in left]
    notice = Notice("redecoded", f"searched a second time {' and '.join(cured)}")
    notices = (*second.answer.notices, *([notice] if cured else []))
    return replace(second, answer=replace(second.answer, notices=notices))
