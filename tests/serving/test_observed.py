"""One request is one line, and nothing that a client sent is in it, nor in metrics or traces."""

import asyncio
import io
import json
import logging
import threading
import time
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from asking import ask
from fastapi import APIRouter, FastAPI
from http_server import Wire, status_of
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from limelight.serving.http.connection import make_protocol
from limelight.serving.http.disconnect import ClientLeft
from limelight.serving.middleware.body_limit import BodyLimit
from limelight.serving.middleware.logs import json_lines, kinds_of, places_of, take_over
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.middleware.request_log import RequestLog, note, note_refusal
from limelight.serving.refusals import Busy, Failed
from limelight.serving.settings import Limits, ServeSettings

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
NASTY = "\r\n\x1b[31m\u2028\u2029\x85\x00"


class Log(list[dict[str, Any]]):
    """Lines as they were written."""

    def __init__(self) -> None:
        super().__init__()
        self.stream = io.BytesIO()
        self.write = json_lines(self.stream)

    def lines(self) -> list[dict[str, Any]]:
        written = self.stream.getvalue()
        assert not written or written.endswith(b"\n")
        return [json.loads(line) for line in written.split(b"\n")[:-1]]


def routes() -> APIRouter:
    router = APIRouter(prefix="/api/v1")

    async def translate(request: Request) -> Response:
        note(request, characters=5, texts=1)
        note(request, pieces=3, model="en-de")
        return JSONResponse({})

    async def crash(word: str) -> Response:
        raise ValueError(word)

    async def crash_late() -> Response:
        def parts() -> Iterator[bytes]:
            yield b"one"
            raise ValueError("canary")

        return StreamingResponse(parts())

    async def busy(request: Request) -> Response:
        note_refusal(request, Busy("later"))
        return JSONResponse({}, 503)

    async def left() -> Response:
        raise ClientLeft

    router.add_api_route("/translate", translate, methods=["POST"])
    router.add_api_route("/crash/{word}", crash)
    router.add_api_route("/late", crash_late)
    router.add_api_route("/busy", busy)
    router.add_api_route("/left", left)
    return router


def app_of(log: Log, metrics: Metrics | None = None, tracing: OtelTracing | None = None) -> FastAPI:
    around = Middleware(RequestLog, metrics=metrics or Metrics(), log=log.write, tracing=tracing)
    app = FastAPI(middleware=[around])
    app.include_router(routes())
    return app


def test_a_request_is_one_line_with_its_route_and_its_numbers() -> None:
    log = Log()
    answer = ask(app_of(log), "POST", "/api/v1/translate?q=secret", json={"text": "secret"})
    (line,) = log.lines()
    assert line.pop("time").endswith("+00:00") and line.pop("ms") >= 0
    assert line == {
        "id": answer.headers["x-request-id"], "method": "POST", "route": "/api/v1/translate", "status": 200,
        "characters": 5, "texts": 1, "pieces": 3, "model": "en-de",
    }  # fmt: skip


def test_every_request_has_a_number_of_its_own_whatever_the_client_says() -> None:
    log = Log()
    app = app_of(log)
    given = [ask(app, "GET", "/x", headers={"X-Request-Id": "mine"}).headers["x-request-id"] for _ in range(3)]
    assert len({*given, "mine"}) == 4
    assert [line["id"] for line in log.lines()] == given


@pytest.mark.parametrize(("method", "path"), [("GET", "/canary/canary"), ("CANARY", "/canary"), ("GET", "/?canary=1")])
def test_what_no_route_matches_has_no_path_and_no_method_of_its_own(method: str, path: str) -> None:
    log = Log()
    ask(app_of(log), method, path)
    (line,) = log.lines()
    assert line["route"] == "(none)" and "canary" not in json.dumps(line).lower()


def test_a_crash_is_a_plain_500_and_a_line_with_places_and_without_words() -> None:
    log = Log()
    answer = ask(app_of(log), "GET", "/api/v1/crash/canary")
    assert answer.status_code == 500 and "canary" not in answer.text
    assert answer.headers["x-request-id"] in answer.json()["error"]["hint"]
    (line,) = log.lines()
    assert (line["status"], line["route"], line["refusal"]) == (500, "/api/v1/crash/{word}", "failed")
    assert line["error"] == ["Failed", "ValueError"]
    assert line["places"][-1].startswith("serving/test_observed.py:")
    assert "canary" not in json.dumps(line)


def test_a_crash_in_the_middle_of_an_answer_is_a_line_too_and_raises_nothing_outside() -> None:
    log = Log()
    with pytest.raises(AssertionError):  # httpx waits for the rest of the answer, and our own error is not what it gets
        ask(app_of(log), "GET", "/api/v1/late")
    (line,) = log.lines()
    assert "ValueError" in line["error"] and "canary" not in json.dumps(line)


