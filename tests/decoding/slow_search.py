"""Slow searches in plain Python that say what the right answer is.

They are written from the definition, hypothesis by hypothesis, and share no code with the package.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from table_models import Prefix, TableModel

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Hypothesis, Outcome

LengthPenalty = Callable[[int], float]


def gnmt(alpha: float) -> LengthPenalty:
    return lambda n: ((5 + n) / 6) ** alpha


def power(alpha: float) -> LengthPenalty:
    return lambda n: n**alpha


def length_penalty(settings: SearchSettings) -> LengthPenalty:
    return (gnmt if settings.length_norm == "gnmt" else power)(settings.length_penalty)


@dataclass(frozen=True)
class Path:
    """A hypothesis of the slow searches, with the end piece if it ended."""

    pieces: Prefix
    log_probs: tuple[float, ...]

    @property
    def total(self) -> float:
        return math.fsum(self.log_probs)

    def longer(self, piece: int, log_prob: float) -> "Path":
        return Path((*self.pieces, piece), (*self.log_probs, log_prob))

    def score(self, penalty: LengthPenalty) -> float:
        return self.total / penalty(len(self.pieces))

    def as_hypothesis(self, end: int, penalty: LengthPenalty) -> Hypothesis:
        ended = self.pieces[-1:] == (end,)
        ids = list(self.pieces[:-1] if ended else self.pieces)
        return Hypothesis(ids, self.score(penalty), list(self.log_probs), "eos" if ended else "length")


def continuations(model: TableModel, number: int, path: Path, settings: SearchSettings, prefix: Sequence[int] = ()) -> Iterator[Path]:
    """All that may come next: no pad, start or suppressed piece, no early end, no n-gram again. Inside the prefix, only the prefix."""
    special = model.specials
    never = {special.pad, special.start, *settings.suppress}
    if special.unknown is not None and not settings.allow_unknown:
        never.add(special.unknown)
    if len(path.pieces) < settings.min_length:
        never.add(special.end)
    row = model.rows(number, path.pieces)
    if len(path.pieces) < len(prefix):
        piece = prefix[len(path.pieces)]
        yield path.longer(piece, float(row[piece]))
        return
    for piece, log_prob in enumerate(row.tolist()):
        if piece in never or log_prob == -math.inf:
            continue
        longer = path.longer(piece, log_prob)
        if not (settings.no_repeat_ngram and comes_again(longer.pieces, settings.no_repeat_ngram)):
            yield longer


def ngrams(pieces: Sequence[int], n: int) -> list[Prefix]:
    return [tuple(pieces[i : i + n]) for i in range(len(pieces) - n + 1)]


def repeats(pieces: Sequence[int], n: int) -> bool:
    return len(set(ngrams(pieces, n))) < len(ngrams(pieces, n))


def comes_again(pieces: Sequence[int], n: int) -> bool:
    """Is the newest n-gram there before? A beginning that was asked for may hold one twice."""
    return ngrams(pieces, n)[-1:] != [] and ngrams(pieces, n)[-1] in ngrams(pieces, n)[:-1]


def all_paths(model: TableModel, number: int, settings: SearchSettings, limit: int) -> list[Path]:
    """Every translation there is: ended, or cut after `limit` pieces."""
    done, alive = [], [Path((), ())]
    for _ in range(limit):
        longer = [longer for path in alive for longer in continuations(model, number, path, settings)]
        done += [path for path in longer if path.pieces[-1] == model.specials.end]
        alive = [path for path in longer if path.pieces[-1] != model.specials.end]
    return done + alive


def exhaustive(model: TableModel, number: int, settings: SearchSettings, penalty: LengthPenalty | None = None) -> list[Hypothesis]:
    """The oracle: every translation, best first. `penalty` replaces the settings' own."""
    penalty = penalty or length_penalty(settings)
    paths = all_paths(model, number, settings, settings.limit(1))
    return ranked([path.as_hypothesis(model.specials.end, penalty) for path in paths])


