"""A model that lost the tags of a sentence translates it without them, and they are put where the words came from that they were around.

    "A <b>girl</b> runs."  ->  "A girl runs."  ->  "Ein Mädchen läuft."  ->  "Ein <b>Mädchen</b> läuft."

Text to learn from seldom has tags, so the marks that stand for them are often lost. A search that must write each of them keeps the promise
and spoils the words; the words are right here, and where the attention is not, a tag is around a neighbour.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from limelight.decoding.steps import Hypothesis
from limelight.text.careful.protect import Protected, renumber
from limelight.text.careful.spans import MARK
from limelight.text.careful.tag_places import TagPlace, build_elements, find_tag_places
from limelight.text.languages import is_unspaced
from limelight.text.pieces.tokenizer import SPACE, placeholder
from limelight.translator.aligning.sentence_alignment import add_probabilities, attend
from limelight.translator.alignment import WordCount
from limelight.translator.confidence import is_punctuation
from limelight.translator.protected import ProtectedSentence, take_out
from limelight.translator.searching import Searcher
from limelight.translator.sentences import Reader, SourceSentence

if TYPE_CHECKING:
    from limelight.engines.engine import Matrix

BALANCED = 3  # times; a word that stood between tags was alone between them again 274 times of 290, without 251 times
TINY = 1e-9
_STOPS = tuple(".,;:!?\u2026")
_OPENING = "([{\u201e\u201c\u00ab\u2039\u00bf\u00a1'\""  # quotation marks, too
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def remove_tags(protected: Protected) -> str | None:
    """The text without its tags; None where there are none, or nothing beside them. "one<br>two" are two words still."""
    text = "".join(plain for plain, _ in _list_parts(protected))
    return text if text.strip() and _list_tags(protected) else None


def join_care(tagged: SourceSentence, care: ProtectedSentence) -> ProtectedSentence | None:
    """What is to be put back: the tags of `tagged`, and what the text without them, of which `care` is, has taken out. None where that is
    not the same, as in "<<i>b>" and "&<b>File</b>": without its tag another is made, and a sign becomes that of an accelerator."""
    reader = tagged.reader
    whole = take_out(tagged.given, reader.settings.languages, reader.most_marks, care.terms, care.which)
    others = [at for at, span in enumerate(whole.protected.spans) if span.kind != "tag"]
    if [whole.protected.spans[at] for at in others] != [*care.protected.spans] or care.accelerator is not None:
        return None
    free = iter(sorted({*range(reader.most_marks)} - {*care.marks}))
    kept = dict(zip(others, care.marks, strict=True))
    numbers = [kept[at] if at in kept else next(free) for at in range(len(whole.protected.spans))]
    protected = renumber(whole.protected, numbers)
    return replace(whole, text=care.text, shouted=care.shouted, protected=protected, own_words=tuple(_count_words(protected)))


def place_tags(plain: Sequence[SourceSentence], cares: Sequence[ProtectedSentence], searcher: Searcher) -> list[SourceSentence | None]:
    """The translations of texts without tags, with the tags of `cares`. None where it cannot be told what came from where."""
    found = add_probabilities(plain, searcher)
    weights = iter(attend(found, searcher))
    return [_place(each, care, [next(weights) for _ in each.candidates]) for each, care in zip(found, cares, strict=True)]


def _place(plain: SourceSentence, care: ProtectedSentence, attention: Sequence["Matrix"]) -> SourceSentence | None:
    reader, protected, letters = plain.reader, care.protected, _list_letters(plain)
    if letters is None:
        return None
    tags = _find_places(protected, reader)
    nested = [pair for pair in protected.nested if protected.spans[pair[0]].kind == "tag"]
    candidates, seen = [], []
    for candidate, weights in zip(plain.candidates, attention, strict=True):
        pieces = reader.target.pieces(candidate.ids)
        words = _cut_words(pieces, reader.settings.languages[1])
        solid = [not _is_sign(pieces[word.start]) for word in words]
        came_from = _sum_words(weights[:, : len(letters)], words)
        places = find_tag_places(build_elements(tags, nested), letters, came_from, solid)
        inserted = _list_inserted(candidate, places, words, protected, reader)
        candidates.append(_weave(candidate, inserted, protected, reader))
        seen.append(_widen(weights, [at for at, _ in inserted]))
    return plain.fill(given=care.given, care=care, candidates=candidates, attention=tuple(seen))


def _list_tags(protected: Protected) -> set[int]:
    """The numbers of their marks."""
    return {number for number, span in zip(protected.numbers, protected.spans, strict=True) if span.kind == "tag"}


def _list_parts(protected: Protected) -> list[tuple[str, str]]:
    """The text in parts: as it is without tags, and as it is given. Where tags part words ("one<br>two", "one</p><p>two"), a blank does."""
    tags, found, text = _list_tags(protected), list[tuple[str, str]](), ""
    spans = dict(zip(protected.numbers, protected.spans, strict=True))
    alone = tags - {protected.numbers[at] for pair in protected.nested for at in pair}
    run, last = list[int](), 0
    parts = MARK.split(protected.text)
    for at, part in enumerate(parts):
        number = int(part) if at % 2 else None
        if number is not None and number in tags:
            run.append(number)
            found.append(("", spans[number].text))
            continue
        plain = part if number is None else spans[number].text
        if plain and run:
            if (len(run) > 1 or run[0] in alone) and _part_words(text, plain):
                plain = " " + plain
            elif text.endswith(" "):
                if plain[0] in _STOPS and found[last][0].strip():  # "runs <x/>." is "runs."
                    found[last], text = (found[last][0].rstrip(" "), found[last][1]), text.rstrip(" ")
                plain = plain.lstrip(" ")
            run.clear()
        last = len(found) if plain else last
        found.append((plain, part if number is None else spans[number].text))
        text += plain
    return found


def _part_words(before: str, after: str) -> bool:
    """Would two words run together?"""
    return bool(before.strip() and before[-1] != " " and before[-1] not in _OPENING) and (after[0].isalnum() or after[0] in _OPENING)


def _count_words(protected: Protected) -> list[int]:
    """Of each word of the text without tags, the number of the given word that it ends in."""
    found, given, inside = list[int](), WordCount(), False
    for plain, own in _list_parts(protected):
        if not plain:
            given.add(own)
            continue
        blank = plain[0] == " " != own[:1]  # one that stands for the tags
        inside = inside and not blank
        for token in re.findall(" +|[^ ]+", own):
            given.add(token)
            if token[0] == " ":
                inside = False
            elif inside:
                found[-1] = given.words - 1
            else:
                found.append(given.words - 1)
                inside = True
    return found


def _find_places(protected: Protected, reader: Reader) -> list[TagPlace]:
    """Where each tag stood in the text without tags."""
    tags, parts = _list_tags(protected), MARK.split(protected.text)
    texts, found = [""], list[int]()
    for part, number in zip(parts[::2], [*parts[1::2], ""], strict=True):
        texts[-1] += part
        if number and int(number) in tags:
            found.append(protected.numbers.index(int(number)))
            texts.append(texts[-1])
        elif number:
            texts[-1] += placeholder(int(number))
    normal = [_letters_of(text) for text in reader.normalize(texts)]
    whole = normal[-1]
    return [
        TagPlace(number, len(before), is_punctuation(before[-1:]), is_punctuation(whole[len(before) : len(before) + 1]))
        for number, before in zip(found, normal, strict=False)
    ]


def _list_letters(sentence: SourceSentence) -> list[tuple[int, int]] | None:
    """Where each piece of the source begins and ends, in letters; None where the pieces are not the letters of the text."""
    reader = sentence.reader
    pieces = reader.source.pieces(sentence.request.source[len(reader.source_begin) : sentence.own])
    ends = list(accumulate(map(_count_letters, pieces), initial=0))
    return list(pairwise(ends)) if ends[-1] == len(_letters_of(sentence.text)) else None


def _count_letters(piece: str) -> int:
    """A piece of a byte is one where it begins a letter."""
    return not _goes_on(piece) if _BYTE.fullmatch(piece) else len(_letters_of(piece))


def _goes_on(piece: str) -> bool:
    """Whether it is a byte of a letter that began before."""
    byte = _BYTE.fullmatch(piece)
    return byte is not None and int(byte[1], 16) & 0xC0 == 0x80


def _letters_of(text: str) -> str:
    """Without blanks, which pieces and normalized text have elsewhere; a mark is one letter."""
    return "".join(MARK.sub("x", text).replace(SPACE, " ").split())


def _cut_words(pieces: Sequence[str], language: str) -> list[range]:
    """The pieces of each word. Punctuation is a word of its own, and every piece where words are not parted by blanks."""
    alone = is_unspaced(language)
    begins = [
        at
        for at, piece in enumerate(pieces)
        if not at or ((alone or _is_sign(piece) or _is_sign(pieces[at - 1])) and not _goes_on(piece)) or piece.startswith(SPACE)
    ]
    return [range(begin, end) for begin, end in pairwise([*begins, len(pieces)])]


def _is_sign(piece: str) -> bool:
    return is_punctuation(piece.lstrip(SPACE))


def _sum_words(weights: "Matrix", words: Sequence[range]) -> "Matrix":
    """What each word took from each piece of the source. A word that looks at a noun to know its gender, as an article does, says no more
    of it than the noun's own word: so what all take from a piece is made as much for each piece, and again what each word takes in all."""
    import numpy as np

    took = np.array([weights[word.start : word.stop].mean(axis=0) for word in words]).reshape(len(words), weights.shape[1])
    whole = took.sum(axis=1, keepdims=True)
    for _ in range(BALANCED):
        took = took / np.maximum(took.sum(axis=0), TINY)
        took *= whole / np.maximum(took.sum(axis=1, keepdims=True), TINY)
    return took


