"""The arguments of a translator's methods are checked here, and what may be given in several ways becomes one."""

from collections.abc import Mapping, Sequence
from typing import Any

from limelight.bundle import BundleSettings
from limelight.decoding.config import Sampling, SearchSettings
from limelight.errors import ConfigError, DataError
from limelight.text.careful.glossary import Glossary
from limelight.translator.sentences import Reader

Text = str | Sequence[int | str]  # a text, or its pieces by id or as they are spelled
# One for all texts, also as a server takes it ({"girl": "Mädchen"}), or one for each.
Glossaries = Glossary | Mapping[str, str | Sequence[str]] | Sequence[Glossary | None] | None
Search = SearchSettings | Mapping[str, Any] | None  # all settings; {"beam": 8}, with all else as in the bundle; None: the bundle's own
LONGEST_MATCH = 10_000  # characters, as of a memory; a longer one is left out, for no model would see all of it


def refuse_unknown(arguments: Mapping[str, object]) -> None:
    """A setting of the search that was given to `translate` itself is named with the place where it belongs."""
    problems = []
    for name, value in arguments.items():
        setting = {"sampling": {name: value}} if name in Sampling.model_fields else {name: value}
        if name in Sampling.model_fields or name in SearchSettings.model_fields:
            problems.append(f"{name} is a setting of the search: translate(texts, search={setting!r}), with all else as in the bundle")
        else:
            problems.append(f"{name}: there is no such argument; docs/translate.md names them")
    if problems:
        raise ConfigError("Translator.translate does not take these:", problems)


def one_prefix_each(prefixes: Sequence[str] | None, count: int) -> list[str]:
    if prefixes is None:
        return [""] * count
    if len(check_texts(prefixes, "prefixes")) != count:
        raise DataError(f"there are {len(prefixes)} prefixes for {count} texts; give one for each, '' for none")
    return list(prefixes)


def phrases_each(phrases: Sequence[Sequence[str]] | None, count: int) -> list[tuple[str, ...]]:
    if phrases is None:
        return [()] * count
    if isinstance(phrases, str) or any(isinstance(some, str) for some in phrases):
        raise TypeError("phrases wants a list of phrases for each text, such as [['die Matte'], []]")
    if len(phrases) != count:
        raise DataError(f"there are phrases for {len(phrases)} texts, but {count} texts; give a list for each")
    check_texts([phrase for some in phrases for phrase in some], "phrases")
    return [tuple(some) for some in phrases]


def check_texts(texts: Sequence[str], what: str) -> list[str]:
    """A list of texts that can be written as UTF-8; a single text is a common slip, and each of its letters would be translated."""
    if isinstance(texts, str | bytes):
        raise TypeError(f"{what} wants a list of texts, not one text; write [text]")
    result = list(texts)
    for number, text in enumerate(result):
        if not isinstance(text, str):
            raise TypeError(f"{what}[{number}] is no text but {type(text).__name__}; give a list of str")
    for number, text in enumerate(result):
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(f"{what}[{number}] holds half a character and cannot be written as UTF-8; remove it") from None
    return result


def read_search(given: Search, usual: SearchSettings) -> SearchSettings:
    if given is None or isinstance(given, SearchSettings):
        return given or usual
    if not isinstance(given, Mapping):
        raise TypeError(f'search wants SearchSettings(...) or settings by name, such as {{"beam": 8}}, not {type(given).__name__}')
    values = dict(given)
    if isinstance(drawn := values.get("sampling"), Mapping):
        values["sampling"] = (usual.sampling or Sampling()).changed(**drawn)
    return usual.changed(**values) if values.get("sampling", usual.sampling) else usual.fitted(**values)


def read_glossary(given: Glossaries, usual: Glossary | None) -> Glossary | Sequence[Glossary | None] | None:
    return usual if given is None else Glossary.of(given) if isinstance(given, Mapping) else given


def one_glossary_each(glossary: Glossary | Sequence[Glossary | None] | None, count: int) -> list[Glossary | None]:
    if glossary is None or isinstance(glossary, Glossary):
        return [glossary] * count
    if len(glossary) != count:
        raise DataError(f"there are {len(glossary)} glossaries for {count} texts; give one for all, or one for each")
    return list(glossary)


def one_match_each(matches: Sequence[str | None] | None, count: int, settings: BundleSettings) -> list[str]:
    if matches is None:
        return [""] * count
    given = check_texts(matches if isinstance(matches, str) else [each or "" for each in matches], "matches")
    if len(given) != count:
        raise DataError(f"there are {len(given)} matches for {count} texts; give one for each, None for none")
    refuse_matches(settings)
    return [each if len(each) <= LONGEST_MATCH else "" for each in given]


def refuse_matches(settings: BundleSettings) -> None:
    """Unless the model was taught to use them, it would translate them, too."""
    if not settings.takes_matches:
        why = "this translator was not taught to be told translations of similar texts"
        raise ConfigError(f"{why}; leave them out, or train it with batch.augment.matches=0.5 (also --from this one)")


def read_target(text: Text, reader: Reader) -> list[int]:
    """Put ids after those that every translation begins with. Pieces that come from a trace have it, or a part of it, already."""
    ids, begin = _target_ids(text, reader), reader.target_begin
    if not isinstance(text, str) and ids[: len(begin)] == begin[: len(ids)]:
        return max(ids, begin, key=len)
    return [*begin, *ids]


def _target_ids(text: Text, reader: Reader) -> list[int]:
    if isinstance(text, str):
        return reader.target_ids(check_texts([text], "text"))[0]
    known = {piece: number for number, piece in enumerate(reader.target.vocabulary)} if text else {}
    problems = [
        f"{each!r} is no piece of the target"
        for each in text
        if (each not in known if isinstance(each, str) else not 0 <= each < reader.target.size)
    ]
    if problems:
        raise DataError("these pieces cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems))
    return [known[each] if isinstance(each, str) else each for each in text]


def check_lengths(name: str, ids: Sequence[Sequence[int]], least: int, most: int) -> None:
    for number, each in enumerate(ids):
        if not least <= len(each) <= most:
            raise DataError(f"{name}[{number}] has {len(each)} pieces; give {least} to {most} of them, or leave the pair out")
