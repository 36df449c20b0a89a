"""Tags of a bundle are ids that tell a model of many languages, registers or domains what is wanted of it.

    BundleTags(target={"de": 20, "fr": 21}, names={"formal": 22}, directions=(("en", "de"), ("en", "fr")))

    source ids as the model reads them, en to fr, formal:    21 22 4 9 7

The language comes first, then names in the order in which they are listed, so that a set of tags has one spelling.
"""

import difflib
from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar, Self

from pydantic import Field, NonNegativeInt, model_validator

from limelight.config import SparseSettings
from limelight.errors import ConfigError
from limelight.text.language_names import name, same, usual_tag
from limelight.text.languages import base
from limelight.text.pieces.tags import MOST_NAMES, explain_bad_name

LANGUAGE = r"^(x-[A-Za-z0-9]{1,8}|[A-Za-z]{2,8})([-_][A-Za-z0-9]{1,8})*$"
Language = Annotated[str, Field(pattern=LANGUAGE, max_length=100)]
Direction = tuple[Language, Language]
MOST_LANGUAGES, MOST_DIRECTIONS = 1_000, 10_000
MOST_LISTED = 40  # languages in a message


class BundleTags(SparseSettings):
    """Bundle tags say which id stands for which language and name, and between which languages the model was taught to translate."""

    rare: ClassVar = {"inherited"}
    source: dict[Language, NonNegativeInt] = Field({}, max_length=MOST_LANGUAGES, description="Before the source, by its own language.")
    target: dict[Language, NonNegativeInt] = Field(
        {}, max_length=MOST_LANGUAGES, description="Before the source, by the target's language."
    )
    target_begin: dict[Language, NonNegativeInt] = Field(
        {}, max_length=MOST_LANGUAGES, description="What a translation begins with, by its language."
    )
    names: dict[str, NonNegativeInt] = Field({}, max_length=MOST_NAMES, description="Before the source, after languages: formal, ui.")
    directions: tuple[Direction, ...] = Field(
        (), max_length=MOST_DIRECTIONS, description="Those that were trained, the usual one first. None: between all languages above."
    )
    inherited: tuple[Direction, ...] = Field(
        (), max_length=MOST_DIRECTIONS, description="Those of them that the translator before this one was taught, and this one was not."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = []
        if not (self.source or self.target or self.target_begin or self.names):
            problems.append("there is no tag; leave tags out")
        problems += [f"names: {why}" for why in map(explain_bad_name, self.names) if why]
        before = [(f"{field}.{key}", i) for field in ("source", "target", "names") for key, i in getattr(self, field).items()]
        problems += _twice(before)
        problems += _twice([(f"target_begin.{key}", i) for key, i in self.target_begin.items()])
        if len(set(self.directions)) < len(self.directions):
            problems.append("directions has one twice")
        problems += [f"inherited has {'-'.join(pair)}, which directions has not" for pair in sorted({*self.inherited} - {*self.directions})]
        for field, side in (("source", 0), ("target", 1), ("target_begin", 1)):
            known: Mapping[str, int] = getattr(self, field)
            untold = sorted({pair[side] for pair in self.directions} - known.keys()) if known else []
            problems += [f"directions has {language}, but {field} has no id for it" for language in untold]
        return self.refuse(problems)

    def list_directions(self, first: Direction) -> list[Direction]:
        """What was trained. Of a model that was taught all of its languages, every pair, beginning with `first`, the usual one."""
        if self.directions:
            return list(self.directions)
        pairs = ((source, target) for source in self.list_sources(first) for target in self.list_targets(first) if source != target)
        return list(dict.fromkeys((first, *pairs)))

    def list_sources(self, first: Direction) -> list[str]:
        return list(dict.fromkeys((first[0], *(source for source, _ in self.directions), *self.source)))

    def list_targets(self, first: Direction) -> list[str]:
        return list(dict.fromkeys((first[1], *(target for _, target in self.directions), *self.target, *self.target_begin)))

    def choose(self, first: Direction, target: str | None, source: str | None) -> Direction:
        """The direction that is meant; what is not said is as near to `first` as can be. It need not have been trained."""
        problems, found = [], []
        for known, asked, what in (
            (self.list_sources(first), source, "source"),
            (self.list_targets(first), target, "target"),
        ):
            try:
                found.append(None if asked is None else find_language(asked, known))
            except ConfigError as error:
                problems.append(f"{what}: {error}")
        if problems:
            raise ConfigError("the model has not this direction:", problems)
        own_source, own_target = found
        if own_source is not None and own_target is not None:
            if own_source == own_target and (own_source, own_target) not in self.directions:
                raise ConfigError(f"a text cannot be translated from {own_source} to {own_target}; give two languages")
            return own_source, own_target
        fitting = [pair for pair in self.directions if own_source in (None, pair[0]) and own_target in (None, pair[1])]
        if fitting:
            forgotten = frozenset(self.inherited)
            return min(fitting, key=lambda pair: (pair in forgotten, (pair[0] != first[0]) + (pair[1] != first[1])))
        if own_target is not None:
            return first[0] if own_target != first[0] else first[1], own_target
        return (own_source, first[1] if own_source != first[1] else first[0]) if own_source is not None else first

    def order(self, names: Collection[str]) -> tuple[str, ...]:
        """Names as they are listed here, each once. Unknown ones are refused."""
        if unknown := [name for name in dict.fromkeys(names) if name not in self.names]:
            there = f"it has {', '.join(self.names)}" if self.names else "it has none"
            problems = []
            for name in unknown:
                near = difflib.get_close_matches(name, self.names, n=1)
                problems.append(f"{name[:99]!r}" + (f": did you mean {near[0]}?" if near else ""))
            raise ConfigError(f"the model has no such tag ({there}):", problems)
        return tuple(name for name in self.names if name in names)

    def begin(self, direction: Direction, names: Collection[str] = ()) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The ids before every source, and those that every translation begins with."""
        source, target = direction
        before = [self.source[source]] if self.source else []
        before += [self.target[target]] if self.target else []
        return (*before, *(self.names[name] for name in self.order(names))), (self.target_begin[target],) if self.target_begin else ()

    def list_problems(self, first: Direction, ids: tuple[int, int], reserved: Collection[int], room: int) -> list[str]:
        """Why these cannot be the tags of a model with so many ids on either side. `room`: positions for what stands before a source."""
        problems = []
        for field, size in zip(("source", "target", "names", "target_begin"), (ids[0], ids[0], ids[0], ids[1]), strict=True):
            for key, number in getattr(self, field).items():
                if number >= size:
                    problems.append(f"tags.{field}.{key} is id {number}, but the model has ids 0 to {size - 1}")
                elif number in reserved:
                    problems.append(f"tags.{field}.{key} is id {number}, which is the padding, the start or the end")
        if self.directions and self.directions[0] != first:
            problems.append(
                f"tags.directions begins with {'-'.join(self.directions[0])}, but languages says {'-'.join(first)}; make them one"
            )
        if not self.directions:
            sides = (("source", first[0]), ("target", first[1]), ("target_begin", first[1]))
            problems += [
                f"tags.{f} has no id for {code} of languages" for f, code in sides if getattr(self, f) and code not in getattr(self, f)
            ]
        if bool(self.source) + bool(self.target) + len(self.names) >= room:
            problems.append("tags would fill all positions of the model")
        return problems


def find_language(asked: str, known: Collection[str]) -> str:
    """The code that is meant: itself, however written, or the only one of the same language (ger, de-AT -> de). Or a ConfigError."""
    if asked in known:
        return asked
    plain = {code.lower().replace("_", "-"): code for code in known}
    wanted = asked.strip().lower().replace("_", "-")
    if wanted in plain:
        return plain[wanted]
    if (usual := usual_tag(asked).lower()) in plain:
        return plain[usual]
    found = [code for code in known if base(code) == base(asked)] or [code for code in known if same(code, asked)]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(f"{asked[:35]} is there in several forms; give one of {', '.join(found)}")
    called = [code for code in known if name(code).lower().startswith(wanted)] if len(wanted) > 3 else []
    near = called[:3] or [plain[one] for one in difflib.get_close_matches(wanted[:35], plain, n=3, cutoff=0.6)]
    more = f" and {len(known) - MOST_LISTED} others, which README.md lists" if len(known) > MOST_LISTED else ""
    there = f"{', '.join(sorted(known)[:MOST_LISTED])}{more}"
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise ConfigError(f"there is no {asked[:35]!r}, but {there}{hint}")


def _twice(named: list[tuple[str, int]]) -> list[str]:
    """What has the id of another."""
    first: dict[int, str] = {}
    return [f"{name} has the id {number} of {first[number]}" for name, number in named if first.setdefault(number, name) != name]
