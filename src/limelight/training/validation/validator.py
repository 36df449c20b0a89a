"""A validator scores the translator that a person would get at this moment, on text that it has not seen."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from limelight.bundle import BundleSettings, BundleTags
from limelight.corpus.config import PrepareSettings
from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials
from limelight.engines.torch import TorchEngine
from limelight.errors import DataError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.metrics.metrics import count
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tags import language_piece, name_piece
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.training.config import ValidationSettings
from limelight.training.events import DirectionScore, Sample
from limelight.training.processes.stop_signals import Stopped
from limelight.training.processes.world import World
from limelight.training.recipe.augmentation import derive_learnt
from limelight.training.step.gradients import batch_of
from limelight.training.step.sharding import whole
from limelight.training.validation.direction_sets import DirectionSet, sample_directions
from limelight.translator import Translator

METRICS = EvaluateSettings(metrics=("bleu", "chrf"), resamples=None)
CHANCE = {"chrf": 10.0, "bleu": 1.0}  # below it a score is chance: a model that always says the same may have it
TIE, WORST = 1e-6, 1e3  # what a nat counts among equal scores; the loss of numbers that are none


@dataclass(frozen=True)
class ValidationResult:
    nll: float  # per target piece, in nats
    bleu: float
    chrf: float
    samples: tuple[Sample, ...]
    directions: tuple[DirectionScore, ...] = ()  # of several; the scores are their mean

    def score(self, metric: str) -> float:
        return self.chrf if metric == "chrf" else self.bleu

    def rank(self, metric: str) -> float:
        """The score; of equal ones, and where it is chance, the lower loss is better, by a thousandth of a nat at least."""
        return max(self.score(metric), CHANCE[metric]) - TIE * (round(self.nll, 3) if math.isfinite(self.nll) else WORST)


class Validator:
    """A validator keeps a twin of the model in float32, so that the one in training is not touched."""

    def __init__(
        self,
        model: Transformer,
        prepared: PreparedCorpus,
        tokenizers: tuple[Tokenizer, Tokenizer],
        settings: ValidationSettings,
        augment: AugmentSettings | None = None,
        world: World = World(),  # noqa: B008
    ) -> None:
        """`augment`: how the text is changed while it is fed, and so what the model is taught beside translating."""
        self.settings, self.prepared, self.world = settings, prepared, world
        pairs = prepared.validation_pairs()
        longest = model.config.max_length - 1
        # Here as in training, pairs that the model has no positions for are left out.
        self._batches = BatchSettings(budget=max(8192, 2 * longest + 2), longest=longest)
        around, lengths = prepared.manifest.marks.around, pairs.lengths(np.arange(pairs.rows, dtype=np.int64))
        if not self._batches.fits(lengths[0] + around[0], lengths[1] + around[1]).any():
            raise DataError(
                f"all {pairs.rows:,} validation pairs of {prepared.folder} are longer than model.max_length={model.config.max_length} "
                "pieces; raise it, or give shorter pairs with --valid"
            )
        self._sets = sample_directions(pairs, settings.sentences)
        self.sources = [text for each in self._sets for text in each.sources]
        self.references = [text for each in self._sets for text in each.references]
        self._samples = _sample_sets(self._sets, settings.samples)
        self.device = next(model.parameters()).device
        self._twin = _twin(model.config, self.device)
        self._tokenizers = tokenizers
        self.search = SearchSettings(beam=settings.beam)
        self._bundle = build_bundle_settings(prepared, model.config, augment)
        config, unknown = model.config, tokenizers[1].unknown
        self._specials = Specials(config.pad_token, unknown, config.start_token, config.end_token, self._bundle.source_ends)

    @property
    def usual(self) -> DirectionSet:
        """The sentences of the first direction, in which a translator goes unless it is asked."""
        return self._sets[0]

    @property
    def weights(self) -> dict[str, Tensor]:
        """Those that were validated last, whole and in float32."""
        return dict(self._twin.named_parameters())

    @torch.no_grad()  # else the twin would hang on to whatever the weights were computed from
    def take(self, weights: Mapping[str, Tensor]) -> None:
        for name, weight in self._twin.named_parameters():
            weight.copy_(whole(weights[name]))

    def validate(
        self,
        weights: Mapping[str, Tensor],
        threads: int,
        stoppable: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> ValidationResult:
        """`threads` of a CPU each translate a batch of their own; several processes each translate a part of the sentences.

        Inside `stoppable`, a signal raises `Stopped`. If it did so in one of the processes, it is raised in all of them.
        """
        self.take(weights)
        try:
            with stoppable():
                mine = self._part(threads)
        except Stopped as stopped:
            mine = {"stopped": stopped.reason}
        parts = self.world.gather(mine)
        for part in parts:
            if "stopped" in part:
                raise Stopped(part["stopped"])
        return self._merge_parts(parts)

    def _part(self, threads: int) -> dict[str, Any]:
        nll, pieces = self._nll()
        before = torch.get_num_threads()
        workers = 1
        if self.device.type == "cpu":
            workers = threads
            torch.set_num_threads(1)
        try:
            engine = TorchEngine(self._twin, self._specials, workers=workers)
            with closing(Translator(engine, self._bundle, *self._tokenizers)) as translator:
                made = self._translate(translator)
        finally:
            torch.set_num_threads(before)
        return {"nll": nll, "pieces": pieces, "made": made}

    def _translate(self, translator: Translator) -> list[tuple[str, float]]:
        """This process's part of the sentences, each in its direction and with its tags, and how sure the model was."""
        told = [(each.direction, names) for each in self._sets for names in each.names][self.world.rank :: self.world.size]
        mine = self.sources[self.world.rank :: self.world.size]
        made: list[tuple[str, float]] = [("", 0.0)] * len(mine)
        for direction, names in dict.fromkeys(told):
            places = [place for place, asked in enumerate(told) if asked == (direction, names)]
            view = translator if self._bundle.tags is None else translator.towards(direction[1], direction[0], names)
            # Without guards: a second search would hide that a model loops.
            found = view.translate([mine[place] for place in places], self.search, guards=False)
            for place, each in zip(places, found, strict=True):
                made[place] = each.text, each.confidence
        return made

    def _merge_parts(self, parts: Sequence[dict[str, Any]]) -> ValidationResult:
        nll = sum(part["nll"] for part in parts) / sum(part["pieces"] for part in parts)
        made: list[tuple[str, float]] = [("", 0.0)] * len(self.sources)
        for rank, part in enumerate(parts):
            made[rank :: self.world.size] = part["made"]
        scores, begin = [], 0
        for each in self._sets:
            texts, begin = [text for text, _ in made[begin : begin + len(each.sources)]], begin + len(each.sources)
            bleu, chrf = (count(name, texts, [each.references], METRICS, each.direction[1]).value for name in METRICS.metrics)
            scores.append(DirectionScore(each.title, bleu, chrf))
        samples = tuple(Sample(self.sources[i], self.references[i], *made[i]) for i in self._samples)
        if len(scores) == 1:
            return ValidationResult(nll, bleu, chrf, samples)
        bleu, chrf = mean(score.bleu for score in scores), mean(score.chrf for score in scores)
        return ValidationResult(nll, bleu, chrf, samples, tuple(scores))

    def translator(self, step: int) -> Translator:
        """The translator of the weights validated last, which are those of this step: to be looked into, until the next validation."""
        settings = self._bundle.changed(trained_on={"steps": step})
        return Translator(TorchEngine(self._twin, self._specials), settings, *self._tokenizers)

    @torch.inference_mode()
    def _nll(self) -> tuple[float, int]:
        """Of about as many pairs as are translated, the same ones each time, and of how many pieces; this process's part of each batch.
        Pairs longer than the model's positions are left out."""
        total, pieces, pairs = 0.0, 0, 0
        rank, size = self.world.rank, self.world.size
        with Loader(self.prepared, self._batches, rank=rank, world=size, split="valid") as loader:
            for share in loader.epoch(0):
                if len(share.source):
                    loss = self._twin.loss(batch_of(share, self.device, self._twin.config.pad_token))
                    total += float(loss.nll)
                    pieces += int(loss.pieces)
                pairs += share.rows
                if pairs >= self.settings.sentences:
                    break
        return total, pieces


