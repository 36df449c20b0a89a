"""The parameters of a request in either public dialect are read from wherever its client puts them:

    a JSON body                      its fields, and nothing else; a GET that only says that it is JSON has none
    anything else, also with GET     the query string, then the form: urlencoded or multipart

Clients use all of these: deep-translator sends a POST with everything in the query string, deepl-python a GET with a form as its body.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Path
from starlette.requests import Request

from limelight.serving.access.guard import admit
from limelight.serving.access.rate_limits import Caller
from limelight.serving.http.body import Form, is_json, read_form, read_json
from limelight.serving.http.described_routes import NO_ZERO
from limelight.serving.refusals import BadRequest

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
# Any other name is not found, so the document describes one and nobody checks it.
NameInPath = Annotated[str, Path(json_schema_extra={"minLength": 1, "maxLength": 1_000, "pattern": NO_ZERO})]


@dataclass(frozen=True)
class Parameters:
    """Parameters are values by name. `typed`: they come from JSON and have types; else each is a list of strings."""

    values: dict[str, Any] = field(default_factory=dict)
    typed: bool = False
    file: tuple[str, bytes] | None = None

    def one(self, name: str) -> Any:
        """A value of any type, or None. Of several in a form the first counts."""
        value = self.values.get(name)
        if self.typed or value is None:
            return value
        return value[0]

    def text(self, name: str) -> str | None:
        """A string, or None; numbers and lists are refused."""
        value = self.one(name)
        if value is not None and not isinstance(value, str):
            raise BadRequest(f"Invalid request: {name} parameter is not a string")
        return value

    def key(self, name: str) -> str | None:
        """What should be a key. Something that is no string is a wrong one."""
        value = self.one(name)
        return value if value is None or isinstance(value, str) else str(value)[:100]

    def texts(self, name: str) -> list[str]:
        """One or several strings; in a form the name is repeated."""
        value = self.values.get(name)
        if value is None:
            return []
        several = value if isinstance(value, list) else [value]
        if not all(isinstance(each, str) for each in several):
            raise BadRequest(f"Invalid request: {name} parameter is not a string or a list of strings")
        return several

    def flag(self, name: str, default: bool = False) -> bool:
        """true, "1" and the like."""
        value = self.one(name)
        if value is None:
            return default
        word = str(value).lower() if isinstance(value, str | bool | int) else None
        if word not in (*TRUE, *FALSE):
            raise BadRequest(f"Invalid request: {name} parameter is neither true nor false")
        return word in TRUE


async def admit_request(request: Request, key: str) -> tuple[Parameters, Caller]:
    """Read parameters, and admit who sent them. The `key` may be one of them, also in the body of a GET, as libretranslatepy sends it."""
    parameters = await read_parameters(request)
    return parameters, admit(request, parameters.key(key))


async def read_parameters(request: Request) -> Parameters:
    """What the request says. A body that is no JSON object, though it says so, is refused in LibreTranslate's words."""
    bare = request.method == "GET" and not await request.body()
    if is_json(request) and not bare:
        try:
            return Parameters(await read_json(request), typed=True)
        except BadRequest as refusal:
            raise BadRequest("Invalid JSON format", refusal.message) from None
    values: dict[str, Any] = {}
    form = Form() if bare else await read_form(request)
    if any(name.lstrip().startswith("{") for name in form.fields):
        raise BadRequest("Invalid request: the body is JSON; send the header Content-Type: application/json")
    for name, value in _query(request):
        values.setdefault(name, []).append(value)
    for name, several in form.fields.items():
        values.setdefault(name, []).extend(_unix(each) for each in several)
    return Parameters(values, file=form.file)


def _query(request: Request) -> list[tuple[str, str]]:
    """Strictly UTF-8: what Starlette reads has signs for what is not, and they would be translated."""
    raw = request.scope["query_string"]
    try:
        found = parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict")
    except UnicodeError:
        raise BadRequest("Invalid request: the query string is not UTF-8") from None
    if any("\0" in part for pair in found for part in pair):
        raise BadRequest("Invalid request: the query string contains U+0000")
    return found


def _unix(text: str) -> str:
    """Browsers send a line break in a form as \\r\\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
