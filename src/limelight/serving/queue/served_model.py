"""A served model is a direction of a bundle, and the tags it is told. All of a bundle share its engine, its speed and its batches.

multi            the usual direction, en to de
multi:en-fr      another one, by the languages of the bundle
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from limelight.files import Stamp
from limelight.text.language_names import same
from limelight.text.languages import Direction, base, lower_code
from limelight.translator import Translator

MOST_TAGS = 16  # of a request
SIGN = ":"  # between the name of a bundle and a direction; no name has it


@dataclass(frozen=True)
class LoadedFrom:
    """Where a model was loaded from, as it lay there, and how to load what lies there now."""

    folder: Path
    version: int  # 0: as it was trained
    history: Stamp
    load: Callable[[], "ServedModel"] = field(compare=False)


@dataclass(frozen=True)
class ServedModel:
    """A served model is a translator in one direction. `id` names it in requests, logs and metrics. `speed`: source pieces a second of one
    worker, measured once. `run`: the folder of the training that it came from, if it still lies there. `root`: the bundle as it was
    loaded, for another direction of it; None: this is it. `loaded`: where from, of one that may learn while it is served."""

    id: str
    translator: Translator
    speed: float
    run: Path | None = None
    root: "ServedModel | None" = None
    loaded: LoadedFrom | None = None

    @property
    def bundle(self) -> "ServedModel":
        """The same for all directions and tags: what its engine runs may be in one batch."""
        return self.root or self

    @property
    def direction(self) -> Direction:
        return self.translator.settings.languages

    @property
    def source(self) -> str:
        return self.direction[0]

    @property
    def target(self) -> str:
        return self.direction[1]

    @property
    def tags(self) -> tuple[str, ...]:
        """The names that it can be told, such as formal."""
        known = self.translator.settings.tags
        return () if known is None else tuple(known.names)

    @cached_property
    def directions(self) -> dict[Direction, None]:
        """All that the bundle was taught, the usual one first. Of 200 languages there are 40,000: they are listed once."""
        return dict.fromkeys(self.translator.settings.directions) if self.root is None else self.root.directions

    @cached_property
    def targets(self) -> dict[str, list[str]]:
        """{"en": ["de", "fr"]}: what can be translated into what."""
        return self._list_by(0) if self.root is None else self.root.targets

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """{"de": ["en"]}: what can be translated from what."""
        return self._list_by(1) if self.root is None else self.root.sources

    def _list_by(self, side: int) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for direction in self.directions:
            found.setdefault(direction[side], []).append(direction[1 - side])
        return found

    def translates(self, source: str | None, target: str | None) -> bool:
        """Whether it is for these languages; None is any."""
        wanted = ((source, self.source), (target, self.target))
        return all(asked is None or base(asked) == base(has) for asked, has in wanted)

    def find(self, source: str | None, target: str | None, untaught: bool = False) -> Direction | None:
        """The direction of the bundle for these languages, as near to the usual one as can be; None is any. Regions count only where the
        bundle has several. `untaught`: also between languages that it knows but was never taught together."""
        usual = self.bundle.direction
        if source is None and target is None:
            return usual
        found = list(self._fitting(source, target))
        if not found and untaught and source is not None and target is not None:
            sides = _alike(source, self.targets), _alike(target, self.sources)
            found = [(begin, end) for begin in sides[0] for end in sides[1] if begin != end]

        tags = self.translator.settings.tags
        forgotten = frozenset(tags.inherited) if tags is not None else frozenset()

        def distance(direction: Direction) -> tuple[bool, ...]:
            near = [
                asked is not None and lower_code(asked) != lower_code(own) for asked, own in zip((source, target), direction, strict=True)
            ]
            return (*near, direction in forgotten, direction[0] != usual[0], direction[1] != usual[1])

        return min(found, key=distance, default=None)

    def _fitting(self, source: str | None, target: str | None) -> Iterator[Direction]:
        """Not all directions are looked at, since there may be many."""
        if target is None:
            yield from ((begin, end) for begin in _alike(source, self.targets) for end in self.targets[begin])
        elif source is None:
            yield from ((begin, end) for end in _alike(target, self.sources) for begin in self.sources[end])
        else:
            pairs = ((begin, end) for begin in _alike(source, self.targets) for end in _alike(target, self.sources))
            yield from (pair for pair in pairs if pair in self.directions)

    def read_pair(self, written: str) -> Direction | None:
        """read_pair("en-zh-Hans") -> ("en", "zh-Hans"). It need not have been taught."""
        parts = written.split("-") if len(written) <= 255 else []
        cuts = (("-".join(parts[:at]), "-".join(parts[at:])) for at in range(1, len(parts)))
        known = [cut for cut in cuts if cut in self.directions or (cut[0] in self.targets and cut[1] in self.sources and cut[0] != cut[1])]
        return next((cut for cut in known if cut in self.directions), known[0] if known else None)

    def turn(self, direction: Direction, tags: Sequence[str] = ()) -> "ServedModel":
        """The same bundle in this direction, told these tags. A ConfigError lists what there is."""
        whole = self.bundle
        usual = direction == whole.direction
        if usual and not tags:
            return whole
        view = whole.translator.towards(direction[1], direction[0], tags)
        return ServedModel(whole.id if usual else f"{whole.id}{SIGN}{'-'.join(direction)}", view, whole.speed, whole.run, whole)


def _alike(asked: str | None, known: dict[str, list[str]]) -> list[str]:
    """The codes of the same language; None is any. Where nothing is written as asked, eng is en."""
    written = [code for code in known if asked is None or base(code) == base(asked)]
    return written or [code for code in known if same(code, asked or "")]
