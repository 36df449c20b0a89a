"""Keys of a recipe on the command line are checked, and unknown ones get a suggestion. They are written as `optimizer.learning_rate=0.001`
or `data.filters.copied=off`.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from limelight.cli.settings_arguments import put_setting
from limelight.config import Settings
from limelight.errors import ConfigError
from limelight.training.config import Recipe

MOST_NAMED = 3  # keys suggested for one that is unknown


def check_changes(written: Sequence[str]) -> None:
    """Every unknown key and every value that its key cannot have, in one error. What values mean to each other is judged later, when
    those that nobody gave are chosen."""
    known = dict(_keys(Recipe))
    given = {text.partition("=")[0]: text for text in written}
    problems = [f"{key}: there is no such key; {_hint(key, known)}" for key in given if key not in known]
    right = {key: text for key, text in given.items() if key in known}
    problems += _value_problems(right, {key for key, is_section in known.items() if is_section})
    if problems:
        raise ConfigError("these settings cannot be used:", problems)


def _keys(cls: type[Settings], before: str = "") -> Iterator[tuple[str, bool]]:
    """Every key with its sections before it, and whether it is a section itself."""
    for name, field in cls.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)] if field.annotation else []
        inner = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Settings)), None)
        if inner is None or "list" in str(field.annotation):
            yield before + name, False
        else:
            yield before + name, True
            yield from _keys(inner, f"{before}{name}.")


def _hint(key: str, known: dict[str, bool]) -> str:
    """The key that was meant: one that was left without its section, or under another, or misspelt."""
    section, _, last = key.rpartition(".")
    beside = [each for each in known if each.rpartition(".")[0] == section]
    near = [f"data.{key}"] if f"data.{key}" in known else [each for each in known if each.endswith(f".{last}")]
    if not near and beside:
        names = [each.rpartition(".")[2] for each in beside]
        near = [f"{section}.{each}".strip(".") for each in difflib.get_close_matches(last, names, n=1)]
    near = near or ([] if beside and section else difflib.get_close_matches(key, known, n=1))
    if near:
        return f"did you mean {' or '.join(f'`{each}`' for each in near[:MOST_NAMED])}?"
    if beside and section:
        return f"known keys: {', '.join(beside)}"
    return f"known: {', '.join(f'{each}.KEY' if known[each] else each for each in known if '.' not in each)}; a run's recipe.toml has all"


def _value_problems(given: dict[str, str], sections: set[str]) -> list[str]:
    """Return problems of single keys. A recipe that lacks only what a run chooses is put together, and judged by its own rules."""
    values: dict[str, Any] = {
        "data": {"languages": ["en", "de"], "corpora": [{"name": "corpus", "paths": ["corpus.tsv"]}]},
        "model": {"vocab_size": 8_000},
    }
    for key in sorted(given, key=len, reverse=True):  # a section that was given a value hides no key of it
        put_setting(values, *given[key].split("=", 1))
    try:
        Recipe(**values)
    except ConfigError as error:
        return [problem for problem in error.problems if _is_about(problem.partition(":")[0], given, sections)]
    return []


def _is_about(place: str, given: dict[str, str], sections: set[str]) -> bool:
    """Whether a problem is that of a key alone: at the key or inside its value, not at the section as a whole."""
    return any(place == key or place.startswith(f"{key}.") or (key.startswith(f"{place}.") and place not in sections) for key in given)
