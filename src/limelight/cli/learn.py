"""`limelight learn` teaches a translator what people corrected, and keeps what it learnt only if that is better."""

import inspect
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight.cli.train.train import read_request, train, watch_training
from limelight.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from limelight.bundle.versions import LearntVersion
    from limelight.learning.attempt import LearningPlan
    from limelight.learning.gate import Pair
    from limelight.translator import Translator

EXAMPLES = """Examples:

limelight learn en-de --store sqlite:///limelight.db

limelight learn en-de --corrections corrections.jsonl --minutes 30

limelight learn en-de --history

limelight learn en-de --back
"""


def learn(
    inputs: Annotated[list[str], typer.Argument(metavar="BUNDLE", help="Folder of a run or bundle; and section.key=value of a recipe.")],
    store: Annotated[str | None, typer.Option("--store", help="Corrections that a server kept: sqlite:///limelight.db.")] = None,
    corrections: Annotated[Path | None, typer.Option("--corrections", help="Corrections in lines of JSON.")] = None,
    minutes: Annotated[float, typer.Option("--minutes", help="Time to train.", min=0.05, max=100_000)] = 10.0,
    test: Annotated[list[str] | None, typer.Option("--test", help="Old text that must not get worse: source and target file.")] = None,
    replay_data: Annotated[list[str] | None, typer.Option("--replay-data", help="Old text against forgetting, as for train.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also if nothing is new: with more time, say.")] = False,
    back: Annotated[bool, typer.Option("--back", help="Go back to the version before.")] = False,
    history: Annotated[bool, typer.Option("--history", help="Show what was learnt when, from how much, with which effect.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to train with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a screen, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Teach a translator what people corrected; it is kept only if it is better on corrections it has not seen, and forgets nothing.

    A server that runs takes the new version over by itself. Ctrl-C stops; the same command goes on.
    """
    from limelight.bundle import read
    from limelight.bundle.versions import LEARNT, read_history
    from limelight.cli.settings_arguments import split_settings
    from limelight.cli.train.recipe_keys import check_changes
    from limelight.training.run.folder_lock import lock_folder

    folders, written = split_settings(inputs)
    check_changes(written)
    folder = _check(folders, store, corrections, back, history, test or [])
    if history:
        _tell([_describe(each, read_history(folder).current) for each in read_history(folder).versions] or ["nothing was learnt yet"],
              read_history(folder).model_dump(mode="json"), as_json)  # fmt: skip
        return
    if len(read(folder, weights=False).settings.directions) > 1:
        raise ConfigError(f"{folder} has several directions, and corrections teach a translator of one; train on them instead (--from)")
    with lock_folder(folder / LEARNT):
        if back:
            lines, values, code = _go_back(folder)
        else:
            options = {"inputs": written, "replay_data": replay_data, "threads": threads, "test": test or []}
            lines, values, code = _learn(folder, store, corrections, minutes, again, options, plain, quiet or as_json)
    _tell(lines, values, as_json)
    raise typer.Exit(code)


def _check(folders: list[str], store: str | None, corrections: Path | None, back: bool, history: bool, test: list[str]) -> Path:
    problems = [] if len(folders) == 1 else [f"name one translator; {len(folders)} are named"]
    if back + history + (store is not None) + (corrections is not None) != 1:
        problems.append("say what to do with one of --store, --corrections, --back and --history")
    if len(test) not in (0, 2):
        problems.append("--test is given twice, for the source and the target file")
    if folders and Path(folders[0]).name == "bundle":
        problems.append(f"{folders[0]} is a run's bundle as it was trained; name the run, {Path(folders[0]).parent}")
    if problems:
        raise ConfigError("there is nothing to learn so:", problems)
    return Path(folders[0])


def _tell(lines: list[str], values: dict[str, Any], as_json: bool) -> None:
    sys.stdout.write(json.dumps(values, ensure_ascii=False) + "\n" if as_json else "".join(f"{line}\n" for line in lines))


def _describe(each: "LearntVersion", current: int) -> str:
    effect = ", ".join(f"{name} {before:.1f} to {after:.1f} chrF (p = {p:.3f})" for name, (before, after, p) in each.effect.items())
    refused = f", {sum(each.refused.values()):,} refused" if each.refused else ""
    state = "in use" if each.number == current else "kept" if each.kept else "not kept"
    return f"{each.number:>3}  {each.at}  {each.corrections:,} corrections{refused}; {effect}; {state}: {each.why}"


def _go_back(folder: Path) -> tuple[list[str], dict[str, Any], int]:
    from limelight.bundle.versions import read_history, write_history
    from limelight.learning.attempt import forget_unfinished

    history = read_history(folder)
    now = history.find(history.current)
    if now is None:
        raise ConfigError(f"{folder} is as it was trained; there is no version before it to go back to")
    forget_unfinished(folder)  # it went on from the version that is left
    write_history(folder, history.changed(current=now.parent))
    said = f"version {now.parent}" if now.parent else "version 0, as it was trained,"
    return [f"{folder}: {said} is in use again; version {now.number} stays in its folder"], {"current": now.parent, "was": now.number}, 0


def _learn(
    folder: Path,
    store: str | None,
    corrections: Path | None,
    minutes: float,
    again: bool,
    options: dict[str, Any],
    plain: bool,
    quiet: bool,
) -> tuple[list[str], dict[str, Any], int]:
    from limelight.bundle.versions import LEARNT, RUN
    from limelight.evaluation.inputs import read_parallel
    from limelight.learning.attempt import clear_up, find_unfinished
    from limelight.learning.effect import find_old_test

    clear_up(folder)
    named = options["test"]
    old = read_parallel(named) if named else find_old_test(folder)  # what is missing is told before an hour of training
    plan = find_unfinished(folder)
    if plan is None:
        plan, why = _plan(folder, store, corrections, minutes, again)
        if plan is None:
            return [why], {"kept": False, "why": why}, 0
    place = folder / LEARNT / str(plan.number)
    if not quiet:
        refused = "".join(f", {pairs:,} refused as {reason.replace('_', ' ')}" for reason, pairs in plan.refused.items())
        typer.echo(f"version {plan.number}: {plan.taught:,} corrections to learn, {plan.held_out:,} held out{refused}", err=True)
    code = _train(folder, place / RUN, plan, options, plain, quiet)
    if code:
        return [f"{folder}: not done yet; the same command goes on"], {"kept": False, "why": "stopped"}, code
    return _judge(folder, plan, (old[0], old[1]), options["threads"])


def _plan(
    folder: Path, store: str | None, corrections: Path | None, minutes: float, again: bool
) -> "tuple[LearningPlan | None, str]":  # fmt: skip
    from limelight.learning.attempt import FEWEST, begin_attempt, count_new
    from limelight.learning.gate import sift
    from limelight.translator import Translator

    with Translator.load(folder) as translator:
        pairs = _read(translator, store, corrections)
        if not count_new(folder, pairs) and not again:
            return None, f"{folder}: nothing is new among {len(pairs):,} corrections; --again tries once more, with other --minutes say"
        sifted = sift(pairs, translator)
        plan = begin_attempt(folder, sifted, translator.settings.languages, minutes)
    told = "".join(f", {count:,} refused as {reason.replace('_', ' ')}" for reason, count in sifted.reasons.items())
    return (
        plan,
        f"{folder}: of {len(pairs):,} corrections {len(sifted.taken):,} can be learnt{told}; it takes {FEWEST} beside those held out",
    )


def _read(translator: "Translator", store: str | None, corrections: Path | None) -> "list[Pair]":
    from limelight.learning.attempt import read_corrections

    languages = translator.settings.languages
    if corrections is not None:
        return read_corrections(corrections, languages)
    try:
        from limelight.store.store import open_store
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "a store", "store") from None
    opened, pairs, last = open_store(store or ""), list[tuple[str, str]](), 0
    try:
        while some := opened.corrections.list(languages, after=last):
            pairs += [(each.source, each.correction) for each in some]
            last = some[-1].id
    finally:
        opened.close()
    return pairs


def _train(folder: Path, run: Path, plan: "LearningPlan", options: dict[str, Any], plain: bool, quiet: bool) -> int:
    from limelight.bundle import read
    from limelight.learning.attempt import HELD, TAUGHT

    source, target = read(folder, weights=False).settings.languages
    steps = any(each.startswith("schedule.steps=") for each in options["inputs"])
    given: dict[str, Any] = {name: each.default for name, each in inspect.signature(train).parameters.items()}
    given |= {"bundle": folder, "output": run, "source": source, "target": target, "anyway": True, "threads": options["threads"]}
    given |= {"budget": None if steps else f"{plan.minutes * 60:g}s", "replay_data": options["replay_data"]}
    given |= {"test": [str(run.parent / HELD)]}
    given["inputs"] = [str(run.parent / TAUGHT), "data.held_out.largest_share=0.15", *options["inputs"]]
    asked, _ = read_request(given)
    return watch_training(asked, run, None, plain, quiet, time.monotonic()).exit_code


def _judge(
    folder: Path, plan: "LearningPlan", old: "tuple[list[str], list[str]]", threads: int | None
) -> tuple[list[str], dict[str, Any], int]:
    from limelight.bundle import read
    from limelight.bundle.versions import LEARNT, LearntVersion, find_version, read_history, write_history
    from limelight.evaluation.config import InferenceOptions
    from limelight.learning.attempt import HELD, clear_up, read_corrections
    from limelight.learning.effect import NEW, OLD, decide, measure_effect

    held = read_corrections(folder / LEARNT / str(plan.number) / HELD, read(folder, weights=False).settings.languages)
    sets = {NEW: tuple(map(list, zip(*held, strict=True))), OLD: old}
    places = find_version(folder, plan.parent), find_version(folder, plan.number)
    effect = measure_effect(*places, sets, InferenceOptions(threads=threads))
    kept, why = decide(effect)
    told = {name: (each.system, each.other, each.p) for name, each in effect.items()}
    version = LearntVersion(
        number=plan.number, parent=plan.parent, at=plan.at, corrections=plan.taught, held_out=plan.held_out, refused=plan.refused,
        minutes=plan.minutes, effect=told, kept=kept, why=why,
    )  # fmt: skip
    history = read_history(folder)
    current = plan.number if kept else history.current
    write_history(folder, history.changed(current=current, versions=(*history.versions, version)))
    clear_up(folder)
    again = f"; limelight learn {folder} --back goes back" if kept else "; the version before stays in use"
    return [f"{folder}: version {plan.number} is {'in use' if kept else 'not kept'}: {why}{again}"], version.model_dump(mode="json"), 0
