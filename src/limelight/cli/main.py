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
from pathlib import Path
from typing import Any, Never

import typer.core
import typer.main

from limelight.cli.fetching import fetch_named
from limelight.cli.remote_folders import local_folders, takes_address
from limelight.cli.screen import drop_output, open_closed_streams
from limelight.errors import ConfigError, LimelightError, MissingExtraError
from limelight.training.processes.rank_environment import end_with_supervisor, exit_on_preemption, is_supervised

VERBS = {  # in the order of the help: where each is, and its first sentence, so that the help need not load it
    "prepare": ("prepare.prepare", "Clean, deduplicate, split, learn pieces, encode and report: parallel text becomes training data."),
    "plan": (
        "plan.plan",
        "Say what a run would cost, and why: size, memory, speed, time, disk, money, what to expect. Nothing is trained or left behind.",
    ),
    "train": ("train.train", "Clean, split, learn pieces, choose a model, train it, score it: parallel text becomes a translator."),
    "distill": ("train.distill", "Let a translator teach a smaller one: it translates text, and a student is trained on the pairs."),
    "learn": (
        "learn",
        "Teach a translator what people corrected; it is kept only if it is better on corrections it has not seen, and forgets nothing.",
    ),
    "translate": (
        "translate.translate",
        "Translate texts, or lines in a pipe: one line out for each line in, in order. Speed and warnings go to standard error.",
    ),
    "evaluate": (
        "evaluate.evaluate",
        "Score translations: BLEU, chrF, TER with intervals and signatures, by length, the worst sentences, and against another system.",
    ),
    "export": (
        "export",
        "Write a translator for CTranslate2 (the fast engine of translate and serve), Hugging Face, ONNX or a web page, and compare both.",
    ),
    "import": (
        "import_model",
        "Make a bundle of a model of Hugging Face (OPUS-MT/Marian, M2M100, NLLB, Pegasus) or of CTranslate2. It then works like any other.",
    ),
    "inspect": (
        "inspect.inspect",
        "Translate one sentence and look inside: where each head looks, how sure each piece is, what changes when a head is dark.",
    ),
    "serve": ("serve", "Serve translators: LibreTranslate- and DeepL-compatible APIs, an API of our own, and a page."),
    "memory": (
        "memory",
        "Fill a translation memory with files, search it, list or delete what is in it. `serve --store` and `translate --memory` use it.",
    ),
    "mcp": (
        "mcp",
        "Give translators to agents and editors as tools of the Model Context Protocol, on standard input and output. They change nothing.",
    ),
    "report": ("report", "Write report.md and report.html of a run again: after an update, or while it trains."),
    "demo": ("demo.demo", 'Learn number words, English to German, in about two minutes, and open the lighting desk on "twenty-one".'),
    "doctor": (
        "doctor.doctor",
        "Test each part for real, name what is wrong and how to mend it, and describe this machine. Names no file of yours.",
    ),
}


class LocalCommand(typer.core.TyperCommand):
    """A verb whose files and folders lie on this machine, or come from an address; any other would become a local folder named `s3:`."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        self._refuse_addresses(ctx.params)
        ctx.params = fetch_named(self.name or "", ctx.params)
        with local_folders(self.name or "", ctx.params):
            return super().invoke(ctx)

    def _refuse_addresses(self, params: dict[str, Any]) -> None:
        remote = []
        for param in self.params:
            value, name = params.get(param.name or ""), param.name or ""
            for number, each in enumerate(value if isinstance(value, (list, tuple)) else [value]):
                path = each.as_posix() if isinstance(each, Path) else each if self._is_folder(param, each) else ""
                if re.match("(?i)([^=/]+=)?[a-z][a-z0-9+]+:/", path) and not takes_address(self.name or "", params, name, each, number):
                    remote.append(f"{param.opts[0]} {re.sub(':/+', '://', path)}")
        if remote:
            raise ConfigError("an address was given where a file or folder of this machine is meant; mount it, or copy it first:", remote)

    def _is_folder(self, param: Any, given: Any) -> bool:
        """Is a bare word the name of one? Other verbs read text, or corpora, which may be at an address; and settings have any value."""
        if not isinstance(given, str):
            return False
        if "=" in given.partition(":/")[0]:
            from limelight.cli.serve import is_setting

            return self.name in ("mcp", "serve") and not is_setting(given)
        verbs = ("distill", "import", "mcp", "serve")
        return self.name == "evaluate" or (self.name in verbs and param.param_type_name == "argument")


def make_app(loaded: Iterable[str] = VERBS) -> typer.Typer:
    """The command with every verb; those that are not loaded have their names and first sentences, for the help."""
    app = typer.Typer(
        name="limelight",
        help="Train, look inside and serve your own Transformer translator.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # boxes and colours would take longer to load than the help takes to print
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for verb, (place, first) in VERBS.items():
        if verb in loaded:
            module = import_module(f"limelight.cli.{place}")
            examples = "\n\n".join(("Examples:", *module.EXAMPLES))
            app.command(verb, cls=LocalCommand, epilog=examples, short_help=first)(getattr(module, place.rpartition(".")[2]))
        else:
            app.command(verb, short_help=first)(_refuse_call)
    app.callback(invoke_without_command=True)(version)
    return app


def _refuse_call() -> None:
    raise AssertionError("a verb was called that was not loaded")


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
RESUMES = ("demo", "distill", "learn", "prepare", "train")  # verbs that go on where they were stopped


def _go_on() -> str:
    return "; run the same command again to go on" if sys.argv[1:2] and sys.argv[1] in RESUMES else ""


def _show_error(error: LimelightError) -> Never:
    """It may hold a name from a stranger's file, and a terminal obeys control characters."""
    typer.echo(re.sub(r"[^\n\t -~\u00a0-\U0010ffff]", "\ufffd", f"error: {error}"), err=True)
    sys.exit(error.exit_code)


def _find_verbs() -> Iterable[str]:
    """The verb of this command line, or none: the help is asked for, or something is wrong. A shell that completes may need any."""
    if "_LIMELIGHT_COMPLETE" in os.environ:
        return VERBS
    return [word for word in sys.argv[1:] if word != "--"][:1]


def main() -> None:
    """An error meant for a person is printed without a traceback and sets its exit code; anything else is a fault of ours."""
    # Read when torch is loaded: a thread that waits for others gives its core away after a moment. On cores that are shared with other
    # programs, spinning on makes training ten times as slow (docs/experiments.md).
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")  # else it searches every installed package for some
    open_closed_streams()
    atexit.register(gc.freeze)  # else all that torch ever made is searched for circles before Python ends: two seconds
    if sys.argv[1:2] == ["train"]:
        end_with_supervisor()
        exit_on_preemption()
    try:
        make_app(_find_verbs())()
    except LimelightError as error:
        _show_error(error)
    except ModuleNotFoundError as error:
        if error.name is None or (package := error.name.partition(".")[0]) not in OF_TRAINING:
            raise
        verb = next(iter(sys.argv[1:]), "")
        _show_error(MissingExtraError(package, f"limelight {verb}", "desk" if verb == "inspect" else "train"))
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
