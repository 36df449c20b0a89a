"""`find` turns paths, folders and globs into the parts to be read, with line files paired by their names.

find(["data/"], ("en", "de"))  ->  a CorpusPart for each .tsv, .tmx, ... and for each train.en.gz beside train.de.gz
"""

import difflib
import glob
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from limelight.corpus.reading.language_tags import (
    closeness,
    guess_languages,
    name_without_language,
    state_languages,
)
from limelight.corpus.reading.raw import CorpusPart
from limelight.corpus.reading.streams import filesystem_of, unreachable, without_packing
from limelight.errors import DataError

LINES = "lines"
MOST_ASKED = 1_000  # files that are opened to see which languages they say they are in
FORMAT_OF_SUFFIX = {
    ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet",
    ".tmx": "tmx", ".xlf": "xliff", ".xliff": "xliff", ".po": "po",
}  # fmt: skip
_UNREADABLE = {
    ".csv": "convert it to .tsv",
    **dict.fromkeys((".zip", ".tar", ".tgz"), "unpack it"),
    **dict.fromkeys((".bz2", ".xz"), "unpack it, or pack it with gzip or zstd"),
    ".mo": "give the .po it was made from",
    ".pot": "it is a template without translations; give the .po",
}


def find(
    paths: Sequence[str],
    languages: tuple[str, str],
    *,
    columns: tuple[str, str] | None = None,
    corpus: int = 0,
    first_file: int = 0,
) -> list[CorpusPart]:
    """Everything to be read, numbered from `first_file` in a fixed order. All that is wrong with the paths is in one DataError.

    Two line files given by name are source and target, in this order. All other line files are paired by names that are
    equal apart from the language. A file found twice is read once.
    """
    given, found = _expand(paths)
    _refuse_unreadable([*given, *found])
    _refuse_other_catalogues([*given, *found], languages[1])
    named = [path for path in given if format_of(path) == LINES]
    pairs: list[tuple[str, str]] = []
    if len(named) == 2:
        pairs.append((named[0], named[1]))
        _refuse_swapped(pairs[0], languages)
        named = []
    pairs += _pair_by_name([*named, *(path for path in found if format_of(path) == LINES)], languages)
    parts: list[tuple[str, tuple[str, ...]]] = [(LINES, pair) for pair in pairs]
    parts += [(format_of(path), (path,)) for path in [*given, *found] if format_of(path) != LINES]
    numbered = enumerate(parts, first_file)
    return [CorpusPart(corpus, number, kind, files, languages, columns) for number, (kind, files) in numbered]


def refuse_missing(paths: Sequence[str]) -> None:
    """All of this machine's files that are not there, at once: there may be a hundred pairs of languages."""
    _expand([path for path in paths if "://" not in path])


def find_stated_languages(paths: Sequence[str]) -> tuple[str | None, str | None]:
    """The source and the target that most of the files say of themselves; None where none does."""
    given, found = _expand(paths)
    stated = [state_languages(path, format_of(path)) for path in [*given, *found][:MOST_ASKED]]
    source = _most_common([each.source for each in stated if each.source])
    others = [each.target for each in stated if each.target and (not source or closeness(source, each.target) is None)]
    return source, _most_common(others)


def _most_common(tags: Sequence[str]) -> str | None:
    """["de", "de_DE", "is"] -> "de"; ["pt_BR", "pt_BR"] -> "pt-BR": a kind of a language only where all agree on it."""
    if not tags:
        return None
    primary = Counter(re.split("[-_]", tag)[0].lower() for tag in tags).most_common(1)[0][0]
    kinds = {tag.replace("_", "-") for tag in tags if closeness(primary, tag) is not None}
    return kinds.pop() if len(kinds) == 1 else primary


def format_of(address: str) -> str:
    """corpus.tmx.gz -> tmx; whatever is not known holds lines."""
    return FORMAT_OF_SUFFIX.get(_suffix(address), LINES)


def holds_lines(address: str) -> bool:
    """By its name: corpus.en.gz does; a catalogue, a memory or a packed folder does not."""
    return format_of(address) == LINES and _suffix(address) not in _UNREADABLE


def _suffix(address: str) -> str:
    return Path(without_packing(address)).suffix.lower()


