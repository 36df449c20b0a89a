"""Nobody holds the event loop: whatever is sent, no step of it takes 20 ms of the processor.

Measured as the processor's time of the loop's thread, step by step: a busy machine does not fail it.
"""

import asyncio
import gc
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from fastapi.routing import APIRoute, iter_route_contexts
from native_server import Running, running, stored
from starlette.requests import Request
from starlette.responses import Response

pytestmark = pytest.mark.slow
LIMIT = 0.020  # seconds
MEGABYTE = 1 << 20
FORM = "application/x-www-form-urlencoded"


@contextmanager
def slow_steps(limit: float = LIMIT) -> Iterator[list[str]]:
    """What any event loop of this process spends more time on, while it goes on."""
    found: list[str] = []
    run = asyncio.events.Handle._run

    def measured(self: asyncio.events.Handle) -> None:
        begin = time.thread_time()
        run(self)
        if (took := time.thread_time() - begin) > limit:
            found.append(f"{1000 * took:.0f} ms: {self!r}"[:400])

    gc.collect()
    gc.disable()  # a collection comes in anybody's step, and here it looks through all that pytest and torch hold; a server freezes that
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.events.Handle, "_run", measured)
            yield found
    finally:
        gc.enable()


def slow_again(slow: list[str], server: Running, *request: Any, wrong: Sequence[int] = range(500, 600)) -> list[str]:
    """What is slow whenever it is asked: a processor whose caches other programs have just filled is so once."""
    for _ in range(3):
        slow.clear()
        assert send(server, *request) not in wrong
        send(server, "GET", "/healthz", None)  # the answer may be here before its step has ended; that of the next is not
        if not slow:
            break
    return slow


@pytest.fixture(scope="module")
def server(starts_process: None) -> Iterator[Running]:
    models = stored()
    settings: dict[str, Any] = {"metrics": True, "queue": {"timeout_seconds": 1.0, "requests": 10}}
    with running(models, loop="asyncio", **settings) as started:
        started.post("translate", {"text": "one"})
        yield started
    models.close()


def routes(server: Running) -> list[tuple[str, str]]:
    """As the application has them."""
    return [(method, str(each.path)) for each in iter_route_contexts(server.app.routes) for method in each.methods or ()]


def multipart(*parts: tuple[bytes, bytes]) -> bytes:
    return b"".join(b"--B\r\n%b\r\n\r\n%b\r\n" % part for part in parts) + b"--B--\r\n"


