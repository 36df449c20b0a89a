"""`limelight mcp` gives translators to agents and editors as tools of the Model Context Protocol, on standard input and output."""

from typing import Annotated

import typer

from limelight.cli.fetching import Yes
from limelight.errors import MissingExtraError

EXAMPLES = (
    "limelight mcp en-de",
    "limelight mcp en-de multi --threads 2",
    "limelight mcp news=/models/en-de --engine ctranslate2",
)


def mcp(
    bundles: Annotated[list[str], typer.Argument(help="Folders of bundles or runs, or NAME=FOLDER.")],
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="ctranslate2 or torch.")] = None,
    yes: Yes = False,
) -> None:
    """Give translators to agents and editors as tools of the Model Context Protocol, on standard input and output. They change nothing."""
    try:
        from limelight.serving.agents import agent_server
        from limelight.serving.queue.models import load
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name, "limelight mcp", "mcp") from None
    models = load(bundles, threads, engine)
    try:
        agent_server(models).run()
    finally:
        models.close()
