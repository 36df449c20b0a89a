"""`limelight learn` teaches a translator what people corrected, and keeps what it learnt only if that is better."""

import inspect
import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight.cli.fetching import Yes
from limelight.cli.memory import open_named_store
from limelight.cli.train.train import read_request, train, watch_training
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.bundle.versions import LearningPlan, LearntVersion
    from limelight.learning.effect import TestSet
    from limelight.learning.gate import Pair
    from limelight.store.corrections import Correction
    from limelight.store.store import Store
    from limelight.text.languages import Direction
    from limelight.training.recipe.request import TrainResult

Told = tuple[list[str], dict[str, Any], int]  # lines for people, values for programs, the exit code

EXAMPLES = (
    "limelight learn en-de --store sqlite:///limelight.db",
    "limelight learn en-de --corrections corrections.jsonl --minutes 30",
    "limelight learn en-de --history",
    "limelight learn en-de --back",
    "limelight learn en-de --store sqlite:///limelight.db --export corrections",
    "limelight learn en-de --store sqlite:///limelight.db --delete 17",
)


def learn(
    inputs: Annotated[list[str], typer.Argument(metavar="BUNDLE", help="Folder of a run or bundle; and section.key=value of a recipe.")],
    store: Annotated[str | None, typer.Option("--store", help="Corrections that a server kept: sqlite:///limelight.db.")] = None,
    corrections: Annotated[Path | None, typer.Option("--corrections", help="Corrections in lines of JSON.")] = None,
    export: Annotated[Path | None, typer.Option("--export", help="Write the corrections of --store into this folder, and end.")] = None,
    delete: Annotated[list[int] | None, typer.Option(
        "--delete", min=1, max=2**63 - 1, help="Delete this one, by the id that --export writes, and end.")] = None,
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
    yes: Yes = False,
) -> None:  # fmt: skip
    """Teach a translator what people corrected; it is kept only if it is better on corrections it has not seen, and forgets nothing.

    A server that runs takes the new version over by itself. Ctrl-C stops; the same command goes on.
    """
    given = dict(locals())
    from limelight.bundle.versions import HISTORY, LEARNT, read_history
    from limelight.cli.settings_arguments import split_settings
    from limelight.cli.train.recipe_keys import check_changes
    from limelight.learning.attempt import find_unfinished
    from limelight.training.run.folder_lock import lock_folder

    folders, given["inputs"] = split_settings(inputs)
    check_changes(given["inputs"])
    folder = _check(folders, given)
    if export is not None:
        lines, values, code = _export(folder, store or "", export)
    elif delete:
        lines, values, code = _delete(store or "", delete)
    elif history:
        known = read_history(folder)
        lines, values, code = [_describe(each, known.current) for each in known.versions], known.model_dump(mode="json"), 0
        if (begun := find_unfinished(folder)) is not None:
            lines.append(f"{begun.number:>3}  {begun.at}  {begun.corrections:,} corrections; not finished: the same command goes on")
    else:
        if back and not (folder / LEARNT / HISTORY).is_file():
            raise ConfigError(f"{folder} has learnt nothing; there is no version before it to go back to")
        if not back:  # before a folder is made in whatever was named
            given["languages"] = _find_languages(folder)
        with lock_folder(folder / LEARNT, otherwise="stop it with Ctrl-C"):
            lines, values, code = _go_back(folder) if back else _learn(folder, given)
    told = "".join(f"{line}\n" for line in lines or ["nothing was learnt yet"])
    sys.stdout.write(json.dumps(values, ensure_ascii=False) + "\n" if as_json else told)
    raise typer.Exit(code)


def _check(folders: list[str], given: dict[str, Any]) -> Path:
    problems = [] if len(folders) == 1 else [f"name one translator; {len(folders)} are named"]
    if sum(bool(given[name]) for name in ("store", "corrections", "back", "history")) != 1:
        problems.append("say what to do with one of --store, --corrections, --back and --history")
    if (given["export"] is not None or given["delete"]) and not given["store"]:
        problems.append("--export and --delete are for the corrections of a store; name it with --store")
    if given["export"] is not None and given["delete"]:
        problems.append("--export or --delete: one of them at a time")
    if len(given["test"] or []) not in (0, 2):
        problems.append("--test is given twice, for the source and the target file")
    if folders and Path(folders[0]).name == "bundle":
        problems.append(f"{folders[0]} is a run's bundle as it was trained; name the run, {Path(folders[0]).parent}")
    problems += [
        f"{folder} is no folder here; name that of a run or bundle, in which it is kept" for folder in folders if not Path(folder).is_dir()
    ]
    if problems:
        raise ConfigError("there is nothing to learn so:", problems)
    return Path(folders[0])


