"""`limelight train` turns two text files into a translator."""

import json
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight.cli.completion import presets
from limelight.cli.fetching import Yes
from limelight.cli.prepare.prepare import EngineName, start_engine

if TYPE_CHECKING:
    from limelight.training.recipe.request import TrainRequest, TrainResult

EXAMPLES = (
    "limelight train corpus.en corpus.de -o en-de --budget 30m",
    "limelight train memory.tmx --source en --target de -o ours --from en-de --replay 0.3 --budget 10m",
    "limelight train en-de/recipe.toml -o better model.dropout=0.3 schedule.steps=20000",
    "limelight train corpus.en corpus.de -o en-de --budget 2h --nproc 8",
    "limelight train multi.en multi.de multi.fr -o multi --both-directions",
)
ELSEWHERE = {"inputs", "no_export", "workers", "nproc", "restarts", "yes", "as_json", "plain", "quiet"}  # options that no request has


class PrecisionName(StrEnum):
    masters = "masters"
    autocast = "autocast"
    float32 = "float32"


def train(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Corpora as for prepare (two line-parallel files, TSV, JSONL, Parquet, TMX, PO, XLIFF; folders, globs), "
            "what prepare made of them, or one recipe.toml; and section.key=value of the recipe."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder of the run; its languages, as in en-de.")] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="Time for all of it: 30m, 2h, 1h30m. Model and steps fit it.")] = None,
    steps: Annotated[int | None, typer.Option("--steps", min=1, help="Steps of training, instead of those that fit.")] = None,
    preset: Annotated[str | None, typer.Option("--preset", autocompletion=presets, help="Size: toy, tiny, small ...; chosen.")] = None,
    bundle: Annotated[Path | None, typer.Option("--from", help="Go on from this translator, or from one of other languages.")] = None,
    new_pieces: Annotated[bool, typer.Option("--new-pieces", help="With --from: learnt pieces, as for another language.")] = False,
    replay: Annotated[float | None, typer.Option("--replay", help="With --from: share of the old text among what is seen.")] = None,
    replay_data: Annotated[list[str] | None, typer.Option("--replay-data", help="Old text against forgetting, as --valid.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Source language, such as en. Guessed from file names.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Target language, such as de.")] = None,
    valid: Annotated[list[str] | None, typer.Option("--valid", help="Validation set: one file, or twice for two line files.")] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="Test set, likewise.")] = None,
    vocab_size: Annotated[int | None, typer.Option("--vocab-size", help="Pieces in the vocabulary; suggested from the corpus.")] = None,
    weight: Annotated[list[str] | None, typer.Option("--weight", help="NAME=2: how often a corpus is seen per epoch.")] = None,
    pair: Annotated[list[str] | None, typer.Option("--pair", help="en-de=a.en,a.de or en-is=b.tsv: a corpus of these languages.")] = None,
    both_directions: Annotated[bool, typer.Option("--both-directions", help="Every pair also from target to source.")] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="ui=NAME: what the sources of a corpus are told.")] = None,
    mono: Annotated[list[str] | None, typer.Option("--mono", help="Lines in the target language without translation (.gz too).")] = None,
    rounds: Annotated[int, typer.Option("--rounds", help="With --mono: how often the lines are translated back.")] = 1,
    swap: Annotated[bool, typer.Option("--swap", help="Source and target stand in each other's place in the files.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Go on with text that looks wrong, or is dropped for the most part.")] = False,
    no_augment: Annotated[bool, typer.Option("--no-augment", help="The text as it is: nothing masked, no capitals, typos ...")] = False,
    probe: Annotated[Path | None, typer.Option("--probe", help="Sentences to trace while it learns, a line each; some of --valid.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The same seed gives the same run.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    precision: Annotated[PrecisionName | None, typer.Option("--precision", help="masters: bfloat16 weights with float32 masters.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to train with; all that this process may.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=0, help="Processes that prepare the corpus; one for each core.")] = None,
    nproc: Annotated[int, typer.Option("--nproc", min=1, help="Processes on this machine that train together, one for each GPU.")] = 1,
    restarts: Annotated[int, typer.Option("--restarts", min=0, help="With --nproc: how often they start again when one dies.")] = 3,
    no_export: Annotated[bool, typer.Option("--no-export", help="No export for CTranslate2 at the end; torch runs it.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Prepare, choose, say what would be trained and why, and stop.")] = False,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines instead of a screen, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Clean, split, learn pieces, choose a model, train it, score it: parallel text becomes a translator.

    Ctrl-C saves and stops; the same command goes on.
    """
    given, began = dict(locals()), time.monotonic()  # before torch is loaded
    from limelight.training.processes.rank_environment import is_supervised

    asked, folder = read_request(given)
    if nproc > 1 and not is_supervised():
        from limelight.cli.train.launch import launch

        raise typer.Exit(launch(asked, folder, nproc, restarts, sys.argv[1:]))
    raise typer.Exit(run_training(asked, folder, workers, plain, quiet or as_json, as_json, began))


def read_request(given: Mapping[str, Any]) -> "tuple[TrainRequest, Path]":
    from limelight.cli.train.request import parse_train_request

    text = {name: tuple(given[name] or ()) for name in ("valid", "test", "weight", "pair", "tag")}
    text |= {name: given[name] for name in ("source", "target", "vocab_size", "swap", "both_directions")}
    wished = {name: value for name, value in given.items() if name not in text and name not in ELSEWHERE}
    wished |= {name: tuple(given[name] or ()) for name in ("replay_data", "mono")}
    wished |= {"precision": given["precision"] and given["precision"].value, "export": not given["no_export"]}
    return parse_train_request(given["inputs"] or [], text=text, **wished)


def run_training(asked: "TrainRequest", folder: Path, workers: int | None, plain: bool, quiet: bool, as_json: bool, began: float) -> int:
    from limelight.training.processes.rank_environment import is_main

    result = watch_training(asked, folder, workers, plain, quiet, began)
    if is_main():
        sys.stdout.write(json.dumps(result.values) + "\n" if as_json else "".join(f"{line}\n" for line in result.lines))
        sys.stdout.flush()
    return result.exit_code


def watch_training(asked: "TrainRequest", folder: Path, workers: int | None, plain: bool, quiet: bool, began: float) -> "TrainResult":
    """One of several processes works as all do; only the main one prepares the corpus and speaks."""
    from limelight.cli.train.live_screen import TrainScreen
    from limelight.training.processes.rank_environment import is_main
    from limelight.training.run.run import train as run
    from limelight.training.run_folder import PREPARED

    prepares = asked.prepared is None and not (folder / PREPARED).exists()
    with (
        closing(start_engine(EngineName.local, workers if is_main() else 0, early=prepares)) as engine,
        TrainScreen(plain, quiet or not is_main(), str(folder)) as screen,
    ):
        watch = screen.watch if not asked.dry_run else lambda event: None  # what was chosen is its result
        return run(asked, folder, engine, watch, screen.progress, ["limelight", *sys.argv[1:]], began)
