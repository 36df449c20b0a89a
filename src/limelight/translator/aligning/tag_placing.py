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
from limelight.text.careful.protect import Protected
from limelight.text.careful.spans import MARK
from limelight.text.careful.tag_places import TagPlace, build_elements, find_tag_places
from limelight.text.languages import scripts_of
from limelight.text.pieces.tokenizer import SPACE, placeholder
from limelight.translator.aligning.sentence_alignment import add_probabilities, attend
from limelight.translator.confidence import is_punctuation
from limelight.translator.protected import ProtectedSentence, take_out
from limelight.translator.searching import Searcher
from limelight.translator.sentences import Reader, SourceSentence

if TYPE_CHECKING:
    from limelight.engines.engine import Matrix

UNSPACED = frozenset({"Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})  # a word is a piece there
BALANCED = 3  # times; a word that stood between tags was alone between them again 274 times of 290, without 251 times
TINY = 1e-9
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def remove_tags(protected: Protected) -> str | None:
    """The text without its tags; None where there are none, or nothing beside them. "one<br>two" are two words still."""
    tags = _list_tags(protected)
    paired = {protected.numbers[at] for pair in protected.nested for at in pair}
    text, parts = "", MARK.split(protected.text)
    for part, number, following in zip(parts[::2], [*parts[1::2], ""], [*parts[2::2], ""], strict=True):
        text += part.lstrip(" ") if text.endswith(" ") else part
        if number and int(number) not in tags:
            text += protected.spans[protected.numbers.index(int(number))].text
        elif number and int(number) not in paired and text[-1:].strip() and following[:1].strip():
            text += " "
    return text if tags and text.strip() else None


def join_care(tagged: SourceSentence, plain: SourceSentence) -> ProtectedSentence | None:
    """What is to be put back: the tags of the one, and whatever else the other had taken out. None where these are not the same."""
    reader, kept = plain.reader, plain.care
    care = take_out(tagged.given, reader.settings.languages, reader.most_marks, kept.terms, kept.which)
    others = [span for span in care.protected.spans if span.kind != "tag"]
    return replace(care, shouted=kept.shouted) if others == [*kept.protected.spans] else None


def place_tags(tagged: Sequence[SourceSentence], plain: Sequence[SourceSentence], searcher: Searcher) -> list[SourceSentence | None]:
    """The translations of the texts without tags, with the tags of `tagged`, which were encoded with all that is to be put back. None
    where it cannot be told what came from where."""
    found = add_probabilities(plain, searcher)
    weights = iter(attend(found, searcher))
    return [_place(whole, each, [next(weights) for _ in each.candidates]) for whole, each in zip(tagged, found, strict=True)]


def _place(tagged: SourceSentence, plain: SourceSentence, attention: Sequence["Matrix"]) -> SourceSentence | None:
    reader, protected, letters = plain.reader, tagged.care.protected, _list_letters(plain)
    if letters is None:
        return None
    tags = _find_places(protected, reader)
    nested = [pair for pair in protected.nested if protected.spans[pair[0]].kind == "tag"]
    candidates = []
    for candidate, weights in zip(plain.candidates, attention, strict=True):
        pieces = reader.target.pieces(candidate.ids)
        words = _cut_words(pieces, reader.settings.languages[1])
        solid = [not _is_sign(pieces[word.start]) for word in words]
        came_from = _sum_words(weights[:, : len(letters)], words)
        places = find_tag_places(build_elements(tags, nested), letters, came_from, solid)
        candidates.append(_weave(candidate, places, words, plain, tagged.care))
    return replace(tagged, candidates=candidates, is_searched=True, is_degenerate=plain.is_degenerate, notices=plain.notices)


def _list_tags(protected: Protected) -> set[int]:
    """The numbers of their marks."""
    return {number for number, span in zip(protected.numbers, protected.spans, strict=True) if span.kind == "tag"}


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
    byte = _BYTE.fullmatch(piece)
    return int(byte[1], 16) & 0xC0 != 0x80 if byte else len(_letters_of(piece))


def _letters_of(text: str) -> str:
    """Without blanks, which pieces and normalized text have elsewhere; a mark is one letter."""
    return "".join(MARK.sub("x", text).replace(SPACE, " ").split())


def _cut_words(pieces: Sequence[str], language: str) -> list[range]:
    """The pieces of each word. Punctuation is a word of its own, and every piece where words are not parted by blanks."""
    alone = bool(UNSPACED & {*scripts_of(language)[:1]})
    begins = [
        at for at, piece in enumerate(pieces) if not at or alone or piece.startswith(SPACE) or _is_sign(piece) or _is_sign(pieces[at - 1])
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


def _weave(
    candidate: Hypothesis, places: Sequence[tuple[int, int]], words: Sequence[range], plain: SourceSentence, care: ProtectedSentence
) -> Hypothesis:
    """The ids with those of the tags among them; marks of other spans get the numbers that they have beside tags."""
    reader, protected = plain.reader, care.protected
    others = [number for number, span in zip(protected.numbers, protected.spans, strict=True) if span.kind != "tag"]
    marks = reader.placeholders
    anew = {marks[old]: marks[new] for old, new in zip(plain.care.marks, others, strict=True)}
    ids, log_probs = [anew.get(each, each) for each in candidate.ids], list(candidate.log_probs)
    for word, number in reversed(places):
        at = words[word].start if word < len(words) else len(candidate.ids)
        ids.insert(at, marks[protected.numbers[number]])
        log_probs.insert(at, 0.0)
    [text] = reader.target.decode([ids])
    return replace(candidate, ids=ids, log_probs=log_probs, total=None, text=_space_lone(text, protected))


def _space_lone(text: str, protected: Protected) -> str:
    """A tag without another has blanks around it as it has in the source: "eins⟦0⟧ zwei" -> "eins ⟦0⟧zwei" """
    paired = {at for pair in protected.nested for at in pair}
    parts = MARK.split(protected.text)
    for at in range(1, len(parts), 2):
        number = int(parts[at])
        place = protected.numbers.index(number)
        if protected.spans[place].kind != "tag" or place in paired:
            continue
        first, last = parts[at - 1][-1:] == " ", parts[at + 1][:1] == " "
        before, mark, after = text.partition(placeholder(number))
        if not before.endswith("⟧"):
            before = before.rstrip(" ") + " " * (first and bool(before.strip()))
        if not after.startswith("⟦"):
            after = " " * (last and bool(after.strip())) + after.lstrip(" ")
        text = before + mark + after
    return text