def test_a_client_that_left_is_499() -> None:
    log = Log()

    async def leaves() -> None:
        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        async def waits(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        await RequestLog(waits, Metrics(), log.write)(scope, receive, send)

    asyncio.run(leaves())
    ask(app_of(log), "GET", "/api/v1/busy")
    assert [line["status"] for line in log.lines()] == [499, 503]


def test_a_route_that_gave_up_because_the_client_left_is_no_crash() -> None:
    log = Log()
    metrics = Metrics()
    ask_left = app_of(log, metrics)
    with pytest.raises(AssertionError):  # httpx has no answer to give
        ask(ask_left, "GET", "/api/v1/left")
    (line,) = log.lines()
    assert line["status"] == 499 and "error" not in line
    assert 'limelight_requests_total{route="/api/v1/left",status="499"} 1.0' in metrics.text().decode()


def test_a_client_that_leaves_after_its_answer_is_not_499() -> None:
    log = Log()

    async def stays() -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"x"})
            await receive()

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
        await RequestLog(app, Metrics(), log.write)(scope, receive, send)

    asyncio.run(stays())
    assert [line["status"] for line in log.lines()] == [200]


def test_a_refusal_is_counted_once_by_its_code() -> None:
    log, metrics = Log(), Metrics()
    ask(app_of(log, metrics), "GET", "/api/v1/busy")
    assert log.lines()[0]["refusal"] == "busy"
    assert 'limelight_refusals_total{reason="busy"} 1.0' in metrics.text().decode()
    assert 'limelight_requests_total{route="/api/v1/busy",status="503"} 1.0' in metrics.text().decode()


@pytest.mark.parametrize("headers", [{}, {"Transfer-Encoding": "chunked"}])
def test_a_body_that_is_too_large_is_counted_and_logged_by_its_code(headers: dict[str, str]) -> None:
    async def reads(request: Request) -> Response:
        return JSONResponse(len(await request.body()))

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 2_000

    log, metrics = Log(), Metrics()
    settings = ServeSettings(limits={"body_bytes": 1_024})  # type: ignore[arg-type]
    around = [Middleware(RequestLog, metrics=metrics, log=log.write), Middleware(BodyLimit, settings=settings)]
    app = FastAPI(middleware=around)
    app.add_api_route("/reads", reads, methods=["POST"])
    assert ask(app, "POST", "/reads", headers=headers, content=body() if headers else b"x" * 2_000).status_code == 413
    assert log.lines()[0]["refusal"] == "too_large"
    assert 'limelight_refusals_total{reason="too_large"} 1.0' in metrics.text().decode()


@pytest.mark.process
def test_what_a_connection_refuses_before_it_is_a_request_is_counted_too() -> None:
    metrics, lines = Metrics(), Log()
    config = uvicorn.Config(
        app_of(lines, metrics),
        port=0,
        http=make_protocol(Limits(header_seconds=2.0, connections=1)),
        ws="none",
        log_level="critical",
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        with Wire(port) as first:
            first.ask(b"GET / HTTP/1.1\r\nX: ")
            time.sleep(0.3)  # until it is read: one that has said nothing makes room for whoever connects next
            with Wire(port) as second:
                assert status_of(second.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").answers(1)) == 503
            assert status_of(first.answers(1)) == 408
        while server.server_state.connections:
            time.sleep(0.01)
        with Wire(port) as third:
            assert status_of(third.ask(b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000).answers(1)) == 431
    finally:
        server.should_exit = True
        thread.join(20)
    figures = metrics.text().decode()
    for reason in ("busy", "slow", "headers_too_large"):
        assert f'limelight_refusals_total{{reason="{reason}"}} 1.0' in figures
    assert lines.lines() == []


def test_errors_are_told_by_type_and_place_to_their_first_cause() -> None:
    def begins() -> None:
        raise KeyError("canary")

    try:
        try:
            begins()
        except KeyError as error:
            raise Failed("the engine failed") from error
    except Failed as failed:
        assert kinds_of(failed) == ["Failed", "KeyError"]
        assert [place.rsplit(":")[0] for place in places_of(failed)] == ["serving/test_observed.py"] * 2


def test_a_log_that_cannot_be_written_harms_no_request() -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        answer = ask(FastAPI(middleware=[Middleware(RequestLog, metrics=Metrics(), log=json_lines(full))]), "GET", "/")
    assert answer.status_code == 404


def test_what_libraries_log_and_threads_die_of_is_written_without_words() -> None:
    log = Log()
    undo = take_over(log.write)
    try:
        logging.getLogger("uvicorn.error").error("Exception in ASGI application\n", exc_info=ValueError("canary"))
        logging.getLogger("uvicorn.error").info("Started server process [%s]", "canary")
        logging.getLogger("uvicorn.access").info("canary")
        logging.getLogger("asyncio").error("Task exception: canary")
        logging.getLogger("limelight.text").warning("a text of %s", "canary")
        logging.getLogger("httpx").debug("canary")
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("canary", RuntimeWarning, stacklevel=1)
        thread = threading.Thread(target=lambda: int("canary"))
        thread.start()
        thread.join()
    finally:
        undo()
    lines = log.lines()
    assert "canary" not in json.dumps(lines)
    assert [line.get("event") for line in lines[:2]] == [
        "Exception in ASGI application",
        "Started server process [...]",
    ]
    assert lines[0]["error"] == ["ValueError"]
    assert {line.get("logger") for line in lines} == {"uvicorn.error", "asyncio", "limelight.text", "py.warnings", None}
    assert lines[-1]["event"] == "a thread died" and lines[-1]["error"] == ["ValueError"]


def test_taking_over_the_logs_can_be_undone() -> None:
    before = (logging.getLogger().handlers, logging.getLogger().level, threading.excepthook)
    take_over(Log().write)()
    assert (logging.getLogger().handlers, logging.getLogger().level, threading.excepthook) == before
