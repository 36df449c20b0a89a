"""A `Tracer` searches a sentence as always, then sees every stage of what was found in one more pass."""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np

from limelight.bundle import BundleSettings
from limelight.decoding.config import SearchSettings
from limelight.decoding.risk import pairwise_chrf
from limelight.decoding.steps import Hypothesis, IsOver, never
from limelight.engines.torch import TorchEngine
from limelight.errors import ConfigError, DataError, LengthError
from limelight.inspection.analysis.alignment import align, best_head
from limelight.inspection.analysis.head_stats import coverage, head_stats
from limelight.inspection.head_names import KINDS, Kind, attention_prefix, layers_of, resolve_gates, stage_names
from limelight.inspection.interventions import Changes, Pin
from limelight.inspection.trace import (
    LONGEST,
    Align,
    Array,
    ModelFacts,
    Side,
    Stages,
    TargetSide,
    TargetToken,
    Verdict,
)
from limelight.inspection.tracing.forced_translation import ForcedTranslation
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.inspection.tracing.relit_model import IntervenedModel, check_room
from limelight.inspection.tracing.stages import run_forced
from limelight.inspection.tracing.target import Finder, TargetRequest, TargetResult, no_numbers, too_late
from limelight.inspection.tracing.tokens import silent_of, source_tokens, target_tokens
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tokenizer import Tokenizer

AGREE = 1e-3  # of log-probabilities
SAMPLED = 256  # numbers of each weight, for its fingerprint
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Pass:
    source: list[int]
    inputs: list[int]
    tokens: list[TargetToken]
    shown: Stages


class Tracer:
    """A tracer may be used by several threads: each trace has a twin of the model for itself."""

    def __init__(self, engine: TorchEngine, settings: BundleSettings, source: Tokenizer, target: Tokenizer) -> None:
        self.engine, self.settings, self.source, self.target = engine, settings, source, target
        self.finder = Finder(engine, settings, target)
        self._silent = silent_of(source), silent_of(target)

    def trace(
        self,
        text: str,
        *,
        source_ids: Sequence[int],
        target_ids: Sequence[int] | None = None,
        prefix_ids: Sequence[int] = (),
        search: SearchSettings | None = None,
        changes: Changes | None = None,
        topk: int = 8,
        nbest: int = 4,
        stages: bool = False,
        longest: int | None = None,
        is_over: IsOver = never,
    ) -> LiveTrace:
        """The ids as in `TargetRequest`. `search` is the bundle's own unless given. `stages`: keep all of them, not only attention."""
        asked = TargetRequest(text, source_ids, target_ids, prefix_ids, is_over)
        changes, settings = changes or Changes(), self.settings.search if search is None else search
        longest = LONGEST if longest is None else longest
        self._check(asked, settings, changes, topk, longest)
        finder, clock, config = self.finder, _Clock(is_over), self.engine.model.config
        settings = finder.limit_search(settings, changes, nbest, longest)
        lit = finder.intervene(changes, source_ids, settings)
        found = clock.measure("search", lambda: finder.find(lit, asked, settings))
        names = stage_names(config.encoder_layers, config.decoder_layers)
        wanted = names if stages else [name for name in names if name.endswith(".attn")]
        seen = clock.measure("trace", lambda: self._pass(lit, asked, found.hypotheses[0], wanted, topk))
        base = None
        if changes.any():
            base = clock.measure("baseline", lambda: self._verdict(lit, asked, settings, found.hypotheses[0]))
        kept = seen.shown if stages else {}
        return replace(self._assemble(asked, lit, found, seen), baseline=base, timing=clock.milliseconds, kept=kept)

    @staticmethod
    def join_changes(
        gates: Mapping[str, float] | None,
        gate_mode: Literal["zero", "mean"],
        mask_source: Sequence[int],
        pins: Sequence[Pin],
        positions: str,
        temperature: float,
        whole: Changes | None,
    ) -> Changes:
        loose = Changes(
            gates=dict(gates or {}),
            gate_mode=gate_mode,
            mask_source=tuple(mask_source),
            pins=tuple(pins),
            positions=positions,
            attention_temperature=temperature,
        )
        if whole is not None and loose != Changes():
            raise ConfigError("changes were given twice, as `changes` and one by one; put all of them into `changes`")
        return whole or loose

    def _check(self, asked: TargetRequest, settings: SearchSettings, changes: Changes, topk: int, longest: int) -> None:
        if not asked.source_ids:
            raise DataError("there is nothing to translate, and nothing to look at; give a text that is not blank")
        if topk < 1:
            raise ConfigError(f"topk={topk} shows no piece; give 1 or more")
        if settings.mbr_samples is not None:
            raise ConfigError("mbr_samples chooses among many searches, and a trace shows one; leave it out")
        room = self.engine.model.config.max_length
        for what, ids, most in (
            ("source", asked.source_ids, self.engine.longest_source),
            ("target", asked.target_ids or (), room - 1),
            ("prefix", asked.prefix_ids, room - 2),
        ):
            if len(ids) > min(longest, most):
                limit = f"the model takes {most}" if most < longest else f"a trace shows at most {longest}"
                raise LengthError(f"the {what} has {len(ids)} pieces, and {limit}; shorten it, or trace its sentences")
        check_room(changes.positions, len(self.engine.specials.add_end(asked.source_ids)), room, "source")
        for what, given in (("target", asked.target_ids), ("prefix", asked.prefix_ids)):
            if given:
                check_room(changes.positions, len(given) + 1, room, what)

    def _pass(self, lit: IntervenedModel, asked: TargetRequest, best: Hypothesis, wanted: Sequence[str], topk: int) -> _Pass:
        source, (inputs, outputs) = self.engine.specials.add_end(asked.source_ids), self.finder.sides(best)
        logits_TV, shown = run_forced(lit, source, inputs, wanted)
        tokens = target_tokens(logits_TV, outputs, topk, self.target, self._silent[1])
        if not all(math.isfinite(token.logp) for token in tokens):
            raise no_numbers()
        return _Pass(source, inputs, tokens, shown)

    def _verdict(self, lit: IntervenedModel, asked: TargetRequest, settings: SearchSettings, now: Hypothesis) -> Verdict:
        """Against what is translated without the changes; a target that was given is the same without them."""
        finder = self.finder
        plain = finder.intervene(Changes(), asked.source_ids, settings)
        before = now if asked.target_ids is not None else finder.find(plain, asked, settings).hypotheses[0]
        without, under = (finder.log_probs(each, asked.source_ids, before) for each in (plain, lit))
        deltas = [changed - own for own, changed in zip(without, under, strict=True)]
        text, given = (
            finder.text(before),
            finder.given,
        )  # the first `given` pieces were never a choice and count nothing
        chrf, pieces = likeness(text, finder.text(now)), self.target.pieces(finder.sides(before)[1])
        return Verdict(text, sum(without[given:]), sum(deltas[given:]), deltas, chrf, pieces)

    def _assemble(self, asked: TargetRequest, lit: IntervenedModel, found: TargetResult, seen: _Pass) -> LiveTrace:
        finder, config, best = self.finder, self.engine.model.config, found.hypotheses[0]
        attention = _by_kind(seen.shown, config)
        side = Side(asked.text, source_tokens(seen.source, asked.text, self.source, self._silent[0]))
        links, covered = self._align(attention["cross"], side, seen.tokens, lit.changes)
        # Of the log-probabilities by the search and by the pass, over what both of them scored.
        both = slice(finder.given, found.compared)
        difference = abs(sum(token.logp for token in seen.tokens[both]) - sum(best.log_probs[both]))
        outputs = [token.id for token in seen.tokens]
        forced = ForcedTranslation(lit, seen.source, seen.inputs, outputs, finder.given, self.target, asked.is_over)
        return LiveTrace(
            model=facts_of(self.engine.model, self.settings),
            source=side,
            target=TargetSide(
                text=finder.text(best),
                finish=best.finish,
                logp=sum(token.logp for token in seen.tokens[finder.given :]),
                score=best.score,
                inputs=self.target.pieces(seen.inputs),
                tokens=seen.tokens,
            ),
            attention=attention,
            align=links,
            heads=head_stats(attention, resolve_gates(lit.changes.gates, config), self.engine.specials.source_ends),
            **covered,
            verified=difference <= AGREE,
            difference=difference,
            changes=lit.changes,
            nbest=finder.guesses(found),
            beam=found.tree,
            remake=forced.remake,
            forced=forced,
        )

    def _align(self, cross_LHTS: Array, side: Side, tokens: Sequence[TargetToken], changes: Changes) -> tuple[Align, dict[str, Any]]:
        source_words = [None if at in changes.mask_source else token.word for at, token in enumerate(side.tokens)]
        target_words = [None if at < self.finder.given else token.word for at, token in enumerate(tokens)]
        rows, columns = ([at for at, word in enumerate(w) if word is not None] for w in (target_words, source_words))
        head = best_head(cross_LHTS, rows, columns, self.settings.alignment or ())
        looked_TS = cross_LHTS[head.layer, head.head]
        links = align(looked_TS, head, source_words, target_words, self.engine.specials.source_ends)
        return links, coverage(looked_TS, rows, columns)


