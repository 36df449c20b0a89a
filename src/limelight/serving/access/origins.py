"""Requests that the page of another site had a browser send are recognized, and refused where they do harm.

A page of another site can send whatever a form can, and need not be able to read the answer: the work is done all the same, and what is
to be kept is kept. So what such pages may not call is refused before anything of it is read. Programs say nothing of an origin.
"""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from limelight.serving.http.error_dialects import dialect_of, path_of
from limelight.serving.refusals import Forbidden
from limelight.serving.settings import ServeSettings

WORKING = "/v2/translate"  # by whatever method
# Routes of the public dialects that keep something of what is sent: no page but our own fills a server's memory or its disk.
KEEPING = ("/translate_file", "/suggest", "/v2/document", "/v2/glossaries")


class ForeignOrigin(Forbidden):
    """The page of another site may not do this."""

    code = "foreign_origin"


def check_origin(request: HTTPConnection, settings: ServeSettings) -> None:
    """Looking is harmless, since other sites cannot read what they get; anything else is for our own page, or as `cors` says. DeepL's
    dialect translates by GET, too, which is work."""
    path = path_of(request.scope)
    looks = request.scope["method"] in ("GET", "HEAD") and not (settings.cors == "off" and path == WORKING)
    public = dialect_of(path) != "native" and settings.cors == "compatible"
    keeping = any(path == route or path.startswith(f"{route}/") for route in KEEPING)
    if looks or (public and not keeping) or is_own(request, settings.hosts):
        return
    raise ForeignOrigin(
        "Pages of other sites may not call this",
        "Call it from the server's own page or from a program; if this is its own page, name its host in `hosts`.",
    )


def is_own(request: HTTPConnection, hosts: Sequence[str] = ()) -> bool:
    """Did a page of ours, or a person, or a program that is no browser, send it? `hosts`: what else we are called."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if origin is not None and (_host_of(origin) or "").lower() in map(str.lower, hosts):
        return True
    if site is not None:
        return site in ("same-origin", "none")
    return origin is None or _host_of(origin) == request.headers.get("host")  # an old browser, or one on plain HTTP


def _host_of(origin: str) -> str | None:
    """Return the host with the port, as in `Host`."""
    try:
        return urlsplit(origin).netloc or None
    except ValueError:  # http://[ is no address
        return None
