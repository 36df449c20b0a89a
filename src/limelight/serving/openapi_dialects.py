"""Schemas describe the two public dialects for the OpenAPI document. Their routes read JSON and forms by hand, so FastAPI knows nothing of
them.

A schema says what is taken, in JSON as these servers' clients write it: numbers may be strings, and what is absent may be null.
"""

from collections.abc import Callable, Mapping
from typing import Any

from limelight.serving.compat.deepl.request import REFUSED, SPLITS, TAGS
from limelight.serving.compat.request_parameters import FALSE, TRUE
from limelight.serving.settings import ServeSettings

Schema = dict[str, Any]
MANY = 10_000_000  # a bound for what an answer holds; what decides it are the limits of requests
NULL: Schema = {"type": "null"}
JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"


def describe_operation(path: str, method: str, settings: ServeSettings) -> Schema:
    """What is to be said of an operation beyond what FastAPI knows; nothing of one that is not of these dialects."""
    found = OPERATIONS.get((method, path))
    return {} if found is None else found(settings)


def text(longest: int = 1_000, shortest: int = 0, **more: Any) -> Schema:
    least = {"minLength": shortest} if shortest else {}
    return {"type": "string", "maxLength": longest, "pattern": r"^[^\x00]*$", **least, **more}


def number(least: float, most: float, kind: str = "integer") -> Schema:
    return {"type": kind, "minimum": least, "maximum": most}


def several(items: Schema, most: int = MANY, least: int = 0) -> Schema:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    needed = {"required": list(required)} if required else {}
    return {"type": "object", **needed, "properties": {**required, **(optional or {})}}


def one_of(*values: Any) -> Schema:
    return {"enum": list(values)}


CODE = text(100, 1)
FLAG = either({"type": "boolean"}, number(0, 1), one_of(*TRUE, *FALSE), NULL)
DETECTED = record({"confidence": number(0, 100, "number"), "language": text(100)})
LONG = text(MANY)


def _key(settings: ServeSettings) -> Schema:
    """Where no key is asked for, nobody looks at it."""
    return {} if settings.keys is None else either(text(), NULL)


def _answers(
    schema: Schema, body: Mapping[str, Schema] | None = None, parameters: list[Schema] | None = None
) -> Schema:
    found: Schema = {"responses": {"200": {"description": "Done.", "content": {JSON: {"schema": schema}}}}}
    if body is not None:
        content = {kind: {"schema": each} for kind, each in body.items()}
        found["requestBody"] = {"required": True, "content": content}
    return found | ({"parameters": parameters} if parameters else {})


def _file(body: Mapping[str, Schema] | None = None, parameters: list[Schema] | None = None) -> Schema:
    found = _answers({}, body, parameters)
    binary = {"type": "string", "format": "binary", "maxLength": MANY}
    found["responses"]["200"]["content"] = {"application/octet-stream": {"schema": binary}}
    return found


