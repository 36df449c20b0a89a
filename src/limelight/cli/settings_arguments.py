"""Arguments of `prepare`, `train` and `plan` that describe the text become `PrepareSettings`."""

import os
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limelight.cli.language_arguments import (
    corpora_of_many,
    corpora_of_pairs,
    find_alike,
    is_line_file,
    put_held_out,
    put_languages,
    put_tags,
)
from limelight.corpus.config import PrepareSettings
from limelight.corpus.reading.finding import find, find_stated_languages
from limelight.corpus.reading.language_tags import guess_languages
from limelight.corpus.reading.streams import without_packing
from limelight.errors import ConfigError
from limelight.text.language_names import standard

SETTING = re.compile(r"[a-z_][a-z0-9_]*(\.[a-z0-9_]+)*=")


def split_settings(inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    paths = [text for text in inputs if not SETTING.match(text) or os.path.exists(text)]  # noqa: PTH110
    return paths, [text for text in inputs if text not in paths]


def settings_from(
    inputs: Sequence[str],
    options: dict[str, Any],
    weights: Sequence[str],
    config: Path | None,
    settings: Sequence[str] = (),
) -> PrepareSettings:
    """The file first, then the options, then section.key=value: the later wins. `settings` are further section.key=value."""
    values = read_toml(config) if config else {}
    paths, written = split_settings(inputs)
    if paths or options.get("pair"):
        values["corpora"] = tell_apart([*corpora_of(paths), *corpora_of_pairs(options.get("pair") or ())])
    if not values.get("corpora"):
        raise ConfigError("there is nothing to prepare; name the files, such as: limelight prepare corpus.en corpus.de -o prepared")
    if options.get("both_directions"):
        values["both_directions"] = True
    if options["vocab_size"] is not None:
        values.setdefault("pieces", {})["size"] = options["vocab_size"]
    if options["keep_dropped"]:
        values["keep_dropped"] = True
    put_settings(values, [*written, *settings])
    if options.get("swap"):
        values["corpora"] = [{**corpus, "swapped": True} for corpus in values["corpora"]]
    _weigh(values.get("corpora", []), weights)
    put_tags(values["corpora"], options.get("tag") or ())
    values["languages"] = _languages(values, options)
    own = not (options["source"] or options["target"] or options.get("of_bundle"))
    put_languages(values["corpora"], values["languages"], guess=own)
    for name in ("valid", "test"):
        if options[name]:
            put_held_out(values, name, options[name])
    return PrepareSettings(**values)


def corpora_of(paths: Sequence[str]) -> list[dict[str, Any]]:
    """Each file, folder or glob is a corpus of its own, but two line files in a row are one: corpus.en corpus.de. Of more that are named
    alike but for the language, the first is paired with each other one."""
    corpora: list[dict[str, Any]] = []
    at = 0
    while at < len(paths):
        alike = find_alike([path for path in paths[at:] if is_line_file(path)]) if is_line_file(paths[at]) else []
        if len(alike) > 2 and list(paths[at : at + len(alike)]) == alike:
            corpora += corpora_of_many(alike)
            at += len(alike)
        elif not is_line_file(paths[at]):
            corpora.append({"name": _name(paths[at]), "paths": [paths[at]]})
            at += 1
        else:
            partner = next((number for number in range(at + 1, len(paths)) if is_line_file(paths[number])), None)
            if partner is None:
                raise ConfigError(
                    f"{paths[at]} is a file of lines and has no partner; give source and target in this order, or a file that holds "
                    "both (TSV, JSONL, TMX, ...)"
                )
            corpora += [{"name": _name(path), "paths": [path]} for path in paths[at + 1 : partner]]
            corpora.append({"name": _name(paths[at]), "paths": [paths[at], paths[partner]]})
            at = partner + 1
    return tell_apart(corpora)


def tell_apart(corpora: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Corpora of one name get numbers."""
    seen: Counter[str] = Counter()
    for corpus in corpora:
        name = corpus["name"]
        seen[name] += 1
        corpus["name"] = f"{name}-{seen[name]}" if seen[name] > 1 else name
    return corpora


def _name(path: str) -> str:
    """data/train.en.gz -> train"""
    return Path(without_packing(path.rstrip("/*"))).name.split(".")[0] or "corpus"


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist; check its name") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None


def put_settings(values: dict[str, Any], written: Sequence[str]) -> None:
    for text in written:
        put_setting(values, *text.split("=", 1))


def put_setting(values: dict[str, Any], key: str, text: str) -> None:
    """filters.copied=off -> values["filters"]["copied"] = "off". The text is read as TOML where it is TOML, else it is a string."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *sections, last = key.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{key}={text}: {section} is no section")
    values[last] = value


def _weigh(corpora: list[dict[str, Any]], weights: Sequence[str]) -> None:
    problems = []
    for text in weights:
        name, _, value = text.partition("=")
        corpus = next((each for each in corpora if each.get("name") == name), None)
        if corpus is None:
            problems.append(
                f"--weight {text}: there is no corpus {name!r}; there are: {', '.join(str(each.get('name')) for each in corpora)}"
            )
        elif not re.fullmatch(r"\d+(\.\d+)?", value):
            problems.append(f"--weight {text}: write NAME=NUMBER, such as {name}=2")
        else:
            corpus["weight"] = float(value)
    if problems:
        raise ConfigError("the weights cannot be used:", problems)


def _languages(values: dict[str, Any], options: dict[str, Any]) -> tuple[str, str]:
    """Asked for, or written in the settings, or guessed from the names of line files, or what the files say of themselves."""
    given = values.get("languages") or values["corpora"][0].get("languages") or (None, None)
    guesses = (guess_languages(*corpus["paths"]) for corpus in values.get("corpora", []) if len(corpus.get("paths", [])) == 2)
    guessed = next((guess for guess in guesses if guess), (None, None))
    theirs = options.get("of_bundle") or (None, None)  # written as their translator writes them
    found = []
    for at, side in enumerate(("source", "target")):
        places = {f"--{side}": options[side], "languages:": given[at], "by its name a file is": guessed[at]}
        known = theirs[at] if not options[side] else None
        found.append(known or next((standard(code, where) for where, code in places.items() if code), None))
    source, target = found
    if not source or not target:
        paths = [path for corpus in values["corpora"] for path in corpus.get("paths", [])]
        if not any("://" in path for path in paths):
            stated = [code and standard(code, "a file says") for code in find_stated_languages(paths)]
            source, target = source or stated[0], target or stated[1]
    if not source or not target:
        if any("://" not in path and not re.search(r"[*?\[]", path) and not Path(path).exists() for path in paths):
            find(paths, ("", ""))  # a misspelt name is why nothing can be told from it: this says so
        raise ConfigError(
            f"the languages cannot be told from the files and their names; say them: --source {source or 'en'} --target {target or 'de'}"
        )
    return source, target
