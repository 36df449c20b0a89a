"""Five functions take texts to translations: `cut`, `protect`, `encode`, `search`, `restore`.

    cut       a text into sentences, with what stands between them
    protect   what must survive a sentence becomes marks, and the terms of a glossary are found in it
    encode    the text is normalized and cut into pieces: the request that an engine is asked
    search    candidates, best first; what loops or is empty is searched once more
    restore   marks become what they stand for, pieces words with their confidence, and what is odd is said

A `SourceSentence` goes all the way, and each step fills in what it found. What was lost is searched again by `second_search`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import xxhash

from limelight.bundle.confidence import Calibration
from limelight.decoding.config import SearchSettings
from limelight.decoding.guards import Notice
from limelight.decoding.steps import IsOver, Request, room_for
from limelight.errors import DataError, DeadlineError, LengthError
from limelight.text.careful.glossary import Glossary
from limelight.translator.aligning.sentence_alignment import add_probabilities, align_sentences
from limelight.translator.arguments import check_lengths, check_texts, one_glossary_each, one_match_each, one_prefix_each, phrases_each
from limelight.translator.parts import Cutter, TranslationPlan
from limelight.translator.presenting import note_unmatched, translation_of
from limelight.translator.protected import hide_spans, take_out
from limelight.translator.searching import Searcher
from limelight.translator.sentences import Reader, SourceSentence, on_some
from limelight.translator.translation import UNPROTECTED, InvalidScoresError, Scored, Translation, confidence_of, nothing, pieces_of

LEAST_CUT = 64  # pieces: a caller that asks for shorter translations wants them short, not in parts
GROWTH = 1.25  # pieces of a translation for one of its source, where the search has a limit


@dataclass(frozen=True)
class TranslationOptions:
    """Translation options say what is wanted beside the text."""

    align: bool = False
    guards: bool = True
    probabilities: bool = False
    check: bool = False  # for words left out and made up


def plan(
    texts: Sequence[str],
    settings: SearchSettings,
    prefixes: Sequence[str] | None,
    phrases: Sequence[Sequence[str]] | None,
    watched: bool,
    glossary: Glossary | Sequence[Glossary | None] | None,
    matches: Sequence[str | None] | None,
    segment: bool | None,
    is_over: IsOver,
    reader: Reader,
) -> TranslationPlan:
    """Cut, protect and encode texts: after this each sentence can be searched by itself."""
    given = check_texts(texts, "texts")
    glossaries = one_glossary_each(glossary, len(given))
    begins, needed = one_prefix_each(prefixes, len(given)), phrases_each(phrases, len(given))
    similar = one_match_each(matches, len(given), reader.settings)
    sentences: list[SourceSentence] = []
    places = []
    for text, prefix, some, match in zip(given, begins, needed, similar, strict=True):
        _check_time(is_over)
        bound = bool(prefix or some)  # by what belongs to the whole
        parts = cut(text, settings, False if bound else None if match and segment else segment, watched and not bound, reader)
        match = match if len(parts) == 1 and not parts[0].message else ""  # it is one of the whole text
        places.append(range(len(sentences), len(sentences) + len(parts)))
        asked: dict[str, Any] = {"prefix": prefix, "phrases": some, "match": match, "reader": reader}
        sentences += [part.fill(**asked, request=Request((), is_over=is_over)) for part in parts]
    for own, where in zip(glossaries, places, strict=True):
        for at in where:
            _check_time(is_over)
            sentences[at] = protect(sentences[at], watched, own)
    may_lose = any(each.prefix or each.phrases or each.care.may_lose for each in sentences)
    return TranslationPlan(given, encode(sentences), places, may_lose)


def cut(text: str, settings: SearchSettings, segment: bool | None, parse: bool, reader: Reader) -> list[SourceSentence]:
    """The sentences of a text. `parse`: of a message, the texts inside."""
    longest = min(max(LEAST_CUT, round(settings.max_length / GROWTH)), reader.longest)
    longest = min(longest, reader.learnt.longest or longest)
    length = reader.length if not (parse and reader.most_marks) else lambda text: reader.length(hide_spans(text))  # a mark is one piece
    return Cutter(reader.settings.languages[0], length, longest, reader.most_marks or None).cut(text, segment, parse)


def protect(sentence: SourceSentence, watched: bool, glossary: Glossary | None) -> SourceSentence:
    """Terms are told or demanded also where nothing else is `watched`."""
    reader = sentence.reader
    terms = [] if glossary is None else glossary.find(hide_spans(sentence.given))
    care = take_out(sentence.given, reader.settings.languages, reader.most_marks, terms, watched=watched)
    return sentence.fill(care=care)


def encode(sentences: Sequence[SourceSentence], hard: bool = False) -> list[SourceSentence]:
    """Sources longer than the model takes are cut, and say so. `hard`: marks must occur once each, and not only may."""
    if not sentences:
        return []
    reader = sentences[0].reader  # pieces are the same for all; what stands before them is each one's own
    tidy = reader.normalize([each.care.text for each in sentences])
    prefixes = reader.target_ids([each.care.protect_prefix(each.prefix) for each in sentences])
    phrases = reader.phrase_ids([each.phrases for each in sentences])
    own, result = reader.source_ids(tidy), []
    for each, text, ids, prefix, needed, told in zip(sentences, tidy, own, prefixes, phrases, reader.tell(sentences, own), strict=True):
        longest, begin = each.reader.longest, each.reader.target_begin
        source, notices = each.reader.add_source_begin(ids[:longest]), each.notices
        if len(ids) > longest:
            lost = f"the source has {len(ids)} pieces and the model takes {longest}; the rest was not translated"
            notices = (*notices, Notice("source_cut", lost))
        # Drawn from the text alone, so that what is sampled for a sentence depends neither on its place nor on its neighbours.
        key = xxhash.xxh3_64_intdigest(text.encode()) >> 1
        marks = [reader.placeholders[number] for number in each.care.marks]
        # Also what looks like a mark in the text of a model that was never taught any.
        written = [reader.placeholders[number] for number in each.care.written if number in reader.placeholders]
        request = Request(
            [*source, *told] if source and len(ids) + len(told) <= longest else source,
            [*begin, *prefix],
            needed,
            key,
            len(begin),
            allowed=marks or written,
            is_over=each.request.is_over,
        )
        if (room := room_for(request)) > (most := reader.settings.model.max_length) and not hard:
            raise LengthError(
                f"a translation has to have {room} pieces, for its prefix or phrases, and the model writes {most}; shorten them"
            )
        if hard:
            nested = [(reader.placeholders[begin], reader.placeholders[end]) for begin, end in each.care.nested]
            ordered = [[reader.placeholders[number] for number in group] for group in each.care.ordered]
            request = replace(request, once=marks, nested=nested, ordered=ordered)
        result.append(each.fill(text=text, request=request, pieces=len(ids), own=len(source), notices=notices))
    return result


def search(sentences: Sequence[SourceSentence], settings: SearchSettings, guards: bool, searcher: Searcher) -> list[SourceSentence]:
    """The usual search, and what is wrong with what it found."""
    return [find_faults(each) for each in searcher.search(sentences, settings, guards)]


def restore(
    sentences: Sequence[SourceSentence],
    wanted: TranslationOptions,
    searcher: Searcher,
    calibration: Calibration | None,
) -> list[Translation | None]:
    """One for each sentence. None where the model's scores are no numbers, or its time was over before it was done."""

    def present(some: list[SourceSentence]) -> list[Translation]:
        some = add_probabilities(some, searcher) if wanted.probabilities else some
        some = note_unmatched(some, searcher.find_torch()) if wanted.check else some
        links = align_sentences(some, searcher) if wanted.align else [None] * len(some)
        return [translation_of(*pair, wanted.guards, calibration) for pair in zip(some, links, strict=True)]

    # What was found before the end of a search that was ended is not what the search would have found.
    spoken = [at for at, each in enumerate(sentences) if each.candidates and not each.request.is_over()]
    made = on_some(sentences, spoken, present)
    return [each if isinstance(each, Translation) else nothing(each.given) if each.empty else None for each in made]


