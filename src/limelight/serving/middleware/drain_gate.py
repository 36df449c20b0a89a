"""The drain gate counts each request until its answer ends, and refuses new ones when the server stops. A request counts once, however
often it translates in between. What was let in is finished.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.serving.http.error_dialects import path_of
from limelight.serving.middleware.request_log import send_refusal
from limelight.serving.queue.in_flight import InFlight
from limelight.serving.refusals import Stopping

ALWAYS = ("/healthz", "/readyz", "/metrics", "/api/v1/health")  # also while it stops


class DrainGate:
    """The gate stands around all routes but those in `ALWAYS`."""

    def __init__(self, app: ASGIApp, under_way: InFlight) -> None:
        self.app, self.under_way = app, under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_of(scope) in ALWAYS:
            await self.app(scope, receive, send)
        elif self.under_way.refuses:
            refusal = Stopping("the server is stopping", "send it to another one, or again in a moment", retry_after=5.0)
            await send_refusal(refusal, scope, receive, send)
        else:
            self.under_way.add(1)
            try:
                await self.app(scope, receive, send)
            finally:
                self.under_way.add(-1)
