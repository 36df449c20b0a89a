"""A `Finder` gives the translation that a trace looks at: the best that a search finds, or a given one."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from limelight.bundle import BundleSettings
from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.record import Record
from limelight.decoding.search import search
from limelight.decoding.steps import Hypothesis, IsOver, Outcome, Request, never
from limelight.engines.torch import OnHost, TorchEngine
from limelight.errors import DeadlineError, ScoreError
from limelight.inspection.analysis.search_tree_builder import beam_tree
from limelight.inspection.interventions import Changes
from limelight.inspection.trace import BeamTree, Guess
from limelight.inspection.tracing.relit_model import IntervenedModel, room
from limelight.inspection.tracing.stages import run_forced
from limelight.text.pieces.tokenizer import Tokenizer


@dataclass(frozen=True)
class TargetRequest:
    """A request is a sentence as ids: the source without its end; a prefix or a target with the ids that every translation begins with.

    `text` is what the source's ids were made of. With `target_ids` nothing is searched for: this translation is looked at.
    """

    text: str
    source_ids: Sequence[int]
    target_ids: Sequence[int] | None = None
    prefix_ids: Sequence[int] = ()
    is_over: IsOver = field(default=never, compare=False)


@dataclass(frozen=True)
class TargetResult:
    """A result has hypotheses, best first. `compared`: the number of pieces of the first whose log-probabilities come from a search."""

    hypotheses: list[Hypothesis]
    compared: int
    tree: BeamTree | None = None


class Finder:
    """A finder searches or scores. `given`: the number of first ids of a translation that were never a choice, such as a language."""

    def __init__(self, engine: TorchEngine, settings: BundleSettings, target: Tokenizer) -> None:
        self.engine, self.specials, self.target = engine, engine.specials, target
        self.given = len(settings.target_begin)
        # As a translator does: tags would be invisible, and a placeholder stands for nothing here.
        self._never = tuple(sorted({*target.controls(), *target.placeholders().values()} - {target.end}))

    def intervene(self, changes: Changes, source_ids: Sequence[int], settings: SearchSettings) -> IntervenedModel:
        watched = self.engine.alignment if settings.coverage_penalty else ()
        return IntervenedModel(self.engine.model, changes, self.specials.add_end(source_ids), watched)

    def limit_search(self, settings: SearchSettings, changes: Changes, nbest: int, longest: int) -> SearchSettings:
        """As a translator searches, and not further than can be shown. More `nbest` never change which is the best."""
        most = min(settings.max_length, longest, room(changes.positions, self.engine.model.config.max_length) - 1)
        kept = nbest if settings.sampling is not None else min(nbest, settings.beam)
        return settings.changed(max_length=most, nbest=max(1, kept), suppress=(*settings.suppress, *self._never))

    def find(self, lit: IntervenedModel, asked: TargetRequest, settings: SearchSettings) -> TargetResult:
        if asked.target_ids is not None:
            return self._score_given(lit, asked, asked.target_ids, settings)
        record, request = Record(), self._request(asked, asked.prefix_ids)
        (outcome,) = search(OnHost(lit, self.engine.device), [request], settings, self.specials, record=record)
        _check(outcome)
        tree = beam_tree(record, 0, lambda number: self.target.vocabulary[number])
        return TargetResult(outcome.hypotheses, outcome.hypotheses[0].steps, tree)

    def _score_given(self, lit: IntervenedModel, asked: TargetRequest, target_ids: Sequence[int], settings: SearchSettings) -> TargetResult:
        """What a search that has no choice scores, piece by piece; of the end after them, what the forced pass says."""
        steps, request = len(target_ids) + 1, self._request(asked, target_ids)
        (outcome,) = search(OnHost(lit, self.engine.device), [request], SearchSettings(beam=1), self.specials, lengths=[steps])
        _check(outcome)
        whole = Hypothesis(list(target_ids), 0.0, [], "eos")
        own = self.log_probs(lit, asked.source_ids, whole)
        score = sum(own[self.given :]) / length_penalty(steps, settings)
        log_probs = [*outcome.hypotheses[0].log_probs[: len(target_ids)], own[-1]]
        return TargetResult([Hypothesis(whole.ids, score, log_probs, "eos")], len(target_ids))

    def _request(self, asked: TargetRequest, prefix: Sequence[int]) -> Request:
        return Request(asked.source_ids, prefix, given=self.given, is_over=asked.is_over)

    def sides(self, hypothesis: Hypothesis) -> tuple[list[int], list[int]]:
        """What the decoder reads and what it should predict; without the end if it never came."""
        outputs = [*hypothesis.ids, *([self.specials.end] if hypothesis.finish == "eos" else [])]
        return [self.specials.start, *outputs[:-1]], outputs

    def log_probs(self, lit: IntervenedModel, source_ids: Sequence[int], hypothesis: Hypothesis) -> list[float]:
        """Of its pieces, and of the end if it has one, by one pass."""
        inputs, outputs = self.sides(hypothesis)
        logits_TV, _ = run_forced(lit, self.specials.add_end(source_ids), inputs, ())
        log_probs_TV = torch.log_softmax(logits_TV, dim=-1, dtype=torch.float32)
        own_T1 = log_probs_TV.gather(1, torch.tensor(outputs, device=logits_TV.device)[:, None])
        return list(own_T1[:, 0].tolist())

    def text(self, hypothesis: Hypothesis) -> str:
        return self.target.decode([hypothesis.ids[self.given :]])[0]

    def guesses(self, found: TargetResult) -> list[Guess]:
        guesses = []
        for each in found.hypotheses:
            node = None if found.tree is None else found.tree.find(self.sides(each)[1])
            guesses.append(Guess(self.text(each), sum(each.log_probs[self.given :]), each.score, node))
        return guesses


def _check(outcome: Outcome) -> None:
    if outcome.is_late:
        raise too_late()
    if outcome.invalid_scores:
        raise no_numbers()


def too_late() -> DeadlineError:
    return DeadlineError("the trace was not made in time; give it more time, or a shorter sentence")


def no_numbers() -> ScoreError:
    return ScoreError(
        "the model's scores leave no translation: they are not numbers, or the search forbids all that is possible. None is made up; "
        "try it without changes and with the bundle's own search, else the weights are at fault"
    )
