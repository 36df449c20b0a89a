"""The router gives each handler of the lighting desk its path and its part of the OpenAPI document."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.responses import JSONResponse, Response

from limelight.serving.desk import responses as answers
from limelight.serving.desk.desk import Desk
from limelight.serving.desk.files import TYPES
from limelight.serving.native.requests import StrictRequest

DONE = "Done."
_EVENT = {
    "type": "object",
    "description": "Each event. Its data is a job, as one line of JSON.",
    "required": ["event", "data"],
    "properties": {
        "event": {"enum": ["progress", "done", "error"]},
        "data": {"type": "string", "maxLength": answers.MANY},
    },
}
_FILE = {"schema": {"type": "string", "format": "binary", "maxLength": 1 << 31}}
FILES = {"description": DONE, "content": {kind.partition(";")[0]: _FILE for kind in TYPES.values()}}
EVENTS = {"description": DONE, "content": {"text/event-stream": {"schema": _EVENT}}}


def router(desk: Desk) -> APIRouter:
    api = APIRouter(prefix="/api/v1", tags=["desk"])

    def add(
        method: str,
        path: str,
        route: Callable[..., Any],
        answer: type | dict[str, Any],
        body: type[StrictRequest] | None = None,
    ) -> None:
        told = answer if isinstance(answer, dict) else {"model": answer, "description": DONE}
        described: dict[str, Any] = {"responses": {200: told}}
        if body is desk.asked.importance:
            described["responses"][202] = {**told, "description": "It has begun, or waits for its turn."}
        if body is not None:
            schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
            content = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
            described["openapi_extra"] = content
        kind = Response if isinstance(answer, dict) else JSONResponse  # else it would be said to answer with JSON too
        api.add_api_route(path, route, methods=[method], response_class=kind, response_model=None, **described)

    add("POST", "/trace", desk.trace, answers.TraceAnswer, desk.asked.trace)
    add("GET", "/trace/{id}", desk.again, answers.TraceAnswer)
    add("POST", "/export", desk.export, FILES, desk.asked.export)
    add("POST", "/importance", desk.importance, answers.JobAnswer, desk.asked.importance)
    add("GET", "/jobs/{id}", desk.job, answers.JobAnswer)
    add("DELETE", "/jobs/{id}", desk.drop_job, answers.JobAnswer)
    add("GET", "/jobs/{id}/events", desk.job_events, EVENTS)
    add("GET", "/probes", desk.probes, answers.ProbesAnswer)
    add("GET", "/probes/{n}/{step}", desk.probe, answers.TraceAnswer)
    return api
