"""The command `limelight` registers every verb, and turns errors into messages and exit codes."""

import atexit
import errno
import gc
import os
import sys
from importlib.metadata import version as installed_version

import typer

from limelight.cli import export, import_model, report, serve
from limelight.cli.demo import demo
from limelight.cli.doctor import doctor
from limelight.cli.evaluate import evaluate
from limelight.cli.inspect import inspect
from limelight.cli.plan import plan
from limelight.cli.prepare import prepare
from limelight.cli.screen import drop_output
from limelight.cli.train import train
from limelight.cli.translate import translate
from limelight.errors import LimelightError
from limelight.training.processes.rank_environment import end_with_supervisor, exit_on_preemption, is_supervised

app = typer.Typer(
    name="limelight",
    help="Train, look inside and serve your own Transformer translator.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("prepare", epilog=prepare.EXAMPLES)(prepare.prepare)
app.command("plan", epilog=plan.EXAMPLES)(plan.plan)
app.command("train", epilog=train.EXAMPLES)(train.train)
app.command("translate", epilog=translate.EXAMPLES)(translate.translate)
app.command("evaluate", epilog=evaluate.EXAMPLES)(evaluate.evaluate)
app.command("export", epilog=export.EXAMPLES)(export.export)
app.command("import", epilog=import_model.EXAMPLES)(import_model.import_model)
app.command("inspect", epilog=inspect.EXAMPLES)(inspect.inspect)
app.command("serve", epilog=serve.EXAMPLES)(serve.serve)
app.command("report", epilog=report.EXAMPLES)(report.report)
app.command("demo", epilog=demo.EXAMPLES)(demo.demo)
app.command("doctor", epilog=doctor.EXAMPLES)(doctor.doctor)


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if show:
        typer.echo(f"limelight {installed_version('limelight')}")
        raise typer.Exit


RESUMES = ("demo", "prepare", "train")  # verbs that go on where they were stopped


def _go_on() -> str:
    return "; run the same command again to go on" if sys.argv[1:2] and sys.argv[1] in RESUMES else ""


def main() -> None:
    """An error meant for a person is printed without a traceback and sets its exit code; anything else is a fault of ours."""
    # Read when torch is loaded: a thread that waits for others gives its core away after a moment. On cores that are shared with other
    # programs, spinning on makes training ten times as slow (docs/experiments.md).
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    atexit.register(gc.freeze)  # else all that torch ever made is searched for circles before Python ends: two seconds
    if sys.argv[1:2] == ["train"]:
        end_with_supervisor()
        exit_on_preemption()
    try:
        app()
    except LimelightError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
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
