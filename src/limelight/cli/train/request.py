"""The command line of `limelight train` becomes a `TrainRequest` and the folder of the run.

Everything that can be found wrong without reading a corpus is found here: a run prepares for minutes before it needs its learning rate.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limelight.cli.settings_arguments import corpora_of, put_setting, settings_from
from limelight.cli.train.recipe_keys import check_changes
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.reading.language_tags import closeness, guess_languages
from limelight.errors import ConfigError
from limelight.model.config import PRESETS
from limelight.planning.budget import budget_seconds
from limelight.training.config import Precision, Recipe
from limelight.training.recipe.request import TrainRequest
from limelight.training.run_folder import BUNDLE, PROBES, RECIPE, RunFacts

SETTING = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z0-9_]+)*=")
EXAMPLE = "limelight train corpus.en corpus.de -o en-de --budget 30m"


@dataclass(frozen=True)
class TrainOptions:
    """Options hold what was given by name; None is what was not."""

    output: Path | None = None
    source: str | None = None
    target: str | None = None
    valid: Sequence[str] = ()
    test: Sequence[str] = ()
    vocab_size: int | None = None
    weight: Sequence[str] = ()
    budget: str | None = None
    steps: int | None = None
    preset: str | None = None
    bundle: Path | None = None
    replay: float | None = None
    replay_data: Sequence[str] = ()
    no_augment: bool = False
    probe: Path | None = None
    seed: int | None = None
    device: str | None = None
    precision: Precision | None = None
    threads: int | None = None
    dry_run: bool = False
    swap: bool = False
    anyway: bool = False


def parse_train_request(inputs: Sequence[str], options: TrainOptions) -> tuple[TrainRequest, Path]:
    """What is asked for, and where it shall lie. Corpora, or one recipe; then section.key=value, which wins."""
    paths = [text for text in inputs if not SETTING.match(text) or Path(text).exists()]
    written = [text for text in inputs if text not in paths]
    check_changes(written)
    seconds = None if options.budget is None else budget_seconds(options.budget)
    _check_preset(options.preset)
    _check_replay(options)
    data: PrepareSettings | None = None
    recipe: Recipe | None = None
    changes: dict[str, Any] = {}
    place = _recipe_in(paths)
    if place is not None:
        _refuse_beside_a_recipe(place, options)
        recipe = _apply_changes(Recipe.load(place), written)
        languages = recipe.data.languages
    else:
        data = _data(paths, written, options)
        languages = data.languages
        for text in written:
            if not text.startswith("data."):
                put_setting(changes, *text.split("=", 1))
        if options.no_augment:
            _leave_text(changes)
        if options.probe is not None:
            changes.setdefault("probes", {}).setdefault("file", str(options.probe))
    folder = _folder(options, languages)
    if options.probe is not None:
        _check_probe(options.probe, folder)
    asked = TrainRequest(
        data=data, recipe=recipe, changes=changes, preset=options.preset, budget_seconds=seconds, steps=options.steps,
        bundle=options.bundle, replay=options.replay, replay_data=_replay_data(options.replay_data), seed=options.seed,
        device=options.device, precision=options.precision, threads=options.threads, dry_run=options.dry_run,
        anyway=options.anyway,
    )  # fmt: skip
    return asked, folder


def _recipe_in(paths: Sequence[str]) -> Path | None:
    """The recipe among what was named, if there is one; it stands alone."""
    for path in paths:
        if (Path(path) / RECIPE).is_file():
            command = shlex.join(RunFacts.load(Path(path)).command)
            again = (
                f"the command that began it goes on with it: {command}"
                if command
                else "the same command goes on with it"
            )
            raise ConfigError(
                f"{path} is a run, not a corpus; {again}; for another run by its recipe: "
                f"limelight train {shlex.quote(f'{path}/{RECIPE}')} -o OTHER"
            )
    found = [path for path in paths if path.endswith(".toml")]
    if found and len(paths) > 1:
        raise ConfigError(
            f"{found[0]} is a recipe, and a recipe names its corpora itself; give it alone, or only the corpora"
        )
    return Path(found[0]) if found else None


def _refuse_beside_a_recipe(place: Path, options: TrainOptions) -> None:
    """A recipe says these already. What is changed in it is said with its own words, so that there is one way to read them."""
    instead = {
        "--source": (options.source, "data.languages"),
        "--target": (options.target, "data.languages"),
        "--valid": (options.valid, "data.held_out.valid"),
        "--test": (options.test, "data.held_out.test"),
        "--vocab-size": (options.vocab_size, "data.pieces.size"),
        "--weight": (options.weight, "weight of its [[data.corpora]]"),
        "--swap": (options.swap or None, "swapped of its [[data.corpora]]"),
        "--preset": (options.preset, "its [model]"),
        "--from": (options.bundle, "fine_tuning.bundle"),
        "--replay": (options.replay, "fine_tuning.replay"),
        "--replay-data": (options.replay_data, "its [[data.corpora]]"),
        "--no-augment": (options.no_augment or None, "its [batch.augment], which may be left out"),
        "--probe": (options.probe, "probes.file"),
    }
    problems = [
        f"{option}: leave it out, and change {where}" for option, (given, where) in instead.items() if given not in (None, (), [])
    ]  # fmt: skip
    if problems:
        raise ConfigError(f"{place} decides what these options would:", problems)


def _leave_text(changes: dict[str, Any]) -> None:
    """Nothing of the text is changed while it is fed."""
    batch = changes.setdefault("batch", {})
    if "augment" in batch:
        keys = ", ".join(f"batch.augment.{key}" for key in batch["augment"])
        raise ConfigError(f"--no-augment leaves the text as it is, and {keys} would change it; leave out one of them")
    batch["augment"] = None


def _check_probe(path: Path, folder: Path) -> None:
    """Check the file before minutes of preparation. A run that goes on has its sentences, whatever became of the file."""
    from limelight.training.validation.probes import read_probe_file, read_sentences

    if read_sentences(folder / PROBES) is None:
        read_probe_file(path)


def _apply_changes(recipe: Recipe, written: Sequence[str]) -> Recipe:
    if not written:
        return recipe
    values = recipe.model_dump(exclude_unset=True)
    for text in written:
        put_setting(values, *text.split("=", 1))
    keys = {text.split("=", 1)[0] for text in written}
    if (
        "schedule.steps" in keys and "budget_seconds" not in keys
    ):  # the budget of then would change the steps asked for now
        values.pop("budget_seconds", None)
        values["schedule"]["fixed"] = True
    return Recipe(**values)


def _data(paths: Sequence[str], written: Sequence[str], options: TrainOptions) -> PrepareSettings:
    if not paths:
        raise ConfigError(f"there is nothing to learn from; name the files, such as: {EXAMPLE}")
    needs = options.source is None or options.target is None
    asked = {
        "source": options.source, "target": options.target,
        "of_bundle": _languages_of(options.bundle, paths) if options.bundle is not None and needs else None,
        "valid": options.valid, "test": options.test, "vocab_size": options.vocab_size,
        "keep_dropped": False, "swap": options.swap,
    }  # fmt: skip
    settings = [text.removeprefix("data.") for text in written if text.startswith("data.")]
    return settings_from(paths, asked, options.weight, None, settings=settings)


def _languages_of(bundle: Path, paths: Sequence[str]) -> tuple[str, str]:
    """What the translator to go on from translates, unless the names of the files say otherwise."""
    from limelight.bundle import read

    languages = read(bundle).settings.languages
    guessed = guess_languages(paths[0], paths[1]) if len(paths) == 2 else None
    if guessed and any(closeness(ours, named) is None for ours, named in zip(languages, guessed, strict=True)):
        swapped = "give them in the other order" if guessed == languages[::-1] else "give files of these languages"
        raise ConfigError(
            f"{bundle} translates {languages[0]} to {languages[1]}, but by their names the files are {guessed[0]} and {guessed[1]}; "
            f"{swapped}, or say what they are: --source {languages[0]} --target {languages[1]}"
        )
    return languages


def _replay_data(paths: Sequence[str]) -> list[CorpusSettings]:
    """Return old corpora under names of their own: a corpus of old text is often called as the new one."""
    return [
        CorpusSettings(**{**corpus, "name": f"replay-{corpus['name']}"}) for corpus in corpora_of(list(paths)) if paths
    ]


def _check_preset(name: str | None) -> None:
    if name is not None and name not in PRESETS:
        raise ConfigError(f"--preset {name}: there is no such preset; the presets are {', '.join(PRESETS)}")


def _check_replay(options: TrainOptions) -> None:
    if options.bundle is None and (options.replay is not None or options.replay_data):
        given = "--replay" if options.replay is not None else "--replay-data"
        raise ConfigError(f"{given} is for going on from a translator; name it with --from, such as --from en-de")
    if options.bundle is not None and not options.bundle.exists() and re.fullmatch("[a-z]{2,3}", str(options.bundle)):
        raise ConfigError(
            f"--from {options.bundle}: --from names the translator to go on from, and there is none; "
            "the languages are given with --source and --target"
        )
    kept = {"--preset": options.preset, "--vocab-size": options.vocab_size}
    if options.bundle is not None and any(kept.values()):
        problems = [f"{option} {given}: leave it out" for option, given in kept.items() if given]
        raise ConfigError(f"{options.bundle} has its size and its pieces, and goes on with them:", problems)
    if options.replay is not None and not 0 <= options.replay < 1:
        raise ConfigError(
            f"--replay {options.replay:g} is no share of the text; give 0 or more and less than 1, such as 0.5"
        )


def _folder(options: TrainOptions, languages: tuple[str, str]) -> Path:
    folder = options.output or Path("-".join(languages))
    if folder.is_file():
        raise ConfigError(f"{folder} is a file, but a run is a folder; name another with -o")
    if options.bundle is not None and folder.resolve() in (options.bundle.resolve(), _run_of(options.bundle)):
        raise ConfigError(
            f"{folder} holds the translator to go on from, which stays as it is; name another folder, such as -o {folder}-new"
        )
    return folder


def _run_of(bundle: Path) -> Path:
    """en-de/bundle -> en-de"""
    return bundle.absolute().parent.resolve() if bundle.name == BUNDLE else bundle.resolve()
