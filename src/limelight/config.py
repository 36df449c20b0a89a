"""`Settings` are frozen, checked when made, read and written as TOML, and report every problem in one error.

class Recipe(Settings):
    steps: int = 1000

Recipe(stpes=5)  ->  ConfigError: the recipe cannot be used:
                       - stpes: there is no such key; did you mean `steps`?
"""

import difflib
import re
import tomllib
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, ValidationError, model_serializer
from pydantic_core import ErrorDetails

from limelight.errors import ConfigError
from limelight.files import write_whole


class Settings(BaseModel):
    """Settings are the base of every config. Unknown keys are errors; an absent value is `None` and is left out of the TOML."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, strict=False, allow_inf_nan=False, defer_build=True)

    def __init__(self, /, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigError(f"{_name_settings(type(self))} cannot be used:", _problems(type(self), values, error)) from None

    # Without this mark pydantic would call our __init__ for nested settings too, and the first broken one would hide the others.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @classmethod
    def from_toml(cls, text: str) -> Self:
        try:
            return cls(**tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"{_name_settings(cls)} cannot be read, the text is not valid TOML: {error}") from None

    def to_toml(self) -> str:
        """Complete: every value is written, also the defaults, so that the file alone reproduces the settings."""
        import tomlkit

        return tomlkit.dumps(self.model_dump(mode="json", exclude_none=True))

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            return cls.from_toml(path.read_bytes().decode("utf-8"))
        except FileNotFoundError:
            raise ConfigError(f"{path} does not exist; check the name, or leave it out to use the defaults") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
        except ConfigError as error:
            first, _, _ = str(error).partition("\n")
            raise ConfigError(f"{path}: {first}", error.problems) from None

    def save(self, path: Path) -> None:
        write_whole(path, self.to_toml().encode("utf-8"))

    def refuse(self, problems: Sequence[str]) -> Self:
        """The settings, unless there are problems between their keys: how a validator ends."""
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def changed(self, **values: Any) -> Self:
        """A copy with some values replaced, checked like any other."""
        return type(self)(**{**self.model_dump(exclude_unset=True), **values})


class SparseSettings(Settings):
    """What few need stays out of the settings of the others, so that files from before it was there are still equal."""

    rare: ClassVar[Set[str]] = set()  # keys that are written only where they are not as usual

    @model_serializer(mode="wrap")
    def _without_the_usual(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        usual = {key for key in self.rare if getattr(self, key) == type(self).model_fields[key].default}
        return {key: value for key, value in write(self).items() if key not in usual}


def _name_settings(cls: type[Settings]) -> str:
    """What a person would call them: "the serve settings", "the recipe"."""
    return "the " + re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cls.__name__).lower()


def _problems(cls: type[Settings], values: dict[str, Any], error: ValidationError) -> list[str]:
    """All problems as sentences: those of single keys, then those between keys, which pydantic checks only once the keys are right."""
    found = error.errors()
    broken = {detail["loc"][0] for detail in found if detail["loc"]}
    if broken & values.keys():
        try:
            cls.model_validate({key: value for key, value in values.items() if key not in broken})
        except ValidationError as second:
            found += [detail for detail in second.errors() if detail["type"] == "value_error"]
    return [sentence for detail in found for sentence in _sentences(cls, detail)]


def _sentences(cls: type[Settings], detail: ErrorDetails) -> list[str]:
    where = ".".join(map(str, detail["loc"]))
    if detail["type"] == "extra_forbidden":
        known = sorted(_settings_at(cls, detail["loc"][:-1]).model_fields)
        near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return [f"{where}: there is no such key; {hint}"]
    if detail["type"] == "missing":
        return [f"{where}: a value is needed"]
    if detail["type"] == "model_type":
        keys = ", ".join(sorted(_settings_at(cls, detail["loc"]).model_fields))
        return [f"{where}: this is a section; set a key of it, as in {where}.KEY=VALUE; known keys: {keys}"]
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":
        return [f"{where}: {line}" if where else line for line in message.split("\n")]
    return [f"{where}: {message[0].lower()}{message[1:]}, not {detail['input']!r}"]


def _settings_at(cls: type[Settings], path: tuple[int | str, ...]) -> type[Settings]:
    """The settings class that a path of keys leads to, so that a misspelt nested key is compared with its own neighbours."""
    for key in path:
        field = cls.model_fields.get(str(key))
        if field is None:
            continue
        candidates = [field.annotation, *get_args(field.annotation)]
        cls = next((c for c in candidates if isinstance(c, type) and issubclass(c, Settings)), cls)
    return cls
