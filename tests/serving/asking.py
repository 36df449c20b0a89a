"""One request to an application, without a server."""

import asyncio
from typing import Any

import httpx


def ask(app: Any, *asked: Any, **more: Any) -> httpx.Response:
    async def one() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            return await client.request(*asked, **more)

    return asyncio.run(one())