def _twin(config: ModelConfig, device: torch.device) -> Transformer:
    """Its weights do not matter: it gets those that are to be validated. Nor may it use up random numbers of the run."""
    with torch.random.fork_rng(devices=[]):
        return Transformer(config).to(device).eval().requires_grad_(False)


def build_bundle_settings(prepared: PreparedCorpus, model: ModelConfig, augment: AugmentSettings | None) -> BundleSettings:
    """How text of this corpus is translated by a model that learns from it."""
    marks = prepared.manifest.marks
    return BundleSettings(
        tags=build_tags(prepared),
        languages=prepared.manifest.languages,
        model=model,
        normalization=PrepareSettings(**prepared.manifest.settings).normalize,
        source_begin=marks.source_begin,
        target_begin=marks.target_begin,
        source_ends=marks.source_ends,
        learnt=derive_learnt(prepared, augment),
    )


def build_tags(prepared: PreparedCorpus) -> BundleTags | None:
    tags = prepared.manifest.tag_set
    if not tags.pieces:
        return None
    find = prepared.tokenizers()[0].id_of_control
    return BundleTags(
        target={code: find(language_piece(code)) for code in tags.languages},
        names={name: find(name_piece(name)) for name in tags.names},
        directions=prepared.manifest.directions,
    )


def _sample_sets(sets: Sequence[DirectionSet], most: int) -> list[int]:
    chosen: list[int] = []
    first = 0
    for each in sets[:most]:
        chosen += [first + place for place in sample_by_length(each.sources, max(1, most // len(sets)))]
        first += len(each.sources)
    return chosen


def sample_by_length(sources: Sequence[str], most: int) -> list[int]:
    """Numbers of sentences to watch: short, middle and long ones, the very shortest and longest left out."""
    order = sorted(range(len(sources)), key=lambda i: (len(sources[i]), i))
    middle = order[len(order) // 10 : len(order) - len(order) // 10] or order
    return [middle[i] for i in np.unique(np.linspace(0, len(middle) - 1, min(most, len(middle))).astype(int))] if most else []
