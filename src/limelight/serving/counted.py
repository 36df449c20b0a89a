"""Around all routes: a request counts from the moment it comes to the end of its answer, however often it translates in between. What was
let in is finished; what comes when the server stops is refused.
"""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from limelight.serving.dialects import answer
from limelight.serving.observed import note_refusal
from limelight.serving.paths import path_of
from limelight.serving.refusals import Stopping
from limelight.serving.under_way import UnderWay

ALWAYS = ("/healthz", "/readyz", "/metrics", "/api/v1/health")  # also while it stops


class Counted:
    """Around all routes."""

    def __init__(self, app: ASGIApp, under_way: UnderWay) -> None:
        self.app, self.under_way = app, under_way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or path_of(scope) in ALWAYS:
            await self.app(scope, receive, send)
        elif self.under_way.refuses:
            refusal = Stopping(
                "the server is stopping", "send it to another one, or again in a moment", retry_after=5.0
            )
            note_refusal(Request(scope), refusal)
            await answer(path_of(scope), refusal)(scope, receive, send)
        else:
            self.under_way.add(1)
            try:
                await self.app(scope, receive, send)
            finally:
                self.under_way.add(-1)
