"""Arguments that name several languages and tags become corpora. See docs/languages.md."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limelight.corpus.reading.finding import LINES, format_of
from limelight.corpus.reading.language_tags import closeness, find_nearest, guess_languages
from limelight.errors import ConfigError
from limelight.text.language_names import standard
from limelight.text.pieces.tags import explain_bad_name

Corpora = list[dict[str, Any]]
_CODE = r"[a-z]{2,3}(?:-(?:[A-Z]{2}|[A-Z][a-z]{3}|[0-9]{3}))*|x-[A-Za-z0-9]{1,8}"
_PAIR = re.compile(rf"(?P<source>{_CODE})-(?P<target>{_CODE})=(?P<paths>.+)")


def is_line_file(path: str) -> bool:
    return format_of(path) == LINES and not path.endswith("/") and not Path(path).is_dir() and not re.search(r"[*?\[]", path)


def find_alike(paths: Sequence[str]) -> list[str]:
    """The first files, as many as are named alike but for their languages, which all differ."""
    alike, codes = list(paths[:1]), set[str]()
    for path in paths[1:]:
        languages = guess_languages(alike[0], path)
        if languages is None or (codes and languages[0] not in codes) or languages[1] in codes:
            break
        codes.update(languages)
        alike.append(path)
    return alike


def corpora_of_many(paths: Sequence[str]) -> Corpora:
    """Line-parallel files: the first beside each other one."""
    corpora: Corpora = []
    for path in paths[1:]:
        guessed = guess_languages(paths[0], path)
        assert guessed is not None
        pair = tuple(standard(code, "by its name a file is") for code in guessed)
        corpora.append({"name": "-".join(pair), "paths": [paths[0], path], "languages": pair, "partial": True})
    return corpora


def corpora_of_pairs(written: Sequence[str]) -> Corpora:
    """en-de=a.en,a.de is a corpus of two line files, en-is=b.tsv one of a file that has both."""
    corpora, problems = Corpora(), []
    for text in written:
        found = _PAIR.fullmatch(text)
        paths = found["paths"].split(",") if found else []
        if found is None or len(paths) > 2:
            problems.append(f"--pair {text}: write SOURCE-TARGET=FILE or SOURCE-TARGET=FILE,FILE, such as en-de=a.en,a.de")
        elif found["source"] == found["target"]:
            problems.append(f"--pair {text}: give two languages")
        elif len(paths) == 1 and is_line_file(paths[0]):
            problems.append(f"--pair {text}: {paths[0]} is a file of lines and needs its partner after a comma")
        else:
            pair = tuple(standard(found[side], "--pair") for side in ("source", "target"))
            corpora.append({"name": "-".join(pair), "paths": paths, "languages": pair})
    if problems:
        raise ConfigError("the pairs cannot be used:", problems)
    return corpora


def put_languages(corpora: Corpora, first: tuple[str, str], guess: bool) -> None:
    """A corpus names its languages only where they are not those of the first pair. `guess`: also from the names of its two files."""
    for corpus in corpora:
        if guess and "languages" not in corpus and len(corpus.get("paths", ())) == 2:
            guessed = guess_languages(*corpus["paths"])
            same = guessed is None or all(closeness(one, other) is not None for one, other in zip(first, guessed, strict=True))
            turned = guessed is not None and {*guessed} == {*first}
            if guessed is not None and not same and not turned:
                corpus["languages"] = tuple(standard(code, "by its name a file is") for code in guessed)
        if tuple(corpus.get("languages") or ()) == tuple(first):
            corpus.pop("languages")


def put_tags(corpora: Corpora, written: Sequence[str]) -> None:
    problems = []
    names = [str(corpus.get("name")) for corpus in corpora]
    for text in written:
        tag, _, name = text.partition("=")
        if tag and name in names and (why := explain_bad_name(tag)):
            problems.append(f"--tag {text}: {why}")
            continue
        if not tag or name not in names:
            problems.append(f"--tag {text}: write TAG=CORPUS, such as ui={names[0]}; the corpora are: {', '.join(names)}")
            continue
        corpus = corpora[names.index(name)]
        corpus["tags"] = (*corpus.get("tags", ()), tag)
    if problems:
        raise ConfigError("the tags cannot be used:", problems)


def put_held_out(values: dict[str, Any], split: str, given: Sequence[str]) -> None:
    """The files of a validation or test set. Of several pairs each has its own: line files by their languages, others in order."""
    held_out, first = values.setdefault("held_out", {}), values["languages"]
    pairs = list(dict.fromkeys([first, *(tuple(corpus.get("languages") or first) for corpus in values["corpora"])]))
    if len(pairs) == 1:
        held_out[split] = given
        return
    if all(map(is_line_file, given)):
        sets = _match_by_language(split, given, pairs)
    elif len(given) == len(pairs):
        sets = {pair: [path] for pair, path in zip(pairs, given, strict=True)}
    else:
        told = ", ".join("-".join(pair) for pair in pairs)
        raise ConfigError(f"--{split}: give a file for each pair, in this order: {told}; or line files that are named by their languages")
    if pairs[0] in sets:
        held_out[split] = sets.pop(pairs[0])
    others = [{"split": split, "languages": pair, "paths": paths} for pair, paths in sets.items()]
    held_out["pairs"] = [*held_out.get("pairs", ()), *others]


def _match_by_language(split: str, paths: Sequence[str], pairs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[str]]:
    codes: dict[str, str] = {}
    for path in paths[1:]:
        guessed = guess_languages(paths[0], path)
        if guessed is not None:
            codes |= {paths[0]: guessed[0], path: guessed[1]}
    found = {}
    for pair in pairs:
        sides = [find_nearest((side,), [(code,) for code in codes.values()]) for side in pair]
        if None not in sides:
            found[pair] = [next(path for path, code in codes.items() if (code,) == side) for side in sides]
    if len(codes) < len(paths) or not found:
        raise ConfigError(
            f"--{split}: the languages of these files cannot be told from their names; name them alike but for the language, such as "
            f"{split}.{pairs[0][0]} {split}.{pairs[0][1]}"
        )
    if unused := [path for path in paths if all(path not in files for files in found.values())]:
        raise ConfigError(f"--{split}: {', '.join(unused)} belong to no pair of languages that is trained on; leave them out")
    return found