def score(sources: Sequence[str], targets: Sequence[str], reader: Reader, searcher: Searcher) -> list[Scored]:
    """How probable given translations are."""
    if len(check_texts(sources, "sources")) != len(check_texts(targets, "targets")):
        raise DataError(f"there are {len(sources)} sources and {len(targets)} targets; give pairs")
    source_ids, target_ids = reader.source_ids(reader.normalize(sources)), reader.target_ids(targets)
    check_lengths("sources", source_ids, 1, reader.longest)
    check_lengths("targets", target_ids, 0, reader.settings.model.max_length - 1 - len(reader.target_begin))
    read = [reader.add_source_begin(ids) for ids in source_ids]
    found = searcher.log_probs(read, target_ids, [reader.target_begin] * len(read))
    if invalid := [i for i, log_probs in enumerate(found) if not all(map(math.isfinite, log_probs))]:
        raise InvalidScoresError(invalid)
    return [
        Scored(sum(log_probs), confidence_of(log_probs), pieces_of(reader.target.pieces(ids), log_probs))
        for ids, log_probs in zip(target_ids, found, strict=True)
    ]


def _check_time(is_over: IsOver) -> None:
    if is_over():
        raise DeadlineError("the texts were not even read in time; give them more time, or send fewer at once")


def find_faults(sentence: SourceSentence) -> SourceSentence:
    """The faults of the best candidate are noted; alternatives that lost something are left out."""
    if not sentence.candidates:
        return sentence
    care, (best, *others) = sentence.care, sentence.candidates
    if care.watched:
        others = [each for each in others if not any(fault.code == UNPROTECTED for fault in care.faults(each.text))]
    return sentence.fill(candidates=[best, *others], faults=tuple(care.faults(best.text)))
