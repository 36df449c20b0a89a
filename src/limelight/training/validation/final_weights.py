"""The final weights of a run are chosen, bundled, exported, and their confidence is calibrated."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from torch import Tensor

from limelight import bundle
from limelight.bundle.card import VERDICT
from limelight.bundle.confidence import Calibration
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.tokenizers import read_vocabulary
from limelight.decoding.config import SearchSettings
from limelight.evaluation.confidence.calibration import ENOUGH, collect, fit_calibration
from limelight.evaluation.config import InferenceOptions, Speed
from limelight.evaluation.verdict import QualityVerdict
from limelight.interop.ctranslate2.export import try_export
from limelight.interop.parity import PROBES
from limelight.training.checkpoints.best_weights import BestWeights
from limelight.training.config import Inherited, Recipe
from limelight.training.recipe.monolingual import describe_synthetic
from limelight.training.run_folder import BUNDLE
from limelight.training.step.budget_clock import BudgetClock
from limelight.training.step.guided_alignment import find_guided_head
from limelight.training.validation.direction_sets import count_test, sample_directions, translate_direction
from limelight.training.validation.validator import ValidationResult, Validator, build_bundle_settings

AT_THE_END = "weights at the end"

BEAM_COST = 3.0  # of a sentence as a user would have it, in sentences of a validation: a beam, and the guards
LEAST_SCORED = 50  # sentences, however late it is
BY_CHANCE = 0.3  # points by which the validation set tells two means of one run apart no better than a coin
PENALTIES = (0.6, 1.0, 1.4, 1.8)  # the first is the paper's (6.1)
SHARE_OF_CONFIDENCE = 0.4  # of the time left, for its calibration; the rest is for the test set


class RemainingBudget:
    def __init__(self, pace: BudgetClock, sentences: int) -> None:
        self.pace = pace
        self.each = BEAM_COST * pace.validation / max(1, sentences)  # seconds of one

    @property
    def seconds(self) -> float:
        """Before the report has to be written; without a budget as many as it takes."""
        return math.inf if self.pace.budget is None else self.pace.budget - self.pace.elapsed - self.pace.report()

    def update_speed(self, speed: Speed) -> None:
        self.each = speed.seconds / max(1, speed.sentences)

    def sentences(self, rows: int, share: float = 1.0) -> int:
        room = share * self.seconds
        return rows if self.each * rows <= room else max(0, int(room / self.each))


def validations_to_end(prepared: PreparedCorpus, sentences: int, searches: bool = False) -> float:
    """How many validations of `sentences` sentences the end takes as long as: two to compare weights, confidence, test set, export, and the
    choice of a search, where there is one."""
    valid = prepared.split("valid").fed
    rows = min(ENOUGH, valid) + count_test(prepared) + min(PROBES, valid)
    return 2 + BEAM_COST * (rows / max(1, sentences) + searches * len(PENALTIES))


@dataclasses.dataclass(frozen=True)
class Winner:
    name: str
    weights: Mapping[str, Tensor]
    compared: dict[str, float]  # what was tried, and its validation score


def choose_winner(
    last: Mapping[str, Tensor],
    step_of_last: int,
    kept: BestWeights,
    validator: Validator,
    metric: str,
    threads: int,
    watch: Callable[[int, int], None] = lambda done, total: None,
    known: ValidationResult | None = None,
    affordable: Callable[[], bool] = lambda: True,
) -> Winner:
    """Those at the end (averaged, where that is wanted), the best validation, or the mean of the best: whichever translates best. The
    mean of the latest, where these are kept, is taken unless another is better by more than chance: it is the best guess beforehand.

    `known` is what was found of those at the end, when the last validation was of them. Others are tried while that is `affordable`.
    """
    candidates: dict[str, Callable[[], Mapping[str, Tensor]]] = {AT_THE_END: lambda: last}
    best = kept.best
    if best is not None and best[0] != step_of_last:
        step = best[0]
        candidates[f"best validation (step {step:,})"] = lambda: kept.load(step)
    count, kind = len(kept.scores()), "latest" if kept.latest else "best"
    while count > 1:  # of ten also five and two
        candidates[f"mean of the {count} {kind}"] = partial(kept.mean, count)
        count, kind = count // 2, "best"
    found: dict[str, ValidationResult] = {}
    for name, get in candidates.items():
        watch(len(found), len(candidates))
        if name == AT_THE_END and known is not None:
            found[name] = known
        elif not found or affordable():
            found[name] = validator.validate(get(), threads)
    watch(len(found), len(candidates))
    name = max(found, key=lambda each: found[each].rank(metric))
    mean = f"mean of the {len(kept.scores())} latest"
    if kept.latest and mean in found and found[mean].score(metric) >= found[name].score(metric) - BY_CHANCE:
        name = mean
    return Winner(name, candidates[name](), {name: each.score(metric) for name, each in found.items()})


def choose_search(
    won: Winner, recipe: Recipe, validator: Validator, threads: int, remaining: RemainingBudget, watch: Callable[[int, int], None]
) -> tuple[SearchSettings, dict[str, float]]:
    """The search of the bundle, and what was tried with its validation scores: the length penalty that translates best with the paper's
    beam. Of equals the first stays, the paper's; and so does a search that a translator to go on from brought along, if it is no parent."""
    usual, before = _read_inherited(recipe).search, validator.search
    if not recipe.validation.search or (recipe.fine_tuning is not None and recipe.fine_tuning.keeps_search):
        return usual, {}
    compared: dict[SearchSettings, float] = {}
    try:
        for number, penalty in enumerate(PENALTIES):
            watch(number, len(PENALTIES))
            validator.search = usual.changed(length_penalty=penalty)
            if remaining.seconds > 3 * BEAM_COST * remaining.pace.validation:
                compared[validator.search] = validator.validate(won.weights, threads).score(recipe.validation.metric)
        watch(len(PENALTIES), len(PENALTIES))
    finally:
        validator.search = before
    best = max(compared, key=lambda each: compared[each], default=usual)
    return best, {f"beam {each.beam}, length penalty {each.length_penalty:g}": score for each, score in compared.items()}


