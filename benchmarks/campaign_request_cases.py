"""Requests drawn from a server's own OpenAPI document, with strings that are pumped and things that no schema allows.

    maker = Maker(document, key="...")
    maker.request(Random(1)) -> Request("POST", "/api/v1/translate", {"Content-Type": ...}, b"...")

About one in three is spoilt on purpose: wrong types, unknown and doubled keys, deep JSON, big numbers, cut bodies. Every text that is sent
carries CANARY, which must not be found in anything that the server writes.
"""

import base64
import json
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from campaign_document_cases import document
from campaign_strings import hostile, nested, pumped

CANARY = "cnryq7x"
KNOWN = {
    "source": ("en", "en", "auto", "de", "xx"), "target": ("de",), "source_lang": ("EN", None), "target_lang": ("DE",
    "DE", "XX"), "model": (None, None, "x"),
    "format": ("text", "html"), "stream": (True, False), "timeout": (0.001, 0.01, 0.1, 0.3, 1, 2),
    "beam": (1, 1, 2, 4, 16), "nbest": (1, 1, 2, 9),
    "encoding": ("u8", "f16", "f32", "json"), "tag_handling": ("html", "xml"), "alternatives": (0, 1, 3, 8, 9),
}  # fmt: skip
NAMES = ("", "..\\\\", "é")
NUMBERS = (0, 1, -1, 2, 0.5, 1e308, -1e308, 10**30, 2**63, 1e-320, 0.001, 16, 17, 4096, True)
STRANGE = (None, True, "", "x", 0, -1, 1e400, [], {}, [[]], {"": {}}, [None], 10**40, "\ud800", "9" * 400)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    timeout: float | None = None  # that it asks for


