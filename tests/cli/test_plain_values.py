"""Plain values of options are what Typer would make of them, and all others go to Typer."""

import os
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from limelight.cli.main import app
from limelight.cli.plain_values import take_plain_values

TEXTS = ["", "x", "7", "0", "-3", "+4", " 5", "1_000", "2.0", "٣", "1" * 10, "nan", "a b", "\udcff", "ä", "/", "no/such"]


def converted(program: Any, verb: str, name: str, value: Any) -> str:
    """What becomes of a value, or the message."""
    command = program.commands[verb]
    with command.make_context(verb, [], resilient_parsing=True) as context:
        [param] = [each for each in command.get_params(context) if each.name == name]
        context.resilient_parsing = False
        try:
            return repr(param.process_value(context, value))
        except Exception as error:
            return f"{type(error).__name__}: {error}"


@pytest.mark.slow
def test_every_option_of_every_verb_gets_the_same_value() -> None:
    typers, ours = typer.main.get_command(app), typer.main.get_command(app)
    take_plain_values(ours)
    for verb, command in typers.commands.items():  # type: ignore[attr-defined]
        for param in command.params:
            several = param.nargs == -1 or getattr(param, "multiple", False)
            for value in [None, *([text] if several else text for text in TEXTS), *([[], ["a", "\udcff"]] if several else [])]:
                told = [converted(program, verb, param.name, value) for program in (typers, ours)]
                assert told[0] == told[1], (verb, param.name, value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_gets_typers_message(tmp_path: Path) -> None:
    closed = tmp_path / "closed.toml"
    closed.write_bytes(b"")
    closed.chmod(0)
    program = typer.main.get_command(app)
    take_plain_values(program)
    assert "is not readable" in CliRunner().invoke(app, ["serve", "--config", str(closed)]).output
    assert "is not readable" in converted(program, "serve", "config", str(closed))
