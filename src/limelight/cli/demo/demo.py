"""`limelight demo` trains a translator of number words, measures it, and opens the lighting desk on it."""

import json
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limelight.cli.inspect.desk import desk_view, open_desk, say
from limelight.cli.prepare.prepare import EngineName, start_engine
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.training.config import Recipe
    from limelight.training.recipe.request import TrainResult

EXAMPLES = (
    "limelight demo",
    "limelight demo --french",
    "limelight demo -o numbers --port 8080",
    "limelight demo --no-open --json",
)
SENTENCE, CORPUS = "twenty-one", "corpus"


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write; one that is there is gone on with.")] = Path("demo"),
    french: Annotated[bool, typer.Option("--french", help="German and French in one model, told apart by a tag.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Train and measure, and end.")] = False,
    port: Annotated[int | None, typer.Option("--port", help="Of the desk; 0: any that is free.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="What was measured, as one JSON object on standard output.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a screen, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Learn number words, English to German, in about two minutes, and open the lighting desk on "twenty-one".

    German says "one-and-twenty": one sees the light cross. Ctrl-C saves; the same command goes on, or shows what is there.
    """
    began = time.monotonic()
    targets = ("de", "fr") if french else ("de",)
    corpus, run = _ensure_run(output, targets, threads, plain, quiet or as_json)
    from limelight.cli.demo.measure import measure
    from limelight.translator.translate import Translator

    with Translator.load(run, threads=threads, engine="torch") as translator:
        measured = measure(translator, corpus)
    seconds = time.monotonic() - began
    if as_json:
        sys.stdout.write(json.dumps({"folder": str(run), "seconds": round(seconds, 1), **measured.values}, ensure_ascii=False) + "\n")
    else:
        look = f'limelight inspect {run} "{SENTENCE}"' + (" --to fr" if french else "")
        sys.stdout.write(
            "".join(f" {line}\n" for line in (*measured.lines, f"in a terminal        {look}", f"after                {seconds:.0f} s"))
        )
    sys.stdout.flush()
    if not no_open:
        raise typer.Exit(open_desk(run, desk_view(SENTENCE), port, threads, not as_json, say))


def _ensure_run(output: Path, targets: Sequence[str], threads: int | None, plain: bool, quiet: bool) -> tuple[Path, Path]:
    from limelight.bundle.bundle import amend, read
    from limelight.cli.demo.corpus import recipe, write_corpus
    from limelight.training.run_folder import BUNDLE, read_status

    several = targets if len(targets) > 1 else ()
    corpus, run = output / "-".join((CORPUS, *several)), output / "-".join(("en", *targets))
    if read_status(run).get("state") == "done" and (run / BUNDLE).is_dir():
        if not quiet:
            say(f"{run} is there already; remove {run} to learn again")
        return corpus, run
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file, and the demo needs a folder; name another with -o")
    if not quiet:
        told = " and French" if several else ""
        say(f"20 000 numbers in words, English to German{told}, into {output}; a Transformer of 2 + 2 layers learns them")
    write_corpus(corpus, targets)
    result = _train(run, recipe(corpus, targets=targets), threads, plain, quiet)
    if result.exit_code:
        sys.stdout.write("".join(f"{line}\n" for line in result.lines))
        raise typer.Exit(result.exit_code)
    # Of a model that is sure of itself, four pieces of junk end before the one translation that is right (docs/experiments.md).
    amend(run / BUNDLE, search=read(run / BUNDLE).settings.search.changed(patience=2.0))
    return corpus, run


def _train(run: Path, recipe: "Recipe", threads: int | None, plain: bool, quiet: bool) -> "TrainResult":
    from limelight.cli.train.live_screen import TrainScreen
    from limelight.training.recipe.request import TrainRequest
    from limelight.training.run.run import train

    asked = TrainRequest(data=None, recipe=recipe, threads=threads, export=False)  # the desk runs on torch
    with closing(start_engine(EngineName.local, 0)) as engine, TrainScreen(plain, quiet, str(run)) as screen:
        return train(asked, run, engine, screen.watch, screen.progress, ["limelight", *sys.argv[1:]])
