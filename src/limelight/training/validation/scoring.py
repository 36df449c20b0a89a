"""A finished translator is scored on text that nothing was chosen by, in every direction that it was taught and in some that it was not."""

import dataclasses
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from limelight import bundle
from limelight.bundle.confidence import Calibration
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import LimelightError
from limelight.evaluation.confidence.calibration import check, collect
from limelight.evaluation.config import EvaluateSettings, InferenceOptions, Speed
from limelight.evaluation.evaluate import Evaluation, evaluate
from limelight.evaluation.metrics.compare import compare
from limelight.evaluation.translating import TranslatedSet
from limelight.files import write_whole
from limelight.training.config import FineTuning
from limelight.training.recipe.replay import split_off_at
from limelight.training.run_folder import BUNDLE, REAL_TEXT, SCORES
from limelight.training.validation.direction_sets import (
    DirectionSet,
    count_test,
    list_zero_shot,
    pair_zero_shot,
    sample_directions,
    translate_direction,
)
from limelight.training.validation.final_weights import LEAST_SCORED, RemainingBudget

SHOWN: Final = 5  # examples of each kind in the report
SETTINGS: Final = EvaluateSettings(worst=SHOWN)
IN_SHORT: Final = EvaluateSettings(worst=0, metrics=("bleu", "chrf"))  # of all directions but the first
UNTRAINED: Final = 200  # sentences of a direction that was never trained


def score(
    run: Path,
    prepared: PreparedCorpus,
    running: InferenceOptions,
    watch: Callable[[Speed, int], None],
    remaining: RemainingBudget,
    confidence: Calibration | None = None,
    tuned: FineTuning | None = None,
) -> tuple[Evaluation, list[bundle.Score]] | None:
    """Score the bundle on the test set, translated as by a user, or on the part that there is time for. None when there is none. Where it
    went on from a translator of the same languages (`tuned`), that one is scored on the same text beside it."""
    rows = count_test(prepared)
    if not rows:
        return None
    tagged = bool(prepared.manifest.tag_set.pieces)
    sets = sample_directions(prepared.split("test"), min(rows, max(LEAST_SCORED, remaining.sentences(rows))))
    first, several = sets[0], len(prepared.manifest.directions) > 1
    made = translate_direction(run / BUNDLE, first, running, watch, probabilities=confidence is not None, tagged=tagged)
    checked = None if confidence is None else check(collect(made.claimed, first.references), confidence)
    found = evaluate(made.texts, [first.references], first.sources, first.direction[1], SETTINGS)
    title, scored = _name_test_set(run, prepared), sum(len(each.sources) for each in sets)
    some = f"{scored:,} of its {rows:,} pairs, since the budget was used up"
    told = f"{title}, {scored:,} pairs" if scored == rows else f"{title}, {some}"
    stored = _build_scores(f"{told}; {first.title}" if several else told, found, made, first.sources, first.references)
    stored["confidence"] = None if checked is None else dataclasses.asdict(checked)
    scores = _list_scores(f"{title}, {first.title}" if several else title, found)
    remaining.update_speed(made.speed)
    if several:
        others = sets[1:] + _affordable(pair_zero_shot(prepared.split("test"), UNTRAINED), sets[1:], remaining)
        table = [_row(first, found)]
        for each in others:
            spoken = translate_direction(run / BUNDLE, each, running, watch, probabilities=False, tagged=tagged)
            short = evaluate(spoken.texts, [each.references], each.sources, each.direction[1], IN_SHORT)
            table.append(_row(each, short))
            scores += _list_scores(f"{title}, {each.title}" + ("" if each.trained else " (never trained)"), short)
        stored["directions"] = table
        measured = {each.direction for each in others}
        stored["unmeasured"] = ["-".join(pair) for pair in list_zero_shot(prepared.manifest) if pair not in measured]
    write_whole(run / SCORES, json.dumps(stored, ensure_ascii=False).encode())
    if tuned is not None and tuned.parent is None and not several and remaining.sentences(scored) == scored:  # what was found is safe
        stored["before"] = _compare_with(Path(tuned.bundle), first, found, running, watch)
        write_whole(run / SCORES, json.dumps(stored, ensure_ascii=False).encode())
    return found, scores


def _compare_with(
    old: Path, asked: DirectionSet, found: Evaluation, running: InferenceOptions, watch: Callable[[Speed, int], None]
) -> list[dict[str, Any]] | None:
    """How much better the new translator is than the old one; None where that one cannot be used any more."""
    try:
        made = translate_direction(old, asked, running, watch, probabilities=False, tagged=True)
    except (LimelightError, OSError, RuntimeError):
        return None
    before = evaluate(made.texts, [asked.references], asked.sources, asked.direction[1], IN_SHORT)
    same = [count for count in found.counts if count.name in {each.name for each in before.counts}]
    return [dataclasses.asdict(each) for each in compare(("the translator before", "this one"), before.counts, same, IN_SHORT)]


def _name_test_set(run: Path, prepared: PreparedCorpus) -> str:
    given = prepared.manifest.settings.get("held_out", {}).get("test")
    own = [split_off_at(place, "test") for place in (run, run / REAL_TEXT)]
    named = bool(given) and Path(given[0]) not in own
    return Path(given[0]).name if named else "test set split off from the corpus"


def _affordable(untrained: list[DirectionSet], due: Sequence[DirectionSet], remaining: RemainingBudget) -> list[DirectionSet]:
    """What there is time for after the directions that were trained."""
    trained, more = (sum(len(each.sources) for each in sets) for sets in (due, untrained))
    return untrained if remaining.sentences(trained + more) >= trained + more else []


def _row(asked: DirectionSet, found: Evaluation) -> dict[str, Any]:
    scores = [dataclasses.asdict(each) for each in found.scores if each.name in ("BLEU", "chrF2")]
    return {"direction": asked.title, "trained": asked.trained, "sentences": found.sentences, "scores": scores}


def _list_scores(title: str, found: Evaluation) -> list[bundle.Score]:
    return [
        bundle.Score(test_set=title, metric=each.name, value=each.value, signature=each.signature, lines=found.sentences)
        for each in found.scores
    ]


def _build_scores(told: str, found: Evaluation, made: TranslatedSet, source: Sequence[str], target: Sequence[str]) -> dict[str, Any]:
    evaluation = dataclasses.asdict(dataclasses.replace(found, counts=[]))
    del evaluation["counts"]
    chrf = next(each for each in found.counts if each.name == "chrF2").of_each()
    order = sorted(range(len(source)), key=lambda i: chrf[i])
    chosen = {
        "best": [i for i in reversed(order) if len(target[i].split()) > 3][:SHOWN],
        "longest": sorted(range(len(source)), key=lambda i: -len(source[i]))[:SHOWN],
        "random": random.Random(17).sample(range(len(source)), min(SHOWN, len(source))),
    }
    return {
        "set": told,
        "evaluation": evaluation,
        "speed": vars(made.speed),
        "search": made.search.model_dump(mode="json"),
        "warnings": made.warnings,
        "examples": {
            kind: [{"source": source[i], "reference": target[i], "translation": made.texts[i]} for i in numbers]
            for kind, numbers in chosen.items()
        },
    }