def field(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    return b'Content-Disposition: form-data; name="%b"' % name, value


LANGUAGES = field(b"source", b"en"), field(b"target", b"de"), field(b"target_lang", b"de")
FILE = b'Content-Disposition: form-data; name="file"; filename="a.txt"'
# Bodies that are slow to parse, whoever gets them.
HOSTILE = {
    "one string": ("application/json", b'{"text":"' + b"a" * (MEGABYTE - 99) + b'"}'),
    "escapes": ("application/json", b'{"q":"' + b"\\u00e4" * 170_000 + b'"}'),
    "quotes": ("application/json", b'{"q":"' + b'"' * (MEGABYTE - 99) + b"}"),
    "backslashes": ("application/json", b'{"q":"' + b"\\" * (MEGABYTE - 100) + b'"}'),
    "keys": ("application/json", b"{%b}" % b",".join(b'"k%d":1' % at for at in range(49_000))),
    "brackets": ("application/json", b'{"text":[' + b"[]," * 300_000 + b"1]}"),
    "numbers": ("application/json", b'{"text":[' + b",".join([b"9" * 4000] * 250) + b"]}"),
    "percent": (FORM, b"q=" + b"%41" * 340_000),
    "fields": (FORM, b"&".join([b"q=" + b"%C3%A4" * 170] * 999)),
    "parts": ("multipart/form-data; boundary=B", multipart(*[field(b"q", b"one")] * 999)),
    "almost boundaries": ("multipart/form-data; boundary=B", multipart(field(b"q", b"\r\n--" * 250_000))),
}
WORDS, SENTENCES, SIGNS, STRANGE = "one two three " * 350, "One. " * 999, "😀" * 4_999, "ไทย" * 1_600
TERMS = {f"one{at}": [f"eins{at} {other}" for other in range(19)] for at in range(999)}
ROWS = [f"{'one ' * 99}{at}\t{'eins ' * 99}" for at in range(999)]
NESTED = {"字" * length: "x" for length in range(1, 200)}
TAGGED = "<p>one <b>two</b> &amp; three</p>" * 140
# What is as large as may be, and understood, for each route that takes a body; several where the work differs.
LARGE: dict[str, list[dict[str, Any] | bytes]] = {
    "/api/v1/translate": [
        {"text": [WORDS] * 128},
        {"text": [SENTENCES] * 128, "stream": True},
        {"text": [SENTENCES], "stream": True, "nbest": 9, "align": True},
        {"text": [STRANGE] * 60},
        {"text": SIGNS, "segment": False},
        {"text": WORDS[:2_000]},
        {"text": STRANGE[:660]},
        {"text": STRANGE[:85]},
        {"text": ["a"] * 128, "nbest": 9, "align": True, "pieces": True},
        {"text": "one two three", "glossary": TERMS},
        {"text": "字" * 400, "glossary": NESTED},
        {"text": ["one"] * 128, "prefix": "eins zwei " * 499},
        {"text": [TAGGED] * 128, "format": "html"},
        {"text": TAGGED[:2_000], "format": "html"},
    ],
    "/api/v1/tokenize": [{"text": WORDS}, {"text": STRANGE}],
    "/api/v1/score": [{"source": WORDS, "target": WORDS}, {"source": "one " * 60, "target": "eins " * 60}],
    "/api/v1/trace": [
        {"source": "one two", "interventions": {"gates": {f"enc.0.{at}": 0.5 for at in range(1_000)}}},
        {"source": "one two", "interventions": {"mask_source": [0] * 4_000}, "include": ["attn"] * 500},
        {"source": WORDS},
    ],
    "/api/v1/export": [{"trace_id": "t_none", "format": "html", "view": "x" * 8_000}],
    "/api/v1/importance": [{"sentences": [WORDS] * 64}],
    "/api/v1/why": [{"trace_id": "t_none", "piece": 0, "instead_of": "x" * 200}],
    "/api/v1/corrections": [{"text": WORDS[:5_000], "correction": WORDS[:5_000], "translation": WORDS[:5_000]}],
    "/api/v1/documents": [{"name": "a.txt", "data": "b25l" * 1_900_000}, {"name": "a.txt", "data": "b25l" * 300, "glossary": TERMS}],
    "/api/v1/documents/file": [
        {"name": "a.txt", "data": "Cm9u" * 1_900_000, "segments": {}},
        {"name": "a.txt", "data": "Cm9u" * 1_000, "segments": {f"{at}": {"text": "x" * 2_000} for at in range(9_000)}},
    ],
    "/translate": [
        {"q": [WORDS] * 128, "source": "auto", "target": "de", "alternatives": 8},
        {"q": ["one two three"] * 128, "source": "en", "target": "de", "alternatives": 8},
        {"q": [TAGGED] * 60, "source": "en", "target": "de", "format": "html"},
        {"q": [SIGNS] * 40, "source": "en", "target": "de"},
    ],
    "/detect": [{"q": [WORDS] * 128}, {"q": [SIGNS] * 40}],
    "/suggest": [{"q": WORDS, "s": WORDS, "source": "en", "target": "de"}],
    "/v2/translate": [
        {"text": ["one \n" * 999] * 128, "target_lang": "de", "source_lang": "en", "split_sentences": "nonewlines"},
        {"text": [WORDS] * 128, "target_lang": "de"},
        {"text": [TAGGED] * 128, "target_lang": "de", "source_lang": "en", "tag_handling": "xml"},
        {"text": "one", "target_lang": "de", "tag_handling": "xml", "ignore_tags": "a," * 500_000},
    ],
    "/v2/glossaries": [
        {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "\n".join(ROWS)},
        {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "a\tb\n" * 250_000},
        {
            "name": "a",
            "source_lang": "en",
            "target_lang": "de",
            "entries": '"a","b"\n' * 120_000,
            "entries_format": "csv",
        },
    ],
    "/v2/languages": [{"type": "target" * 1_000}],
    "/v2/usage": [{"auth_key": WORDS}],
    "/translate_file": [multipart(*LANGUAGES, (FILE, line * (8_000_000 // len(line)))) for line in (b"one\n", b"\r\n--")],
    "/v2/document": [multipart(*LANGUAGES, (FILE, b"One. " * 1_600_000))],
    "/v2/document/{id}": [{"document_key": WORDS}],
    "/v2/document/{id}/result": [{"document_key": WORDS}],
}


def send(server: Running, method: str, path: str, body: dict[str, Any] | bytes | None, kind: str = "") -> int:
    known = {"{id}": "t_none", "{name}": "none", "{n}": "1", "{step}": "1", "{rest:path}": "none"}
    for name, value in known.items():
        path = path.replace(name, value)
    content = json.dumps(body, ensure_ascii=False).encode() if isinstance(body, dict) else body
    kind = kind or ("application/json" if isinstance(body, dict) else "multipart/form-data; boundary=B")
    return server.client.request(method, path, content=content, headers={"Content-Type": kind}).status_code


def test_every_route_that_takes_a_body_has_its_largest_requests_here(server: Running) -> None:
    """A new route fails this until it says what its largest requests are."""
    assert {path for method, path in routes(server) if method == "POST"} == set(LARGE)


SHORT = ("keys", "percent", "almost boundaries")


@pytest.mark.parametrize("name", [name if name in SHORT else pytest.param(name, marks=pytest.mark.long) for name in HOSTILE])
def test_a_hostile_body_holds_the_loop_nowhere(server: Running, name: str) -> None:
    kind, body = HOSTILE[name]

    with slow_steps() as slow:
        for path in LARGE:
            assert not slow_again(slow, server, "POST", path, body, kind), path


@pytest.mark.parametrize("path", LARGE)
def test_the_largest_requests_hold_the_loop_nowhere(server: Running, path: str) -> None:
    with slow_steps() as slow:
        for body in LARGE[path]:
            assert not slow_again(slow, server, "POST", path, body, wrong=[500])


def test_what_is_only_asked_for_holds_the_loop_nowhere(server: Running) -> None:
    known = routes(server)
    send(server, "GET", "/healthz", None)  # to list its routes makes an application look at all of them anew, once

    with slow_steps() as slow:
        for method, path in known:
            if method in ("GET", "DELETE"):
                for more in ("", f"?{'a=%41&' * 2_000}"):
                    assert not slow_again(slow, server, method, path + more, None, FORM), path


def test_a_route_that_computes_in_the_loop_is_caught(server: Running) -> None:
    async def blocking(request: Request) -> Response:
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return Response()

    server.app.router.routes.append(APIRoute("/blocking", blocking, methods=["GET"]))
    with slow_steps() as slow:
        assert send(server, "GET", "/blocking", None) == 200
        until = time.monotonic() + 5
        while not slow and time.monotonic() < until:  # the answer is here before the step has ended
            time.sleep(0.01)
    assert slow
