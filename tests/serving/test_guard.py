"""Nobody gets an answer without a key where keys are asked for, wherever the key travels and whatever a route forgets."""

import asyncio
import base64
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from limelight.errors import ConfigError
from limelight.serving.access.guard import AccessGuard, admit, caller_of
from limelight.serving.access.keys import Key, KeyFile, Keys, digest_of
from limelight.serving.access.rate_limits import STRANGER_REQUESTS, STRANGERS, Strangers
from limelight.serving.http.disconnect import ClientLeft
from limelight.serving.http.error_dialects import answer, path_of
from limelight.serving.http.hosts import check_host
from limelight.serving.refusals import Refusal, TooMany
from limelight.serving.settings import ServeSettings

KEY = "0123456789abcdefghijklmnopqrstuv"
WRONG = "0123456789abcdefghijklmnopqrstuX"
KEYS = Keys((Key(name="forum", sha256=digest_of(KEY)),))
OPEN = {"/healthz", "/readyz"}


def basic(key: str) -> str:
    return "Basic " + base64.b64encode(f"anybody:{key}".encode()).decode()


async def _refused(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    return answer(path_of(request.scope), refusal)


def routes() -> APIRouter:
    """One of each: the page, ours, and the public dialects with a key in the body."""
    router = APIRouter()

    async def name(request: Request) -> Response:
        return JSONResponse({"caller": caller_of(request).name})

    async def by_body(request: Request) -> Response:
        sent = await request.json()
        return JSONResponse({"caller": admit(request, sent.get("api_key")).name})

    async def fails(request: Request) -> Response:
        caller_of(request).spend(70)
        return JSONResponse({}, 503)

    async def crashes(request: Request) -> Response:
        caller_of(request).spend(70)
        raise ZeroDivisionError

    async def leaves(request: Request) -> Response:
        caller_of(request).spend(70)
        raise ClientLeft

    async def forgets() -> Response:
        return JSONResponse({"secret": 1})

    async def forgets_streaming() -> Response:
        return StreamingResponse(iter([b"secret", b"secret"]))

    for path in (
        "/",
        "/assets/{name}",
        "/healthz",
        "/readyz",
        "/api/v1/models",
        "/languages",
        "/frontend/settings",
        "/v2/usage",
    ):
        router.add_api_route(path, name, methods=["GET"])
    router.add_api_route("/api/v1/translate", name, methods=["POST"])
    router.add_api_route("/api/v1/fails", fails, methods=["POST"])
    router.add_api_route("/api/v1/crashes", crashes, methods=["POST"])
    router.add_api_route("/api/v1/leaves", leaves, methods=["POST"])
    router.add_api_route("/translate", by_body, methods=["POST"])
    router.add_api_route("/v2/translate", by_body, methods=["POST"])
    router.add_api_route("/detect", forgets, methods=["POST"])
    router.add_api_route("/suggest", forgets_streaming, methods=["POST"])
    return router


def app_of(keys: Keys | None = KEYS, **settings: Any) -> FastAPI:
    app = FastAPI(
        middleware=[Middleware(AccessGuard, keys=keys, settings=ServeSettings(**settings))],
        exception_handlers={Refusal: _refused},
    )
    app.include_router(routes())
    return app


def ask(
    app: Any,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    base: str = "http://127.0.0.1:5000",
    prefix: str = "",
) -> httpx.Response:
    async def one() -> httpx.Response:
        transport = httpx.ASGITransport(app, root_path=prefix)
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return await client.request(method, path, headers=headers, json=json)

    return asyncio.run(one())


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {KEY}"},
        {"authorization": f"bearer  {KEY} "},
        {"Authorization": f"DeepL-Auth-Key {KEY}"},
        {"Authorization": basic(KEY)},
        {"X-API-Key": KEY},
        {"X-API-Key": KEY, "Authorization": "Basic of-a-proxy"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/assets/a.js", "/api/v1/models", "/languages", "/v2/usage"])
def test_the_key_is_taken_from_every_header_that_clients_use(headers: dict[str, str], path: str) -> None:
    answer = ask(app_of(), "GET", path, headers)
    assert (answer.status_code, answer.json()) == (200, {"caller": "forum"})


@pytest.mark.parametrize("path", ["/translate", "/v2/translate"])
@pytest.mark.parametrize("headers", [{}, {"Authorization": basic("of-a-proxy")}])
def test_the_public_dialects_take_the_key_from_the_body_too(path: str, headers: dict[str, str]) -> None:
    answer = ask(app_of(), "POST", path, headers, json={"api_key": KEY})
    assert (answer.status_code, answer.json()) == (200, {"caller": "forum"})


@pytest.mark.parametrize(("path", "name"), [("/languages", "api_key"), ("/v2/usage", "auth_key")])
def test_the_public_dialects_take_the_key_from_the_query(path: str, name: str) -> None:
    app = app_of(open_languages=False)
    assert ask(app, "GET", f"{path}?{name}={KEY}").json() == {"caller": "forum"}
    assert ask(app, "GET", f"{path}?{name}={WRONG}").status_code == 403


def test_our_own_routes_do_not_take_a_key_from_the_query_where_logs_and_histories_keep_it() -> None:
    assert ask(app_of(), "GET", f"/api/v1/models?api_key={KEY}").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "body"),
    [
        ("GET", "/api/v1/models", None, 401, "A key is needed"),
        ("GET", "/", None, 401, "A key is needed"),
        ("GET", "/nothing/here", None, 401, "A key is needed"),
        ("GET", "/frontend/settings", None, 400, "Please contact the server operator to get an API key"),
        ("POST", "/translate", {}, 400, "Please contact the server operator to get an API key"),
        ("POST", "/translate", {"api_key": None}, 400, "Please contact the server operator to get an API key"),
        ("POST", "/translate", {"api_key": WRONG}, 403, "Invalid API key"),
        ("POST", "/v2/translate", {}, 403, "DeepL-Auth-Key"),
        ("GET", "/v2/usage", None, 403, "DeepL-Auth-Key"),
    ],
)
def test_a_missing_or_wrong_key_is_refused_in_the_words_of_the_dialect(method: str, path: str, sent: Any, status: int, body: str) -> None:
    answer = ask(app_of(), method, path, json=sent)
    assert answer.status_code == status and body in answer.text
    told = answer.json()
    if path.startswith("/v2"):
        assert set(told) <= {"message", "detail"}
    elif path in ("/translate", "/frontend/settings"):
        assert told == {"error": body}
    else:
        assert told["error"]["code"] == "key_needed" and told["error"]["hint"]
        assert answer.headers["www-authenticate"].startswith('Basic realm="limelight"')


