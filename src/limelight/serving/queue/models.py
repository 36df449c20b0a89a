"""The translators of a server are loaded once, and each request is matched with one of them."""

import re
import time
from collections.abc import Sequence
from pathlib import Path

from limelight.bundle.versions import HISTORY, LEARNT, read_history
from limelight.errors import ConfigError
from limelight.files import stamp_of
from limelight.serving.queue.served_model import SIGN, LoadedFrom, ServedModel
from limelight.serving.refusals import BadRequest, NotFound
from limelight.text.languages import Direction
from limelight.translator import Translator

# The first batch of an engine allocates and compiles, the second tells how fast it is.
WARM_UP = ("The quick brown fox jumps over the lazy dog.", "One %s.")
WARM_PIECES = 4  # of a translation: a placeholder may be searched for step by step, of which a few are enough
MOST_LISTED = 40  # directions in a message
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Models:
    """Models stand in the order given, one for each bundle, in its usual direction: where several can do the same, the first does."""

    def __init__(self, served: Sequence[ServedModel]) -> None:
        self.all = tuple(served)

    def replace(self, old: ServedModel, new: ServedModel) -> None:
        """From now on requests are matched with the new one; those that were matched before end with the old one."""
        self.all = tuple(new if each is old else each for each in self.all)

    def by_id(self, id: str) -> ServedModel:
        """en-de is a bundle in its usual direction, multi:en-fr one in another."""
        name, sign, written = id.partition(SIGN)
        found = next((each for each in self.all if each.id == name), None)
        if found is None:
            raise NotFound("there is no such model", f"there are {', '.join(each.id for each in self.all)}")
        direction = found.read_pair(written) if sign else found.direction
        if direction is None:
            raise NotFound(f"the model {found.id} has not this direction", f"it has {_list_directions([found], '-')}")
        return found.turn(direction)

    def find(self, source: str | None, target: str | None) -> ServedModel | None:
        """The first from and to these languages; None is any. Regions do not count: en-GB is en."""
        found = ((each, each.find(source, target)) for each in self.all)
        return next((each.turn(direction) for each, direction in found if direction is not None), None)

    def pick(self, source: str | None, target: str | None, model: str | None = None, tags: Sequence[str] = ()) -> ServedModel:
        """The first from and to these languages that knows these tags. One that is named may be told to do what it was not taught."""
        if model is not None and SIGN in model:
            named = self.by_id(model)
            if not named.translates(source, target):
                raise BadRequest(f"the model {named.id} translates from {named.source} to {named.target}", "change the languages")
            found = [(named, named.direction)]
        else:
            asked = self.all if model is None else [self.by_id(model)]
            found = _find_all(asked, source, target, untaught=False) or _find_all(asked, source, target, untaught=True)
            if not found and model is not None:
                raise BadRequest(f"the model {asked[0].id} translates from {_list_directions(asked, ' to ')}", "change the languages")
            if not found:
                raise BadRequest("there is no model for these languages", f"there are models from {_list_directions(asked, ' to ')}")
        knows = (pair for pair in found if set(tags) <= set(pair[0].tags))
        served, direction = next(knows, found[0])
        try:
            return served.turn(direction, tags)
        except ConfigError as error:
            raise BadRequest(f"tags: {error}", "Leave them out, or ask another model; GET /api/v1/models lists their tags.") from None

    def reverse(self, served: ServedModel) -> ServedModel | None:
        """The one for the way back, of the same bundle if it has it."""
        back = served.find(served.target, served.source)
        return self.find(served.target, served.source) if back is None else served.turn(back)

    def close(self) -> None:
        for each in self.all:
            each.translator.close()


def _find_all(asked: Sequence[ServedModel], source: str | None, target: str | None, untaught: bool) -> list[tuple[ServedModel, Direction]]:
    found = ((each, each.find(source, target, untaught)) for each in asked)
    return [(each, direction) for each, direction in found if direction is not None]


def _list_directions(asked: Sequence[ServedModel], between: str) -> str:
    pairs = dict.fromkeys(pair for each in asked for pair in each.directions)
    told = ", ".join(between.join(pair) for pair in list(pairs)[:MOST_LISTED])
    return told + (f" and {len(pairs) - MOST_LISTED} others" if len(pairs) > MOST_LISTED else "")


def load(places: Sequence[str], threads: int | None, engine: str | None = None) -> Models:
    """Load translators, each a folder or name=folder. All problems with names at once; then one bundle after the other, each warmed up."""
    named = [_parse_place(place) for place in places]
    if not named:
        raise ConfigError("there is nothing to serve; name a bundle, such as limelight serve en-de")
    names = [name for name, _ in named]
    problems = [f"two are called {name}; write NAME=FOLDER" for name in dict.fromkeys(names) if names.count(name) > 1]
    problems += [
        f"{name!r} is no name; write NAME=FOLDER with letters, digits, dots and dashes" for name in names if not _NAME.fullmatch(name)
    ]
    if problems:
        raise ConfigError("these bundles cannot be served together:", problems)
    return Models([load_model(name, folder, threads, engine) for name, folder in named])


def load_model(name: str, folder: Path, threads: int | None, engine: str | None = None) -> ServedModel:
    """Load the version of a bundle that is in use, and warm it up."""
    found = stamp_of(folder / LEARNT / HISTORY)  # before it is read: what is written meanwhile is seen the next time
    version = read_history(folder).current
    translator = Translator.load(folder, threads=threads, engine=engine)
    translator.stand_by()
    translator.translate(WARM_UP, translator.settings.search.changed(max_length=WARM_PIECES))
    again = LoadedFrom(folder, version, found, lambda: load_model(name, folder, threads, engine))
    return ServedModel(name, translator, _speed(translator), _run_of(folder), loaded=again)


def _speed(translator: Translator) -> float:
    pieces = max(1, *translator.lengths(translator.plan(WARM_UP[:1])))
    texts = [WARM_UP[0]] * max(1, translator.batch_pieces // pieces)
    begin = time.perf_counter()
    translator.translate(texts)
    return pieces * len(texts) / (time.perf_counter() - begin)


def _run_of(folder: Path) -> Path | None:
    """runs/en-de -> runs/en-de, and so for runs/en-de/bundle; None for a bundle that lies alone."""
    folder = folder.resolve()
    return next((each for each in (folder, folder.parent) if (each / "bundle").is_dir()), None)


def _parse_place(place: str) -> tuple[str, Path]:
    """runs/en-de -> en-de; runs/en-de/bundle -> en-de; news=runs/en-de -> news."""
    name, sign, folder = place.partition("=")
    if sign and not Path(place).exists():
        return name, Path(folder)
    path = Path(place).resolve()
    return (path.parent.name if path.name == "bundle" else path.name), Path(place)
