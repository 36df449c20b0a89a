"""Translations as they are made: the same as without streaming, signs of life in between, and no work for a client that has left."""

import asyncio
import gc
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from functools import partial
from typing import Any

import pytest
from native_server import Running, running, stored

from limelight.serving.native import responses
from limelight.serving.native.events import COMMENT, EventStream, breathing, encode_translated, events_of, format_event
from limelight.serving.queue.models import Models
from limelight.serving.queue.service import StreamedSentence, StreamedText
from limelight.serving.refusals import Busy, Late
from limelight.translator.translation import nothing

TEXTS = ["one two. three.\n\n four", "five", ""]


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored()
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(starts_process: None, models: Models) -> Iterator[Running]:
    with running(models) as made:
        yield made


def read(stream: str) -> list[tuple[str, dict[str, Any]]]:
    """Names and values of events, as a browser would read them."""
    events = []
    for block in stream.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            name, data = lines
            events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


def test_streamed_results_are_those_of_a_plain_answer(server: Running) -> None:
    body = {"text": TEXTS, "align": True, "nbest": 2}
    plain = server.post("translate", body).json()["results"]
    response = server.post("translate", {**body, "stream": True})
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["cache-control"] == "no-store"
    events = read(response.text)
    results = {value["text"]: value["result"] for name, value in events if name == "result"}
    assert [results[at]["text"] for at in range(3)] == [each["text"] for each in plain]
    assert [results[at]["alignment"] for at in range(3)] == [each["alignment"] for each in plain]
    for result in results.values():
        responses.ResultAnswer.model_validate(result)
    assert [name for name, _ in events].count("done") == 1 and events[-1][0] == "done"


def test_every_sentence_is_told_before_its_text_is_whole(server: Running) -> None:
    events = read(server.post("translate", {"text": TEXTS, "stream": True}).text)
    parts = [value for name, value in events if name == "part" and value["text"] == 0]
    assert sorted(part["part"] for part in parts) == [0, 1, 2] and {part["parts"] for part in parts} == {3}
    names = [name for name, value in events if value.get("text") == 0]
    assert names == ["part", "part", "part", "result"]
    whole = next(value["result"]["text"] for name, value in events if name == "result" and value["text"] == 0)
    assert all(part["translation"] in whole for part in parts)


def test_what_is_refused_before_the_first_event_has_its_own_status(server: Running) -> None:
    assert server.post("translate", {"text": "one", "stream": True, "model": "no"}).status_code == 404
    assert server.post("translate", {"text": "one", "stream": True, "prefix": "x" * 3000}).status_code == 400


@pytest.mark.process
def test_a_server_that_stops_refuses_a_stream_with_503(models: Models) -> None:
    with running(models) as server:
        server.service.drain()
        time.sleep(1.2)
        response = server.post("translate", {"text": "one", "stream": True})
        assert response.status_code == 503 and response.json()["error"]["code"] == "stopping"
        assert int(response.headers["retry-after"]) >= 1


def test_a_line_break_in_a_text_does_not_end_an_event() -> None:
    event = format_event("part", {"translation": "a\n\nevent: done\r\ndata: {}\u2028"})
    assert event.count(b"\n") == 3 and b"\r" not in event and event.endswith(b"}\n\n")
    assert read(event.decode()) == [("part", {"translation": "a\n\nevent: done\r\ndata: {}\u2028"})]


def test_silence_is_broken_by_comments_and_nothing_is_lost() -> None:
    async def slow() -> AsyncIterator[int]:
        for number in range(3):
            await asyncio.sleep(0.05)
            yield number

    async def heard() -> list[int | None]:
        return [each async for each in breathing(slow(), 0.02)]

    found = asyncio.run(heard())
    assert [each for each in found if each is not None] == [0, 1, 2]
    assert found.count(None) >= 3


def test_closing_ends_what_is_under_way() -> None:
    ended: list[str] = []

    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.sleep(60)
            yield 2
        finally:
            ended.append("closed")

    async def leave() -> None:
        for waiting in (False, True):
            ended.clear()
            items = breathing(source := endless(), 0.01)
            assert await anext(items) == 1
            assert not waiting or await anext(items) is None  # the second is waited for now
            await items.aclose()
            assert ended == ["closed"], waiting
            del source  # it was there until now: not the garbage collector has closed it

    asyncio.run(leave())


