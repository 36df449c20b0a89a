"""JSON is read strictly: within a bound, UTF-8, one object. Python's own reader also takes NaN, keys twice and half characters."""

import json
from pathlib import Path
from typing import Any, TypeVar

from limelight.bundle.layout import FORMAT, refusal
from limelight.config import Settings
from limelight.errors import ConfigError

LARGEST = 1_000_000
Checked = TypeVar("Checked", bound=Settings)


def read_json(folder: Path, name: str, largest: int = LARGEST) -> tuple[bytes, dict[str, Any]]:
    """The file as it lies there, and its value."""
    try:
        with (folder / name).open("rb") as file:
            content = file.read(largest + 1)
        return content, parse(content, largest)
    except OSError as error:
        raise refusal(folder, [f"{name}: cannot be read ({error.strerror})"]) from None
    except ValueError as error:
        raise refusal(folder, [f"{name}: is damaged, {str(error)[:300]}"]) from None


def parse(content: bytes, largest: int = LARGEST) -> dict[str, Any]:
    """parse(b'{"a": 1}') -> {"a": 1}; ValueError for all that is not plain JSON."""
    if len(content) > largest:
        raise ValueError(f"it has more than {largest:,} bytes")
    try:
        value = json.loads(content.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_distinct)
        json.dumps(value, ensure_ascii=False).encode()  # half characters, such as "\ud800", cannot be written again
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    return value


def settings_of(kind: type[Checked], folder: Path, name: str, value: dict[str, Any]) -> Checked:
    """The value as settings of a kind, or a refusal with every problem."""
    if "format" in kind.model_fields:
        _check_format(folder, name, value)
    try:
        return kind(**value)
    except ConfigError as error:
        raise refusal(folder, [f"{name}: {problem[:300]}" for problem in error.problems]) from None
    except (RecursionError, TypeError) as error:  # a value nested deeply, a key such as "self"
        raise refusal(folder, [f"{name}: cannot be understood ({str(error)[:300]})"]) from None


def _check_format(folder: Path, name: str, value: dict[str, Any]) -> None:
    found = value.get("format")
    if type(found) is not int or found < FORMAT:
        raise refusal(folder, [f"{name}: has format {str(found)[:99]}, which was never written"])
    if found > FORMAT:
        newer = f"{name}: has format {str(found)[:99]}, and this limelight reads format {FORMAT}"
        raise refusal(folder, [newer], advice="install a newer limelight: pip install --upgrade limelight")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found
