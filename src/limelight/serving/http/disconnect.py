"""Work for a client stops when the client leaves."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.types import Receive

Result = TypeVar("Result")


class ClientLeft(Exception):  # noqa: N818 (nothing is broken)
    """Nobody is there to answer."""


async def while_connected(request: Request, work: Coroutine[Any, Any, Result]) -> Result:
    """`work`, unless the client leaves first: then it is cancelled. The body must have been read before."""
    task = asyncio.ensure_future(work)
    leaves = asyncio.ensure_future(wait_for_disconnect(request.receive))
    try:
        waits: set[asyncio.Future[Any]] = {task, leaves}
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientLeft
        return task.result()
    finally:
        leaves.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})  # what it holds, such as a place in the queue, is given back before anything else happens
            task.cancelled() or task.exception()  # nobody is there to be told what went wrong


async def wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
