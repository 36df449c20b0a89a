"""Routes are added with models of what they take and answer, and FastAPI writes the OpenAPI document of them.

Handlers read bodies strictly, by hand, and write answers as plain JSON: FastAPI checks neither. Each route gets the refusals that its
dialect can give. Everything has a bound.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, create_model
from starlette.responses import JSONResponse, Response

from limelight.serving.http.body import JSON
from limelight.serving.http.error_dialects import SHAPES, dialect_of
from limelight.serving.queue.served_model import MOST_TAGS
from limelight.serving.settings import ServeSettings
from limelight.text.pieces.tags import NAME
from limelight.translator.loading import has_torch

MANY = 10_000_000  # a bound for what an answer holds; what decides it are the limits of requests
NO_ZERO = r"^[^\x00]*$"  # a body with U+0000 is refused before anybody looks at its fields
Count = Annotated[int, Field(ge=0, le=1 << 53)]
Number = Annotated[float, Field(ge=-1e12, le=1e12)]
Share = Annotated[float, Field(ge=0, le=1)]
Text = Annotated[str, Field(max_length=MANY)]
Short = Annotated[str, Field(max_length=1_000)]
GivenShort = Annotated[str, Field(max_length=1_000, pattern=NO_ZERO)]
Tags = Annotated[list[Annotated[str, Field(max_length=32, pattern=f"^{NAME.pattern}$")]], Field(max_length=MOST_TAGS)]
LanguageCode = Annotated[str, Field(min_length=1, max_length=100, pattern=NO_ZERO)]
BINARY = {"schema": {"type": "string", "format": "binary", "maxLength": 1 << 31}}
FILE = {"application/octet-stream": BINARY}
TEXT = {"schema": {"type": "string", "maxLength": MANY}}

DONE = "Done."
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
    501: "What it needs is not installed on the server.",
    503: "The server is busy, not ready, or stopping.",
    504: "It was not done in time.",
}
TRACED = ("/api/v1/trace/{id}", "/api/v1/probes", "/api/v1/probes/{n}/{step}")
WORKS = ("/v2/translate", "/languages", *TRACED)  # though they may be GET
LOOKS_INSIDE = ("/api/v1/trace", "/api/v1/importance", "/api/v1/documents", "/translate_file")  # with torch, which a server may be without
# When too many wait these say 429 also where no keys are asked for.
SHORT_OF_ROOM = ("/api/v1/trace", "/api/v1/why", "/api/v1/export", "/api/v1/importance", *TRACED)


class DescribedRoutes:
    """`api` is the router, ready to be included."""

    def __init__(self, settings: ServeSettings, tag: str | None = None, prefix: str = "") -> None:
        self.settings, self.api = settings, APIRouter(prefix=prefix, tags=[tag] if tag else None)

    def add(
        self,
        method: str,
        path: str,
        handler: Callable[..., Any],
        answer: Any = None,
        *,
        body: type[BaseModel] | Mapping[str, type[BaseModel]] | None = None,
        query: type[BaseModel] | None = None,
        content: Mapping[str, Mapping[str, Any]] | None = None,
        name: str | None = None,
        status: int = 200,
    ) -> None:
        """`answer` is a model of what is answered, `content` schemas by type of what has no model; `body` is JSON, or models by type."""
        done: dict[str, Any] = {"description": DONE} | ({} if content is None else {"content": {**content}})
        if answer is not None:
            done["model"] = answer
        extra: dict[str, Any] = {}
        if body is not None:
            bodies = body if isinstance(body, Mapping) else {JSON: body}
            kinds = {kind: {"schema": schema_of(model)} for kind, model in bodies.items()}
            extra["requestBody"] = {"required": True, "content": kinds}
        if query is not None:
            extra["parameters"] = list(_parameters(query))
        self.api.add_api_route(
            path,
            handler,
            methods=[method],
            name=name,
            status_code=status,
            response_class=Response if answer is None else JSONResponse,
            response_model=None,
            responses={status: done, **dict(self._refusals(method, self.api.prefix + path))},
            openapi_extra=extra,
        )

    def _refusals(self, method: str, path: str) -> Iterator[tuple[int, dict[str, Any]]]:
        keyed, works, dialect = self.settings.keys is not None, method == "POST" or path in WORKS, dialect_of(path)
        for status, description in REFUSALS.items():
            needs_key = status in (401, 456) or (status == 429 and path not in SHORT_OF_ROOM)
            needs_work = status in (413, 415, 429, 456, 504)
            if status == 501 and (path not in LOOKS_INSIDE or has_torch()):
                continue
            if status == 415 and dialect != "native":
                continue
            if (keyed or not needs_key) and (works or not needs_work):
                schema = {"$ref": f"#/components/schemas/{SHAPES[dialect][0]}"}
                told = {"description": description, "content": {JSON: {"schema": schema}}}
                yield status, told | ({"headers": WAIT} if status in (429, 503) else {})


def make_body(model: str, required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> type[BaseModel]:
    """Make a model of types that have the limits of this server in them. It only describes: nothing is parsed with it."""
    fields: dict[str, Any] = {name: (kind, ...) for name, kind in required.items()}
    fields |= {name: (kind, Field(default_factory=str)) for name, kind in (optional or {}).items()}
    made: type[BaseModel] = create_model(model, **fields)
    return made


def file_field(most: int) -> Any:
    return Annotated[bytes, Field(max_length=most, json_schema_extra={"format": "binary"})]


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Schemas inside of it are in its `$defs`, from where `openapi.document` takes them."""
    return model.model_json_schema(ref_template="#/components/schemas/{model}")


def _parameters(query: type[BaseModel]) -> Iterator[dict[str, Any]]:
    schema = schema_of(query)
    for name, each in schema["properties"].items():
        yield {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": each}