def _expand(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files given by name, and those found in folders or by globs: sorted, without hidden ones."""
    given: dict[str, None] = {}
    found: dict[str, None] = {}
    problems = []
    for path in paths:
        expanded = _expand_elsewhere(path) if "://" in path else _expand_local(path)
        if isinstance(expanded, str):
            problems.append(expanded)
        elif expanded == [path]:
            given[path] = None
        else:
            found.update(dict.fromkeys(expanded))
    _refuse("Some inputs cannot be read:", problems)
    return list(given), [path for path in found if path not in given]


def _expand_local(path: str) -> list[str] | str:
    """The files, or what is wrong."""
    place = Path(path)
    if place.is_file():
        return [path]
    if place.is_dir():
        files = sorted(str(file) for file in place.rglob("*") if file.is_file() and _is_shown(file.relative_to(place)))
        return files or f"{path} is a folder without files"
    if glob.has_magic(path):
        # glob leaves out hidden files by itself.
        files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207
        return files or f"{path} fits no file"
    if place.exists():
        return f"{path} is neither a file nor a folder; write what it gives to a file first"
    beside = [file.name for file in place.parent.iterdir()] if place.parent.is_dir() else []
    return _suggest(path, place.name, beside, lambda name: str(place.parent / name))


def _expand_elsewhere(path: str) -> list[str] | str:
    filesystem, inner = filesystem_of(path)
    try:
        if filesystem.isfile(inner):
            return [path]
        if filesystem.isdir(inner):
            root = inner.rstrip("/") + "/"
            names = [name for name in filesystem.find(inner) if _is_shown(Path(name.removeprefix(root)))]
        elif glob.has_magic(path):
            shown = (name for name in filesystem.glob(inner) if _is_shown(Path(Path(name).name)))
            names = [name for name in shown if filesystem.isfile(name)]
        else:
            parent = inner.rpartition("/")[0]
            beside = filesystem.ls(parent, detail=False) if filesystem.isdir(parent) else []
            return _suggest(path, inner, beside, filesystem.unstrip_protocol)
        return sorted(map(filesystem.unstrip_protocol, names)) or f"{path} holds no files"
    except Exception as error:  # no network, no rights, no such bucket: each package has errors of its own
        raise unreachable(path, error) from None


def _suggest(path: str, name: str, beside: Sequence[str], show: Callable[[str], str]) -> str:
    near = " or ".join(map(show, difflib.get_close_matches(name, beside, n=3)))
    return f"{path} does not exist; " + (f"did you mean {near}?" if near else "check the name")


def _is_shown(path: Path) -> bool:
    return not any(piece.startswith(".") for piece in path.parts)


def _refuse(what: str, problems: Sequence[str], advice: str = "") -> None:
    if problems:
        raise DataError("\n  - ".join([what, *problems]) + advice)


def _refuse_unreadable(paths: list[str]) -> None:
    problems = [f"{path}: {_UNREADABLE[_suffix(path)]}" for path in paths if _suffix(path) in _UNREADABLE]
    _refuse("Some files are in a format that is not read:", problems)


def _refuse_other_catalogues(paths: list[str], target: str) -> None:
    """A catalogue has one language, and every line of it would be wrong. TMX and XLIFF name theirs, and are asked when they are read."""
    stated = {path: state_languages(path, "po").target for path in paths if target and format_of(path) == "po"}
    _refuse(
        f"Some catalogues are not in {target}, by their header or their name:",
        [f"{path}: {tag}" for path, tag in stated.items() if tag and closeness(target, tag) is None],
        f"\nLeave them out, for example with a pattern such as '*.{target}.po', or mend the header (Language: {target})",
    )


def _refuse_swapped(pair: tuple[str, str], languages: tuple[str, str]) -> None:
    guess = guess_languages(*pair)
    if guess is None:
        return
    straight = [closeness(language, tag) is not None for language, tag in zip(languages, guess, strict=True)]
    turned = [closeness(language, tag) is not None for language, tag in zip(languages, guess[::-1], strict=True)]
    if all(turned) and not any(straight):
        raise DataError(
            f"{pair[0]} and {pair[1]} seem to be {guess[0]} and {guess[1]}, and the languages are {languages[0]} and "
            f"{languages[1]}: give the files in the other order"
        )


def _pair_by_name(paths: list[str], languages: tuple[str, str]) -> list[tuple[str, str]]:
    """Files whose names are equal apart from the language; every file left over is in the error."""
    targets: dict[str, list[str]] = {}
    for path in paths:
        for key in name_without_language(path, languages[1], languages[0]):
            targets.setdefault(key, []).append(path)
    pairs: list[tuple[str, str]] = []
    used: set[str] = set()
    problems = []
    for path in paths:
        keys = name_without_language(path, languages[0], languages[1])
        partners = {target for key in keys for target in targets.get(key, ()) if target != path}
        if len(partners) == 1:
            pairs.append((path, partners.pop()))
            used.update(pairs[-1])
        elif partners:
            problems.append(f"{path} could be the source of {', '.join(sorted(partners))}; keep one")
            used.update([path, *partners])
    twice = sorted(target for target, times in Counter(target for _, target in pairs).items() if times > 1)
    problems += [f"{target} has several sources; keep one" for target in twice]
    problems += [f"{path} has no partner" for path in paths if path not in used]
    _refuse(
        "Some files are no known format and cannot be paired:",
        problems,
        f"\nName line files alike apart from the language, such as train.{languages[0]} and train.{languages[1]}, "
        f"give exactly two by name, or leave these out. Known formats: {' '.join(FORMAT_OF_SUFFIX)} (and .gz, .zst)",
    )
    return pairs