def _find_languages(folder: Path) -> "Direction":
    from limelight.bundle import read

    settings = read(folder, weights=False).settings
    if len(settings.directions) > 1:
        source, target = settings.languages
        written = f"`limelight learn {folder} --store URL --export corrections` writes those of a store, a file for each direction"
        trained = (
            f"`limelight train corrections/{source}-{target}.jsonl --source {source} --target {target} --from {folder} -o NEW` learns one"
        )
        raise ConfigError(f"{folder} has several directions, and learn teaches translators of one. {written}; {trained}")
    return settings.languages


def _describe(each: "LearntVersion", current: int) -> str:
    effect = ", ".join(f"{name} {before:.1f} to {after:.1f} chrF (p = {p:.3f})" for name, (before, after, p) in each.effect.items())
    refused = f", {sum(each.refused.values()):,} refused" if each.refused else ""
    state = "in use" if each.number == current else "kept" if each.kept else "not kept"
    return f"{each.number:>3}  {each.at}  {each.corrections:,} corrections{refused}; {effect}; {state}: {each.why}"


def _go_back(folder: Path) -> Told:
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


def _learn(folder: Path, given: dict[str, Any]) -> Told:
    from limelight.bundle.versions import LEARNT, RUN
    from limelight.evaluation.inputs import read_parallel
    from limelight.learning.attempt import clear_up, find_unfinished, forget_unfinished, goes_on
    from limelight.learning.effect import find_old_test

    clear_up(folder)
    old = read_parallel(given["test"]) if given["test"] else find_old_test(folder)  # what is missing is told before an hour of training
    pairs, plan = _read(given), find_unfinished(folder)
    if plan is not None and (given["again"] or not goes_on(folder, plan, pairs, given["minutes"])):
        typer.echo(
            f"{folder}: the attempt of {plan.at} is left: {'--again' if given['again'] else 'other corrections or --minutes'}", err=True
        )
        forget_unfinished(folder)
        plan = None
    if plan is None:
        plan, why = _plan(folder, pairs, given)
        if plan is None:
            return [why], {"kept": False, "why": why}, 0
    if not (given["quiet"] or given["as_json"]):
        told = f"{plan.corrections:,} corrections to learn, {plan.held_out:,} held out{_list_refused(plan.refused)}"
        typer.echo(f"version {plan.number}: {told}", err=True)
    result = _train(folder, folder / LEARNT / str(plan.number) / RUN, plan, given)
    if result.exit_code and result.state != "diverged":
        return [f"{folder}: not done yet; the same command goes on"], {"kept": False, "why": "stopped"}, result.exit_code
    return _judge(folder, plan, None if result.exit_code else (old[0], old[1]), given)


def _plan(folder: Path, pairs: "list[Pair]", given: dict[str, Any]) -> "tuple[LearningPlan | None, str]":
    from limelight.learning.attempt import FEWEST, FEWEST_HELD, begin_attempt, count_new
    from limelight.learning.gate import sift
    from limelight.translator import Translator

    if not count_new(folder, pairs) and not given["again"]:
        return None, f"{folder}: nothing is new among {len(pairs):,} corrections; --again tries once more, with other --minutes say"
    takes = f"it takes {FEWEST} beside those held out, which are one in five"
    if len(pairs) < FEWEST + FEWEST_HELD:  # before any is looked at, which takes long
        return None, f"{folder}: there are {len(pairs):,} corrections; {takes}"
    with Translator.load(folder, threads=given["threads"]) as translator:
        sifted = sift(pairs, translator)
        plan = begin_attempt(folder, sifted, given["languages"], given["minutes"])
    taken = f"of {len(pairs):,} corrections {len(sifted.taken):,} can be learnt{_list_refused(sifted.reasons)}"
    return plan, f"{folder}: {taken}; {takes}"


def _list_refused(reasons: dict[str, int]) -> str:
    return "".join(f", {count:,} refused as {reason.replace('_', ' ')}" for reason, count in reasons.items())


def _read(given: dict[str, Any]) -> "list[Pair]":
    from limelight.learning.attempt import read_corrections

    if given["corrections"] is not None:
        return read_corrections(given["corrections"], given["languages"])
    with closing(open_named_store(given["store"])) as store:
        return [(each.source, each.correction) for each in _list_all(store, given["languages"])]


def _list_all(store: "Store", languages: "Direction") -> "Iterator[Correction]":
    last = 0
    while some := store.corrections.list(languages, after=last):
        yield from some
        last = some[-1].id


def _delete(url: str, ids: list[int]) -> Told:
    with closing(open_named_store(url)) as store:
        deleted = store.corrections.delete(ids)
    return [f"{deleted:,} of {len(set(ids)):,} corrections are deleted"], {"deleted": deleted}, 0


