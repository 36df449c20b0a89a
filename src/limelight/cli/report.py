"""`limelight report` writes the report of a run again, from the files of the run."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from limelight.errors import DataError

EXAMPLES = (
    "limelight report en-de",
    "limelight report en-de && open en-de/report.html",
    "limelight report runs/en-de --json | jq -r .html",
)


def report(
    run: Annotated[Path, typer.Argument(help="Folder of a run, finished or not.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:
    """Write report.md and report.html of a run again: after an update, or while it trains."""
    from limelight.training.report.report import write_report
    from limelight.training.run_folder import FACTS, METRICS, RECIPE, STATUS

    if not any((run / name).is_file() for name in (FACTS, METRICS, RECIPE, STATUS)):
        raise DataError(
            f"{run} is no run of `limelight train`: it has none of {FACTS}, {METRICS}, {RECIPE} and {STATUS}; name the folder that was "
            "given to it with -o"
        )
    markdown, html = write_report(run)
    if as_json:
        sys.stdout.write(json.dumps({"markdown": str(markdown), "html": str(html)}) + "\n")
    else:
        sys.stdout.write(f"wrote {markdown}\nwrote {html}\n")
