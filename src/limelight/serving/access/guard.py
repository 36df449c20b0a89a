"""The guard decides who may call: it stands before every route, and closes what a route left open.

A key in a header is looked at here. The two public dialects may carry it in the body instead, which only the route reads; it then calls
`admit`. Should it forget to, its answer is thrown away: without a caller nothing but a refusal leaves this server.
"""

import asyncio
import contextlib
import logging
import signal
from typing import cast

from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limelight.errors import LimelightError
from limelight.serving.access.credentials import collect_keys
from limelight.serving.access.keys import Keys
from limelight.serving.access.origins import check_origin
from limelight.serving.access.rate_limits import Caller, Strangers
from limelight.serving.access.usage import Ledger
from limelight.serving.http.connection_shares import home_of
from limelight.serving.http.disconnect import ClientLeft
from limelight.serving.http.error_dialects import dialect_of, path_of
from limelight.serving.http.hosts import check_host
from limelight.serving.middleware.request_log import send_refusal
from limelight.serving.refusals import BadRequest, Forbidden, Refusal, Unauthorized
from limelight.serving.settings import ServeSettings

logger = logging.getLogger(__name__)

OPEN = ("/healthz", "/readyz")  # for probes, which have no key and often name no host
MOST_PARAMETERS = 1_000  # of an address: what parses them does so in the event loop
CHALLENGE = 'Basic realm="limelight", charset="UTF-8"'


def caller_of(request: HTTPConnection) -> Caller:
    """Who sent the request. Raises what the route should answer if nobody was admitted."""
    return admit(request, None)


def admit(request: HTTPConnection, key: str | None) -> Caller:
    """The caller, by the header that was looked at before or by this key from the body. Any good key will do."""
    guard = request.scope.get("state", {}).get("guard")
    if not isinstance(guard, AccessGuard):
        raise RuntimeError("there is no Guarded around this app, so nobody can be admitted")
    return guard.admit(request, key)


async def confirm_cost(request: HTTPConnection) -> None:
    """Before a route keeps something: what the quota has no room for is refused before it is kept, not after."""
    caller = caller_of(request)
    await request.scope["state"]["guard"].ledger.confirm(caller)


