"""The application joins all routes, inside of six layers that each request passes. From the outside in they are `PathPrefix`, `RequestLog`,
`SecurityHeaders`, `DrainGate`, `AccessGuard` and `BodyLimit`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.serving.access.guard import AccessGuard
from limelight.serving.access.keys import Keys
from limelight.serving.access.usage import Ledger
from limelight.serving.compat.deepl import routes as deepl
from limelight.serving.compat.detect import Detector
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.compat.language_pair import PairResolver
from limelight.serving.compat.libretranslate import routes as libretranslate
from limelight.serving.compat.uploads import Uploads
from limelight.serving.desk import page
from limelight.serving.desk import routes as desk_routes
from limelight.serving.desk.desk import Desk
from limelight.serving.http.error_dialects import answer, path_of
from limelight.serving.middleware import metrics as prometheus
from limelight.serving.middleware.body_limit import BodyLimit
from limelight.serving.middleware.drain_gate import DrainGate
from limelight.serving.middleware.logs import Log
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.middleware.request_log import RequestLog, note_refusal
from limelight.serving.middleware.security_headers import SecurityHeaders
from limelight.serving.native import openapi
from limelight.serving.native import routes as native
from limelight.serving.queue.service import JOINING, Service
from limelight.serving.queue.takeover import Takeover
from limelight.serving.queue.text_thread import one_thread
from limelight.serving.refusals import BadRequest, NotFound, Refusal
from limelight.serving.review import routes as review


class PathPrefix:
    """The path that a proxy puts before ours is not part of the routes."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self.prefix and scope["type"] == "http":
            scope["root_path"] = self.prefix
        await self.app(scope, receive, send)


class WrongMethod(Refusal):
    status, code = 405, "wrong_method"


def make_app(
    service: Service,
    keys: Keys | None,
    metrics: Metrics,
    log: Log,
    tracing: OtelTracing | None = None,
    detector: Detector | None = None,
) -> FastAPI:
    """FastAPI's own documentation pages are off: they come from another host. The document itself is at /openapi.json."""
    settings, desk = service.settings, Desk(service)

    @asynccontextmanager
    async def lives(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(one_thread())
        tidying = None if service.store is None else asyncio.ensure_future(service.store.tidy(settings.keep_days))
        following = asyncio.ensure_future(Takeover(service.models, settings.queue.timeout_seconds + JOINING).follow())
        yield
        following.cancel()
        desk.close()
        if tidying is not None:
            tidying.cancel()

    app = FastAPI(
        title="Limelight",
        lifespan=lives,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # it would send people wherever the Host header says
        # FastAPI's own would send addresses and messages of errors, in which texts are; ours sends neither.
        telemetry={"tracing": False, "metrics": False, "logs": False, "operation_spans": False, "auto_configure": False},
        middleware=[
            Middleware(PathPrefix, prefix=settings.prefix),
            Middleware(RequestLog, metrics=metrics, log=log, tracing=tracing),
            Middleware(SecurityHeaders, settings=settings),
            Middleware(DrainGate, under_way=service.under_way),
            Middleware(AccessGuard, keys=keys, settings=settings, ledger=Ledger(settings.state, service.store)),
            Middleware(BodyLimit, settings=settings),
        ],
        exception_handlers={Refusal: _answer_refusal, HTTPException: _not_there, RequestValidationError: _not_understood},
    )
    app.include_router(alive(service))
    app.include_router(native.router(service))
    if settings.desk.on:
        app.include_router(desk_routes.router(desk))
    uploads, languages = Uploads(), ServedLanguages(service.models)
    pairs = PairResolver(languages, detector or Detector(languages.all))
    app.include_router(libretranslate.router(service, uploads, pairs))
    app.include_router(deepl.router(service, uploads, pairs))
    app.include_router(review.router(service))
    if settings.metrics:
        app.include_router(prometheus.router(metrics, settings))
    app.include_router(openapi.router(app, service))
    if settings.page:
        app.include_router(page.router(service))
    return _prepare_routes(app)


def _prepare_routes(app: FastAPI) -> FastAPI:
    """Build what FastAPI builds when a route is first asked for: in the event loop that would be 60 ms for the first of a router."""
    waiting: list[object] = list(app.routes)
    while waiting:
        if candidates := getattr(waiting.pop(), "effective_candidates", None):
            waiting += candidates()
    return app


def alive(service: Service) -> APIRouter:
    """Return the routes for probes of processes: no key, no figures."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def healthz() -> Response:
        return JSONResponse({"status": "ok"})

    @router.api_route("/readyz", methods=["GET", "HEAD"])
    async def readyz() -> Response:
        ready = service.state == "ready"
        headers = {} if ready else {"Retry-After": "5"}
        return JSONResponse({"status": service.state}, 200 if ready else 503, headers)

    return router


async def _answer_refusal(request: Request, refusal: Exception) -> Response:
    assert isinstance(refusal, Refusal)
    note_refusal(request, refusal)
    return answer(path_of(request.scope), refusal)


async def _not_there(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal: Refusal = NotFound("there is nothing here", "/openapi.json lists what there is")
    if error.status_code == 405:
        refusal = WrongMethod("this cannot be done here", "/openapi.json says what can")
    elif error.status_code != 404:
        refusal = BadRequest(str(error.detail))
    response = await _answer_refusal(request, refusal)
    response.headers.update(error.headers or {})
    return response


async def _not_understood(request: Request, error: Exception) -> Response:
    """Tell places and kinds of the problems; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:20]]
    return await _answer_refusal(request, BadRequest("the request is not understood", "; ".join(problems)[:1000]))
