"""Plain values of options are taken as they are: Typer would load pydantic to convert them, which takes longer than all else of a start.

What is not plain, such as `--beam many` or a file that may not be read, goes Typer's way and gets its message.
"""

import os
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints


def take_plain_values(program: Any) -> None:
    """`program` is a group of Typer with its verbs."""
    for command in (program, *program.commands.values()):
        command.get_params = partial(_get_params, command, command.get_params)


def _get_params(command: Any, get_params: Any, context: Any) -> list[Any]:
    """As click calls `get_params(context)`; the option for help is made only there."""
    params: list[Any] = get_params(context)
    if raw := [param for param in params if not isinstance(param.process_value, partial)]:
        hints = get_type_hints(command.callback, include_extras=True)
        for param in raw:
            wanted, *notes = get_args(hints.get(param.name)) or (None,)
            kinds = wanted, *get_args(wanted)  # of `int | None`: itself, int and None
            param.process_value = partial(_process, param, param.process_value, kinds, notes)
    return params


def _process(param: Any, convert: Any, kinds: tuple[Any, ...], notes: list[Any], context: Any, value: Any) -> Any:
    """As click calls `process_value(context, value)`."""
    several = param.nargs == -1 or getattr(param, "multiple", False)
    if value is None and not param.required:
        nothing = () if several else None
        return nothing if param.callback is None else param.callback(context, param, nothing)
    if param.callback is None and _is_text(value) and not several:
        if str in kinds:
            return value
        if Path in kinds and (not os.path.exists(value) or os.access(value, os.R_OK)):  # noqa: PTH110
            return Path(value)
        if int in kinds and value.isascii() and value.isdigit() and len(value) < 10 and _is_within(int(value), notes):
            return int(value)
    if param.callback is None and list[str] in kinds and value and all(map(_is_text, value)):
        return list(value)
    return convert(context, value)


def _is_text(value: Any) -> bool:
    """Not what a shell gave that is no UTF-8."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value))


def _is_within(number: int, notes: list[Any]) -> bool:
    return all((note.min is None or number >= note.min) and (note.max is None or number <= note.max) for note in notes)
