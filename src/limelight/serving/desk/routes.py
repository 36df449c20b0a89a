"""The router gives each handler of the lighting desk its path and its part of the OpenAPI document."""

from fastapi import APIRouter

from limelight.serving.desk import responses as answers
from limelight.serving.desk.desk import Desk
from limelight.serving.desk.files import TYPES
from limelight.serving.http.described_routes import BINARY, DescribedRoutes, schema_of
from limelight.serving.native.events import EventStream


def router(desk: Desk) -> APIRouter:
    routes = DescribedRoutes(desk.service.settings, "desk", "/api/v1")
    add, asked, files = routes.add, desk.asked, {kind.partition(";")[0]: BINARY for kind in TYPES.values()}
    events = {EventStream.media_type: {"schema": schema_of(answers.RankingEvent)}}
    add("POST", "/trace", desk.trace, answers.TraceAnswer, body=asked.trace)
    add("GET", "/trace/{id}", desk.again, answers.TraceAnswer)
    add("POST", "/export", desk.export, body=asked.export, content=files)
    add("POST", "/why", desk.why, answers.WhyAnswer, body=asked.why)
    add("POST", "/importance", desk.importance, body=asked.importance, content=events)
    add("GET", "/probes", desk.probes, answers.ProbesAnswer)
    add("GET", "/probes/{n}/{step}", desk.probe, answers.TraceAnswer)
    return routes.api