def _list_inserted(
    candidate: Hypothesis, places: Sequence[tuple[int, int]], words: Sequence[range], protected: Protected, reader: Reader
) -> list[tuple[int, int]]:
    """(Before which of its pieces, the piece that is put in), in their order: each tag, and a blank before one that begins a word, or that
    stands alone behind a blank of the source."""
    openings, closings = {opening for opening, _ in protected.nested}, {closing for _, closing in protected.nested}
    parts, found = MARK.split(protected.text), list[tuple[int, int]]()
    before, after = (dict(zip(map(int, parts[1::2]), parts[begin::2], strict=False)) for begin in (0, 2))
    for word, number in places:
        at, mark = words[word].start if word < len(words) else len(candidate.ids), protected.numbers[number]
        begins = number in openings or (number not in closings and before[mark].endswith(" ") and bool(before[mark].strip()))
        if begins and at > 0 and reader.blank is not None and (not found or found[-1][0] < at):
            following = reader.target.pieces(candidate.ids[at : at + 1])
            stops = number not in openings and after[mark][:1] in _STOPS  # of the source, behind the tag
            if not following or following[0].startswith(SPACE) or (stops and following[0][:1] in _STOPS):
                found.append((at, reader.blank))
        found.append((at, reader.placeholders[mark]))
    return found


