"""The parts put together: routes inside, and around them, from the outside in: seen, headed, guarded, bounded."""

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

from limelight.serving import desk_routes, native, openapi, page
from limelight.serving import metrics as prometheus
from limelight.serving.bounded import Bounded
from limelight.serving.compat import deepl, libretranslate
from limelight.serving.compat.codes import Languages
from limelight.serving.counted import Counted
from limelight.serving.desk import Desk
from limelight.serving.detect import Detector
from limelight.serving.dialects import answer
from limelight.serving.guard import Guarded
from limelight.serving.headers import Headers
from limelight.serving.keys import Keys
from limelight.serving.ledger import Ledger
from limelight.serving.logs import Log
from limelight.serving.metrics import Metrics
from limelight.serving.observed import Observed, note_refusal
from limelight.serving.paths import path_of
from limelight.serving.reading import one_thread
from limelight.serving.refusals import BadRequest, NotFound, Refusal
from limelight.serving.service import Service
from limelight.serving.tracing import Tracing
from limelight.serving.uploads import Uploads


class Prefixed:
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
    tracing: Tracing | None = None,
    detector: Detector | None = None,
) -> FastAPI:
    """FastAPI's own documentation pages are off: they come from another host. The document itself is at /openapi.json."""
    settings = service.settings
    desk = Desk(service)

    @asynccontextmanager
    async def lives(_: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_default_executor(one_thread())
        yield
        desk.close()

    app = FastAPI(
        title="Limelight",
        lifespan=lives,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # it would send people wherever the Host header says
        # FastAPI's own would send addresses and messages of errors, in which texts are; ours sends neither.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
        middleware=[
            Middleware(Prefixed, prefix=settings.prefix),
            Middleware(Observed, metrics=metrics, log=log, tracing=tracing),
            Middleware(Headers, settings=settings),
            Middleware(Counted, under_way=service.under_way),
            Middleware(Guarded, keys=keys, settings=settings, ledger=Ledger(settings.state)),
            Middleware(Bounded, settings=settings),
        ],
        exception_handlers={
            Refusal: _refused,
            HTTPException: _not_there,
            RequestValidationError: _not_understood,
        },
    )
    app.include_router(alive(service))
    app.include_router(native.router(service))
    if settings.desk.on:
        app.include_router(desk_routes.router(desk))
    uploads, detector = Uploads(), detector or Detector(Languages(service.models).all)
    app.include_router(libretranslate.router(service, uploads, detector))
    app.include_router(deepl.router(service, uploads, detector))
    if settings.metrics:
        app.include_router(prometheus.router(metrics))
    app.include_router(openapi.router(app, service))
    if settings.page:
        app.include_router(page.router(service))
    return app


def alive(service: Service) -> APIRouter:
    """For whoever watches processes: no key, no figures."""
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


async def _refused(request: Request, refusal: Exception) -> Response:
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
    response = await _refused(request, refusal)
    response.headers.update(error.headers or {})
    return response


async def _not_understood(request: Request, error: Exception) -> Response:
    """Places and kinds of the problems; what was sent is not repeated."""
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:20]]
    return await _refused(request, BadRequest("the request is not understood", "; ".join(problems)[:1000]))
