"""`translation_of` turns what a search found into what a person sees: text, confidence of words, warnings."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from limelight.bundle.confidence import Calibration
from limelight.decoding.guards import Notice, judge
from limelight.decoding.steps import Hypothesis
from limelight.engines.engine import Engine
from limelight.errors import DeadlineError, LengthError
from limelight.text.careful.spans import MARK
from limelight.text.languages import base, density
from limelight.translator.aligning.sentence_alignment import map_source_words
from limelight.translator.confidence import sentence_confidence, transfer_confidence, words_of
from limelight.translator.protected import ProtectedSentence
from limelight.translator.sentences import Reader, SourceSentence
from limelight.translator.translation import Alignment, Alternative, Translation, likely, pieces_of

if TYPE_CHECKING:
    from limelight.inspection.tracing.live_trace import LiveTrace

# By numbers from 1 in their sentence: notices hold nothing of a text.
UNMATCHED = {"omission": "nothing in the translation came from {} of the source", "addition": "{} of the translation came from nothing"}


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
    best = shown[0]
    unedited = None if calibration is None else calibration.expect_unedited(best["confidence"], len(best["words"]))
    return Translation(
        **best,
        unedited=unedited,
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


def note_unmatched(sentences: Sequence[SourceSentence], engine: Engine) -> list[SourceSentence]:
    """Each with a notice of source words that nothing came from, and one of words of the best candidate that came from nothing."""
    from limelight.engines.torch import TorchEngine
    from limelight.inspection.tracing.tracer import Tracer

    tracers: dict[int, Tracer] = {}
    found = []
    for each in sentences:
        reader, ids, asked = each.reader, [*each.reader.target_begin, *each.candidates[0].ids], each.request
        if (tracer := tracers.get(id(reader))) is None:
            tracer = tracers[id(reader)] = Tracer(cast(TorchEngine, engine), reader.settings, reader.source, reader.target)
        try:
            trace = tracer.trace(each.text, source_ids=asked.source, target_ids=ids, topk=1, nbest=1, is_over=asked.is_over)
            noted = _name_unmatched(trace, each)
        except (LengthError, DeadlineError) as error:  # the others go on
            why = "its time was over" if isinstance(error, DeadlineError) else error
            noted = [Notice("unchecked", f"words left out or made up were not looked for: {why}")]
        found.append(replace(each, notices=(*each.notices, *noted)))
    return found


def _name_unmatched(trace: "LiveTrace", sentence: SourceSentence) -> list[Notice]:
    """Words are counted as they were given, and as they are shown."""
    words: dict[str, list[int]] = {kind: [] for kind in UNMATCHED}
    places = {"omission": map_source_words(sentence, sentence.reader), "addition": sentence.care.target_words(sentence.candidates[0].text)}
    for one in trace.check():
        omitted = one.kind == "omission"
        word = (trace.source if omitted else trace.target).tokens[one.pieces[0]].word
        told = omitted and one.pieces[0] >= sentence.own  # a term after the source
        if word is None or told or not any(map(str.isalnum, MARK.sub("", one.word))):  # marks are compared one by one
            continue
        own = places[one.kind]
        words[one.kind].append((own[word] if own is not None and word < len(own) else word) + 1)
    return [
        Notice(kind, UNMATCHED[kind].format(f"word{'s' * (len(some) > 1)} {', '.join(map(str, some))}"))
        for kind, some in words.items()
        if some
    ]
