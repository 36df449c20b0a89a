"""The reference of the command line, from the Typer app itself."""

from typing import Any

import typer

from limelight.cli.main import app

INTRODUCTION = """# Command line

Written by the program itself when this page was built. `limelight VERB --help` says the same.

Every verb ends with 0 when it did what it was asked. What other codes mean is [decision 0001](../decisions/0001-exit-codes.md).
"""


def page() -> str:
    group: Any = typer.main.get_command(app)
    context = typer.Context(group, info_name="limelight")
    parts = [INTRODUCTION, _verbs(group, context)]
    for name in group.list_commands(context):
        parts.append(_verb(name, group.get_command(context, name), context))
    return "\n".join(parts)


def _verbs(group: Any, context: typer.Context) -> str:
    rows = [
        f"| [`{name}`](#{name}) | {cell(group.get_command(context, name).get_short_help_str(200))} |"
        for name in group.list_commands(context)
    ]
    return "\n".join(["| verb | |", "| --- | --- |", *rows, ""])


def _verb(name: str, command: Any, parent: typer.Context) -> str:
    context = typer.Context(command, info_name=name, parent=parent)
    words = [word for param in command.get_params(context) for word in param.get_usage_pieces(context)]
    parts = [f"## {name}", "", "    " + " ".join(["limelight", name, "[OPTIONS]", *words]), ""]
    parts += [_paragraphs(command.help or ""), ""]
    rows = [row for param in command.get_params(context) if (row := _row(param, context))]
    parts += ["| | |", "| --- | --- |", *rows, ""]
    examples = [line.strip() for line in (command.epilog or "").split("\n") if line.strip().startswith("limelight")]
    if examples:
        parts += ["Examples:", "", *(f"    {line}" for line in examples), ""]
    return "\n".join(parts)


def _paragraphs(text: str) -> str:
    """Typer's mark for lines that are kept as they are is no text."""
    return text.replace("\b", "").strip()


def _row(param: Any, context: typer.Context) -> str | None:
    if param.param_type_name == "argument":
        name = param.metavar or param.name.upper() + ("..." if param.nargs != 1 else "")
        names, told = f"`{name}`", param.help or ""
    else:
        record = param.get_help_record(context)
        if record is None:
            return None
        written, told = record
        names = f"`{written}`"
    return f"| {cell(names)} | {cell(told)} |"


def cell(text: str) -> str:
    """As one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