def test_what_goes_wrong_when_nobody_listens_any_more_is_no_error_of_the_loop() -> None:
    told: list[dict[str, object]] = []

    async def refused_late() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.sleep(60)
        finally:
            raise Busy("too many requests wait already", "try again")
        yield 2

    async def leave() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        items = breathing(refused_late(), 0.01)
        assert await anext(items) == 1 and await anext(items) is None
        await items.aclose()

    asyncio.run(leave())
    gc.collect()
    assert told == []


async def _made(*items: StreamedSentence | StreamedText | Exception) -> AsyncIterator[StreamedSentence | StreamedText]:
    for item in items:
        if isinstance(item, Exception):
            raise item
        yield item


def _bytes(*items: StreamedSentence | StreamedText | Exception) -> list[bytes]:
    async def collect() -> list[bytes]:
        encode = partial(encode_translated, result=lambda at, made: {"text": made.text})
        return [event async for event in events_of(_made(*items), encode, 1.0)]

    return asyncio.run(collect())


def test_a_refusal_after_the_first_event_is_an_event() -> None:
    sentence = StreamedSentence(0, 0, 2, nothing("one"))
    events = read(b"".join(_bytes(sentence, Late("too late", "hurry"))).decode())
    assert [name for name, _ in events] == ["part", "error"]
    assert events[1][1] == {"error": {"code": "late", "message": "too late", "hint": "hurry"}}
    with pytest.raises(Busy):
        _bytes(Busy("full"))


def test_a_mistake_of_ours_is_told_without_its_message_and_raised() -> None:
    sentence, sent = StreamedSentence(0, 0, 2, nothing("one")), list[bytes]()

    async def collect() -> None:
        encode = partial(encode_translated, result=lambda at, made: {})
        async for event in events_of(_made(sentence, ValueError("the text itself")), encode, 1.0):
            sent.append(event)

    with pytest.raises(ValueError, match="the text itself"):
        asyncio.run(collect())
    assert read(sent[-1].decode())[0][1]["error"]["code"] == "failed" and b"the text itself" not in b"".join(sent)


@pytest.mark.parametrize("reads", [True, False])
def test_nothing_is_sent_to_a_client_that_has_left_and_its_work_ends(reads: bool) -> None:
    """It leaves while nothing is done, or while something is done that it does not read."""
    ended: list[str] = []

    async def events() -> AsyncIterator[bytes]:
        try:
            if reads:
                await asyncio.sleep(60)
            yield b"second"
        finally:
            ended.append("closed")

    async def leave() -> list[bytes]:
        sent: list[bytes] = []

        async def send(message: Any) -> None:
            if message.get("body") == b"second":
                await asyncio.sleep(60)
            sent.append(message.get("body", b"begun"))

        async def receive() -> Any:
            await asyncio.sleep(0.02)
            return {"type": "http.disconnect"}

        made = events()
        await EventStream(COMMENT, made)({"type": "http"}, receive, send)  # type: ignore[arg-type]
        assert ended == ["closed"]
        return sent

    assert asyncio.run(asyncio.wait_for(leave(), 5)) == [b"begun", COMMENT]


def test_a_client_that_hangs_up_empties_the_queue(server: Running) -> None:
    """Over a real socket: the request is long, the client reads one event and goes."""
    text = ". ".join(["one two three four five six seven eight nine"] * 90) + "."
    body = json.dumps({"text": [text] * 12, "stream": True}).encode()
    host, port = server.url.removeprefix("http://").split(":")
    head = f"POST /api/v1/translate HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        while b"event: part" not in received:
            received += connection.recv(65536)
        assert b"200 OK" in received and server.service.pressure().pieces > 0
    gone = time.monotonic() + 5
    while server.service.pressure().pieces and time.monotonic() < gone:
        time.sleep(0.02)
    assert server.service.pressure().requests == 0 and server.service.pressure().pieces == 0
    while server.lines[-1]["status"] != 499 and time.monotonic() < gone:
        time.sleep(0.02)
    assert server.lines[-1]["status"] == 499