def _in_path(name: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": text(1_000, 1)}


def _in_query(name: str, schema: Schema, required: bool = False) -> Schema:
    return {"name": name, "in": "query", "required": required, "schema": schema}


def _strings(schema: Schema) -> Schema:
    """The same fields in a form, where everything is a string."""
    properties = {
        name: each if each.get("type") == "string" else text(each.get("maxLength", 1_000))
        for name, each in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _libretranslate(settings: ServeSettings) -> Schema:
    limits = settings.limits
    q = text(limits.characters, 1)
    body = record(
        {"q": either(q, several(text(limits.characters), limits.texts, 1)), "source": CODE, "target": CODE},
        {
            "format": one_of("text", "html", "", None),
            "alternatives": either(
                number(-1_000_000, limits.alternatives, "number"), text(6, 1, pattern="^-?[0-9]{1,5}$"), NULL
            ),
            "api_key": _key(settings),
        },
    )
    form = record({"q": q, "source": CODE, "target": CODE}, {"format": one_of("text", "html"), "api_key": text()})
    answer = record(
        {"translatedText": either(LONG, several(LONG, limits.texts))},
        {
            "alternatives": either(several(LONG, 64), several(several(LONG, 64), limits.texts)),
            "detectedLanguage": either(DETECTED, several(DETECTED, limits.texts)),
        },
    )
    return _answers(answer, {JSON: body, FORM: form, MULTIPART: form})


def _detect(settings: ServeSettings) -> Schema:
    limits = settings.limits
    q = text(limits.characters, 1)
    form = record({"q": q}, {"api_key": text()})
    body = record({"q": either(q, several(text(limits.characters), limits.texts, 1))}, {"api_key": _key(settings)})
    return _answers(several(DETECTED, 3, 1), {JSON: body, FORM: form, MULTIPART: form})


def _languages(settings: ServeSettings) -> Schema:
    language = record({"code": CODE, "name": text(), "targets": several(CODE, 10_000)})
    return _answers(several(language, 10_000))


def _frontend(settings: ServeSettings) -> Schema:
    named = record({"code": CODE, "name": text()})
    switches = ("apiKeys", "keyRequired", "suggestions", "filesTranslation")
    numbers = {"charLimit": number(-1, 1 << 31), "frontendTimeout": number(0, 1 << 31)}
    formats = {"supportedFilesFormat": several(text(), 100), "language": record({"source": named, "target": named})}
    return _answers(record({**numbers, **{name: {"type": "boolean"} for name in switches}, **formats}))


def _suggest(settings: ServeSettings) -> Schema:
    long = text(settings.limits.characters, 1)
    body = record({"q": long, "s": long, "source": CODE, "target": CODE}, {"api_key": _key(settings)})
    return _answers(record({"success": {"type": "boolean"}}), {JSON: body, FORM: _strings(body)})


def _upload(required: str, optional: tuple[str, ...], answer: Schema, settings: ServeSettings) -> Schema:
    file = {"type": "string", "format": "binary", "maxLength": settings.limits.file_bytes}
    others = {required: CODE} | ({"source": CODE} if required == "target" else {})
    return _answers(answer, {MULTIPART: record({"file": file, **others}, {name: text() for name in optional})})


def _deepl(method: str) -> Callable[[ServeSettings], Schema]:
    def made(settings: ServeSettings) -> Schema:
        limits = settings.limits
        texts = either(text(limits.characters), several(text(limits.characters), limits.texts, 1))
        tags = either(text(), several(text(), 1_000), NULL)
        optional: dict[str, Schema] = {
            "source_lang": either(text(100), NULL),
            "show_billed_characters": FLAG,
            "preserve_formatting": FLAG,
            "split_sentences": either(one_of(*SPLITS), {"type": "boolean"}, number(0, 1), NULL),
            "formality": one_of("default", "prefer_more", "prefer_less", "", None),
            "tag_handling": one_of("xml", "html", "", None),
            "outline_detection": FLAG,
            **dict.fromkeys(TAGS, tags),
            **dict.fromkeys(REFUSED, one_of(None, "")),
            "glossary_id": either(text(100), NULL),
        }
        translation = record(
            {"detected_source_language": text(100), "text": LONG},
            {"billed_characters": number(0, 1 << 53), "model_type_used": text()},
        )
        answer = record({"translations": several(translation, limits.texts)})
        if method == "get":
            query = [_in_query("text", several(text(limits.characters), limits.texts, 1), required=True)]
            return _answers(answer, parameters=[*query, _in_query("target_lang", CODE, required=True)])
        form = record({"text": several(text(limits.characters), limits.texts, 1), "target_lang": CODE})
        return _answers(answer, {JSON: record({"text": texts, "target_lang": CODE}, optional), FORM: form})

    return made


def _deepl_languages(method: str) -> Callable[[ServeSettings], Schema]:
    kind = one_of("source", "target", "")
    language = record({"language": CODE, "name": text()}, {"supports_formality": {"type": "boolean"}})
    body = {JSON: record({}, {"type": either(kind, NULL)}), FORM: record({}, {"type": kind})}
    if method == "get":
        return lambda settings: _answers(several(language, 10_000), parameters=[_in_query("type", kind)])
    return lambda settings: _answers(several(language, 10_000), body)


def _usage(settings: ServeSettings) -> Schema:
    return _answers(record({"character_count": number(0, 1 << 53), "character_limit": number(0, 1 << 53)}))


def _glossary() -> Schema:
    codes = {"source_lang": CODE, "target_lang": CODE}
    told = {"glossary_id": text(), "name": text(1_024), "ready": {"type": "boolean"}, **codes}
    return record({**told, "creation_time": text(), "entry_count": number(0, 1 << 31)})


def _glossary_pairs(settings: ServeSettings) -> Schema:
    pair = record({"source_lang": CODE, "target_lang": CODE})
    return _answers(record({"supported_languages": several(pair, 10_000)}))


def _create_glossary(settings: ServeSettings) -> Schema:
    fields = {"name": text(1_024, 1), "source_lang": CODE, "target_lang": CODE, "entries": text(MANY, 1)}
    body = record(fields, {"entries_format": one_of("tsv", "csv", "")})
    found = _answers(_glossary(), {JSON: body, FORM: body})
    return found | {"responses": {"201": found["responses"]["200"]}}


def _glossary_entries(settings: ServeSettings) -> Schema:
    found = _answers({}, parameters=[_in_path("id")])
    found["responses"]["200"]["content"] = {"text/tab-separated-values": {"schema": LONG}}
    return found


def _describe_stored(method: str, made: Callable[..., Schema]) -> Callable[[ServeSettings], Schema]:
    key = text(1_000, 1)
    body = {JSON: record({"document_key": key}), FORM: record({"document_key": key})} if method == "post" else None
    query = [] if body else [_in_query("document_key", key, required=True)]
    return lambda settings: made(body, [_in_path("id"), *query])


def _status(body: Mapping[str, Schema] | None, parameters: list[Schema]) -> Schema:
    told = {"document_id": text(), "status": one_of("queued", "translating", "done", "error")}
    return _answers(record(told, {"billed_characters": number(0, 1 << 53)}), body, parameters)


def _metrics(settings: ServeSettings) -> Schema:
    found = _answers({})
    found["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string", "maxLength": MANY}}}
    return found


