"""The translators of a server are loaded once, and each request is matched with one of them."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from limelight.errors import ConfigError
from limelight.serving.refusals import BadRequest, NotFound
from limelight.text import language_names
from limelight.text.languages import base
from limelight.translator import Translator

# The first batch of an engine allocates and compiles, the second tells how fast it is.
WARM_UP = ("The quick brown fox jumps over the lazy dog.", "One, two, three: 42 <b>words</b> and %s more.")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A served model is one translator. `id` names it in requests, logs and metrics. `speed`: source pieces a second of one worker,
    measured once. `run`: the folder of the training that it came from, if it still lies there."""

    id: str
    translator: Translator
    speed: float
    run: Path | None = None

    @property
    def source(self) -> str:
        return self.translator.settings.languages[0]

    @property
    def target(self) -> str:
        return self.translator.settings.languages[1]

    def translates(self, source: str | None, target: str | None) -> bool:
        """Whether it is for these languages; None is any."""
        wanted = ((source, self.source), (target, self.target))
        return all(asked is None or base(asked) == base(has) for asked, has in wanted)


class Models:
    """Models stand in the order given: where several can do the same, the first does."""

    def __init__(self, served: Sequence[ServedModel]) -> None:
        self.all = tuple(served)
        # Reads the registry of languages once, which takes 60 ms: not in the event loop.
        for each in self.all:
            language_names.name(each.source)

    def by_id(self, id: str) -> ServedModel:
        if found := next((each for each in self.all if each.id == id), None):
            return found
        raise NotFound("there is no such model", f"there are {', '.join(each.id for each in self.all)}")

    def find(self, source: str | None, target: str | None) -> ServedModel | None:
        """The first from and to these languages; None is any. Regions do not count: en-GB is en."""
        return next((each for each in self.all if each.translates(source, target)), None)

    def pick(self, source: str | None, target: str | None, model: str | None = None) -> ServedModel:
        if model is not None:
            served = self.by_id(model)
            if served.translates(source, target):
                return served
            raise BadRequest(f"the model {served.id} translates from {served.source} to {served.target}", "change the languages")
        found = self.find(source, target)
        if found is None:
            pairs = ", ".join(dict.fromkeys(f"{each.source} to {each.target}" for each in self.all))
            raise BadRequest("there is no model for these languages", f"there are models from {pairs}")
        return found

    def sources(self) -> dict[str, list[str]]:
        """{"en": ["de", "fr"]}: what can be translated into what."""
        found: dict[str, list[str]] = {}
        for each in self.all:
            targets = found.setdefault(each.source, [])
            if each.target not in targets:
                targets.append(each.target)
        return found

    def reverse(self, served: ServedModel) -> ServedModel | None:
        """The one for the way back."""
        return self.find(served.target, served.source)

    def close(self) -> None:
        for each in self.all:
            each.translator.close()


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
    served = []
    for name, folder in named:
        translator = Translator.load(folder, threads=threads, engine=engine)
        translator.stand_by()
        translator.translate(WARM_UP)
        served.append(ServedModel(name, translator, _speed(translator), _run_of(folder)))
    return Models(served)


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
