"""The pattern of LibreTranslate: every request is translated by itself, one after the other, through the same engine. A server of its own.

    python benchmarks/serve_one_at_a_time.py en-de

The same translator with the same options, the same kind of HTTP server, threads for the requests and a lock around the engine. It has no
queue that refuses, no deadline and no limit.
"""

import json
import socket
import sys
from threading import Lock

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from limelight.translator import Translator


def app(folder: str) -> Starlette:
    translator, alone = Translator.load(folder, threads=1), Lock()

    def translate(text: str) -> str:
        with alone:
            return translator.translate([text], segment=True)[0].text

    async def answer(request: Request) -> JSONResponse:
        text = (await request.json())["q"]
        return JSONResponse({"translatedText": await run_in_threadpool(translate, text)})

    return Starlette(routes=[Route("/translate", answer, methods=["POST"])])


def main() -> None:
    served = app(sys.argv[1])
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"address": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    config = uvicorn.Config(served, log_level="warning", access_log=False, http="httptools", loop="uvloop")
    uvicorn.Server(config).run([listening])


if __name__ == "__main__":
    main()
