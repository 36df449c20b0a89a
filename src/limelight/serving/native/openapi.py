"""The OpenAPI document that FastAPI writes is completed here: with the shapes of refusals, the keys, and the path of a proxy."""

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
from limelight.serving.http.error_dialects import SHAPES
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings

DESCRIPTION = "Translates text. Beside its own API under /api/v1 it speaks two dialects that ready-made clients know."
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
    version = installed_version("limelight")
    found = get_openapi(title="Limelight", version=version, description=DESCRIPTION, routes=app.routes)
    found = copy.deepcopy(found)  # it holds parts of the routes, which stay as they are
    schemas = found["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own; ours are refusals
        schemas.pop(name, None)
    for name, shape in SHAPES.values():
        schemas[name] = shape.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schemas[name].pop("$defs", {}))
    if settings.keys is not None:
        found["components"]["securitySchemes"] = KEYS
        found["security"] = [{name: []} for name in KEYS]
    if settings.prefix:
        found["servers"] = [{"url": settings.prefix}]
    for _, _, operation in operations(found):
        operation["responses"].pop("422", None)
        for part in (operation.get("requestBody", {}), *operation["responses"].values()):
            for content in part.get("content", {}).values():
                schemas.update(content["schema"].pop("$defs", {}))  # references look for them beside all others
    return found


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and what is said of it."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation
