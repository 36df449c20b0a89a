"""The attention of an engine becomes links between the words that a person sees."""

from collections.abc import Sequence
from dataclasses import replace

from limelight.engines.engine import Matrix
from limelight.text.pieces.tokenizer import SPACE
from limelight.translator.alignment import build_alignment, owners, split_at_spaces
from limelight.translator.protected import ProtectedSentence
from limelight.translator.searching import Searcher
from limelight.translator.sentences import Reader, SourceSentence
from limelight.translator.translation import Alignment


def align_sentences(sentences: Sequence[SourceSentence], searcher: Searcher) -> list[list[Alignment]]:
    """Return the alignments of every candidate of every sentence."""
    weights = iter(attend(sentences, searcher))
    result = []
    for each in sentences:
        reader = each.reader
        source = reader.source.pieces(each.request.source[len(reader.source_begin) : each.own])
        words = map_source_words(each, reader)
        links = []
        for candidate in each.candidates:
            target = reader.target.pieces(candidate.ids)
            link = build_alignment(_own(next(weights), len(source)), source, target, words)
            links.append(_restore_links(link, each.care, candidate.text))
        result.append(links)
    return result


def attend(sentences: Sequence[SourceSentence], searcher: Searcher) -> list[Matrix]:
    """Where each piece of every candidate looked, sentence by sentence, without what stands before source and translation."""
    pairs = [(each, candidate.ids) for each in sentences if not each.attention for candidate in each.candidates]

    def work(batch: list[int]) -> list[Matrix]:
        asked = [pairs[i] for i in batch]
        seen = searcher.engine.attend(
            [each.request.source for each, _ in asked], [[*each.reader.target_begin, *ids] for each, ids in asked]
        )
        return [
            weights[len(each.reader.target_begin) :, len(each.reader.source_begin) :]
            for weights, (each, _) in zip(seen, asked, strict=True)
        ]

    asked = iter(searcher.in_batches([len(each.request.source) + len(ids) for each, ids in pairs], 1, work))
    return [weights for each in sentences for weights in (each.attention or [next(asked) for _ in each.candidates])]


def add_probabilities(sentences: Sequence[SourceSentence], searcher: Searcher) -> list[SourceSentence]:
    """Those of every piece, where the engine gave only their sum."""
    unknown = [(each, c.ids) for each in sentences for c in each.candidates if not c.log_probs]
    sources, targets = [each.request.source for each, _ in unknown], [ids for _, ids in unknown]
    scores = iter(searcher.log_probs(sources, targets, [each.reader.target_begin for each, _ in unknown]))
    return [
        replace(
            each,
            candidates=[c if c.log_probs else replace(c, log_probs=next(scores)[: c.steps]) for c in each.candidates],
        )
        for each in sentences
    ]


def _own(weights: Matrix, pieces: int) -> Matrix:
    """Without the terms that were told after the source; where those were looked at, nothing of the source was."""
    if weights.shape[1] == pieces + 1:
        return weights
    own = weights[:, : pieces + 1].copy()
    own[:, pieces] = weights[:, pieces:].sum(axis=1)
    return own


def map_source_words(sentence: SourceSentence, reader: Reader) -> list[int] | None:
    """Normalization may join, part or remove words, and a mark may stand for several; links are between the words as they were given."""
    if sentence.text == sentence.given and SPACE not in sentence.given:
        return None
    own = sentence.care.source_words()
    return [own[number] for number in owners(reader.normalize(split_at_spaces(sentence.care.text)))]


def _restore_links(link: Alignment, care: ProtectedSentence, text: str) -> Alignment:
    target_words = care.target_words(text)
    if target_words is None:
        return link
    words = {(s, target_words[t]) for s, t in link.words if t < len(target_words)}
    source = [care.restore_piece(piece) for piece in link.source]
    return replace(link, words=sorted(words, key=lambda pair: pair[::-1]), source=source)
