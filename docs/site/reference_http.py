"""The reference of HTTP, from the OpenAPI document that a server gives at /openapi.json."""

from typing import Any

from limelight.serving.app import make_app
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.native.openapi import document, operations
from limelight.serving.queue.models import Models, ServedModel
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings
from limelight.translator.translate import Translator
from reference_cli import cell
from sources import ROOT

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
INTRODUCTION = """# HTTP

Every route of `limelight serve`, from the document that the server itself gives at `/openapi.json`, with the limits of that server in it.
[Serve](../serve.md) shows the three dialects with examples. Refusals have one shape in each dialect; their codes stand with each route.
"""
GROUPS = {"/api/v1": "Our own", "/v2": "As DeepL", "": "As LibreTranslate, and for those who watch"}


def page() -> str:
    found = openapi()
    parts = [INTRODUCTION]
    for prefix, title in GROUPS.items():
        parts.append(f"## {title}")
        for path, method, operation in operations(found):
            if _group(path) == prefix:
                parts.append(_operation(path, method, operation, found))
    return "\n\n".join(parts) + "\n"


def openapi() -> dict[str, Any]:
    """Of a server that is never started: the routes need its settings, and a translator that is not asked."""
    settings = ServeSettings(metrics=True)
    with Translator.load(BUNDLE, threads=1, engine="torch") as translator:
        metrics = Metrics()
        service = Service(Models([ServedModel("en-de", translator, speed=1_000.0)]), settings, metrics)
        try:
            return document(make_app(service, None, metrics, lambda line: None), settings)
        finally:
            service.batcher.close()


def _group(path: str) -> str:
    return next(prefix for prefix in GROUPS if path.startswith(prefix))


def _operation(path: str, method: str, operation: dict[str, Any], found: dict[str, Any]) -> str:
    parts = [f"### `{method.upper()} {path}`"]
    if text := operation.get("description") or operation.get("summary"):
        parts.append(text)
    rows = [
        _row(p["name"], p.get("schema", {}), p.get("required", False), p.get("description"), p["in"], found)
        for p in operation.get("parameters", [])
    ]
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        rows += _fields(content.get("schema", {}), kind.split("/")[-1], found)
    if rows:
        parts.append("\n".join(["| | in | | |", "| --- | --- | --- | --- |", *dict.fromkeys(rows)]))
    answers = [_answer(code, answer) for code, answer in sorted(operation.get("responses", {}).items())]
    parts.append(" · ".join(answers))
    return "\n\n".join(parts)


def _answer(code: str, answer: dict[str, Any]) -> str:
    schema = next((c.get("schema", {}) for c in answer.get("content", {}).values()), {})
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return f"`{code}`" + (f" {name}" if name and not name.endswith("Refusal") else "")


def _fields(schema: dict[str, Any], place: str, found: dict[str, Any]) -> list[str]:
    schema = _resolved(schema, found)
    for inner in (*schema.get("anyOf", []), *schema.get("oneOf", [])):
        schema = {
            **schema,
            "properties": {**schema.get("properties", {}), **_resolved(inner, found).get("properties", {})},
        }
    needed = schema.get("required", [])
    return [
        _row(name, inner, name in needed, inner.get("description"), place, found) for name, inner in schema.get("properties", {}).items()
    ]


def _row(name: str, schema: dict[str, Any], needed: bool, told: str | None, place: str, found: dict[str, Any]) -> str:
    text = told or schema.get("description") or _resolved(schema, found).get("description") or ""
    must = "**must be given**. " if needed else ""
    return f"| `{name}` | {place} | {cell(_kind(schema, found))} | {cell(must + text)} |"


def _kind(schema: dict[str, Any], found: dict[str, Any]) -> str:
    schema = _resolved(schema, found)
    if "enum" in schema:
        return " ".join(f"`{value}`" for value in schema["enum"])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(each, found) for each in options if each.get("type") != "null"))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}), found)}"
    return str(schema.get("type", "any"))


def _resolved(schema: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    return found["components"]["schemas"].get(name, schema) if name else schema
