"""`limelight distill` lets a translator teach a smaller one: it translates text, and a student is trained on the pairs."""

import inspect
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.cli.screen import Screen
from limelight.cli.train.train import read_request, run_training, train
from limelight.errors import ConfigError

EXAMPLES = (
    "limelight distill big --text corpus.en -o small --preset student --valid dev.en --valid dev.de",
    "limelight distill big --text corpus.en --references corpus.de -o small --budget 2h",
    "limelight distill --text corpus.en --translations corpus.mt.de --source en --target de -o small",
)

# Options of `train` that a student has too. What they say of text holds for what its teacher made.
OF_TRAIN = (
    *("output", "budget", "steps", "preset", "source", "target", "valid", "test", "vocab_size", "anyway", "no_augment", "probe", "seed"),
    *("device", "precision", "threads", "workers", "no_export", "yes", "as_json", "plain", "quiet"),
)


def distill(
    teachers: Annotated[
        list[str] | None, typer.Argument(help="The translator that teaches, or several as an ensemble; section.key=value of the recipe.")
    ] = None,
    text: Annotated[str | None, typer.Option("--text", help="Text to translate, a sentence in each line; may be packed.")] = None,
    references: Annotated[str | None, typer.Option("--references", help="People's translations; the nearest of --nbest is taken.")] = None,
    nbest: Annotated[int | None, typer.Option("--nbest", min=2, max=64, help="With --references: translations to choose from; 8.")] = None,
    translations: Annotated[str | None, typer.Option("--translations", help="What another system made of the text, line by line.")] = None,
    **options: Any,
) -> None:  # fmt: skip
    """Let a translator teach a smaller one: it translates text, and a student is trained on the pairs.

    Ctrl-C stops; the same command goes on.
    """
    from limelight.cli.settings_arguments import split_settings
    from limelight.cli.train.recipe_keys import check_changes

    folders, written = split_settings(teachers or [])
    _check(folders, text, references, translations, nbest, options)
    assert text is not None
    check_changes(written)
    given: dict[str, Any] = {name: each.default for name, each in inspect.signature(train).parameters.items()} | options
    if translations is not None:
        made_by, corpus = f"another system ({Path(translations).name})", [text, translations]
    else:
        made_by, corpus = _ask_teachers([Path(folder) for folder in folders], text, references, nbest or 8, given)
    given |= {"dry_run": False, "preset": given["preset"] or "student"}
    given["inputs"] = [*corpus, *_leave_noise(given), *written, f"teacher={json.dumps(made_by, ensure_ascii=False)}"]
    began = time.monotonic()  # a budget is the student's
    asked, folder = read_request(given)
    quiet = given["quiet"] or given["as_json"]
    raise typer.Exit(run_training(asked, folder, given["workers"], given["plain"], quiet, given["as_json"], began))


def _check(
    folders: Sequence[str], text: str | None, references: str | None, translations: str | None, nbest: int | None, options: dict[str, Any]
) -> None:
    from limelight.cli.train.request import explain_preset
    from limelight.planning.budget import budget_seconds

    problems = [] if text else ["--text is missing: name the file to be translated"]
    if bool(folders) == (translations is not None):
        problems.append("name a teacher, or give the --translations of another system; one of the two")
    if translations and references:
        problems.append("--references choose among the translations of a teacher, and --translations are chosen; leave out one of them")
    if nbest is not None and not references:
        problems.append("--nbest are to choose from by --references; name them, or leave it out")
    output: Path | None = options["output"]
    if output is None:
        problems.append("-o is missing: name the folder of the student")
    elif output.resolve() in {place for folder in folders for place in (Path(folder).resolve(), Path(folder).resolve().parent)}:
        problems.append(f"-o {output} holds the teacher, which stays as it is; name another folder")
    problems += filter(None, [explain_preset(options["preset"])])
    if problems:
        raise ConfigError("there is nothing to distil so:", problems)
    if options["budget"] is not None:
        budget_seconds(options["budget"])  # refused now, and not when the teacher is done


def _ask_teachers(folders: Sequence[Path], text: str, references: str | None, nbest: int, given: dict[str, Any]) -> tuple[str, list[str]]:
    """Translate what is not translated yet. Return who did, and the corpus."""
    from limelight.bundle import read
    from limelight.training.recipe.teacher import TeacherWork, name_teachers, open_teachers
    from limelight.training.run.folder_lock import own_folder

    direction = read(folders[0]).settings.aim(given["target"], given["source"]).languages
    given |= dict(zip(("source", "target"), direction, strict=True))
    noise = None if given["no_augment"] else given["seed"] or 0
    work = TeacherWork(given["output"], folders, direction, text, references, nbest if references else 1, noise)
    with own_folder(given["output"]), Screen(given["plain"], given["quiet"] or given["as_json"]) as screen:
        load = lambda: open_teachers(folders, direction, given["device"], given["threads"])  # noqa: E731
        work.go(load, lambda done, total: screen.step("teacher", done, total))
    return name_teachers(folders), [str(work.translations)]


def _leave_noise(given: dict[str, Any]) -> list[str]:
    """Training makes no noise of its own, whoever translated: marks, terms and names alone, which both sides have, are learnt as always."""
    from limelight.training.recipe.teacher import NOISE

    return [] if given["no_augment"] else [f"batch.augment.{kind}=0" for kind in (*NOISE, "merged")]


def _take_options() -> None:
    """The options of `train`, said once, there."""
    own = inspect.signature(distill, eval_str=True).parameters
    theirs = inspect.signature(train, eval_str=True).parameters
    both = [each for each in own.values() if each.name != "options"] + [theirs[name] for name in OF_TRAIN]
    distill.__signature__ = inspect.Signature(both)  # type: ignore[attr-defined]
    distill.__annotations__ = {each.name: each.annotation for each in both}


_take_options()
