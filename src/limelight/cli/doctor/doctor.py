"""`limelight doctor` says if Limelight works here, what is missing, and what to paste into a bug report."""

import json
import sys
import time
from typing import Annotated

import typer

from limelight.errors import RuntimeChoiceError

EXAMPLES = (
    "limelight doctor",
    "limelight doctor --markdown > environment.md",
    "limelight doctor --json | jq .problems",
)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="To paste into a bug report.")] = False,
) -> None:
    """Test each part for real, name what is wrong and how to mend it, and describe this machine. Names no file of yours.

    Ends with 0 if what is installed works here (training, with limelight[train], and translating), else with 69.
    """
    from limelight.cli.doctor.findings import DoctorReport, findings
    from limelight.cli.doctor.lines import as_lines, as_markdown
    from limelight.cli.doctor.machine import facts
    from limelight.cli.doctor.self_test_process import run_self_tests

    began = time.monotonic()
    outcome = run_self_tests()
    known = facts(outcome.facts)
    report = DoctorReport(findings(known, outcome.parts), known, outcome.parts, round(time.monotonic() - began, 1))
    if as_json:
        sys.stdout.write(json.dumps(report.values(), ensure_ascii=False) + "\n")
    else:
        lines = as_markdown(report) if markdown else as_lines(report)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    raise typer.Exit(0 if report.works else RuntimeChoiceError.exit_code)
