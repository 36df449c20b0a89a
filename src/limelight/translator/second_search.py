"""A second search finds what the first one lost: without the tags, which are put back afterwards, and under constraints.

In a search under constraints every reserved piece must occur exactly once, well nested and in order, terms must occur, and numbers are
reserved pieces too: so the promise holds by construction. Where even that is impossible, or more is to be kept than a search can carry,
the translation says so.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice
from limelight.decoding.steps import Request
from limelight.errors import LimelightError
from limelight.text.careful.glossary import Term
from limelight.text.careful.term_targets import TargetFinder
from limelight.translator.aligning.tag_placing import join_care, place_tags, remove_tags
from limelight.translator.confidence import split_words
from limelight.translator.pipeline import encode, find_faults, search
from limelight.translator.protected import NUMBERS, TERMS, take_out
from limelight.translator.searching import Searcher
from limelight.translator.sentences import SourceSentence, on_some
from limelight.translator.translation import UNPROTECTED

WORD = re.compile(r"\w+")
MOST_VARIANTS = 4  # of a term are tried, the likeliest translation wins
MOST_PIECES = 64  # of phrases and marks in one sentence: each needs a step and a share of the beam, and a text can ask for hundreds
PLACED = Notice("tags_placed", "translated without its tags, which were put back where their words are")
ADDED = Notice(
    "term_added", "all that was translated without a term of the glossary is still there beside it: it may be in the wrong place"
)
_REASONS = {
    UNPROTECTED: "so that what must not be translated is kept",
    NUMBERS: "with its numbers kept",
    TERMS: "with the terms of the glossary",
}


def search_twice(sentences: Sequence[SourceSentence], settings: SearchSettings, guards: bool, searcher: Searcher) -> list[SourceSentence]:
    """The first search, for what had none yet, and another for what it lost, if it is guarded."""
    new = [at for at, each in enumerate(sentences) if not each.is_searched]
    if len(new) < len(sentences) or (guards and any(map(_is_untaught, sentences))):
        found = search_first(sentences, new, settings, guards, searcher)
    else:
        found = [find_faults(each) for each in searcher.search(sentences, settings, guards)]
    return search_again(found, settings, searcher) if guards else found


def search_first(
    sentences: Sequence[SourceSentence], chosen: Sequence[int], settings: SearchSettings, guards: bool, searcher: Searcher
) -> list[SourceSentence]:
    """The usual search for those that have the chosen numbers; the others stay as they are. A model whose text had no tags is not asked
    to put any."""
    untaught = [at for at in chosen if guards and _is_untaught(sentences[at])]
    found = on_some(sentences, untaught, partial(search_without_tags, settings=settings, searcher=searcher))
    left = [at for at in chosen if not found[at].is_searched]
    return on_some(found, left, partial(search, settings=settings, guards=guards, searcher=searcher))


def search_again(sentences: Sequence[SourceSentence], settings: SearchSettings, searcher: Searcher) -> list[SourceSentence]:
    """The better of what was found and of what is found under constraints, where they can help."""
    ways = [constrain(each) for each in sentences]
    if not any(ways):
        return list(sentences)
    placed = search_without_tags(sentences, settings, searcher)
    ways = [some if now is before else [] for now, before, some in zip(placed, sentences, ways, strict=True)]
    tries = encode([way for some in ways for way in some], hard=True)
    few = [at for at, each in enumerate(tries) if _count_bound(each.request) <= MOST_PIECES]

    def bound_search(some: list[SourceSentence]) -> list[SourceSentence]:
        """Phrases need a plain beam. What cannot be searched so, by an engine without constraints or for lack of room, keeps its
        first answer, and fails nobody else's."""
        plain = {"sampling": None, "mbr_samples": None, "groups": 1, "nbest": min(settings.nbest, settings.beam)}
        bound = settings.changed(**plain) if any(each.request.phrases for each in some) else settings
        try:
            return search(some, bound, True, searcher)
        except LimelightError:
            return some if len(some) == 1 else [bound_search([each])[0] for each in some]

    second = iter(on_some(tries, few, bound_search))
    result = []
    for first, some in zip(placed, ways, strict=True):
        better = [found for _ in some if (found := next(second)).candidates]
        better.sort(key=lambda found: -found.candidates[0].score)
        best = min([first, *better], key=lambda found: found.rank) if better else first
        result.append(best if best is first else _note_cured(best, first))
    return result


