"""The command line of `limelight train` becomes a `TrainRequest` and the folder of the run."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from limelight.addresses.object_store import is_address
from limelight.cli.language_arguments import is_line_file
from limelight.cli.settings_arguments import corpora_of, put_settings, settings_from, split_settings
from limelight.cli.train.recipe_keys import check_changes
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.reading.language_tags import closeness, guess_languages
from limelight.corpus.reading.streams import without_packing
from limelight.corpus.remote import find_prepared
from limelight.errors import ConfigError
from limelight.model.config import PRESETS
from limelight.planning.budget import budget_seconds
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.config import Recipe
from limelight.training.recipe.monolingual import MonoText
from limelight.training.recipe.request import TrainRequest
from limelight.training.run_folder import BUNDLE, PROBES, RECIPE, RunFacts

MOST_ROUNDS = 3
_WEIGHT = re.compile(rf"{SYNTHETIC}=\d+(\.\d+)?")
EXAMPLE = "limelight train corpus.en corpus.de -o en-de --budget 30m"


# What a recipe decides already, by the name of the parameter, and what is changed in its place: there is one way to read it.
IN_A_RECIPE = {
    "source": "data.languages",
    "target": "data.languages",
    "valid": "data.held_out.valid",
    "test": "data.held_out.test",
    "vocab_size": "data.pieces.size",
    "weight": "weight of its [[data.corpora]]",
    "swap": "swapped of its [[data.corpora]]",
    "pair": "its [[data.corpora]]",
    "both_directions": "data.both_directions",
    "tag": "tags of its [[data.corpora]]",
    "rounds": "nothing: a recipe has no --mono",
    "preset": "its [model]",
    "bundle": "fine_tuning.bundle",
    "new_pieces": "fine_tuning.parent",
    "replay": "fine_tuning.replay",
    "replay_data": "its [[data.corpora]]",
    "no_augment": "its [batch.augment], which may be left out",
    "probe": "probes.file",
    "mono": "its [[data.corpora]]: a run with monolingual text has written its synthetic pairs among them",
}


def parse_train_request(
    inputs: Sequence[str],
    *,
    output: Path | None = None,
    budget: str | None = None,
    no_augment: bool = False,
    probe: Path | None = None,
    replay_data: Sequence[str] = (),
    mono: Sequence[str] = (),
    rounds: int = 1,
    text: Mapping[str, Any] = MappingProxyType({}),
    **given: Any,
) -> tuple[TrainRequest, Path]:
    """What is asked for, and where it shall lie. Corpora, or one recipe; then section.key=value, which wins.

    `text` are the options that describe the text (source, target, valid, test, vocab_size, weight, swap), `given` those that a request
    has under the same names.
    """
    paths, written = split_settings(inputs)
    check_changes(written)
    seconds = None if budget is None else budget_seconds(budget)
    asked = TrainRequest(None, budget_seconds=seconds, **given)
    if problem := explain_preset(asked.preset):
        raise ConfigError(problem)
    _check_replay(asked, replay_data)
    place = _recipe_in(paths)
    options = {**text, **given, "mono": mono, "rounds": rounds if rounds != 1 else None}
    options |= {"replay_data": replay_data, "no_augment": no_augment, "probe": probe}
    if place is not None:
        _refuse_decided(str(place), options)
        recipe = _apply_changes(Recipe.load(place), written)
        asked, data = replace(asked, recipe=recipe), recipe.data
    elif len(paths) == 1 and (ready := find_prepared(paths[0])) is not None:
        options |= dict.fromkeys(("preset", "no_augment", "probe"))
        _refuse_decided(paths[0], options, [each for each in written if each.startswith("data.")])
        data, where = PrepareSettings(**ready.settings), paths[0].rstrip("/") if is_address(paths[0]) else str(Path(paths[0]).resolve())
        asked = replace(asked, data=data, prepared=where, changes=_changes(written, no_augment, probe))
    else:
        weights = [each for each in text.get("weight", ()) if not (mono and _WEIGHT.fullmatch(each))]
        data = _data(paths, written, asked.bundle, {**text, "weight": weights})
        own = [float(each.partition("=")[2]) for each in text.get("weight", ()) if each not in weights]
        changes = _changes(written, no_augment, probe)
        asked = replace(asked, data=data, changes=changes, new_pieces=_has_new_pieces(asked, data))
        asked = replace(asked, mono=_read_mono(mono, rounds, [*own, None][0], asked.bundle, data, changes))
        _check_bundle_options(asked, replay_data, text.get("vocab_size"))
    folder = _folder(output, asked.bundle, data)
    if probe is not None:
        from limelight.training.validation.probes import read_probe_file, read_sentences

        if read_sentences(folder / PROBES) is None:  # a run that goes on has its sentences, whatever became of the file
            read_probe_file(probe)
    # Under names of their own: a corpus of old text is often called as the new one.
    old = [CorpusSettings(**{**corpus, "name": f"replay-{corpus['name']}"}) for corpus in corpora_of(replay_data)]
    return replace(asked, replay_data=old), folder


def explain_preset(name: str | None) -> str | None:
    """Why there is no such preset; None where there is, or none was asked for."""
    return None if name in (None, *PRESETS) else f"--preset {name}: there is no such preset; the presets are {', '.join(PRESETS)}"


def _recipe_in(paths: Sequence[str]) -> Path | None:
    """The recipe among what was named, if there is one; it stands alone."""
    for path in paths:
        if (Path(path) / RECIPE).is_file():
            command = shlex.join(RunFacts.load(Path(path)).command)
            again = f"the command that began it goes on with it: {command}" if command else "the same command goes on with it"
            raise ConfigError(
                f"{path} is a run, not a corpus; {again}; for another run by its recipe: "
                f"limelight train {shlex.quote(f'{path}/{RECIPE}')} -o OTHER"
            )
    found = [path for path in paths if path.endswith(".toml")]
    if found and len(paths) > 1:
        raise ConfigError(f"{found[0]} is a recipe, and a recipe names its corpora itself; give it alone, or only the corpora")
    return Path(found[0]) if found else None


def _refuse_decided(place: str, options: Mapping[str, Any], written: Sequence[str] | None = None) -> None:
    """What a recipe decides; or, with what is `written` of the text, what was decided when a text was prepared."""
    given = [name for name in IN_A_RECIPE if options.get(name) not in (None, (), []) and options[name] is not False]
    words = [f"--{'from' if name == 'bundle' else name.replace('_', '-')}" for name in given]
    problems = [f"{word}: leave it out, and change {IN_A_RECIPE[name]}" for word, name in zip(words, given, strict=True)]
    if written is not None:
        problems = [f"{word}: leave it out, or name the corpora in place of the prepared text" for word in (*words, *written)]
    if problems:
        raise ConfigError(f"{place} decides what these options would:", problems)


def _changes(written: Sequence[str], no_augment: bool, probe: Path | None) -> dict[str, Any]:
    """Return the values that stand above whatever is chosen; those of the text are in its settings."""
    changes: dict[str, Any] = {}
    put_settings(changes, [text for text in written if not text.startswith("data.")])
    if no_augment:
        batch = changes.setdefault("batch", {})
        if "augment" in batch:
            keys = ", ".join(f"batch.augment.{key}" for key in batch["augment"])
            raise ConfigError(f"--no-augment leaves the text as it is, and {keys} would change it; leave out one of them")
        batch["augment"] = None
    if probe is not None:
        changes.setdefault("probes", {}).setdefault("file", str(probe))
    return changes


def _apply_changes(recipe: Recipe, written: Sequence[str]) -> Recipe:
    if not written:
        return recipe
    values = recipe.model_dump(exclude_unset=True)
    put_settings(values, written)
    keys = {text.split("=", 1)[0] for text in written}
    # The budget of then would change the steps asked for now.
    if "schedule.steps" in keys and "budget_seconds" not in keys:
        values.pop("budget_seconds", None)
        values["schedule"]["fixed"] = True
    return Recipe(**values)


def _data(paths: Sequence[str], written: Sequence[str], bundle: Path | None, text: Mapping[str, Any]) -> PrepareSettings:
    if not paths and not text.get("pair"):
        raise ConfigError(f"there is nothing to learn from; name the files, such as: {EXAMPLE}")
    options = {**dict.fromkeys(("source", "target", "valid", "test", "vocab_size", "keep_dropped")), **text}
    if bundle is not None and None in (options["source"], options["target"]):
        options["of_bundle"] = _languages_of(bundle, paths)
    elif bundle is not None:
        options |= _name_as(bundle, (options["source"], options["target"]))
    settings = [each.removeprefix("data.") for each in written if each.startswith("data.")]
    return settings_from(paths, options, options.get("weight", ()), None, settings=settings)


def _read_mono(
    mono: Sequence[str], rounds: int, weight: float | None, bundle: Path | None, data: PrepareSettings, changes: Mapping[str, Any]
) -> MonoText | None:
    """Files are of the target language, unless their names end with the code of the source."""
    first, second = data.languages
    if not mono and rounds != 1:
        raise ConfigError(f"--rounds {rounds} is for monolingual text; name it with --mono, such as --mono news.{second}")
    ending = {path: Path(without_packing(path)).suffix[1:] for path in mono}
    source = [path for path in mono if ending[path] and closeness(first, ending[path]) is not None]
    taken = any(corpus.name == SYNTHETIC or SYNTHETIC in corpus.tags for corpus in data.corpora)
    found = {
        "--steps and --budget are shared by the models; give them as options": "budget_seconds" in changes
        or "steps" in changes.get("schedule", {}),
        "synthetic pairs are made for one direction; leave out --both-directions and other pairs": len(data.directions) > 1,
        "the first model of --mono begins at nothing, with own pieces; leave out --from and given pieces": bool(
            bundle or data.given_pieces
        ),
        f"{SYNTHETIC} is the name and the tag of the pairs that are made; call the corpus otherwise": taken,
        f"--weight {SYNTHETIC}={weight}: give more than 0 and at most 1000": weight is not None and not 0 < weight <= 1000,
        f"--rounds {rounds}: give 1 to {MOST_ROUNDS}; they share the same time": not 1 <= rounds <= MOST_ROUNDS,
        f"no file is in {second}, the target, which a model learns to write from": len(source) == len(mono),
        f"{', '.join(source)}: text in {first}, the source, helps from the second round on; leave it out, or give --rounds 2": bool(source)
        and rounds == 1,
    }
    problems = [
        f"{path}: give a file of lines, plain or .gz, that is there" for path in mono if not (is_line_file(path) and Path(path).exists())
    ]
    problems += [problem for problem, is_true in found.items() if is_true]
    if mono and problems:
        raise ConfigError("--mono cannot be used so:", problems)
    return MonoText([path for path in mono if path not in source], source, rounds, weight) if mono else None


def _languages_of(bundle: Path, paths: Sequence[str]) -> tuple[str, str] | None:
    """What the translator to go on from translates; None where the names of the files say otherwise."""
    from limelight.bundle import read
    from limelight.training.recipe.parent import is_parent

    settings = read(bundle).settings
    languages = settings.languages
    guessed = guess_languages(paths[0], paths[1]) if len(paths) == 2 else None
    if guessed and settings.tags is not None and not is_parent(settings, guessed):
        languages = settings.aim(guessed[1], guessed[0]).languages
    if guessed and guessed == languages[::-1]:
        raise ConfigError(
            f"{bundle} translates {languages[0]} to {languages[1]}, but by their names the files are {guessed[0]} and {guessed[1]}; "
            f"give them in the other order, or say what they are: --source {guessed[0]} --target {guessed[1]}, of a new translator"
        )
    return None if guessed and is_parent(settings, guessed) else languages


def _name_as(bundle: Path, given: tuple[str, str]) -> dict[str, tuple[str, str] | None]:
    """Languages by the codes of the translator to go on from, if it is told them and knows them: nb is no, and en is eng_Latn."""
    from limelight.bundle import read
    from limelight.training.recipe.parent import is_parent

    settings = read(bundle).settings
    if settings.tags is None or is_parent(settings, given):
        return {}
    return {"of_bundle": settings.aim(given[1], given[0]).languages, "source": None, "target": None}


def _has_new_pieces(asked: TrainRequest, data: PrepareSettings) -> bool:
    """Asked for, or text of a language that the translator was not taught."""
    from limelight.bundle import read
    from limelight.training.recipe.parent import is_parent

    return asked.bundle is not None and (asked.new_pieces or is_parent(read(asked.bundle).settings, *data.directions))


def _check_replay(asked: TrainRequest, replay_data: Sequence[str]) -> None:
    if asked.bundle is None and (asked.replay is not None or replay_data or asked.new_pieces):
        given = "--replay" if asked.replay is not None else "--replay-data" if replay_data else "--new-pieces"
        raise ConfigError(f"{given} is for going on from a translator; name it with --from, such as --from en-de")
    if asked.bundle is not None and not asked.bundle.exists() and re.fullmatch("[a-z]{2,3}", str(asked.bundle)):
        raise ConfigError(
            f"--from {asked.bundle}: --from names the translator to go on from, and there is none; "
            "the languages are given with --source and --target"
        )
    if asked.replay is not None and not 0 <= asked.replay < 1:
        raise ConfigError(f"--replay {asked.replay:g} is no share of the text; give 0 or more and less than 1, such as 0.5")


def _check_bundle_options(asked: TrainRequest, replay_data: Sequence[str], vocab_size: int | None) -> None:
    """A translator to go on from has its size and its pieces; a parent its size alone, and its text is in other pieces."""
    decided = {"--preset": asked.preset, **({} if asked.new_pieces else {"--vocab-size": vocab_size})}
    mixed = {"--replay": asked.replay, "--replay-data": ", ".join(replay_data)} if asked.new_pieces else {}
    if asked.bundle is not None and any({**decided, **mixed}.values()):
        problems = [f"{option} {given}: leave it out" for option, given in decided.items() if given]
        problems += [f"{option} {given}: leave it out, or name the text among the corpora" for option, given in mixed.items() if given]
        keeps = "its size, and its text is in other pieces" if asked.new_pieces else "its size and its pieces, and goes on with them"
        raise ConfigError(f"{asked.bundle} has {keeps}:", problems)


def _folder(output: Path | None, bundle: Path | None, data: PrepareSettings) -> Path:
    folder = output or Path("-".join(dict.fromkeys(code for direction in data.directions for code in direction)))
    if folder.is_file():
        raise ConfigError(f"{folder} is a file, but a run is a folder; name another with -o")
    run = bundle.absolute().parent if bundle is not None and bundle.name == BUNDLE else bundle
    if bundle is not None and run is not None and folder.resolve() in (bundle.resolve(), run.resolve()):
        raise ConfigError(
            f"{folder} holds the translator to go on from, which stays as it is; name another folder, such as -o {folder}-new"
        )
    return folder
