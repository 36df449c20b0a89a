"""A `Presenter` turns what a search found into what a person sees: text, confidence of words, warnings."""

from dataclasses import replace

from limelight.bundle import BundleSettings
from limelight.decoding.guards import Notice, judge
from limelight.text.languages import base, density
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator.careful.protected import ProtectedSentence
from limelight.translator.careful.two_searches import CarefulResult
from limelight.translator.confidence import sentence_confidence, transfer_confidence, words_of
from limelight.translator.searching import Candidate
from limelight.translator.translation import Alignment, Alternative, Translation, likely, pieces_of


class Presenter:
    def __init__(self, settings: BundleSettings, target: Tokenizer) -> None:
        self.target, self.calibration = target, settings.confidence
        source_language, target_language = settings.languages
        self._expected = density(target_language) / density(source_language)
        self._same_language = base(source_language) == base(target_language)

    def translation(self, found: CarefulResult, links: list[Alignment] | None, guards: bool) -> Translation:
        made = [self._alternative(candidate, found.care) for candidate in found.answer.candidates]
        if links is not None:
            made = [replace(one, alignment=link) for one, link in zip(made, links, strict=True)]
        return Translation(
            **vars(made[0]),
            source=found.care.given,
            source_pieces=len(found.sentence.request.source),
            alternatives=made[1:],
            degenerate=found.answer.degenerate,
            protected=found.care.explain_loss(found.answer.candidates[0].text) is None,
            warnings=self._notices(found, guards),
        )

    def _alternative(self, candidate: Candidate, care: ProtectedSentence) -> Alternative:
        hypothesis = candidate.hypothesis
        pieces = pieces_of(self.target.pieces(hypothesis.ids), hypothesis.log_probs)
        text, whole = care.restore(candidate.text), likely(hypothesis.mean_log_prob)
        words = words_of(pieces, whole, self.calibration)
        return Alternative(
            text=text,
            score=hypothesis.score,
            confidence=sentence_confidence(words, whole, self.calibration),
            pieces=[piece._replace(text=care.restore_piece(piece.text)) for piece in pieces],
            finish=hypothesis.finish,
            words=transfer_confidence(words, text),
        )

    def _notices(self, found: CarefulResult, guards: bool) -> list[Notice]:
        best, sentence = found.answer.candidates[0], found.sentence
        notices = [*sentence.notices, *found.answer.notices]
        if best.hypothesis.finish == "length":
            count = len(best.hypothesis.ids)
            notices.append(Notice("length", f"the translation was ended at its limit, after {count} pieces"))
        if guards:
            notices += judge(sentence.text, best.text, self._expected, self._same_language)
        return [*notices, *found.faults]
