"""The CTranslate2 engine is several times as fast as torch on a CPU, with 8-bit weights if wanted. What it cannot do, it says.

It searches as `decoding.beam` does with patience. Some things it does otherwise, and here is what is done about them. It forbids pieces
before its softmax, which makes all others more probable: so nothing is forbidden until a translation has such a piece, which is then
searched and scored again. It adds up no probabilities of a prefix: those translations are scored again. A batch has one limit: a
translation beyond its own is searched again, together with those of the same limit. It ranks what has ended by a power of the length: see
`_power_of_length`.

A batch that runs cannot be stopped: its time is bounded by its size, and what is over is not searched again.
"""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2

from limelight.decoding.config import SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.steps import LATE, Finish, Hypothesis, Outcome, Request, Specials, room_for
from limelight.engines.engine import Matrix
from limelight.errors import ModelFileError

# Of a piece of the best translation, on average: e^-50 where the best of a million pieces has e^-14.
LEAST_LOG_PROB = -50.0
GNMT_AS_POWER = 0.7  # n / (5 + n) at 12 pieces: ((5 + n) / 6)^alpha grows there as n^(0.7 alpha) does


class CTranslate2Engine:
    """`folder` holds the engine's own files, verified before. `pieces` are the source's and the target's, by id."""

    name = "ctranslate2"
    batch_pieces = 512  # 1,000 captions on two cores: 2.9 s in int8, 5.1 s with 4,096 (docs/experiments.md)

    def __init__(
        self,
        folder: Path,
        pieces: tuple[Sequence[str], Sequence[str]],
        specials: Specials,
        longest: int,
        device: str = "cpu",
        compute: str = "default",
        workers: int = 1,
        device_index: int = 0,
    ) -> None:
        ctranslate2.set_log_level(logging.ERROR)  # what it converts numbers to is in `numbers`
        try:
            # One thread for each batch: two wait for each other in every small operation.
            self.translator = ctranslate2.Translator(
                str(folder),
                device,
                device_index=device_index,
                compute_type=compute,
                inter_threads=workers,
                intra_threads=1,
                max_queued_batches=-1,
            )
        except (RuntimeError, ValueError) as error:
            raise ModelFileError(f"{folder} cannot be run by CTranslate2 ({error}); export the bundle again") from None
        self.specials, self.longest_source, self.workers = specials, longest, workers
        self.source, self.target = pieces
        self.number = {piece: number for number, piece in enumerate(self.target)}
        self._last: tuple[SearchSettings | None, frozenset[int]] = None, frozenset()

    @property
    def numbers(self) -> str:
        """What it computes in, such as int8_float32."""
        return str(self.translator.compute_type)

    def lacks(self, settings: SearchSettings, requests: Sequence[Request]) -> list[str]:
        wanted = {
            "phrases that must occur": any(request.phrases for request in requests),
            "pieces that must occur once": any(request.once for request in requests),
            "coverage_penalty": settings.coverage_penalty > 0,
            "sampling with a seed": settings.sampling is not None,
            f"groups={settings.groups} (a diverse beam)": settings.groups > 1,
            "patience=None (a beam in which ended hypotheses keep their place)": settings.patience is None and settings.beam > 1,
        }
        return [what for what, asked in wanted.items() if asked]

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        limits = [max(min(settings.limit(len(r.source)), self.longest_source), room_for(r)) for r in requests]
        never = self._never(settings)
        found = self._search(requests, settings, max(limits, default=0), frozenset())
        again: dict[tuple[int, frozenset[int]], list[int]] = {}  # by what the engine takes for a whole batch
        for at, limit in enumerate(limits):
            if requests[at].is_over():
                found[at] = LATE
                continue
            begin = len(requests[at].prefix)  # which may have what is forbidden after it, such as a language
            own = never.difference(requests[at].allowed) if requests[at].allowed else never
            if not all(own.isdisjoint(hypothesis.ids[begin:]) for hypothesis in found[at].hypotheses):
                again.setdefault((limit, own), []).append(at)
            elif limit < max(limits) and any(hypothesis.steps > limit for hypothesis in found[at].hypotheses):
                again.setdefault((limit, frozenset()), []).append(at)
        for (limit, own), group in again.items():
            places = [at for at in group if not requests[at].is_over()]  # time may have passed with the group before
            outcomes = self._search([requests[at] for at in places], settings, limit, own) if places else []
            known = dict(zip(places, outcomes, strict=True))
            for at in group:
                found[at] = known.get(at, LATE)
        return [Outcome(outcome.hypotheses[: settings.nbest], outcome.is_late) for outcome in found]

    def _search(self, requests: Sequence[Request], settings: SearchSettings, limit: int, never: frozenset[int]) -> list[Outcome]:
        """All hypotheses of the beam: a worse one may say that the search was not the one asked for."""
        prefixed = any(request.prefix for request in requests)
        # What was given has no log-probability here either.
        asked = any(len(request.prefix) > request.given for request in requests)
        results = self.translator.translate_batch(
            [self.spell(self.source, request.source) for request in requests],
            target_prefix=[self.spell(self.target, request.prefix) for request in requests] if prefixed else None,
            beam_size=settings.beam,
            # Ranked again here: the engine knows only powers of the length, and nothing of the prefix's probability.
            num_hypotheses=settings.beam,
            patience=settings.patience or 1.0,
            length_penalty=_power_of_length(settings),
            no_repeat_ngram_size=settings.no_repeat_ngram or 0,
            suppress_sequences=[[self.target[number]] for number in never],
            max_input_length=0,
            max_decoding_length=limit,
            min_decoding_length=min(settings.min_length, limit),
            return_scores=True,
            return_end_token=True,
        )
        found = [self._hypotheses(result, settings) for result in results]
        if asked or never or settings.no_repeat_ngram or settings.min_length:
            self._score_again(requests, found, settings)
        return [Outcome(sorted(some, key=lambda h: -h.score)) for some in found]

    def _never(self, settings: SearchSettings) -> frozenset[int]:
        """As `decoding.rules`: what no translation has. Nearly always the settings are those of the last time."""
        known, never = self._last
        if known is settings:
            return never
        unknown = [] if settings.allow_unknown or self.specials.unknown is None else [self.specials.unknown]
        never = frozenset({*settings.suppress, self.specials.pad, self.specials.start, *unknown} - {self.specials.end})
        self._last = settings, never
        return never

    def _hypotheses(self, result: Any, settings: SearchSettings) -> list[Hypothesis]:
        """None where scores are no numbers, or far below what the best of so many pieces can have: the engine goes on all the same."""
        found = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            ids, steps = [self.number[piece] for piece in pieces], max(len(pieces), 1)
            ended = ids[-1:] == [self.specials.end]
            total = score * steps ** _power_of_length(settings)
            finish: Finish = "eos" if ended else "length"
            score = total / length_penalty(steps, settings)
            found.append(Hypothesis(ids[:-1] if ended else ids, score, [], finish, total))
        broken = any(not math.isfinite(h.score) or h.mean_log_prob < LEAST_LOG_PROB for h in found[:1])
        return [] if broken else found

    def _score_again(self, requests: Sequence[Request], found: list[list[Hypothesis]], settings: SearchSettings) -> None:
        pairs = [(request, h) for request, some in zip(requests, found, strict=True) for h in some]
        scores = iter(self.score([request.source for request, _ in pairs], [h.ids for _, h in pairs]))
        for at, (request, some) in enumerate(zip(requests, found, strict=True)):
            again = []
            for h in some:
                log_probs = [0.0] * request.given + next(scores)[request.given : h.steps]
                total = math.fsum(log_probs)
                score = total / length_penalty(max(h.steps, 1), settings)
                again.append(Hypothesis(h.ids, score, log_probs, h.finish, total))
            found[at] = again

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        results = self.translator.score_batch(
            [self.spell(self.source, ids) for ids in sources],
            [self.spell(self.target, ids) for ids in targets],
            max_input_length=0,
        )
        return [list(result.log_probs) for result in results]

    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        """The translation is forced as a prefix; the engine tells where each step of it looked, but for the source's end."""
        import numpy as np

        found: list[Matrix] = [np.empty(0, np.float32)] * len(sources)
        # A batch ends after one number of steps; beyond its own a sentence would go on.
        for length in sorted({len(ids) for ids in targets}):
            rows = [at for at, ids in enumerate(targets) if len(ids) == length]
            results = self.translator.translate_batch(
                [self.spell(self.source, sources[at]) for at in rows],
                target_prefix=[self.spell(self.target, targets[at]) for at in rows],
                beam_size=1,
                max_input_length=0,
                max_decoding_length=length + 1,
                min_decoding_length=length + 1,
                return_attention=True,
                return_end_token=True,
            )
            for at, result in zip(rows, results, strict=True):
                looked = np.array(result.attention[0], np.float32)[: length + 1]
                end = np.clip(1.0 - looked.sum(axis=1, keepdims=True), 0.0, 1.0)
                found[at] = np.concatenate([looked, end], axis=1)
        return found

    def close(self) -> None:
        self.translator.unload_model()

    @staticmethod
    def spell(vocabulary: Sequence[str], ids: Sequence[int]) -> list[str]:
        return [vocabulary[number] for number in ids]


def computes_in(device: str) -> set[str]:
    """The kinds of numbers that CTranslate2 has for a device on this machine; none where it does not run."""
    try:
        return set(ctranslate2.get_supported_compute_types(device)) if device in ("cpu", "cuda") else set()
    except (RuntimeError, ValueError):  # built without it, or its libraries are missing
        return set()


def count_accelerators() -> int:
    """GPUs that CTranslate2 sees."""
    try:
        return int(ctranslate2.get_cuda_device_count())
    except (RuntimeError, ValueError):  # its libraries are missing
        return 0


def _power_of_length(settings: SearchSettings) -> float:
    """The power by which the engine ranks what has ended, most like our own ranking. Of more than a beam of them it drops the last: with
    the power that is asked for, gnmt's best, for powers of the length prefer longer texts."""
    return GNMT_AS_POWER * settings.length_penalty if settings.length_norm == "gnmt" else settings.length_penalty
