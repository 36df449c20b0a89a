"""The page is a few files built from web/, read once and kept, both plain and compressed.

Names under /assets/ contain a hash of what is in them, so browsers may keep those for ever. The page itself is asked for each time, and
costs 304 and no body when nothing has changed. Only what was read at the start is ever served: a path is looked up, never opened.
"""

import gzip
import hashlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from limelight.serving.http.compression import takes_gzip
from limelight.serving.queue.service import Service
from limelight.serving.refusals import NotFound

FOLDER = Path(__file__).parents[1] / "page"
FOR_EVER = "public, max-age=31536000, immutable"
ASK_EACH_TIME = "no-cache"
KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
NOT_BUILT = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Limelight</title>
<h1>Limelight</h1>
<p>This server translates, but its page was not built. In the folder of the source, with Node.js there, run <code>make web</code>,
and start the server again. A package from an index has the page in it.</p>
<p>The API answers as it is: <code>POST /api/v1/translate</code>; <a href="openapi.json">openapi.json</a> describes it.</p>
</html>
"""


def is_built() -> bool:
    return (FOLDER / "index.html").is_file()


@dataclass(frozen=True)
class Asset:
    plain: bytes
    packed: bytes
    kind: str
    tag: str
    cached: str

    @classmethod
    def of(cls, content: bytes, name: str, cached: str) -> "Asset":
        kind = KINDS.get(Path(name).suffix, "application/octet-stream")
        tag = f'W/"{hashlib.sha256(content).hexdigest()[:16]}"'  # weak: the same content, compressed or not
        return cls(content, gzip.compress(content, 9, mtime=0), kind, tag, cached)


@dataclass(frozen=True)
class Page:
    """A page has its `assets` by name, without any folder."""

    index: Asset
    assets: dict[str, Asset]

    @classmethod
    def read(cls, folder: Path) -> "Page":
        """What was built, or a page that says how to build it."""
        index = folder / "index.html"
        if not index.is_file():
            return cls(Asset.of(NOT_BUILT, "index.html", ASK_EACH_TIME), {})
        files = sorted(each for each in (folder / "assets").iterdir() if each.is_file())
        assets = {each.name: Asset.of(each.read_bytes(), each.name, FOR_EVER) for each in files}
        return cls(Asset.of(index.read_bytes(), "index.html", ASK_EACH_TIME), assets)


def router(service: Service) -> APIRouter:
    """`service` as for all routers; the page asks nothing of it."""
    shown, pages = Page.read(FOLDER), APIRouter(include_in_schema=False)
    add = partial(pages.add_api_route, methods=["GET", "HEAD"], response_model=None)

    async def index(request: Request) -> Response:
        return _send_asset(request, shown.index)

    async def asset(request: Request, name: Annotated[str, InPath(max_length=255)]) -> Response:
        found = shown.assets.get(name)
        if found is None:
            raise NotFound("the page has no such file", "reload the page")
        return _send_asset(request, found)

    async def desk(request: Request) -> Response:
        return Response(status_code=307, headers={"Location": "./#/x"})  # relative: right behind a proxy's prefix too

    add("/", index)
    add("/desk", desk)
    add("/assets/{name}", asset)
    return pages


def _send_asset(request: Request, asset: Asset) -> Response:
    headers = {"ETag": asset.tag, "Cache-Control": asset.cached, "Vary": "Accept-Encoding"}
    if asset.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    packed = takes_gzip(request.headers.get("accept-encoding", "")) and len(asset.packed) < len(asset.plain)
    if packed:
        headers["Content-Encoding"] = "gzip"
    # Starlette counts the length also of an answer to HEAD, and the server leaves out the body.
    return Response(asset.packed if packed else asset.plain, headers=headers, media_type=asset.kind)
