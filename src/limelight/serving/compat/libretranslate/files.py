"""Files in the LibreTranslate-compatible API are sent, translated, and fetched once. The name to fetch one by cannot be guessed."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.access.guard import admit
from limelight.serving.compat.language_pair import PairResolver, require
from limelight.serving.compat.request_parameters import Parameters, read_parameters
from limelight.serving.compat.translate import FileTranslator
from limelight.serving.compat.uploads import BYTES, SECONDS, Uploads, sample_of
from limelight.serving.queue.service import Service
from limelight.serving.refusals import BadRequest, Forbidden, NotFound


class Files:
    def __init__(self, service: Service, uploads: Uploads, pairs: PairResolver) -> None:
        self.service, self.uploads, self.pairs = service, uploads, pairs

    async def translate(self, request: Request) -> Response:
        """Translate a file; the answer says where the translation is, for 15 minutes."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        if not self.service.settings.files:
            raise Forbidden("Files translation are disabled on this server.")
        name, data = _file(parameters)
        source, target = require(parameters, "source", "target")
        known = self.pairs.resolve(source, target)
        self.uploads.check_room(len(data), caller.name)
        file = FileTranslator(self.service, request, caller, name, data)
        pair = await self.pairs.find(*known, sample_of(data))
        made = await file.translate(pair.served)
        key = self.uploads.keep(made, name, caller.name)
        asyncio.get_running_loop().call_later(SECONDS + 1, self.uploads.forget_old)
        place = f"{request.url.scheme}://{request.url.netloc}{self.service.settings.prefix}/download_file/{key}"
        return JSONResponse({"translatedFileUrl": place})

    async def download(self, request: Request, name: str) -> Response:
        """A translated file, once."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        kept = self.uploads.take(name, caller.name)
        if kept is None:
            raise NotFound("there is no such file", "it was fetched before, or its time is over: translate it again")
        return Response(kept.data, media_type=BYTES, headers={"Content-Disposition": kept.disposition})


def _file(parameters: Parameters) -> tuple[str, bytes]:
    if parameters.file is None:
        raise BadRequest("Invalid request: missing file parameter")
    name, data = parameters.file
    if not name or not data:
        raise BadRequest("Invalid request: empty file")
    return name, data
