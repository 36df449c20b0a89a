"""Agents and editors use translators by four tools of the Model Context Protocol, which read and change nothing else.

    agent_server(load(["en-de"], threads=None)).run()     # JSON-RPC on standard input and output, until the other side leaves

Each call is bounded in size and time, and runs in a thread, one after the other.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field

from limelight.errors import LimelightError
from limelight.serving.queue.models import Models
from limelight.serving.refusals import Refusal
from limelight.text.careful.glossary import Glossary

MOST_TEXTS, LONGEST_TEXT, MOST_TERMS, MOST_LISTED = 64, 10_000, 500, 1000
LONGEST: Final = 120.0  # seconds of a translation
READ_ONLY: Final = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
ABOUT: Final = "Translates on this machine, with models that its owner trained. Text goes nowhere else. Ask `languages` first."

Text = Annotated[str, Field(max_length=LONGEST_TEXT)]
Code = Annotated[str | None, Field(max_length=100, description="such as en; may be left out where there is no choice")]
Tags = Annotated[list[str], Field(max_length=16, description="what the model is told beside, such as formal; see languages")]
Terms = Annotated[dict[str, str], Field(max_length=MOST_TERMS, description="words that must be translated so")]
Result = TypeVar("Result")


def agent_server(models: Models) -> MCPServer[None]:
    """The tools: translate, languages, glossary and score."""
    server = MCPServer[None]("limelight", instructions=ABOUT, log_level="ERROR")
    turn = anyio.Semaphore(1)

    async def work(what: Callable[[], Result]) -> Result:
        try:
            async with turn:
                return await anyio.to_thread.run_sync(what)
        except Refusal as refusal:
            raise ToolError(" ".join(filter(None, (f"{refusal.message}.", refusal.hint)))) from None
        except LimelightError as error:
            raise ToolError(str(error)) from None

    @server.tool(annotations=READ_ONLY)
    async def translate(
        texts: Annotated[list[Text], Field(max_length=MOST_TEXTS)],
        target: Code = None,
        source: Code = None,
        tags: Tags = [],  # noqa: B006 (never changed; a schema wants a list)
        glossary: Terms = {},  # noqa: B006
    ) -> list[dict[str, Any]]:
        """Translate texts. Placeholders, tags and numbers are kept, or a warning says what was lost. Confidence is from 0 to 1."""

        def run() -> list[dict[str, Any]]:
            view = models.pick(source, target, None, tags).translator
            found = view.translate(texts, glossary=Glossary.of(glossary) if glossary else None, timeout=LONGEST)
            return [{"text": each.text, "confidence": round(each.confidence, 3), "warnings": list(each.warnings)} for each in found]

        return await work(run)

    @server.tool(annotations=READ_ONLY)
    async def languages() -> list[dict[str, Any]]:
        """List the models: from which language to which, and which tags they know."""
        return [{"model": each.id, "directions": [*each.directions][:MOST_LISTED], "tags": list(each.tags)} for each in models.all]

    @server.tool(annotations=READ_ONLY)
    async def glossary(target: Code = None, source: Code = None) -> dict[str, list[str]]:
        """List the terms that a model always translates so; those of its own glossary, if it has one."""

        def run() -> dict[str, list[str]]:
            known = models.pick(source, target).translator.glossary
            return {term.source: list(term.targets) for term in known.terms[:MOST_LISTED]} if known else {}

        return await work(run)

    @server.tool(annotations=READ_ONLY)
    async def score(text: Text, translation: Text, target: Code = None, source: Code = None) -> dict[str, Any]:
        """Say how probable a given translation is to the model: natural logarithm of its probability, confidence, and each piece's."""

        def run() -> dict[str, Any]:
            return models.pick(source, target).translator.score([text], [translation])[0].as_dict()

        return await work(run)

    return server
