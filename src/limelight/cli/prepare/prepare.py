"""`limelight prepare` cleans raw corpora into training data, and writes a report."""

import json
import sys
import tempfile
import time
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limelight.cli.fetching import Yes
from limelight.cli.prepare.lines import describe_findings, describe_prepared
from limelight.cli.screen import Screen
from limelight.errors import MissingExtraError

if TYPE_CHECKING:
    from limelight.corpus.exchange.engine import ExchangeEngine

EXAMPLES = (
    "limelight prepare corpus.en corpus.de -o prepared",
    "limelight prepare memory.tmx docs/ --source en --target de --valid dev.en --valid dev.de filters.copied=off",
    "limelight prepare corpus.en corpus.de --check-only",
    "limelight prepare multi.en multi.de multi.fr --both-directions",
)


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


def prepare(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            help="Files, folders, globs or addresses (two line-parallel files, TSV, JSONL, Parquet, TMX, PO, XLIFF; also .gz, .zst), "
            "or section.key=value."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("prepared"),
    source: Annotated[str | None, typer.Option("--source", help="Source language, such as en. Guessed from file names.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Target language, such as de.")] = None,
    old_source: Annotated[str | None, typer.Option("--from", hidden=True, help="Of old; say --source.")] = None,
    old_target: Annotated[str | None, typer.Option("--to", hidden=True, help="Of old; say --target.")] = None,
    valid: Annotated[list[str] | None, typer.Option("--valid", help="Validation set: one file, or twice for two line files.")] = None,
    test: Annotated[list[str] | None, typer.Option("--test", help="Test set, likewise.")] = None,
    vocab_size: Annotated[int | None, typer.Option("--vocab-size", help="Pieces in the vocabulary; suggested from the corpus.")] = None,
    weight: Annotated[list[str] | None, typer.Option("--weight", help="NAME=2: how often a corpus is seen per epoch.")] = None,
    pair: Annotated[list[str] | None, typer.Option("--pair", help="en-de=a.en,a.de or en-is=b.tsv: a corpus of these languages.")] = None,
    both_directions: Annotated[bool, typer.Option("--both-directions", help="Every pair also from target to source.")] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="ui=NAME: what the sources of a corpus are told.")] = None,
    config: Annotated[Path | None, typer.Option("--config", help="Settings as TOML; what is given here wins over it.")] = None,
    check_only: Annotated[bool, typer.Option("--check-only", help="Judge all, show the first offending lines, write nothing.")] = False,
    keep_dropped: Annotated[bool, typer.Option("--keep-dropped", help="Write dropped pairs with their reason to OUTPUT/dropped.")] = False,
    engine: Annotated[EngineName, typer.Option("--engine", help="ray: a cluster; pip install 'limelight[cluster]'.")] = EngineName.local,
    workers: Annotated[int | None, typer.Option("--workers", min=0, help="Processes beside this one; one for each core.")] = None,
    swap: Annotated[bool, typer.Option("--swap", help="Source and target stand in each other's place in the files.")] = False,
    anyway: Annotated[bool, typer.Option("--anyway", help="Go on with text that looks wrong, or is dropped for the most part.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace what OUTPUT holds.")] = False,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No bars and colours, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Clean, deduplicate, split, learn pieces, encode and report: parallel text becomes training data."""
    with closing(start_engine(engine, workers)) as running:
        from limelight.cli.settings_arguments import settings_from  # while the workers start
        from limelight.corpus.prepare import check
        from limelight.corpus.prepare import prepare as run

        options = {
            "source": _accept_old_name("--source", source, "--from", old_source),
            "target": _accept_old_name("--target", target, "--to", old_target), "valid": valid, "test": test, "vocab_size": vocab_size,
            "keep_dropped": keep_dropped, "swap": swap, "pair": pair, "both_directions": both_directions, "tag": tag,
        }  # fmt: skip
        settings = settings_from(inputs or [], options, weight or [], config)
        began = time.monotonic()
        with Screen(plain, quiet or as_json) as screen:
            if check_only:
                with tempfile.TemporaryDirectory(prefix="limelight-") as work:
                    findings = check(settings, Path(work), running, screen.show)
                result, lines = findings.model_dump(mode="json"), describe_findings(findings)
            else:
                manifest, before = run(settings, output, running, screen.show, force, anyway)
                result = json.loads(manifest.encode())
                lines = describe_prepared(manifest, output, None if before else time.monotonic() - began)
    sys.stdout.write(json.dumps(result) + "\n" if as_json else "\n".join(lines) + "\n")


def _accept_old_name(name: str, given: str | None, old: str, by_old: str | None) -> str | None:
    """An option that had another name in the first release; the next one no longer knows it."""
    if by_old is not None:
        typer.echo(f"{old} is now called {name}, as in every verb; {old} will be gone in the next release", err=True)
    return given if given is not None else by_old


def start_engine(name: EngineName, workers: int | None, early: bool = True) -> "ExchangeEngine":
    """`workers` asked for, or a process for each core. `early`: they load what they need at once, since there will be work for them."""
    if name == EngineName.ray:
        try:
            from limelight.corpus.exchange.engine_ray import RayEngine
        except ModuleNotFoundError:
            raise MissingExtraError("ray", "--engine ray", "cluster") from None
        return RayEngine()
    from limelight.corpus.cleaning.clean import Cleaner
    from limelight.corpus.exchange.engine_local import LocalEngine
    from limelight.corpus.exchange.finish import BucketFinish
    from limelight.runtime import available_cores

    engine = LocalEngine(available_cores() if workers is None else workers)
    if early:
        engine.start(Cleaner, BucketFinish)
    return engine
