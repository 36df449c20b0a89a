"""The document says what the server does: every route, every limit, every refusal, and a bound for everything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from native_server import Running, running, stored

from limelight.serving.access.keys import Keys
from limelight.serving.app import make_app
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.native.openapi import document, operations
from limelight.serving.queue.models import Models
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings

HIDDEN = {"/healthz", "/readyz", "/openapi.json", "/spec", "/", "/desk", "/assets/{name}"}  # of machines and browsers


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    made = stored()
    yield made
    made.close()


def made(models: Models, **settings: Any) -> tuple[Any, dict[str, Any]]:
    chosen, metrics = ServeSettings(**settings), Metrics()
    service = Service(models, chosen, metrics)
    app = make_app(service, None, metrics, lambda line: None)
    service.batcher.close()
    return app, document(app, chosen)


def unbounded(value: Any, where: str = "") -> list[str]:
    """Where a schema has a number without a maximum, or a text or list of any length."""
    found = []
    if isinstance(value, dict):
        kinds = value.get("type")
        needed = {
            "integer": ("minimum", "maximum"),
            "number": ("minimum", "maximum"),
            "array": ("maxItems",),
            "string": ("maxLength",),
        }
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if isinstance(kind, str) and not {"enum", "const"} & value.keys():
                found += [f"{where}: {kind} without {key}" for key in needed.get(kind, ()) if key not in value]
        if kinds == "object" and "properties" not in value and "maxProperties" not in value:
            found.append(f"{where}: object without maxProperties")
        for key, inner in value.items():
            found += unbounded(inner, f"{where}/{key}")
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            found += unbounded(inner, f"{where}/{at}")
    return found


@pytest.mark.slow
def test_every_number_text_and_list_has_a_bound(models: Models) -> None:
    _, found = made(models, metrics=True)
    assert unbounded(found) == []


def test_what_has_no_bound_would_be_found() -> None:
    """The test above can fail."""
    schema = {"a": {"type": "integer", "minimum": 0}, "b": [{"type": ["string", "null"]}], "c": {"type": "array"}}
    assert [each.split(":")[0] for each in unbounded(schema)] == ["/a", "/b/0", "/c"]


@pytest.mark.slow
def test_every_route_is_described_or_known_to_be_for_machines(models: Models) -> None:
    app, found = made(models, metrics=True)
    described = {(path, method.upper()) for path, method, _ in operations(found)}
    assert {path for path, _ in described} & HIDDEN == set()
    for path, methods in _routes(app):
        for method in methods - {"HEAD"}:
            assert (path, method) in described or path in HIDDEN or path.startswith("/assets"), (path, method)


def _routes(app: Any) -> Iterator[tuple[str, set[str]]]:
    """Of the app, also where FastAPI keeps a router of its own for them."""
    for route in app.routes:
        if hasattr(route, "methods"):
            yield route.path, set(route.methods)
        elif hasattr(route, "effective_candidates"):
            for each in route.effective_candidates():
                yield each.path, set(each.methods)


@pytest.mark.slow
def test_routes_that_are_compared_with_the_document_are_really_there(models: Models) -> None:
    app, _ = made(models)
    paths = {path for path, _ in _routes(app)}
    assert {"/api/v1/translate", "/translate", "/v2/translate", "/healthz"} <= paths


@pytest.mark.slow
def test_every_operation_has_an_answer_with_a_shape_and_its_own_refusals(models: Models) -> None:
    _, found = made(models, metrics=True)
    shapes = {"/api": "Refusal", "/met": "Refusal", "/v2/": "DeepLRefusal"}
    names = [operation["operationId"] for _, _, operation in operations(found)]
    assert len(set(names)) == len(names)
    for path, method, operation in operations(found):
        done = next(told for status, told in operation["responses"].items() if status.startswith("2"))
        assert method == "delete" or next(iter(done["content"].values()))["schema"], (path, method)
        expected = shapes.get(path[:4], "LibreTranslateRefusal")
        for status in ("400", "403", "404", "500", "503"):
            refusal = operation["responses"][status]
            if (path, status) == ("/api/v1/health", "503"):
                continue
            assert refusal["content"]["application/json"]["schema"]["$ref"].endswith(f"/{expected}"), (path, status)
        assert "422" not in operation["responses"]
        if method == "post" and path != "/v2/usage":
            assert operation["requestBody"]["content"], path


@pytest.mark.slow
def test_every_reference_leads_somewhere(models: Models) -> None:
    _, found = made(models)

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            yield from [value["$ref"]] if "$ref" in value else []
            for inner in value.values():
                yield from references(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from references(inner)

    known = set(references(found))
    assert known
    for reference in known:
        place: Any = found
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]


@pytest.mark.slow
def test_the_limits_of_the_server_are_in_its_document(models: Models) -> None:
    limits = {"characters": 77, "texts": 3, "alternatives": 2, "beam": 9, "terms": 5}
    _, found = made(models, limits=limits, queue={"timeout_seconds": 7})
    native = _body(found, "/api/v1/translate")
    one, several = native["text"]["anyOf"]
    assert one["maxLength"] == several["items"]["maxLength"] == 77 and several["maxItems"] == 3
    assert native["nbest"]["maximum"] == 3 and native["beam"]["anyOf"][0]["maximum"] == 9
    assert native["timeout"]["anyOf"][0]["maximum"] == 7 and native["glossary"]["anyOf"][0]["maxProperties"] == 5
    assert _body(found, "/translate")["q"]["anyOf"][0]["maxLength"] == 77
    assert _body(found, "/v2/translate")["text"]["anyOf"][1]["maxItems"] == 3


def _body(found: dict[str, Any], path: str) -> dict[str, Any]:
    schema = found["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    properties: dict[str, Any] = schema["properties"]
    return properties


@pytest.mark.process
def test_with_keys_the_document_says_so(models: Models, tmp_path: Path) -> None:
    place = tmp_path / "keys.toml"
    key = Keys.add_key(place, "somebody")
    _, without = made(models)
    assert "security" not in without and "401" not in without["paths"]["/api/v1/translate"]["post"]["responses"]
    with running(models, Keys.load(place), keys=place) as server:
        assert server.client.get("/openapi.json").status_code == 401
        server.client.headers["Authorization"] = f"Bearer {key}"
        found = server.client.get("/openapi.json").json()
    assert found["security"] and "bearer" in found["components"]["securitySchemes"]
    responses = found["paths"]["/api/v1/translate"]["post"]["responses"]
    assert "401" in responses and "Retry-After" in responses["429"]["headers"]


@pytest.mark.process
def test_both_names_of_the_document_give_the_same(models: Models) -> None:
    with running(models, prefix="/mt") as server:
        answer: Running = server
        first, second = (answer.client.get(path) for path in ("/openapi.json", "/spec"))
    assert first.json() == second.json() and first.json()["openapi"].startswith("3.1")
    assert first.json()["servers"] == [{"url": "/mt"}]
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
