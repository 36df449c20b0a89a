"""Translators as tools for agents, asked by the client of the protocol's own library."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from limelight.serving.agents import LONGEST_TEXT, MOST_TERMS, MOST_TEXTS, agent_server
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.text.careful.glossary import Glossary
from limelight.translator import Translator
from tagged_bundle import translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
CAT = "the cat sat on the mat"


@pytest.fixture(scope="module")
def known() -> Iterator[Translator]:
    with translator() as found:
        yield found


@pytest.fixture(scope="module")
def models(known: Translator) -> Models:
    return Models([ServedModel("multi", known, speed=1.0)])


def call(models: Models, tool: str, **arguments: Any) -> Any:
    async def ask() -> Any:
        async with Client(agent_server(models)) as client:
            return await client.call_tool(tool, arguments)

    return anyio.run(ask)


def test_tools_say_that_they_change_nothing(models: Models) -> None:
    async def ask() -> Any:
        async with Client(agent_server(models)) as client:
            return (await client.list_tools()).tools

    tools = anyio.run(ask)
    assert [tool.name for tool in tools] == ["translate", "languages", "glossary", "score"]
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)


def test_texts_are_translated_into_the_language_that_was_asked(models: Models, known: Translator) -> None:
    found = call(models, "translate", texts=[CAT, "he was in it"], target="fr", tags=["formal"]).structured_content["result"]
    assert [each["text"] for each in found] == [each.text for each in known.translate([CAT, "he was in it"], target="fr", tags=["formal"])]
    assert all(0 <= each["confidence"] <= 1 for each in found)
    assert found[0]["text"] != call(models, "translate", texts=[CAT], target="de").structured_content["result"][0]["text"]


def test_models_and_scores_are_told(models: Models, known: Translator) -> None:
    [one] = call(models, "languages").structured_content["result"]
    assert one == {"model": "multi", "directions": [["en", "de"], ["en", "fr"], ["de", "en"], ["fr", "en"]], "tags": ["formal", "ui"]}
    scored = call(models, "score", text=CAT, translation="he was", target="de").structured_content
    assert scored["log_prob"] == pytest.approx(known.score([CAT], ["he was"])[0].log_prob, abs=1e-4)


def test_the_glossary_of_a_bundle_is_listed_and_a_given_one_is_used(models: Models, known: Translator) -> None:
    assert call(models, "glossary").structured_content == {}
    known.glossary = Glossary.of({"cat": ["dog", "house"]})
    try:
        assert call(models, "glossary").structured_content == {"cat": ["dog", "house"]}
    finally:
        known.glossary = None
    told = call(models, "translate", texts=[CAT], target="de", glossary={"cat": "blue"}).structured_content["result"][0]["text"]
    assert "blue" in told.split()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"texts": [CAT], "target": "it"}, "there are models from en to de"),
        ({"texts": [CAT], "tags": ["polite"]}, "it has formal, ui"),
        ({"texts": ["a"] * (MOST_TEXTS + 1)}, "at most 64"),
        ({"texts": ["a" * (LONGEST_TEXT + 1)]}, "at most 10000"),
        ({"texts": ["a"], "glossary": {str(n): "b" for n in range(MOST_TERMS + 1)}}, "at most 500"),
        ({"texts": "a"}, "list"),
    ],
)
def test_what_cannot_be_done_is_told_as_an_error_of_the_tool(models: Models, arguments: dict[str, Any], said: str) -> None:
    answer = call(models, "translate", **arguments)
    assert answer.is_error and said in answer.content[0].text


@pytest.mark.process
def test_a_process_speaks_the_protocol_on_its_standard_streams() -> None:
    async def ask() -> Any:
        async with Client(StdioServerParameters(command=sys.executable, args=["-m", "limelight", "mcp", f"en-de={BUNDLE}"])) as client:
            return await client.call_tool("translate", {"texts": ["one two"]})

    assert anyio.run(ask).structured_content["result"][0]["text"] == "eins zwei"
