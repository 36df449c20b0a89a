"""The reference of settings, from the pydantic models: the recipe of a run, the search, the server."""

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from limelight.config import Settings
from limelight.decoding.config import SearchSettings
from limelight.serving.settings import ServeSettings
from limelight.training.config import Recipe
from reference_cli import cell

INTRODUCTION = """# Recipe

Every key of `recipe.toml`, section by section, with its default and its bounds, from the code that checks them.
[Train](../train.md#recipetoml) says how a recipe comes about. Any key may be given on the command line:
`limelight train ... model.dropout=0.3`. Unknown keys are errors, and the error names the nearest
known one. A key whose default is *absent* may be left out.
"""
BOUNDS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤", "min_length": "length ≥", "max_length": "length ≤"}


def page() -> str:
    parts = [INTRODUCTION, "## Of a run"]
    parts += list(_sections(Recipe, ""))
    parts += [
        "## Of a search",
        "What a bundle keeps, what `SearchSettings` takes in Python, and what options of `limelight translate` change.",
        *_sections(SearchSettings, ""),
    ]
    parts += [
        "## Of a server",
        "Keys of `limelight serve`, or of the file of `--config`.",
        *_sections(ServeSettings, ""),
    ]
    return "\n\n".join(parts) + "\n"


def _sections(settings: type[Settings], prefix: str) -> Iterator[str]:
    """This section as a table, then those inside it."""
    rows, inner = [], []
    for name, field in settings.model_fields.items():
        nested = _nested(field.annotation)
        if nested is not None:
            inner.append((f"{prefix}{name}", nested))
        else:
            rows.append(_row(name, field))
    if prefix:
        yield f"### [{prefix.rstrip('.')}]"
    if settings.__doc__ and prefix:
        yield " ".join(settings.__doc__.split())
    if rows:
        yield "\n".join(["| key | | default | |", "| --- | --- | --- | --- |", *rows])
    for name, section in inner:
        yield from _sections(section, f"{name}.")


def _nested(annotation: Any) -> type[Settings] | None:
    """The settings inside, also of a list of them or of none."""
    if isinstance(annotation, type) and issubclass(annotation, Settings):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _nested(inner))), None)


def _row(name: str, field: FieldInfo) -> str:
    bounds = ", ".join(
        f"{sign} {value:g}" if isinstance(value, float) else f"{sign} {value:,}"
        for rule in field.metadata
        for key, sign in BOUNDS.items()
        if (value := getattr(rule, key, None)) is not None
    )
    kind = _kind(field.annotation)
    return f"| `{name}` | {cell(f'{kind}, {bounds}' if bounds else kind)} | {cell(_default(field))} | {cell(field.description or '')} |"


def _kind(annotation: Any) -> str:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " ".join(f"`{value}`" for value in inner)
    if origin in (Union, types.UnionType):
        return " or ".join(_kind(each) for each in inner if each is not type(None))
    if origin in (list, tuple, dict, set, frozenset):
        of = ", ".join(_kind(each) for each in inner if each is not ...)
        return f"{origin.__name__} of {of}" if of else origin.__name__
    if inner:  # Annotated
        return _kind(inner[0])
    return {"int": "whole number", "float": "number", "str": "text", "bool": "yes or no", "Path": "path"}.get(
        getattr(annotation, "__name__", ""), getattr(annotation, "__name__", str(annotation))
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "*must be given*"
    value = field.get_default(call_default_factory=True)  # type: ignore[call-arg]
    if value is None or value is PydanticUndefined:
        return "*absent*"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if isinstance(value, (tuple, list)):
        return " ".join(f"`{each}`" for each in value) or "none"
    return f"`{value}`"
