"""Tags are reserved pieces before a source. They tell a model of many languages, registers or domains what is wanted:

    source ids as the model reads them:   <2de> <formal> 4 9 7 </s>

The target language comes first, then names in the order in which the `TagSet` lists them, so that a set of tags has one spelling. A tag is
a control symbol of SentencePiece: no text ever encodes to it, and decoding leaves no trace of it.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Final, Self

from pydantic import Field, model_validator

from limelight.config import Settings
from limelight.errors import ConfigError

MOST_NAMES: Final = 64  # the names of a row are the bits of a number
NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
SYNTHETIC: Final = "synthetic"  # a source that a model wrote; nobody asks for such
_TAKEN: Final = ("pad", "unk", "s")  # <pad>, <unk> and <s> are pieces of every model

Code = Annotated[str, Field(pattern=r"^(x-[A-Za-z0-9]{1,8}|[A-Za-z]{2,8})([-_][A-Za-z0-9]{1,8})*$", max_length=100)]


class TagSet(Settings):
    """A tag set is what a model can be told: TagSet(languages=("de", "fr"), names=("formal", "informal"))."""

    languages: tuple[Code, ...] = Field(default=(), description="target languages that have a tag; none for a model of one target")
    names: tuple[str, ...] = Field(default=(), description="registers, domains ..., as people name them; 64 at most")

    @model_validator(mode="after")
    def _is_unambiguous(self) -> Self:
        problems = [f"names: {why}" for why in map(explain_bad_name, self.names) if why]
        if len(self.names) > MOST_NAMES:
            problems.append(f"names: {len(self.names)} are too many; {MOST_NAMES} at most")
        for key, values in (("languages", self.languages), ("names", self.names)):
            if twice := sorted({value for value in values if values.count(value) > 1}):
                problems.append(f"{key}: {', '.join(twice)} stands there twice")
        return self.refuse(problems)

    @property
    def pieces(self) -> tuple[str, ...]:
        """All of them, to be reserved in this order."""
        return (*map(language_piece, self.languages), *map(name_piece, self.names))

    def order(self, names: Iterable[str]) -> tuple[str, ...]:
        """The names as the set lists them, each once: order(["ui", "formal"]) -> ("formal", "ui"). Unknown ones are refused."""
        asked = set(names)
        if unknown := sorted(asked - set(self.names)):
            known = f"it knows: {', '.join(self.names)}" if self.names else "it was taught none"
            raise ConfigError(f"{', '.join(unknown)}: the model has no such tag; {known}")
        return tuple(name for name in self.names if name in asked)


def explain_bad_name(name: str) -> str | None:
    """Why a name cannot be one, or None where it can."""
    if not NAME.fullmatch(name):
        return f"{name!r} is no name of a tag: a small letter, then at most 31 small letters, digits, - or _"
    return f"<{name}> is a piece of every model; choose another name" if name in _TAKEN else None


def language_piece(code: str) -> str:
    """language_piece("zh-Hans") -> "<2zh-Hans>" """
    return f"<2{code}>"


def name_piece(name: str) -> str:
    """name_piece("formal") -> "<formal>" """
    return f"<{name}>"
