"""The reference of Python, from the docstrings and signatures of what people may call."""

import dataclasses
import inspect
from importlib import import_module
from typing import Any

PUBLIC = {
    "limelight.translator": (
        "A translator",
        ["Translator", "Translation", "Alternative", "Alignment", "Piece", "Word", "Scored", "Notice"],
    ),
    "limelight.inspection.tracing.live_trace": ("What it did with a sentence", ["LiveTrace"]),
    "limelight.inspection.trace": ("", ["Trace", "TargetToken", "SourceToken", "HeadStats", "Align", "Verdict"]),
    "limelight.model": ("The model", ["ModelConfig", "Transformer", "Batch", "Spotlight"]),
    "limelight.decoding.config": ("How to search", ["SearchSettings", "Sampling"]),
    "limelight.bundle": ("A translator on disk", ["read", "write", "Bundle", "BundleSettings"]),
    "limelight.text.careful.glossary": ("Terms", ["Glossary"]),
    "limelight.training.run.run": ("A run", ["train"]),
    "limelight.errors": ("Errors", ["LimelightError", "ConfigError", "LengthError"]),
}
INTRODUCTION = """# Python

Signatures and docstrings as they stand in the code. What is not here may change without notice;
[the architecture](../project/architecture.md) shows where it is.

```python
from limelight import Translator

with Translator.load("en-de") as translator:
    for translation in translator.translate(["A cat sits on the mat."]):
        print(translation.text, translation.confidence)
```
"""


def page() -> str:
    parts = [INTRODUCTION]
    for module, (title, names) in PUBLIC.items():
        if title:
            parts.append(f"## {title}")
        parts += [_described(module, name) for name in names]
    return "\n\n".join(parts) + "\n"


def _described(module: str, name: str) -> str:
    thing: Any = getattr(import_module(module), name)
    heading = f"### `{name}`\n\n`from {module} import {name}`"
    if not inspect.isclass(thing):
        return f"{heading}\n\n{_signature(name, thing)}\n\n{_docstring(thing)}"
    parts = [heading]
    if not hasattr(thing, "model_fields") and not issubclass(thing, Exception):
        parts.append(_signature(name, thing))
    parts.append(_docstring(thing))
    if hasattr(thing, "model_fields"):
        parts.append("Its fields are in the [settings](recipe.md).")
    for member, value in vars(thing).items():
        if member.startswith("_") or not inspect.isroutine(value) or _is_made(thing, member):
            continue
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        parts += [f"#### `{name}.{member}`", _signature(member, function), _docstring(function)]
    return "\n\n".join(part for part in parts if part)


def _is_made(thing: type, member: str) -> bool:
    """By `dataclass` or `NamedTuple`, and so no work of ours."""
    return hasattr(tuple, member) or (dataclasses.is_dataclass(thing) and member in ("replace",))


def _signature(name: str, thing: Any) -> str:
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    shown = [str(parameter) for parameter in found.parameters.values() if parameter.name not in ("self", "cls")]
    after = found.return_annotation
    kind = after if isinstance(after, str) else inspect.formatannotation(after)
    arrow = "" if after is inspect.Signature.empty or inspect.isclass(thing) else f" -> {kind}"
    parameters = found.parameters.values()
    if any(parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters):
        at = next(
            i for i, p in enumerate(p for p in parameters if p.name not in ("self", "cls")) if p.kind is inspect.Parameter.KEYWORD_ONLY
        )
        shown.insert(at, "*")
    one = f"{name}({', '.join(shown)}){arrow}"
    many = f"{name}(\n" + "".join(f"    {each},\n" for each in shown) + f"){arrow}"
    text = one if len(one) <= 88 else many
    return f"```python\n{text}\n```"


def _docstring(thing: Any) -> str:
    """Indented parts are code already. A docstring that a dataclass made of its signature says nothing new."""
    text = inspect.getdoc(thing) or ""
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") and "\n" not in text else text
