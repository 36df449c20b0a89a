"""Documents in the DeepL-compatible API are sent, asked after, and fetched once.

A document is translated before its sending is answered, so it is done when it is asked after: nothing goes on for a client that has left.
"""

import asyncio
import hmac
from pathlib import PurePosixPath

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.access.guard import admit
from limelight.serving.compat.deepl.glossaries import Glossaries
from limelight.serving.compat.deepl.request import refuse_unknown_options, source_of, target_of
from limelight.serving.compat.detect import Detector
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.compat.request_parameters import read_parameters
from limelight.serving.compat.translate import FileTranslator
from limelight.serving.compat.uploads import BYTES, SECONDS, StoredFile, Uploads, sample_of
from limelight.serving.queue.service import Service
from limelight.serving.refusals import BadRequest, NotFound


class DocumentRoutes:
    def __init__(
        self, service: Service, languages: ServedLanguages, uploads: Uploads, detector: Detector, glossaries: Glossaries
    ) -> None:
        self.service, self.known, self.uploads = service, languages, uploads
        self.detector, self.glossaries = detector, glossaries

    async def translate(self, request: Request) -> Response:
        """Translate a document."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("auth_key"))
        if not self.service.settings.files:
            raise NotFound("No documents are translated here.")
        if parameters.file is None or not parameters.file[1]:
            raise BadRequest("Parameter 'file' not specified")
        name, data = parameters.text("filename") or parameters.file[0], parameters.file[1]
        target = target_of(parameters, self.known)
        source = source_of(parameters, self.known, target)
        refuse_unknown_options(parameters)
        glossary = self.glossaries.find_terms(parameters, caller, source, target)
        wanted = parameters.text("output_format")
        if wanted and wanted.lower() != PurePosixPath(name).suffix.lower().removeprefix("."):
            raise BadRequest("Parameter 'output_format' is not supported by this server.")
        self.uploads.check_room(len(data), caller.name)
        file = FileTranslator(self.service, request, caller, name, data)
        if source is None:
            looks = await asyncio.to_thread(self.detector.look, [sample_of(data)])
            source = looks[0].source(self.known.sources_of(target), target).language
        made = await file.translate(self.known.find_model(source, target), glossary)
        key = self.uploads.keep(made, name, caller.name, characters=len(data))
        asyncio.get_running_loop().call_later(SECONDS + 1, self.uploads.forget_old)
        kept = self.uploads.find(key, caller.name)
        assert kept is not None, "it was put there just now"
        return JSONResponse({"document_id": key, "document_key": kept.secret})

    async def status(self, request: Request, id: str) -> Response:
        """How far a document is."""
        kept, _ = await self._find_upload(request, id)
        return JSONResponse({"document_id": id, "status": "done", "billed_characters": kept.characters})

    async def result(self, request: Request, id: str) -> Response:
        """A translated document, once."""
        kept, owner = await self._find_upload(request, id)
        self.uploads.take(id, owner)
        return Response(kept.data, media_type=BYTES, headers={"Content-Disposition": kept.disposition})

    async def _find_upload(self, request: Request, id: str) -> tuple[StoredFile, str]:
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("auth_key"))
        kept = self.uploads.find(id, caller.name)
        offered = parameters.text("document_key") or ""
        if kept is None or not hmac.compare_digest(kept.secret.encode(), offered.encode()):
            raise NotFound("Document not found", "It was fetched before, or its time is over.")
        return kept, caller.name
