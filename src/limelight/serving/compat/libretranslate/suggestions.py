"""Suggested translations are appended to a file that `limelight prepare` reads. A line is {"translation": {"en": "...", "de": "..."}}."""

import asyncio
import json
import os
from pathlib import Path

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.access.guard import admit
from limelight.serving.compat.language_pair import AUTO, PairResolver, require
from limelight.serving.compat.request_parameters import read_parameters
from limelight.serving.middleware.request_log import note
from limelight.serving.refusals import BadRequest, Forbidden
from limelight.serving.settings import ServeSettings

LARGEST = 64 << 20  # bytes; what people send must not fill the disk


class Suggestions:
    def __init__(self, settings: ServeSettings, pairs: PairResolver) -> None:
        self.settings, self.pairs = settings, pairs

    async def suggest(self, request: Request) -> Response:
        """Keep a better translation, if the operator wants suggestions."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        place = self.settings.suggestions
        if place is None:
            raise Forbidden("Suggestions are disabled on this server.")
        text, better, source, target = require(parameters, "q", "s", "source", "target")
        most = self.settings.limits.characters
        if (size := max(len(text), len(better))) > most:
            raise BadRequest(f"Invalid request: request ({size}) exceeds text limit ({most})")
        begin, end = self.pairs.resolve(source, target)
        if begin is None:  # what is learnt from must be known, not guessed
            raise BadRequest(f"{AUTO} is not supported")
        if begin == end:
            raise BadRequest("a suggestion is in another language than its text")
        caller.spend(len(text) + len(better))
        note(request, characters=len(text) + len(better), texts=1)
        line = json.dumps({"translation": {begin: text, end: better}}, ensure_ascii=False)
        await asyncio.to_thread(_append, place, line.encode() + b"\n")
        return JSONResponse({"success": True})


def _append(place: Path, line: bytes) -> None:
    """Append in one write, so that lines of several servers do not mix. Others on this machine may not read what people wrote."""
    number = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        if os.fstat(number).st_size + len(line) > LARGEST:
            raise Forbidden("No more suggestions are taken.", "the operator has to move the file away")
        os.write(number, line)
    finally:
        os.close(number)
