"""What browsers are told with every answer."""

import asyncio
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response

from limelight.serving.access.guard import AccessGuard
from limelight.serving.access.keys import Key, Keys, digest_of
from limelight.serving.middleware.security_headers import SecurityHeaders
from limelight.serving.settings import ServeSettings

PUBLIC = ["/translate", "/languages", "/detect", "/download_file/abc", "/v2/translate", "/v2/usage"]
OURS = ["/", "/assets/a.js", "/api/v1/translate", "/openapi.json", "/metrics", "/healthz"]
KEYS = Keys((Key(name="forum", sha256=digest_of("k" * 32)),))


def app_of(keys: Keys | None = None, **settings: Any) -> FastAPI:
    """Every path answers, with headers that weaken all that is promised."""
    given = ServeSettings(**settings)
    app = FastAPI(
        openapi_url=None,
        middleware=[Middleware(SecurityHeaders, settings=given), Middleware(AccessGuard, keys=keys, settings=given)],
    )

    async def careless(path: str) -> Response:
        weak = {
            "Content-Security-Policy": "script-src 'unsafe-inline'",
            "Access-Control-Allow-Origin": "http://evil.example",
            "Access-Control-Allow-Credentials": "true",
            "X-Frame-Options": "ALLOWALL",
        }
        return JSONResponse({"path": path}, headers=weak)

    app.add_api_route("/{path:path}", careless, methods=["GET", "POST", "OPTIONS"])
    return app


def ask(app: Any, path: str, method: str = "GET", headers: dict[str, str] | None = None) -> httpx.Response:
    async def one() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            return await client.request(method, path, headers=headers)

    return asyncio.run(one())


@pytest.mark.parametrize("path", PUBLIC + OURS)
@pytest.mark.parametrize("keys", [None, KEYS])
def test_every_answer_says_what_a_browser_may_do_with_it(path: str, keys: Keys | None) -> None:
    answer = ask(app_of(keys), path)
    policy = answer.headers.get_list("content-security-policy")
    assert len(policy) == 1 and "unsafe" not in policy[0]
    for part in ("frame-ancestors 'none'", "base-uri 'none'", "default-src"):
        assert part in policy[0]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers.get_list("x-frame-options") == ["DENY"]


@pytest.mark.parametrize("path", ["/", "/assets/a.js"])
def test_the_page_may_load_what_comes_with_it_and_nothing_else(path: str) -> None:
    policy = ask(app_of(), path).headers["content-security-policy"]
    assert "default-src 'self'" in policy and "img-src 'self' data:" in policy and "form-action 'self'" in policy
    assert "http" not in policy and "*" not in policy


@pytest.mark.parametrize("path", [*PUBLIC, "/api/v1/translate", "/assetsfoo", "/nothing"])
def test_an_answer_of_an_api_may_do_nothing_even_when_it_is_shown_as_a_page(path: str) -> None:
    policy = ask(app_of(), path).headers["content-security-policy"]
    assert "default-src 'none'" in policy and "sandbox" in policy


@pytest.mark.parametrize("path", PUBLIC)
@pytest.mark.parametrize("keys", [None, KEYS])
def test_pages_of_other_sites_may_call_the_public_dialects(path: str, keys: Keys | None) -> None:
    """Also when refused: else the page could not read why."""
    answer = ask(app_of(keys), path)
    assert answer.headers.get_list("access-control-allow-origin") == ["*"]
    assert answer.headers["access-control-allow-headers"] == "Authorization, Content-Type"
    assert answer.headers["access-control-allow-methods"] == "GET, POST"
    assert answer.headers["access-control-max-age"] == "1728000"
    assert "access-control-allow-credentials" not in answer.headers
    assert "cross-origin-resource-policy" not in answer.headers


@pytest.mark.parametrize(("path", "cors"), [(p, "compatible") for p in OURS] + [(p, "off") for p in OURS + PUBLIC])
def test_pages_of_other_sites_may_call_nothing_else(path: str, cors: str) -> None:
    for method in ("GET", "OPTIONS"):
        answer = ask(app_of(cors=cors), path, method)
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/translate", "/v2/translate"])
def test_a_browser_may_ask_before_it_has_a_key(path: str) -> None:
    asked = {"Origin": "http://forum.example", "Access-Control-Request-Method": "POST"}
    answer = ask(app_of(KEYS), path, "OPTIONS", asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert ask(app_of(KEYS, cors="off"), path, "OPTIONS", asked).status_code in (400, 403)
    assert ask(app_of(KEYS), "/api/v1/translate", "OPTIONS", asked).status_code == 403


def test_translations_are_kept_by_no_cache() -> None:
    assert ask(app_of(), "/translate").headers["cache-control"] == "no-store"
    assert "cache-control" not in ask(app_of(), "/assets/a.js").headers


def test_deepl_answers_carry_their_trace_and_no_others_do() -> None:
    assert "x-trace-id" in ask(app_of(), "/v2/usage").headers
    assert "x-trace-id" not in ask(app_of(), "/translate").headers