class Maker:
    def __init__(self, api: dict[str, Any], key: str | None) -> None:
        self.api, self.key = api, key
        self.ids: list[str] = ["x", "t_x", "..", "%00", "a" * 300]  # of traces, jobs and files that answers told
        self.operations = [
            (method.upper(), path, operation)
            for path, methods in api["paths"].items()
            for method, operation in methods.items()
            for _ in range(6 if "requestBody" in operation else 1)
        ]

    def request(self, random: Random, jobs: bool = True) -> Request:
        method, path, operation = random.choice(self.operations)
        while "importance" in path and not jobs:
            method, path, operation = random.choice(self.operations)
        while "{" in path:
            name = path[path.index("{") : path.index("}") + 1]
            path = path.replace(name, quote(random.choice(self.ids), safe="._-"))
        headers, query = self._headers(random), {}
        for each in operation.get("parameters", []):
            if each["in"] == "query" and random.random() < 0.4:
                query[each["name"]] = str(self.value(each.get("schema", {}), each["name"], random))[:300]
        contents = operation.get("requestBody", {}).get("content", {})
        body, timeout = b"", None
        if contents:
            kind = random.choice(list(contents))
            values = self.value(contents[kind].get("schema", {}), "", random)
            values = self._spoilt(values, random) if random.random() < 0.25 else values
            wanted = values.get("timeout") if isinstance(values, dict) else None
            timeout = wanted if type(wanted) in (int, float) and 0 < wanted <= 10 else None
            headers["Content-Type"], body = self._encoded(kind, values, random)
        if random.random() < 0.04:
            body = body[: random.randrange(len(body) + 1)] + random.choice((b"", b"\xff", b"\x00", b'"', b"{"))
        path += "?" + urlencode(query, errors="replace") if query else ""
        return Request(
            method if random.random() < 0.98 else random.choice(("PUT", "PATCH", "HEAD", "DELETE")),
            path,
            headers,
            body,
            timeout,
        )

    def _headers(self, random: Random) -> dict[str, str]:
        headers = {"User-Agent": CANARY, "Referer": f"http://127.0.0.1/{CANARY}"} if random.random() < 0.2 else {}
        if random.random() < 0.1:
            headers["Origin"] = random.choice(("https://evil.example", "null", "http://127.0.0.1", "x"))
        if self.key is not None and random.random() < 0.95:
            key = self.key if random.random() < 0.95 else f"{CANARY}wrong"
            basic = base64.b64encode(f"any:{key}".encode()).decode()
            ways = (
                {"Authorization": f"Bearer {key}"},
                {"Authorization": f"DeepL-Auth-Key {key}"},
                {"X-API-Key": key},
                {"Authorization": f"Basic {basic}"},
            )
            headers |= random.choice(ways)
        return headers

    def value(self, schema: dict[str, Any], name: str, random: Random, depth: int = 0) -> Any:
        """One that the schema allows, mostly."""
        while "$ref" in schema:
            found: Any = self.api
            for part in schema["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            schema = found
        if name in KNOWN and random.random() < 0.85:
            return random.choice(KNOWN[name])
        for several in ("anyOf", "oneOf", "allOf"):
            if several in schema:
                return self.value(random.choice(schema[several]), name, random, depth)
        if "enum" in schema or "const" in schema:
            return random.choice(schema.get("enum", [schema.get("const")]))
        kind = schema.get("type", "string")
        if kind == "object" and depth < 6:
            return self._object(schema, name, random, depth)
        if kind == "array" and depth < 6:
            few = random.choice((0, 1, 1, 2, 3, 3, 130 if random.random() < 0.1 else 4))
            return [self.value(schema.get("items", {}), name, random, depth + 1) for _ in range(few)]
        if kind in ("integer", "number"):
            return random.choice(NUMBERS) if random.random() < 0.5 else random.randint(1, 4)
        if kind == "boolean":
            return random.random() < 0.5
        return None if kind == "null" else self.text(random)

    def _object(self, schema: dict[str, Any], name: str, random: Random, depth: int) -> dict[str, Any]:
        made = {
            key: self.value(each, key, random, depth + 1)
            for key, each in schema.get("properties", {}).items()
            if key in schema.get("required", []) or random.random() < 0.3
        }
        if not schema.get("properties"):
            made = {
                self.text(random)[:60] or "x": random.choice((self.text(random)[:60], ["eins", "zwei"]))
                for _ in range(random.choice((1, 3, 40)))
            }
        if "glossary" in made and random.random() < 0.2:
            made["glossary"] = {"字" * n: "x" for n in range(1, 150)}
        if name in ("", "glossary") and "prefix" in made and random.random() < 0.3:
            made["prefix"] = "-" * random.randint(1, 90)
        return made

    def text(self, random: Random) -> str:
        chance = random.random()
        if chance < 0.08:
            made = pumped(random, random.choice((300, 1900, 4900, 5100)))
        elif chance < 0.12:
            made = nested(random, random.choice((10, 200, 1000)))
        else:
            made = hostile(random, 8)
        return f"{CANARY} {made}" if random.random() < 0.7 else made

    def _spoilt(self, values: Any, random: Random) -> Any:
        if not isinstance(values, dict) or random.random() < 0.15:
            return random.choice((*STRANGE, _deep(random)))
        spoilt = dict(values)
        for key in random.sample(list(spoilt), min(len(spoilt), random.choice((1, 1, 2)))):
            spoilt[key] = random.choice((*STRANGE, _deep(random)))
        if random.random() < 0.3:
            spoilt[random.choice(("txt", CANARY, "__proto__", "", "text ", "beam\x00"))] = random.choice(STRANGE)
        return spoilt

    def _encoded(self, kind: str, values: Any, random: Random) -> tuple[str, bytes]:
        if kind == "application/json":
            body = json.dumps(values, ensure_ascii=random.random() < 0.5)
            if random.random() < 0.03:
                body = body.replace("{", '{"text": "a", "text": "b", ', 1)
            return (kind if random.random() < 0.97 else "text/plain"), body.encode("utf-8", "replace")
        fields = values if isinstance(values, dict) else {"q": str(values)}
        if kind == "application/x-www-form-urlencoded":
            return kind, urlencode({key: str(each) for key, each in fields.items()}, errors="replace").encode()
        parts, limit = b"", f"limit{random.randrange(10**6)}"
        for key, each in fields.items():
            data, more = str(each).encode("utf-8", "replace"), ""
            if key == "file":
                case = document(random)
                data, more = case.data, f'; filename="{CANARY}{random.choice(NAMES)}.{case.kind}"'
            parts += f'--{limit}\r\nContent-Disposition: form-data; name="{key}"{more}\r\n\r\n'.encode("utf-8", "replace") + data + b"\r\n"
        return f"multipart/form-data; boundary={limit}", parts + f"--{limit}--\r\n".encode() * (random.random() < 0.97)


def _deep(random: Random) -> Any:
    made: Any = 1
    for _ in range(random.choice((20, 200, 900))):
        made = [made] if random.random() < 0.5 else {"a": made}
    return made