def reference_beam(
    model: TableModel,
    number: int,
    settings: SearchSettings,
    penalty: LengthPenalty | None = None,
    source_pieces: int = 1,
    prefix: Sequence[int] = (),
) -> list[Hypothesis]:
    """The beam of the settings, run without stopping early: `refilling_beam` with patience, else the shrinking one (Sutskever et al. 2014).

    Each step of that takes the best (W - finished) of all continuations; those that end are finished and keep their place.
    """
    penalty = penalty or length_penalty(settings)
    if settings.patience is not None and settings.beam > 1 and settings.groups == 1:
        paths = refilling_beam(model, number, settings, settings.limit(source_pieces), prefix)
        return ranked([path.as_hypothesis(model.specials.end, penalty) for path in paths])[: settings.nbest]
    finished: list[Path] = []
    alive = [Path((), ())]
    for _ in range(settings.limit(source_pieces)):
        longer = [longer for path in alive for longer in continuations(model, number, path, settings, prefix)]
        longer.sort(key=lambda path: -path.total)
        taken = longer[: settings.beam - len(finished)]
        finished += [path for path in taken if path.pieces[-1] == model.specials.end]
        alive = [path for path in taken if path.pieces[-1] != model.specials.end]
    hypotheses = [path.as_hypothesis(model.specials.end, penalty) for path in finished + alive]
    return ranked(hypotheses)[: settings.nbest]


def refilling_beam(model: TableModel, number: int, settings: SearchSettings, limit: int, prefix: Sequence[int]) -> list[Path]:
    """Those among the best W that end are finished, and the best W of the others go on, until W * patience are finished."""
    finished: list[Path] = []
    alive = [Path((), ())]
    for step in range(1, limit + 1):
        longer = [longer for path in alive for longer in continuations(model, number, path, settings, prefix)]
        longer.sort(key=lambda path: -path.total)
        ended = [path.pieces[-1] == model.specials.end for path in longer]
        top = longer[: settings.beam]
        finished += top if step == limit else [path for path, over in zip(top, ended, strict=False) if over]
        if len(finished) >= round(settings.beam * settings.patience):
            break
        alive = [path for path, over in zip(longer, ended, strict=True) if not over][: settings.beam]
    return finished


def ranked(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def forced_log_probs(model: TableModel, number: int, hypothesis: Hypothesis) -> list[float]:
    """What the model itself says of a hypothesis, piece by piece."""
    pieces = [*hypothesis.ids, *[model.specials.end] * (hypothesis.finish == "eos")]
    return [float(model.rows(number, tuple(pieces[:i]))[piece]) for i, piece in enumerate(pieces)]


def differences(found: Sequence[Hypothesis], wanted: Sequence[Hypothesis], within: float = 1e-5) -> list[str]:
    """What two n-best lists do not agree in, as sentences; empty when they are the same."""
    if len(found) != len(wanted):
        return [f"{len(found)} hypotheses, not {len(wanted)}"]
    said = []
    for place, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if (a.ids, a.finish) != (b.ids, b.finish):
            said.append(f"{place}: {a.ids} {a.finish} ({a.score:.6f}), not {b.ids} {b.finish} ({b.score:.6f})")
        elif not abs(a.score - b.score) <= within:
            said.append(f"{place}: score {a.score}, not {b.score}")
        elif not np.allclose(a.log_probs, b.log_probs, rtol=0, atol=within) or len(a.log_probs) != len(b.log_probs):
            said.append(f"{place}: log_probs {a.log_probs}, not {b.log_probs}")
    return said


def check_sound(model: TableModel, number: int, outcome: Outcome, settings: SearchSettings, limit: int) -> None:
    """What holds for every search: real pieces only, within the limit, the model's own scores, best first, all different."""
    banned = {model.specials.pad, model.specials.start, model.specials.end}
    assert len(outcome.hypotheses) <= settings.nbest
    for hypothesis in outcome.hypotheses:
        length = len(hypothesis.ids) + (hypothesis.finish == "eos")
        assert not banned.intersection(hypothesis.ids), hypothesis
        assert length == limit if hypothesis.finish == "length" else length <= limit, hypothesis
        assert np.allclose(hypothesis.log_probs, forced_log_probs(model, number, hypothesis), rtol=0, atol=1e-5)
        assert len(hypothesis.log_probs) == length
        if settings.coverage_penalty == 0:
            wanted = math.fsum(hypothesis.log_probs) / length_penalty(settings)(length)
            assert math.isclose(hypothesis.score, wanted, rel_tol=1e-6, abs_tol=1e-5)  # it is added up in float32
    if settings.sampling is None:
        scores = [hypothesis.score for hypothesis in outcome.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(h.ids) for h in outcome.hypotheses}) == len(outcome.hypotheses)