def _by_kind(shown: Stages, config: ModelConfig) -> dict[Kind, Array]:
    names = {kind: [f"{attention_prefix(kind, i)}.attn" for i in range(layers_of(kind, config))] for kind in KINDS}
    return {kind: np.stack([shown[name] for name in some]).astype(np.float32) for kind, some in names.items()}


class _Clock:
    def __init__(self, is_over: IsOver) -> None:
        self.is_over = is_over
        self.milliseconds: dict[str, float] = {}

    def measure(self, what: str, work: Callable[[], Result]) -> Result:
        if self.is_over():
            raise too_late()
        began = time.perf_counter()
        result = work()
        self.milliseconds[what] = (time.perf_counter() - began) * 1000
        return result


def likeness(one: str, other: str) -> float:
    """chrF of the second against the first, 0 to 100; 100 also for two empty texts."""
    return 100.0 if one == other else float(pairwise_chrf([other, one])[0, 1])


def facts_of(model: Transformer, settings: BundleSettings) -> ModelFacts:
    c, (source, target) = model.config, settings.languages
    steps = (settings.trained_on or {}).get("steps")
    return ModelFacts(
        id=f"{source}-{target}",
        step=steps if isinstance(steps, int) else None,
        sha=fingerprint(model),
        enc_layers=c.encoder_layers,
        dec_layers=c.decoder_layers,
        heads=c.num_heads,
        d_model=c.d_model,
        d_ff=c.d_ff,
        norm=c.norm_order,
        positions=c.positions,
        source=source,
        target=target,
        vocab=c.vocab_size,
    )


def fingerprint(model: Transformer) -> str:
    """SHA-256 of some numbers of every weight, 12 hexadecimal digits: another step of a training has another one. All numbers of a
    large model would take longer than the trace."""
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        flat = weight.detach().reshape(-1)
        some = flat[:: max(1, len(flat) // SAMPLED)].float().cpu().contiguous()
        digest.update(f"{name}{tuple(weight.shape)}".encode() + some.numpy().tobytes())
    return digest.hexdigest()[:12]
