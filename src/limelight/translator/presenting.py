"""`translation_of` turns what a search found into what a person sees: text, confidence of words, warnings."""

from typing import Any

from limelight.bundle.confidence import Calibration
from limelight.decoding.guards import Notice, judge
from limelight.decoding.steps import Hypothesis
from limelight.text.languages import base, density
from limelight.translator.confidence import sentence_confidence, transfer_confidence, words_of
from limelight.translator.protected import ProtectedSentence
from limelight.translator.sentences import Reader, SourceSentence
from limelight.translator.translation import Alignment, Alternative, Translation, likely, pieces_of


def translation_of(
    sentence: SourceSentence,
    links: list[Alignment] | None,
    guards: bool,
    calibration: Calibration | None,
) -> Translation:
    """The best candidate, with the others as alternatives."""
    reader = sentence.reader
    shown = [_show(candidate, sentence.care, reader, calibration) for candidate in sentence.candidates]
    if links is not None:
        shown = [{**one, "alignment": link} for one, link in zip(shown, links, strict=True)]
    return Translation(
        **shown[0],
        source=sentence.care.given,
        source_pieces=len(sentence.request.source),
        alternatives=[Alternative(**one) for one in shown[1:]],
        degenerate=sentence.is_degenerate,
        protected=sentence.is_kept,
        warnings=_notices(sentence, guards, *reader.settings.languages),
    )


def _show(candidate: Hypothesis, care: ProtectedSentence, reader: Reader, calibration: Calibration | None) -> dict[str, Any]:
    """The fields of an `Alternative`."""
    pieces = pieces_of(reader.target.pieces(candidate.ids), candidate.log_probs)
    text, whole = care.restore(candidate.text), likely(candidate.mean_log_prob)
    words = words_of(pieces, whole, calibration)
    return {
        "text": text,
        "score": candidate.score,
        "confidence": sentence_confidence(words, whole, calibration),
        "pieces": [piece._replace(text=care.restore_piece(piece.text)) for piece in pieces] if care.marks else pieces,
        "finish": candidate.finish,
        "words": transfer_confidence(words, text),
    }


def _notices(sentence: SourceSentence, guards: bool, source_language: str, target_language: str) -> list[Notice]:
    best, notices = sentence.candidates[0], list(sentence.notices)
    if best.finish == "length":
        notices.append(Notice("length", f"the translation was ended at its limit, after {len(best.ids)} pieces"))
    if guards:
        expected = density(target_language) / density(source_language)
        notices += judge(sentence.text, best.text, expected, base(source_language) == base(target_language))
    return [*notices, *sentence.faults]