OPERATIONS: dict[tuple[str, str], Callable[[ServeSettings], Schema]] = {
    ("post", "/translate"): _libretranslate,
    ("post", "/detect"): _detect,
    ("get", "/languages"): _languages,
    ("get", "/frontend/settings"): _frontend,
    ("get", "/health"): lambda settings: _answers(record({"status": one_of("ok")})),
    ("post", "/suggest"): _suggest,
    ("post", "/translate_file"): lambda settings: _upload(
        "target", ("api_key",), record({"translatedFileUrl": text(10_000)}), settings
    ),
    ("get", "/download_file/{name}"): lambda settings: _file(parameters=[_in_path("name")]),
    ("post", "/v2/document"): lambda settings: _upload(
        "target_lang",
        ("source_lang", "filename"),
        record({"document_id": text(), "document_key": text()}),
        settings,
    ),
    ("get", "/metrics"): _metrics,
    ("get", "/v2/glossary-language-pairs"): _glossary_pairs,
    ("get", "/v2/glossaries"): lambda settings: _answers(record({"glossaries": several(_glossary(), 10_000)})),
    ("post", "/v2/glossaries"): _create_glossary,
    ("get", "/v2/glossaries/{id}"): lambda settings: _answers(_glossary(), parameters=[_in_path("id")]),
    ("get", "/v2/glossaries/{id}/entries"): _glossary_entries,
    ("delete", "/v2/glossaries/{id}"): lambda settings: {
        "parameters": [_in_path("id")],
        "responses": {"204": {"description": "Deleted."}},
    },
    **{(method, "/v2/translate"): _deepl(method) for method in ("get", "post")},
    **{(method, "/v2/languages"): _deepl_languages(method) for method in ("get", "post")},
    **{(method, "/v2/usage"): _usage for method in ("get", "post")},
    **{(method, "/v2/document/{id}"): _describe_stored(method, _status) for method in ("get", "post")},
    **{(method, "/v2/document/{id}/result"): _describe_stored(method, _file) for method in ("get", "post")},
}