class AccessGuard:
    """The guard admits or refuses each request. `keys` None: everybody is the same caller, without a name or a limit."""

    def __init__(self, app: ASGIApp, keys: Keys | None, settings: ServeSettings, ledger: Ledger | None = None) -> None:
        self.app, self.keys, self.settings = app, keys, settings
        self.ledger = Ledger(settings.state) if ledger is None else ledger
        self.strangers = Strangers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(scope, receive, send)
        elif scope["type"] == "http":
            await self._guard(scope, receive, send)
        else:  # no route of ours speaks anything else
            await send({"type": "websocket.close", "code": 1008})

    def admit(self, request: HTTPConnection, key: str | None) -> Caller:
        state = request.scope["state"]
        if "caller" not in state:
            found = self.keys.find(key) if self.keys is not None and key else None
            if found is None:
                raise self._refusal(request, wrong=bool(key) or state.get("wrong_key", False))
            state["caller"] = self.ledger.caller(found)
        return cast(Caller, state["caller"])

    def reload(self) -> None:
        assert self.keys is not None
        try:
            self.keys.reload()
            logger.info("the file of keys was read again")
        except LimelightError:  # its message quotes the file, which may hold a key where a hash should be
            logger.exception("the file of keys cannot be used, so the keys of before stay good; a server that starts with it says why")

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {})["guard"] = self
        request = Request(scope)
        try:
            if scope.get("query_string", b"").count(b"&") >= MOST_PARAMETERS:
                raise BadRequest(f"Invalid request: the query string has more than {MOST_PARAMETERS:,} values", "send them in a body")
            server = scope.get("server")
            if path_of(scope) not in OPEN:
                check_host(request.headers.get("host"), server[0] if server else None, self.settings)
            check_origin(request, self.settings)
            self._look(request)
        except Refusal as refusal:
            await self._refuse(refusal, scope, receive, send)
            return
        closing = Closing(self, scope, receive, send)
        try:
            await self.app(scope, receive, closing.send)
        except (ClientLeft, ClientDisconnect):  # the work was done, or begun
            raise
        except Exception:
            closing.status = 500
            raise
        finally:
            if closing.status >= 400 and "caller" in scope["state"]:
                scope["state"]["caller"].give_back()
            elif "caller" in scope["state"]:
                scope["state"]["caller"].release()

    def _look(self, request: Request) -> None:
        """Admit by a header, refuse, or leave it to the route that reads the body."""
        state = request.scope["state"]
        path = path_of(request.scope)
        if self.keys is None or path in OPEN:
            state["caller"] = self.ledger.caller(None)
            return
        public = dialect_of(path) in ("libretranslate", "deepl")
        found = collect_keys(request, in_query=public, hosts=self.settings.hosts)
        for key in found.keys:
            if (known := self.keys.find(key)) is not None:
                state["caller"] = self.ledger.caller(known)
                return
        if self.settings.open_languages and (request.method, path) == ("GET", "/languages"):
            self.strangers.spend(home_of(request.client.host) if request.client else "")
            state["caller"] = self.ledger.caller(None)
            return
        if public and _has_body(request):
            state["wrong_key"] = bool(found.keys)
            return
        raise self._refusal(request, wrong=bool(found.keys), by_browser=found.by_browser)

    def _refusal(self, request: HTTPConnection, *, wrong: bool, by_browser: bool = False) -> Refusal:
        """No key, or none of ours, in the words and with the status of the dialect."""
        dialect = dialect_of(path_of(request.scope))
        # A browser told 403 would keep the mistyped key for good; told 401 it asks the person again.
        if wrong and not (by_browser and dialect == "native"):
            return Forbidden("Invalid API key", "it is none of this server's, or its time is over")
        if dialect == "libretranslate":
            url = self.settings.key_url
            return NoKey(f"Visit {url} to get an API key" if url else "Please contact the server operator to get an API key")
        if dialect == "deepl":
            return Forbidden("Authorization failure: send the header Authorization: DeepL-Auth-Key KEY")
        return Unauthorized("A key is needed", "Send the header Authorization: Bearer KEY")

    async def _refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {"WWW-Authenticate": CHALLENGE} if isinstance(refusal, Unauthorized) else None
        await send_refusal(refusal, scope, receive, send, headers)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """While the server lives, what was used is written down, and SIGHUP has the keys read again."""
        keeping = asyncio.ensure_future(self.ledger.keep())
        loop = asyncio.get_running_loop()
        if self.keys is not None:
            # Only the main thread of a Unix process hears signals; elsewhere the keys are those of the start.
            with contextlib.suppress(AttributeError, NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(signal.SIGHUP, self.reload)
        try:
            await self.app(scope, receive, send)
        finally:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await keeping
            self.ledger.close()


class NoKey(BadRequest):
    """LibreTranslate says 400 where others say 401."""

    code = "key_needed"


class Unguarded(Forbidden):
    """The route admitted nobody, which is a mistake of ours."""

    code = "unguarded"


class Closing:
    """`Closing` is the way out of a route: without a caller, a refusal may pass and nothing else."""

    def __init__(self, guard: AccessGuard, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard, self._scope, self._receive, self._send = guard, scope, receive, send
        self._withheld = False
        self.status = 0

    async def send(self, message: Message) -> None:
        if self._withheld:
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status < 400:
                try:
                    await self._check()
                except Refusal as refusal:
                    self._withheld, self.status = True, refusal.status
                    await self._guard._refuse(refusal, self._scope, self._receive, self._send)
                    return
        await self._send(message)

    async def _check(self) -> None:
        if "caller" not in self._scope["state"]:
            logger.error("a route answered without asking who is there")
            raise Unguarded("This route did not ask for a key, so its answer was withheld", "Tell the operator.")
        await self._guard.ledger.confirm(self._scope["state"]["caller"])


def _has_body(request: Request) -> bool:
    length = request.headers.get("content-length", "0")
    return "transfer-encoding" in request.headers or length.strip("0") != ""
