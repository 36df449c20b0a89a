"""The OpenAPI document is completed here: bodies read by hand are described, and refusals have their shapes. Everything has a bound.

FastAPI knows paths and answers of the native API. The public dialects are described in `openapi_dialects`. Each operation gets the refusals
that its dialect can give.
"""

import asyncio
import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version as installed_version
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response

from limelight.serving.access.guard import caller_of
from limelight.serving.http.error_dialects import Dialect, dialect_of
from limelight.serving.openapi_dialects import describe_operation
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings

DESCRIPTION = "Translates text. Beside its own API under /api/v1 it speaks two dialects that ready-made clients know."
TEXT = {"type": "string", "maxLength": 10_000}
WAIT = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1, "maximum": 1 << 31}}}
REFUSALS = {
    400: "The request cannot be understood, or asks for what cannot be done.",
    401: "A key is needed.",
    403: "The key is none of this server's, or this is not allowed.",
    404: "There is no such thing.",
    413: "It is too large.",
    415: "The body is not said to be JSON.",
    429: "This caller asks for too much in a short time.",
    456: "This caller has used up what was granted.",
    500: "The server made a mistake.",
    503: "The server is busy, not ready, or stopping.",
    504: "It was not done in time.",
}
SHAPES: dict[Dialect, dict[str, Any]] = {
    "native": {"$ref": "#/components/schemas/Refusal"},
    "libretranslate": {"$ref": "#/components/schemas/LibreTranslateRefusal"},
    "deepl": {"$ref": "#/components/schemas/DeepLRefusal"},
}
SCHEMAS = {
    "Refusal": {
        "type": "object",
        "required": ["error"],
        "properties": {
            "error": {
                "type": "object",
                "required": ["code", "message", "hint"],
                "properties": {
                    "code": {**TEXT, "description": "For programs."},
                    "message": {**TEXT, "description": "For people."},
                    "hint": {"anyOf": [TEXT, {"type": "null"}], "description": "What to do about it."},
                },
            }
        },
    },
    "LibreTranslateRefusal": {"type": "object", "required": ["error"], "properties": {"error": TEXT}},
    "DeepLRefusal": {"type": "object", "required": ["message"], "properties": {"message": TEXT, "detail": TEXT}},
}
TRACED = ("/api/v1/trace/{id}", "/api/v1/probes", "/api/v1/probes/{n}/{step}")
WORKS = ("/v2/translate", "/languages", *TRACED)  # though they may be GET
# When too many wait these say 429 also where no keys are asked for.
SHORT_OF_ROOM = ("/api/v1/trace", "/api/v1/export", "/api/v1/importance", *TRACED)
KEYS = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "basic": {"type": "http", "scheme": "basic", "description": "Any name, with the key as the password."},
    "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
    "deepl": {"type": "apiKey", "in": "header", "name": "Authorization", "description": "DeepL-Auth-Key KEY"},
}


def router(app: FastAPI, service: Service) -> APIRouter:
    """The document under both names that clients ask for. It is made when it is first wanted: then all routes are there."""
    api = APIRouter(include_in_schema=False)

    @cache
    def content() -> bytes:
        return json.dumps(document(app, service.settings), ensure_ascii=False).encode()

    async def spec(request: Request) -> Response:
        caller_of(request)  # a key in the body of a GET is looked for only where a route asks who calls
        made = await asyncio.to_thread(content)  # a quarter of a second, the first time
        return Response(made, media_type="application/json")

    for path in ("/openapi.json", "/spec"):
        api.add_api_route(path, spec, methods=["GET"], name=path)
    return api


def document(app: FastAPI, settings: ServeSettings) -> dict[str, Any]:
    """Describe all routes that the app has now."""
    found = get_openapi(
        title="Limelight", version=installed_version("limelight"), description=DESCRIPTION, routes=app.routes
    )
    found = copy.deepcopy(found)  # it holds parts of the routes, which stay as they are
    components = found.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own; ours are refusals
        schemas.pop(name, None)
    schemas.update(SCHEMAS)
    if settings.keys is not None:
        components["securitySchemes"] = KEYS
        found["security"] = [{name: []} for name in KEYS]
    if settings.prefix:
        found["servers"] = [{"url": settings.prefix}]
    for path, method, operation in operations(found):
        operation.update(describe_operation(path, method, settings))
        schemas.update(_parts_of_body(operation))
        responses = operation["responses"]
        responses.pop("422", None)
        for status in _refusals(method, path, settings):
            responses.setdefault(str(status), _refusal(status, dialect_of(path)))
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and what is said of it."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def _parts_of_body(operation: dict[str, Any]) -> dict[str, Any]:
    """Schemas inside the one of a body, by name, taken out of it: references look for them beside all others."""
    found: dict[str, Any] = {}
    for content in operation.get("requestBody", {}).get("content", {}).values():
        found |= content["schema"].pop("$defs", {})
    return found


def _refusals(method: str, path: str, settings: ServeSettings) -> Iterator[int]:
    keyed, works = settings.keys is not None, method == "post" or path in WORKS
    for status in REFUSALS:
        needs_key = status in (401, 456) or (status == 429 and path not in SHORT_OF_ROOM)
        needs_work = status in (413, 415, 429, 456, 504)
        if status == 415 and dialect_of(path) != "native":
            continue
        if (keyed or not needs_key) and (works or not needs_work):
            yield status


def _refusal(status: int, dialect: Dialect) -> dict[str, Any]:
    told = {"description": REFUSALS[status], "content": {"application/json": {"schema": SHAPES[dialect]}}}
    return told | ({"headers": WAIT} if status in (429, 503) else {})
