"""Files in the LibreTranslate-compatible API: sent, translated, and fetched once by a name that nobody can guess."""

import asyncio

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.compat.answering import File
from limelight.serving.compat.pairs import Pairs, required
from limelight.serving.compat.parameters import Parameters, read_parameters
from limelight.serving.guard import admit
from limelight.serving.refusals import BadRequest, Forbidden, NotFound
from limelight.serving.service import Service
from limelight.serving.uploads import BYTES, SECONDS, Uploads, sample_of


class Files:
    def __init__(self, service: Service, uploads: Uploads, pairs: Pairs) -> None:
        self.service, self.uploads, self.pairs = service, uploads, pairs

    async def translate(self, request: Request) -> Response:
        """Translate a file; the answer says where the translation is, for 15 minutes."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        if not self.service.settings.files:
            raise Forbidden("Files translation are disabled on this server.")
        name, data = _file(parameters)
        source, target = required(parameters, "source", "target")
        known = self.pairs.known(source, target)
        self.uploads.check_room(len(data), caller.name)
        file = File(self.service, request, caller, name, data)
        pair = await self.pairs.find(*known, sample_of(data))
        made = await file.translated(pair.served)
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
