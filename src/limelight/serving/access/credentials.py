"""A request carries its key in a header, or where the two public dialects put it:

    Authorization: Bearer KEY            Authorization: DeepL-Auth-Key KEY
    Authorization: Basic any-user:KEY    X-API-Key: KEY
    ?api_key=KEY (LibreTranslate)        ?auth_key=KEY (DeepL, long ago)

Basic is what a browser sends by itself once a person has typed the key, also when another site's page makes it send the request.
Such requests are told apart by what the browser says of their origin, and their Basic header does not count.
"""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import HTTPConnection

from limelight.serving.access.origins import is_own
from limelight.serving.http.error_dialects import path_of

MOST = 4  # keys that one request may offer: each is compared with every key there is


@dataclass(frozen=True)
class OfferedKeys:
    """These keys came with one request. `by_browser`: Basic was among them, so a browser may ask the person again."""

    keys: tuple[str, ...]
    by_browser: bool


def collect_keys(request: HTTPConnection, *, in_query: bool, hosts: Sequence[str] = ()) -> OfferedKeys:
    """Every key that the request carries outside its body. `in_query`: the dialect allows it there. `hosts`: what else we are called."""
    keys: list[str] = []
    by_browser = False
    for value in request.headers.getlist("authorization"):
        scheme, _, rest = value.strip().partition(" ")
        if scheme.lower() in ("bearer", "deepl-auth-key"):
            keys.append(rest.strip())
        elif scheme.lower() == "basic" and _of_this_site(request, hosts):
            by_browser = True
            keys.append(_password(rest.strip()))
    keys += [value.strip() for value in request.headers.getlist("x-api-key")]
    if in_query:
        pairs = parse_qsl(request.scope.get("query_string", b"").decode("latin-1"), max_num_fields=None)
        keys += [value for name, value in pairs if name in ("api_key", "auth_key")]
    return OfferedKeys(tuple(key for key in keys if key)[:MOST], by_browser)


def _password(encoded: str) -> str:
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8").partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _of_this_site(request: HTTPConnection, hosts: Sequence[str]) -> bool:
    """Following a link from elsewhere to the page is the person's doing too; it can do no more than show the page."""
    followed = request.headers.get("sec-fetch-mode") == "navigate" and path_of(request.scope) == "/"
    return is_own(request, hosts) or (followed and request.scope["method"] == "GET")
