"""Headers on every answer tell the browser what it may load, who may frame it, and which sites may read it.

Pages of other sites may call the two public dialects, as they may call the servers that these come from, but never with what a browser
adds by itself: `*` and credentials do not go together. Our own API and the page are for the page alone.
"""

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limelight.serving.http.error_dialects import dialect_of, path_of
from limelight.serving.settings import ServeSettings

# An answer of an API that a browser shows as a page, such as a translated file, may do nothing at all.
API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; sandbox"
PAGE_POLICY = "default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
# As LibreTranslate sends them, on every answer.
CROSS_ORIGIN = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Max-Age": "1728000",
}


class SecurityHeaders:
    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = path_of(scope)
        headers = headers_for(path, self.settings)
        if dialect_of(path) == "deepl":
            headers["X-Trace-ID"] = scope.get("state", {}).get("request_id", "")

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = MutableHeaders(scope=message)
                for name in [name for name in given if name.startswith("access-control-")]:
                    del given[name]
                for name, value in headers.items():
                    given[name] = value
                if not is_page(path):
                    given.setdefault("Cache-Control", "no-store")  # a translation is nobody else's business
            await send(message)

        if scope["method"] == "OPTIONS" and "Access-Control-Allow-Origin" in headers:
            # A browser asks before it sends, and has no key yet.
            await Response(status_code=204)(scope, receive, with_headers)
        else:
            await self.app(scope, receive, with_headers)


def is_page(path: str) -> bool:
    return path == "/" or path.startswith("/assets/")


def headers_for(path: str, settings: ServeSettings) -> dict[str, str]:
    """Return the headers for a path, without those of a single answer."""
    policy = PAGE_POLICY if is_page(path) else API_POLICY
    if dialect_of(path) != "native" and settings.cors == "compatible":
        return {"Content-Security-Policy": policy, **ALWAYS, **CROSS_ORIGIN}
    return {"Content-Security-Policy": policy, **ALWAYS, "Cross-Origin-Resource-Policy": "same-origin"}
