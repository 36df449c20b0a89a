"""`limelight memory` fills a translation memory with files, searches it, and lists and deletes what is in it."""

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limelight.cli.fetching import Yes
from limelight.cli.screen import group_digits
from limelight.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from limelight.store.store import Store

EXAMPLES = (
    "limelight memory add sqlite:///limelight.db menu.tmx old.po --from en --to de",
    'limelight memory find sqlite:///limelight.db "Could not open the file" --from en --to de',
    "limelight memory list sqlite:///limelight.db",
    "limelight memory delete sqlite:///limelight.db menu.tmx",
)


class Action(Enum):
    add, find, list, delete = "add", "find", "list", "delete"


def memory(
    action: Annotated[Action, typer.Argument(help="What to do.")],
    store: Annotated[str, typer.Argument(help="sqlite:///FILE or postgresql://USER@HOST/NAME.")],
    given: Annotated[list[str] | None, typer.Argument(metavar="[FILE|TEXT]...", help="Files to add or delete, or a text to find.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language of the sources.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language of the translations.")] = None,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on standard output, a line for each.")] = False,
) -> None:  # fmt: skip
    """Fill a translation memory with files, search it, list or delete what is in it. `serve --store` and `translate --memory` use it."""
    words = given or []
    if Path(store).is_file():
        raise ConfigError(
            f"{store} is no store; name it first: limelight memory {action.value} sqlite:///limelight.db {' '.join([store, *words])}"
        )
    if bool(words) == (action == Action.list):
        raise ConfigError(f"limelight memory {action.value} {'lists everything' if words else 'needs to know what'}; see its --help")
    pair = (source or "", target or "")
    if not all(pair) and (any(pair) or action in (Action.add, Action.find)):
        raise ConfigError("which languages? Say --from en --to de")
    texts = _find_files(words, pair) if action == Action.add else []
    opened = open_named_store(store, create=action == Action.add)
    try:
        if action == Action.add:
            for file in texts:
                _tell([_add(opened, pair, *file)], as_json)
        elif action == Action.find:
            found = [{"score": round(each.score, 4), "source": each.source, "target": each.target, "origin": each.origin}
                     for text in words for each in opened.memory.find(pair, text)]  # fmt: skip
            _tell(found, as_json)
            if not found:
                from limelight.store.memory import LEAST

                held = Counter[str]()
                for name, _, segments in opened.memory.list_origins():
                    held[name.replace(">", " to ")] += segments
                known = ", ".join(f"{group_digits(held[name])} segments from {name}" for name in sorted(held)) or "no segment at all"
                typer.echo(f"nothing from {source} to {target} is at least {LEAST:.0%} alike; the memory has {known}", err=True)
        elif action == Action.list:
            _tell([dict(zip(("pair", "origin", "segments"), row, strict=True)) for row in opened.memory.list_origins()
                   if not all(pair) or row[0] == ">".join(pair)], as_json)  # fmt: skip
        else:
            origins = {origin for _, origin, _ in opened.memory.list_origins()}
            names = [_find_origin(word, origins) for word in words]
            chosen = pair if all(pair) else None
            deleted = opened.memory.delete(names, chosen)
            _tell([{"origin": name, "deleted": count} for name, count in zip(names, deleted, strict=True)], as_json)
            if not all(deleted):
                there = ", ".join(dict.fromkeys(origin for _, origin, _ in opened.memory.list_origins())) or "nothing"
                typer.echo(f"where nothing was deleted, there is no such file in the memory; it has {there}", err=True)
    finally:
        opened.close()


def open_named_store(url: str, create: bool = False) -> "Store":
    try:
        from limelight.store.store import open_store
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "a store", "store") from None
    return open_store(url, create)


def _find_files(paths: list[str], pair: tuple[str, str]) -> list[tuple[str, Iterator[tuple[str, str]], Counter[str]]]:
    """Every file is found before one is read. What a reader found a fault in (broken, too long, marked as fuzzy) or without a side is no
    memory, and is counted while it is read."""
    from limelight.corpus.readers import CorpusPart, find, read
    from limelight.corpus.reading.raw import RowFault

    def rows_of(part: CorpusPart, left_out: Counter[str]) -> Iterator[tuple[str, str]]:
        heads = {("source", "target"), part.languages} if part.format == "tsv" else set()
        for batch in read(part):
            for source, target, fault in zip(*(batch[name].to_pylist() for name in ("source", "target", "fault")), strict=True):
                head, heads = (source.strip().lower(), target.strip().lower()) in heads, set()  # only the first row can be one
                if head:
                    left_out["header"] += 1
                elif fault == RowFault.MALFORMED and bool(source.strip()) != bool(target.strip()):
                    left_out["untranslated"] += 1
                elif fault:
                    left_out["fuzzy" if fault == RowFault.FUZZY else "unreadable"] += 1
                elif not (source.strip() and target.strip()):
                    left_out["untranslated"] += 1
                else:
                    yield source, target

    parts = find(paths, pair)
    origins, counts = _name_origins([part.paths[0] for part in parts]), [Counter[str]() for _ in parts]
    return list(zip(origins, map(rows_of, parts, counts), counts, strict=True))


def _name_origins(paths: Sequence[str]) -> list[str]:
    """The name of each file, with as many of its folders as tell it from the others: app1/django.po."""
    parts = [Path(path).parts for path in paths]
    ends = Counter(own[-length:] for own in set(parts) for length in range(1, len(own) + 1))
    lengths = [next((length for length in range(1, len(own)) if ends[own[-length:]] == 1), len(own)) for own in parts]
    return ["/".join(own[-length:]) for own, length in zip(parts, lengths, strict=True)]


def _find_origin(word: str, known: set[str]) -> str:
    """The name that the memory has for a file: with as many of its folders as it knows."""
    parts = Path(word).parts
    ends = ["/".join(parts[begin:]) for begin in range(len(parts))]
    return next((end for end in [word, *ends] if end in known), Path(word).name)


def _add(
    store: "Store", pair: tuple[str, str], origin: str, rows: Iterator[tuple[str, str]], left_out: Counter[str]
) -> dict[str, str | int]:
    counts = [sum(each) for each in zip((0, 0, 0), *store.memory.add(pair, rows, origin), strict=True)]
    return {"origin": origin, **dict(zip(("added", "known", "refused"), counts, strict=True)), **left_out}


def _tell(rows: Sequence[Mapping[str, object]], as_json: bool) -> None:
    """A row for each, counts with their names; texts may hold line breaks, and a terminal obeys control characters."""
    for row in rows:
        named = [f"{group_digits(each)} {name}" if isinstance(each, int) else str(each) for name, each in row.items()]
        cells = [re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", each) for each in named]
        sys.stdout.write((json.dumps(row, ensure_ascii=False) if as_json else "\t".join(cells)) + "\n")