def search_without_tags(sentences: Sequence[SourceSentence], settings: SearchSettings, searcher: Searcher) -> list[SourceSentence]:
    """Those that lost tags are searched without them, and have them put back. The others, and what cannot be put back, stay as they are."""
    bare = {at: plain for at, each in enumerate(sentences) if _may_go_without(each) and (plain := _without_tags(each)) is not None}
    if not bare:
        return list(sentences)
    found = search_twice(encode(list(bare.values())), settings, True, searcher)
    cares = [join_care(sentences[at], plain.care) if plain.candidates else None for at, plain in zip(bare, found, strict=True)]
    able = [(at, plain, care) for at, plain, care in zip(bare, found, cares, strict=True) if care is not None]
    result = list(sentences)
    for (at, _, _), placed in zip(able, place_tags([plain for _, plain, _ in able], [care for _, _, care in able], searcher), strict=True):
        if placed is not None and (placed := find_faults(placed)).is_kept:
            result[at] = placed.fill(notices=(*placed.notices, PLACED))
    return result


def _is_untaught(sentence: SourceSentence) -> bool:
    return sentence.reader.learnt.tags is False and any(span.kind == "tag" for span in sentence.care.protected.spans)


def _may_go_without(sentence: SourceSentence) -> bool:
    """What a translation must begin with, or contain, may hold tags itself."""
    lost = not sentence.is_searched or any(fault.code == UNPROTECTED for fault in sentence.faults)
    return lost and bool(sentence.care.marks) and not (sentence.prefix or sentence.phrases)


def _without_tags(sentence: SourceSentence) -> SourceSentence | None:
    """None where there are none, or where without them something else is in the text."""
    reader, text = sentence.reader, remove_tags(sentence.care.protected)
    if text is None:
        return None
    care = take_out(text, reader.settings.languages, reader.most_marks, sentence.care.terms)
    if join_care(sentence, care) is None:
        return None
    return sentence.fill(given=text, care=care, candidates=[], notices=(), faults=(), is_degenerate=False, is_searched=False)


def constrain(sentence: SourceSentence) -> list[SourceSentence]:
    """The ways to search again; none where all is well, or constraints would change nothing."""
    reader = sentence.reader
    codes = {fault.code for fault in sentence.faults}
    if not codes or not sentence.candidates or PLACED in sentence.notices:  # without its tags it was searched again already
        return []
    # Numbers too, whatever was lost: a search that is bound elsewhere may be worse at them.
    first = sentence.care
    bound = take_out(first.given, reader.settings.languages, reader.most_marks, first.terms, "all") if first.watched else first
    care = bound if bound.marks else first
    if codes == {NUMBERS} and not care.marks:
        return []
    shown = TargetFinder(sentence.candidates[0].text)
    ways = max((len(term.targets) for term in care.terms), default=1) if TERMS in codes else 1
    anew = replace(sentence, care=care, candidates=[], notices=(), faults=(), is_degenerate=False)
    return [
        replace(anew, phrases=(*anew.phrases, *care.demanded, *(_variant(term, shown, way) for term in care.terms)))
        for way in range(min(ways, MOST_VARIANTS))
    ]


def _count_bound(request: Request) -> int:
    """Pieces that have to occur in the translation."""
    return sum(map(len, request.phrases)) + len(request.once)


def _variant(term: Term, shown: TargetFinder, way: int) -> str:
    """The form that occurs already, else the one whose turn it is."""
    there = list(filter(shown.has, term.targets))
    return there[0] if there else term.targets[min(way, len(term.targets) - 1)]


def _note_cured(second: SourceSentence, first: SourceSentence) -> SourceSentence:
    """What was lost in the first search, and is not now, is said."""
    left = {fault.code for fault in second.faults}
    cured = [_REASONS[fault.code] for fault in first.faults if fault.code not in left]
    notice = Notice("redecoded", f"searched a second time {' and '.join(cured)}")
    told = [notice, ADDED] if _REASONS[TERMS] in cured and _is_longer(second, first) else [notice]
    return replace(second, notices=(*second.notices, *told)) if cured else second


def _is_longer(second: SourceSentence, first: SourceSentence) -> bool:
    """Whether the second translation has every word of the first one, and more: "Ein Hund rennt Vierbeiner." """
    texts = (each.care.restore(each.candidates[0].text).lower() for each in (first, second))  # marks do not stand for the same in both
    before, after = (Counter(WORD.findall(" ".join(split_words(text)))) for text in texts)
    return before.total() > 0 and not before - after and after != before