def test_people_without_a_key_are_sent_where_the_operator_says() -> None:
    answer = ask(app_of(key_url="https://mt.example/keys"), "POST", "/translate", json={})
    assert answer.json() == {"error": "Visit https://mt.example/keys to get an API key"}


def test_a_browser_with_a_mistyped_key_is_asked_again_and_a_program_is_told_it_is_wrong() -> None:
    assert ask(app_of(), "GET", "/", {"Authorization": basic(WRONG)}).status_code == 401
    assert ask(app_of(), "GET", "/api/v1/models", {"Authorization": f"Bearer {WRONG}"}).status_code == 403


@pytest.mark.parametrize(
    ("headers", "admitted"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "http://127.0.0.1:5000"}, True),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://["}, False),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, False),
    ],
)
def test_what_a_browser_adds_by_itself_does_not_count_when_another_site_made_it_ask(headers: dict[str, str], admitted: bool) -> None:
    answer = ask(app_of(), "POST", "/translate", {**headers, "Authorization": basic(KEY)}, json={})
    assert (answer.status_code == 200) is admitted
    shown = ask(app_of(), "POST", "/translate", {**headers, "Authorization": f"Bearer {KEY}"}, json={})
    assert shown.status_code == 200


def test_a_link_from_another_site_leads_a_person_with_a_key_to_the_page_and_nowhere_else() -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Authorization": basic(KEY)}
    assert ask(app_of(), "GET", "/?q=hello", followed).status_code == 200
    assert ask(app_of(), "GET", "/v2/usage", followed).status_code == 403
    embedded = {**followed, "Sec-Fetch-Mode": "no-cors"}
    assert ask(app_of(), "GET", "/", embedded).status_code == 401


