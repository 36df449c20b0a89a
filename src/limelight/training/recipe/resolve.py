"""A request is resolved into a complete recipe: a given one with the machine filled in, or a chosen one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import torch

from limelight import bundle
from limelight.bundle.card import find_warning
from limelight.corpus.config import HeldOutSettings
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import HELD_OUT, Split
from limelight.errors import ConfigError
from limelight.planning.sizing_rules import explain_high_rate
from limelight.runtime import RuntimeChoice, choose_device, choose_threads, count_threads
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.config import OF_THE_WORLD, FineTuning, MachineSettings, Recipe, ScheduleSettings
from limelight.training.recipe.calibrate import ComputeSetup
from limelight.training.recipe.choose import RecipePlanner, merge
from limelight.training.recipe.parent import describe_inherited, fit_model
from limelight.training.recipe.replay import inherit_from
from limelight.training.recipe.request import TrainRequest
from limelight.training.run_folder import RunChoice
from limelight.training.step.trained_model import choose_precision

OF_OTHERS: Final = "the sets that were given have other languages: nothing is said of these"
SEEN_BEFORE: Final = "pairs that the old translator has learnt would make its scores too good; --valid and --test name others"


def resolve_recipe(asked: TrainRequest, prepared: PreparedCorpus, spent: float, say: Callable[[RunChoice], None]) -> Recipe:
    """`spent` seconds of the budget are gone; `say` hears of every choice."""
    prepared.validation_pairs()  # refused before minutes of measuring, not after
    for split in HELD_OUT:
        if missing := _list_without(prepared, split):
            say(RunChoice(f"{split} set", f"none for {', '.join(missing)}", OF_OTHERS))
    own, asked = _by_name(replace(asked, recipe=None)).threads, _by_name(asked)
    if own is None and (asked.threads or 0) > (cores := count_threads()).value:
        say(RunChoice("threads", str(cores.value), f"in place of {asked.threads}, which its recipe has and this machine has not"))
        asked = replace(asked, threads=cores.value)
    if "vocab_size" in (changed := asked.changes.get("model", {})):
        _check_pieces((changed.get("source_vocab_size") or changed["vocab_size"], changed["vocab_size"]), prepared)
    device = choose_device(asked.device)
    threads = choose_threads(asked.threads)
    precision = choose_precision(device.value, asked.precision)
    say(RunChoice("device", str(device.value), device.why))
    say(RunChoice("numbers", precision.value, precision.why))
    stand = ComputeSetup(device.value, precision.value, asked.threads and threads.value)
    recipe = _complete_recipe(asked, stand) if asked.recipe else _choose_recipe(asked, prepared, stand, spent, say)
    _check_pieces((recipe.model.source_vocab, recipe.model.vocab_size), prepared)
    _check_marks(recipe, prepared)
    _check_both_directions(recipe, prepared)
    if warning := explain_high_rate(recipe.model, recipe.optimizer.learning_rate, recipe.optimizer.name == "muon"):
        say(RunChoice("rate", f"{recipe.optimizer.learning_rate:g}", warning))
    return recipe


def _list_without(prepared: PreparedCorpus, split: Split) -> list[str]:
    """The pairs of languages of which a held-out set has nothing, though it has others."""
    rows = {pair: len(prepared.split(split).list_samples(pair)) for pair in prepared.manifest.stored}
    return ["-".join(pair) for pair, count in rows.items() if not count] if any(rows.values()) else []


def _check_pieces(wanted: tuple[int, int], prepared: PreparedCorpus) -> None:
    sizes = prepared.manifest.vocab_sizes
    if wanted != sizes:
        raise ConfigError(
            f"the recipe's model has {wanted[0]:,} and {wanted[1]:,} pieces, but the text has "
            f"{sizes[0]:,} and {sizes[1]:,}; set data.pieces.size={sizes[1]} and model.vocab_size={sizes[1]}"
        )


def _check_marks(recipe: Recipe, prepared: PreparedCorpus) -> None:
    """Batches and model mean the same ids; else it would learn from the wrong ones, silently."""
    model, marks = recipe.model, prepared.manifest.marks
    wanted, found = (model.pad_token, model.start_token, model.end_token), (marks.pad, marks.start, marks.end)
    if wanted != found:
        raise ConfigError(
            f"the recipe's model has the ids {wanted} for padding, start and end, but the text has {found}; "
            f"set model.pad_token={found[0]} model.start_token={found[1]} model.end_token={found[2]}"
        )


def _check_both_directions(recipe: Recipe, prepared: PreparedCorpus) -> None:
    """A text may be source and target only where both are read alike, and nothing says which way round a pair is."""
    manifest, corpora = prepared.manifest, prepared.manifest.settings.get("corpora", ())
    reasons = {
        "source and target have pieces of their own; set data.pieces.joint=true": len(manifest.pieces) > 1,
        "the text is learnt in several directions already": len(manifest.directions) > 1,
        "synthetic pairs would be learnt as targets": any(SYNTHETIC in each.get("tags", ()) for each in corpora),
        "each side begins with its language": bool(manifest.marks.source_begin or manifest.marks.target_begin),
    }
    found = [reason for reason, holds in reasons.items() if holds]
    if recipe.schedule.both_directions and found:
        wanted = f"schedule.both_directions={recipe.schedule.both_directions:g} cannot be; leave it out, since:"
        raise ConfigError(wanted, found)


def _by_name(asked: TrainRequest) -> TrainRequest:
    """What was written as a key of the recipe, as if it had been asked for by its option: both mean the same, and the key wins."""
    changes, written = asked.changes, asked.recipe.machine if asked.recipe else MachineSettings()
    keys = {name: changes.get("machine", {}).get(name) for name in ("device", "precision", "threads")}
    keys |= {name: changes.get(name) for name in ("budget_seconds", "seed")}
    keys["steps"] = changes.get("schedule", {}).get("steps")
    given: dict[str, Any] = {}
    for name, key in keys.items():
        places = (key, getattr(asked, name), getattr(written, name, None))
        given[name] = next((value for value in places if value is not None), None)
    return replace(asked, **given)


def _choose_recipe(
    asked: TrainRequest, prepared: PreparedCorpus, stand: ComputeSetup, spent: float, say: Callable[[RunChoice], None]
) -> Recipe:
    fine_tuning, model, taught = None, None, False
    if asked.bundle is not None:
        translator, old = bundle.read(asked.bundle), asked.old_text
        model, parent, taught = translator.settings.model, None, translator.settings.takes_matches
        if old is None:
            model, parent = fit_model(model, prepared), " to ".join(translator.settings.languages)
            say(describe_inherited(translator, prepared))
        if (warning := find_warning(translator.settings)) is not None:
            say(RunChoice("doubt", warning, "said of the translator to go on from: what it gives may be worse than nothing"))
        inherited, share = inherit_from(translator, parent is not None), 0.0 if old is None else old.share
        fine_tuning = FineTuning(bundle=str(asked.bundle), replay=share, inherits=inherited, parent=parent)
        if inherited and inherited.tags and (others := [*set(inherited.tags.directions) - set(prepared.manifest.directions)]):
            told = ", ".join("-".join(direction) for direction in sorted(others))
            say(RunChoice("inherited", told, "directions of the old translator that this run neither teaches nor scores, nor promises"))
        if parent is None and asked.data is not None and (own := _list_split_off(asked.data.held_out)):
            say(RunChoice("held out", f"{' and '.join(own)} from this text", SEEN_BEFORE))
    plan = RecipePlanner(prepared, stand, asked, spent, model, fine_tuning, taught).plan()
    for chosen in plan.chosen:
        say(chosen)
    return plan.recipe


def _list_split_off(held_out: HeldOutSettings) -> list[str]:
    """Nothing where a test set is named, as `learn` does: scores are of that one."""
    own = [f"{split} set" for split in HELD_OUT if getattr(held_out, f"{split}_pairs") and not held_out.is_given(split)]
    return own if "test set" in own else []


def _complete_recipe(asked: TrainRequest, stand: ComputeSetup) -> Recipe:
    """What was asked for on the command line wins over what is written, and that over what this machine would choose."""
    assert asked.recipe is not None
    values = asked.recipe.model_dump()
    values["machine"] |= {
        "device": asked.device or str(stand.device),
        "precision": stand.precision,
        "threads": asked.threads or torch.get_num_threads(),
    }
    torch.set_num_threads(values["machine"]["threads"])
    changes: dict[str, Any] = {}
    if asked.steps:
        rising = _fit_warmup(asked.recipe.schedule, asked.steps)
        changes = {"schedule": {"steps": asked.steps, "fixed": True, "warmup": rising}, "budget_seconds": None}
    if asked.budget_seconds is not None:
        changes["budget_seconds"] = asked.budget_seconds
    if asked.seed is not None:
        changes |= {"seed": asked.seed, "batch": {"seed": asked.seed}}
    recipe = Recipe(**merge(merge(values, changes), asked.changes))
    if recipe.batch.longest is None:  # else the first pair too long for the model would end the run, hours later
        recipe = recipe.changed(batch=recipe.batch.changed(longest=recipe.model.max_length - 1))
    return recipe


def _fit_warmup(schedule: ScheduleSettings, steps: int) -> int:
    """The steps to rise of a schedule that is made shorter."""
    if steps >= schedule.steps or schedule.name == "inverse_sqrt":  # whose curve knows no end
        return schedule.warmup
    return min(schedule.warmup, max(1, steps // 10))


def extend_recipe(recipe: Recipe, asked: TrainRequest, say: Callable[[RunChoice], None] = lambda _: None) -> Recipe:
    """The same run with more time or more steps, shared by processes in another way, or on another device or other cores."""
    steps, budget = asked.steps, asked.budget_seconds
    machine = {**(asked.recipe.machine.model_dump() if asked.recipe else {}), **asked.changes.get("machine", {})}
    world = {key: value for key, value in machine.items() if key in OF_THE_WORLD}
    recipe = recipe.changed(machine=recipe.machine.changed(**world, **_move(recipe.machine, asked, say)))
    if budget is not None or steps is not None:  # what was asked for before is over
        recipe = recipe.changed(budget_seconds=budget)
    if steps is not None and steps != recipe.schedule.steps:
        warmup = _fit_warmup(recipe.schedule, steps)
        recipe = recipe.changed(schedule=recipe.schedule.changed(steps=steps, fixed=True, warmup=warmup))
    return recipe


def _move(was: MachineSettings, asked: TrainRequest, say: Callable[[RunChoice], None]) -> dict[str, Any]:
    """Device and threads, where others are asked for, or the run had more threads than there are cores here."""
    if asked.precision not in (None, was.precision):
        raise ConfigError(
            f"this run computes in {was.precision}, and its checkpoints are of it; leave out --precision {asked.precision}, or give "
            "another folder with -o"
        )
    cores, wanted = count_threads(asked.threads), {} if asked.device is None else {"device": RuntimeChoice[Any](asked.device, "asked for")}
    if asked.threads is not None or (was.threads or 0) > cores.value:
        wanted["threads"] = cores
    moved = {name: chosen for name, chosen in wanted.items() if chosen.value != getattr(was, name)}
    for name, chosen in moved.items():
        say(RunChoice(name, str(chosen.value), f"{chosen.why}; {getattr(was, name)} until now"))
    return {name: chosen.value for name, chosen in moved.items()}


def describe_extension(before: Recipe, recipe: Recipe, step: int) -> RunChoice | None:
    """None: its schedule is as it was."""
    schedule, budget = recipe.schedule, recipe.budget_seconds
    if (schedule, budget) == (before.schedule, before.budget_seconds):
        return None
    most = [f"up to step {schedule.steps:,}"] if schedule.fixed or budget is None else []
    time = [f"as far as {budget:.0f} seconds in all allow at its pace"] if budget is not None else []
    return RunChoice("schedule", f"goes on from step {step:,}", ", ".join(most + time))


def asks_for_more(asked: TrainRequest, done: Recipe, steps: int) -> bool:
    """More time or more steps than a run that has ended had: those it planned, or the `steps` that a budget which is gone left of them."""
    more_time = (asked.budget_seconds or 0) > (done.budget_seconds or 0)
    return more_time or (asked.steps or 0) > (done.schedule.steps if asked.budget_seconds == done.budget_seconds else steps)