def _weave(candidate: Hypothesis, inserted: Sequence[tuple[int, int]], protected: Protected, reader: Reader) -> Hypothesis:
    """What is put in is as probable as the rest, since no model was asked for it."""
    ids, log_probs = list(candidate.ids), list(candidate.log_probs)
    for at, piece in reversed(inserted):
        ids.insert(at, piece)
        log_probs.insert(at, candidate.mean_log_prob)
    [text] = reader.target.decode([ids])
    return replace(candidate, ids=ids, log_probs=log_probs, total=None, text=_glue_lone(text, protected))


def _widen(weights: "Matrix", places: Sequence[int]) -> "Matrix":
    """With a row for each piece that was put in, which looked at the end: it came from nothing."""
    import numpy as np

    idle = np.zeros(weights.shape[1], weights.dtype)
    idle[-1] = 1
    return np.insert(weights, list(places), idle, axis=0)


def _glue_lone(text: str, protected: Protected) -> str:
    """A tag that parts two words of the source does so without blanks here: "eins⟦0⟧ zwei" -> "eins⟦0⟧zwei" """
    paired = {at for pair in protected.nested for at in pair}
    parts = MARK.split(protected.text)
    for at in range(1, len(parts), 2):
        place = protected.numbers.index(int(parts[at]))
        if protected.spans[place].kind == "tag" and place not in paired and parts[at + 1][:1].isalnum():
            before, mark, after = text.partition(placeholder(int(parts[at])))
            if parts[at - 1][-1:].isalnum():
                before = before.rstrip(" ")
            text = before + mark + after.lstrip(" ")
    return text
