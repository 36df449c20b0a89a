"""The command `limelight` registers every verb, and turns errors into messages and exit codes."""

import atexit
import errno
import gc
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import typer

from limelight.cli.screen import drop_output
from limelight.errors import LimelightError, MissingExtraError
from limelight.training.processes.rank_environment import end_with_supervisor, exit_on_preemption, is_supervised

VERBS = {  # in the order of the help, and where each is
    "prepare": "prepare.prepare",
    "plan": "plan.plan",
    "train": "train.train",
    "translate": "translate.translate",
    "evaluate": "evaluate.evaluate",
    "export": "export",
    "import": "import_model",
    "inspect": "inspect.inspect",
    "serve": "serve",
    "report": "report",
    "demo": "demo.demo",
    "doctor": "doctor.doctor",
}


def make_app(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The command with these verbs; no other is loaded."""
    app = typer.Typer(
        name="limelight",
        help="Train, look inside and serve your own Transformer translator.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # boxes and colours would take longer to load than the help takes to print
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for verb in verbs:
        module = import_module(f"limelight.cli.{VERBS[verb]}")
        function = getattr(module, VERBS[verb].rpartition(".")[2])
        first = " ".join(function.__doc__.partition("\n\n")[0].split())
        app.command(verb, epilog=module.EXAMPLES, short_help=first)(function)
    app.callback(invoke_without_command=True)(version)
    return app


@cache
def __getattr__(name: str) -> Any:
    """`app` has every verb, and is made when it is asked for."""
    if name != "app":
        raise AttributeError(f"limelight.cli.main has no {name!r}")
    return make_app()


def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if show:
        from importlib.metadata import version as installed_version

        typer.echo(f"limelight {installed_version('limelight')}")
        raise typer.Exit


OF_TRAINING = ("torch", "polars", "pyarrow", "py3langid")  # the packages of limelight[train]
RESUMES = ("demo", "prepare", "train")  # verbs that go on where they were stopped


def _go_on() -> str:
    return "; run the same command again to go on" if sys.argv[1:2] and sys.argv[1] in RESUMES else ""


# An error may hold a name from a stranger's file, and a terminal obeys these.
_CONTROLS = re.compile(r"[^\n\t -~\u00a0-\U0010ffff]")


def main() -> None:
    """An error meant for a person is printed without a traceback and sets its exit code; anything else is a fault of ours."""
    # Read when torch is loaded: a thread that waits for others gives its core away after a moment. On cores that are shared with other
    # programs, spinning on makes training ten times as slow (docs/experiments.md).
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # else it searches every installed package for some
    atexit.register(gc.freeze)  # else all that torch ever made is searched for circles before Python ends: two seconds
    if sys.argv[1:2] == ["train"]:
        end_with_supervisor()
        exit_on_preemption()
    try:
        make_app([verb for verb in sys.argv[1:2] if verb in VERBS] or VERBS)()
    except LimelightError as error:
        typer.echo(_CONTROLS.sub("\ufffd", f"error: {error}"), err=True)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if error.name is None or (package := error.name.partition(".")[0]) not in OF_TRAINING:
            raise
        verb = next(iter(sys.argv[1:]), "")
        missing = MissingExtraError(package, f"limelight {verb}", "desk" if verb == "inspect" else "train")
        typer.echo(f"error: {missing}", err=True)
        sys.exit(missing.exit_code)
    except SystemExit as end:
        if end.code == 130 and not is_supervised():  # how Typer ends on Ctrl-C
            typer.echo(f"interrupted{_go_on()}", err=True)
        raise
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS):
            raise
        typer.echo(
            f"error: {error.strerror}: {error.filename or 'while writing'}; make room or choose another place{_go_on()}",
            err=True,
        )
        drop_output()
        sys.exit(74)