@pytest.mark.parametrize("path", ["/detect", "/suggest"])
def test_the_answer_of_a_route_that_forgot_to_ask_is_withheld(path: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(app_of(), "POST", path, json={"api_key": KEY})
    assert answer.status_code == 403 and "secret" not in answer.text
    assert "without asking" in caplog.text
    assert ask(app_of(), "POST", path, {"X-API-Key": KEY}, json={}).status_code == 200


def test_without_keys_everybody_is_the_same_caller_without_a_name() -> None:
    for method, path, sent in (
        ("GET", "/", None),
        ("POST", "/translate", {"api_key": "any"}),
        ("GET", "/v2/usage", None),
    ):
        answer = ask(app_of(None), method, path, json=sent)
        assert (answer.status_code, answer.json()) == (200, {"caller": ""})


def test_probes_need_no_key() -> None:
    assert [ask(app_of(), "GET", path).status_code for path in sorted(OPEN)] == [200, 200]
    assert ask(app_of(), "GET", "/healthz/").status_code == 401
    assert ask(app_of(), "GET", "//healthz").status_code == 401


def test_the_list_of_languages_needs_no_key_unless_the_operator_says_so_and_nothing_else_is_open() -> None:
    app = app_of()
    assert ask(app, "GET", "/languages").json() == {"caller": ""}
    assert ask(app, "GET", "/languages", {"X-API-Key": KEY}).json() == {"caller": "forum"}
    assert ask(app, "GET", "/mt/languages", prefix="/mt").status_code == 200
    assert ask(app_of(open_languages=False), "GET", "/languages").status_code == 400
    for method, path in (
        ("POST", "/languages"),
        ("HEAD", "/languages"),
        ("GET", "/languages/"),
        ("GET", "/v2/languages"),
    ):
        assert ask(app, method, path).status_code in (400, 403)
    assert ask(app, "GET", "/v2/usage").status_code == 403 and ask(app, "GET", "/").status_code == 401


def test_who_shows_no_key_may_not_ask_for_the_languages_without_end() -> None:
    app, began = app_of(), time.monotonic()
    allowed = next(n for n in range(10 * STRANGER_REQUESTS) if ask(app, "GET", "/languages").status_code == 429)
    since = time.monotonic() - began  # one more in each second
    assert STRANGER_REQUESTS <= allowed <= STRANGER_REQUESTS * (1 + since / 60)
    assert ask(app, "GET", "/languages").headers["retry-after"] == "1"
    assert ask(app, "GET", "/languages", {"X-API-Key": KEY}).status_code == 200, "and nobody with a key suffers for it"


def test_keys_of_ten_thousand_callers_are_read_in_a_moment() -> None:
    keys = [{"name": f"caller-{number}", "sha256": f"{number:064x}"} for number in range(10_000)]
    began = time.process_time()
    assert len(KeyFile(keys=keys).keys) == 10_000  # type: ignore[arg-type]
    assert time.process_time() - began < 1.5
    with pytest.raises(ConfigError, match="two keys are called 'caller-7'"):
        KeyFile(keys=[*keys[:9], {"name": "caller-7", "sha256": "f" * 64}])  # type: ignore[arg-type]


def test_strangers_are_counted_by_address_and_not_remembered_for_ever() -> None:
    now = 0.0
    strangers = Strangers(lambda: now)
    for at in range(2 * STRANGERS):
        strangers.spend(f"10.0.{at // 256}.{at % 256}")
    assert len(strangers._buckets) == STRANGERS
    for _ in range(STRANGER_REQUESTS):
        strangers.spend("192.0.2.1")
    with pytest.raises(TooMany):
        strangers.spend("192.0.2.1")
    strangers.spend("192.0.2.2")
    now += 2.0
    strangers.spend("192.0.2.1")


@pytest.mark.parametrize("path", ["/mt/translate", "/translate"])
def test_behind_a_proxy_that_leaves_or_cuts_a_prefix_the_dialects_stay_the_same(path: str) -> None:
    refused = ask(app_of(), "POST", path, json={}, prefix="/mt")
    assert refused.json() == {"error": "Please contact the server operator to get an API key"}
    assert ask(app_of(), "POST", path, json={"api_key": KEY}, prefix="/mt").json() == {"caller": "forum"}
    assert ask(app_of(), "GET", "/mt/healthz", prefix="/mt").status_code == 200
    assert ask(app_of(), "GET", "/mthealthz", prefix="/mt").status_code == 401


def test_what_brought_no_translation_does_not_count_against_the_quota() -> None:
    key = Key(name="a", sha256=digest_of(KEY), characters_per_month=100)
    app = app_of(Keys((key,)))
    for _ in range(3):  # 70 characters each
        assert ask(app, "POST", "/api/v1/fails", {"X-API-Key": KEY}).status_code == 503


def test_a_crash_does_not_count_against_the_quota_and_work_for_somebody_who_left_does() -> None:
    key = Key(name="a", sha256=digest_of(KEY), characters_per_month=100)
    app = app_of(Keys((key,)))
    for path, error in (("crashes", ZeroDivisionError), ("crashes", ZeroDivisionError), ("leaves", ClientLeft)):
        with pytest.raises(error):
            ask(app, "POST", f"/api/v1/{path}", {"X-API-Key": KEY})
    assert ask(app, "POST", "/api/v1/fails", {"X-API-Key": KEY}).status_code == 456


def test_a_key_whose_last_day_is_over_is_refused() -> None:
    keys = Keys((Key(name="a", sha256=digest_of(KEY), expires=date(2026, 1, 1)),), day=lambda: date(2026, 1, 2))
    assert ask(app_of(keys), "GET", "/api/v1/models", {"X-API-Key": KEY}).status_code == 403


def test_nothing_but_http_is_spoken() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    guarded = AccessGuard(app_of(None), None, ServeSettings())
    asyncio.run(guarded({"type": "websocket", "path": "/", "headers": []}, receive, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    ("host", "settings", "address", "allowed"),
    [
        ("127.0.0.1:5000", {}, None, True),
        ("localhost", {}, None, True),
        ("LOCALHOST.:5000", {}, None, True),
        ("[::1]:5000", {}, None, True),
        ("127.9.9.9", {}, None, True),
        ("evil.example:5000", {}, "127.0.0.1", False),
        ("127.0.0.1.evil.example", {}, "127.0.0.1", False),
        ("localhost.evil.example", {}, "127.0.0.1", False),
        ("10.0.0.5", {}, "127.0.0.1", False),
        (None, {}, "127.0.0.1", False),
        ("", {}, "127.0.0.1", False),
        ("mt.example", {"hosts": ("MT.example",)}, "127.0.0.1", True),
        ("a.mt.example", {"hosts": ("mt.example",)}, "127.0.0.1", False),
        ("anything.example", {"host": "0.0.0.0", "public": True}, "10.0.0.5", True),
        ("evil.example", {"host": "0.0.0.0", "public": True, "hosts": ("mt.example",)}, "10.0.0.5", False),
        ("mt.example:443", {"host": "0.0.0.0", "public": True, "hosts": ("mt.example",)}, "10.0.0.5", True),
        ("10.0.0.5:5000", {"host": "0.0.0.0", "public": True, "hosts": ("mt.example",)}, "10.0.0.5", True),
        ("10.0.0.5:5000", {"host": "::", "public": True, "hosts": ("mt.example",)}, "::ffff:10.0.0.5", True),
        ("10.0.0.6", {"host": "0.0.0.0", "public": True, "hosts": ("mt.example",)}, "10.0.0.5", False),
        ("[", {"host": "0.0.0.0", "public": True}, None, False),
        ("a/b", {"host": "0.0.0.0", "public": True}, None, False),
        ("a@b", {"host": "0.0.0.0", "public": True}, None, False),
    ],
)
def test_only_names_of_ours_are_answered(host: str | None, settings: Any, address: str | None, allowed: bool) -> None:
    if allowed:
        check_host(host, address, ServeSettings(**settings))
    else:
        with pytest.raises(Refusal) as caught:
            check_host(host, address, ServeSettings(**settings))
        assert caught.value.status == 400


def test_a_name_that_another_site_pointed_at_us_gets_nothing_even_without_keys() -> None:
    answer = ask(app_of(None), "GET", "/", base="http://evil.example:5000")
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "misdirected"


@asynccontextmanager
async def living(app: Any) -> AsyncIterator[None]:
    """An app between its start and its end, as a server calls it."""
    to_app: asyncio.Queue[Any] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    task = asyncio.ensure_future(app({"type": "lifespan", "asgi": {}, "state": {}}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    yield
    await to_app.put({"type": "lifespan.shutdown"})
    assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
    await task


def test_a_signal_has_the_keys_read_again_and_a_broken_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    first = Keys.add_key(path, "a")
    app = app_of(Keys.load(path))

    async def statuses(*keys: str) -> list[int]:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return [(await client.get("/api/v1/models", headers={"X-API-Key": key})).status_code for key in keys]

    async def all_of_it() -> None:
        async with living(app):
            second = Keys.add_key(path, "b")
            assert await statuses(first, second) == [200, 200]
            path.unlink()
            third = Keys.add_key(path, "c")
            assert await statuses(first, second, third) == [403, 403, 200]
            path.write_bytes(b"[[keys]")
            assert await statuses(third) == [200]

    asyncio.run(all_of_it())


def test_what_was_used_is_written_down_when_the_server_ends(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    key = Keys.add_key(path, "a", characters_per_month=100)
    router = APIRouter()

    async def spends(request: Request) -> Response:
        caller_of(request).spend(60)
        return JSONResponse(caller_of(request).usage().characters)

    router.add_api_route("/spends", spends)

    async def one_server() -> int:
        app = app_of(Keys.load(path), state=tmp_path)
        app.include_router(router)
        async with living(app):
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return (await client.get("/spends", headers={"X-API-Key": key})).status_code

    assert asyncio.run(one_server()) == 200
    assert json.loads((tmp_path / "usage.json").read_bytes())["characters"] == {"a": 60}
    assert asyncio.run(one_server()) == 456