def _read_inherited(recipe: Recipe) -> Inherited:
    return (recipe.fine_tuning.inherits if recipe.fine_tuning else None) or Inherited()


def write_bundle(
    run: Path,
    recipe: Recipe,
    prepared: PreparedCorpus,
    weights: Mapping[str, Tensor],
    step: int,
    scores: Sequence[bundle.Score] = (),
    confidence: Calibration | None = None,
    verdict: QualityVerdict | None = None,
    search: SearchSettings | None = None,
) -> None:
    manifest = prepared.manifest
    pieces = [(prepared.folder / entry.path).read_bytes() for entry in manifest.pieces]
    numbers = [read_vocabulary(prepared.folder / entry.path) for entry in manifest.vocabulary]
    pairs = sum(shard.rows for shard in manifest.splits["train"])
    judged = {} if verdict is None else {VERDICT: verdict.headline}
    old = _read_inherited(recipe)
    guided = (find_guided_head(recipe.model),) if recipe.guided_alignment else None
    settings = build_bundle_settings(prepared, recipe.model, recipe.batch.augment).changed(
        search=search or old.search,
        alignment=guided or old.alignment,
        confidence=confidence,
        scores=tuple(scores),
        **({"tags": old.join_tags(manifest.directions)} if old.tags else {}),
        trained_on={"pairs": pairs, **describe_synthetic(run, manifest), "steps": step, **_tell_origin(recipe), **judged},
    )
    stored = {name: weight.detach().cpu() for name, weight in weights.items()}
    bundle.write(
        run / BUNDLE,
        settings,
        stored,
        (pieces[0], pieces[-1]),
        license=old.license,
        force=(run / BUNDLE).exists(),
        vocabulary=(numbers[0], numbers[-1]) if numbers else None,
    )


def _tell_origin(recipe: Recipe) -> dict[str, str]:
    made_by = recipe.teacher and f"trained on translations made by {recipe.teacher}"
    old = recipe.fine_tuning
    told = {"parent": old and (old.parent or "a translator of these languages"), "origin": made_by}
    return {key: value for key, value in told.items() if value}


def add_export(run: Path, remaining: RemainingBudget) -> str | None:
    """Export the bundle for CTranslate2, as translate and serve run it. Return why there is no export, if there is none."""
    if remaining.sentences(PROBES) < PROBES:
        return f"the budget left no time for the export to CTranslate2; make it with limelight export {run}"
    return try_export(run / BUNDLE)


def calibrate_confidence(
    run: Path,
    prepared: PreparedCorpus,
    running: InferenceOptions,
    watch: Callable[[Speed, int], None],
    remaining: RemainingBudget,
) -> Calibration | None:
    """What is true of what the bundle claims, on the validation set, translated as a user would. None when that is too small.

    The weights were chosen on the same set, and a little in its favour; nothing was learned from it.
    """
    pairs = prepared.validation_pairs()
    most = remaining.sentences(min(ENOUGH, pairs.fed), SHARE_OF_CONFIDENCE)
    if most < LEAST_SCORED and most < pairs.fed:
        return None
    tagged, claimed, references = bool(prepared.manifest.tag_set.pieces), [], []
    for each in sample_directions(pairs, most):
        made = translate_direction(run / BUNDLE, each, running, watch, probabilities=True, tagged=tagged)
        remaining.update_speed(made.speed)
        claimed += made.claimed
        references += each.references
    return fit_calibration(collect(claimed, references))