def _export(folder: Path, url: str, place: Path) -> Told:
    """A file for each direction, as --corrections and `train` read it, with whose each is and the id by which it can be deleted."""
    from limelight.bundle import read
    from limelight.files import write_whole

    counts: dict[str, int] = {}
    with closing(open_named_store(url)) as store:
        for source, target in read(folder, weights=False).settings.directions:
            if kept := list(_list_all(store, (source, target))):
                file = place / f"{source}-{target}.jsonl"
                counts[str(file)] = len(kept)
                place.mkdir(parents=True, exist_ok=True)
                rows = ({"source": each.source, "correction": each.correction, "id": each.id, "key": each.key} for each in kept)
                write_whole(file, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    return [f"{file}: {count:,} corrections" for file, count in counts.items()] or [f"{url} has no corrections for {folder}"], counts, 0


def _train(folder: Path, run: Path, plan: "LearningPlan", asked: dict[str, Any]) -> "TrainResult":
    from limelight.learning.attempt import HELD, REPLAY, TAUGHT
    from limelight.training.recipe.replay import OldText
    from limelight.training.recipe.request import OtherRunError

    folder, run = folder.resolve(), run.resolve()  # the same attempt, from wherever it is gone on with
    source, target = asked["languages"]
    steps = any(each.startswith("schedule.steps=") for each in asked["inputs"])
    given: dict[str, Any] = {name: each.default for name, each in inspect.signature(train).parameters.items()}
    given |= {name: asked[name] for name in ("replay_data", "threads")}
    given |= {"bundle": folder, "output": run, "source": source, "target": target, "anyway": True, "test": [str(run.parent / HELD)]}
    given["replay"] = REPLAY if asked["replay_data"] or OldText(folder, None).prepared else None
    given |= {"budget": None if steps else f"{plan.minutes * 60:.1f}s"}
    given["inputs"] = [str(run.parent / TAUGHT), "data.held_out.largest_share=0.15", *asked["inputs"]]
    request, _ = read_request(given)
    try:
        return watch_training(request, run, None, asked["plain"], asked["quiet"] or asked["as_json"], time.monotonic())
    except OtherRunError as error:
        told = "the attempt that was begun was asked for other things; go on with the same command, or begin anew with --again:"
        raise ConfigError(told, error.problems) from None


def _judge(folder: Path, plan: "LearningPlan", old: "TestSet | None", given: dict[str, Any]) -> Told:
    """None: there is nothing to judge, since training diverged."""
    from limelight.bundle import read
    from limelight.bundle.layout import EXPORT
    from limelight.bundle.versions import LEARNT, LearntVersion, find_version, read_history, write_history
    from limelight.evaluation.config import InferenceOptions
    from limelight.interop.ctranslate2.export import try_export
    from limelight.learning.attempt import HELD, clear_up, read_corrections
    from limelight.learning.effect import MOST_PAIRS, NEW, OLD, decide, forgets, measure_effect, translate_sets
    from limelight.learning.halfway import MARK, take_back
    from limelight.training.run_folder import BUNDLE

    kept, why, effect = False, "its training diverged", {}
    attempt = folder / LEARNT / str(plan.number)
    if old is not None:
        held = read_corrections(attempt / HELD, given["languages"])
        sources, references = zip(*held[-MOST_PAIRS:], strict=True)
        places = find_version(folder, plan.parent), find_version(folder, plan.number)
        sets, running = {NEW: (sources, references), OLD: old}, InferenceOptions(threads=given["threads"])
        before = translate_sets(places[0], sets, running)
        effect = measure_effect(before, translate_sets(places[1], sets, running), sets)
        if forgets(effect[OLD]) and effect[NEW].difference > 0 and take_back(*places, attempt):
            effect = measure_effect(before, translate_sets(places[1], sets, running), sets)
        kept, why = decide(effect)
        why += "; half of the way, since the whole of it forgot" if (attempt / MARK).exists() else ""
        if kept and (read(places[0], weights=False).folder / EXPORT).is_dir() and not (places[1] / BUNDLE / EXPORT).is_dir():
            try_export(places[1] / BUNDLE)  # the budget left no time for it, and what was fast stays fast
    figures = {name: (each.system, each.other, each.p) for name, each in effect.items()}
    version = LearntVersion(**plan.model_dump(), effect=figures, kept=kept, why=why)
    history = read_history(folder)
    current = plan.number if kept else history.current
    write_history(folder, history.changed(current=current, versions=(*history.versions, version)))
    clear_up(folder)
    again = f"; limelight learn {folder} --back goes back" if kept else "; the version before stays in use"
    return [f"{folder}: version {plan.number} is {'in use' if kept else 'not kept'}: {why}{again}"], version.model_dump(mode="json"), 0
