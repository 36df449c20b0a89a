"""The DeepL-compatible routes under /v2 translate texts and documents, list languages and tell usage. Glossaries stand beside them.

What cannot be done as asked is refused, never left out in silence; and no bad request is answered with 5xx, for clients would try again.
A document is translated before its sending is answered, so it is done when it is asked after: nothing goes on for a client that has left.
"""

import asyncio
import hmac
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.compat.deepl import schemas
from limelight.serving.compat.deepl.glossaries import TSV, Glossaries
from limelight.serving.compat.deepl.request import (
    FORMAL,
    INFORMAL,
    DeepLRequest,
    formality_of,
    parse_deepl_request,
    refuse_unknown_options,
    source_of,
    target_of,
    tell,
)
from limelight.serving.compat.language_codes import deepl
from limelight.serving.compat.language_pair import PairResolver
from limelight.serving.compat.request_parameters import NameInPath, admit_request
from limelight.serving.compat.translate import FileTranslator, RequestTranslator, TextAnswer
from limelight.serving.compat.uploads import BYTES, SECONDS, StoredFile, Uploads, sample_of
from limelight.serving.http.described_routes import FILE, TEXT, DescribedRoutes
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest, NotFound

NO_LIMIT = 1_000_000_000_000  # characters; clients want a number


def router(service: Service, uploads: Uploads, pairs: PairResolver) -> APIRouter:
    formality = any({FORMAL, INFORMAL} & set(each.tags) for each in service.models.all)
    glossaries, bodies = (
        Glossaries(service, pairs.languages),
        schemas.DeepLBodies(service.settings, formality),
    )
    handlers = DeepLRoutes(service, uploads, pairs, glossaries)
    routes = DescribedRoutes(service.settings, "DeepL-compatible", "/v2")

    def add(method: str, path: str, named: str, handler: Callable[..., Any], answer: Any = None, **others: Any) -> None:
        routes.add(method, path, handler, answer, name=f"deepl_{named}_{method.lower()}", **others)

    def add_both(path: str, named: str, handler: Callable[..., Any], answer: Any, asked: Any = None, **others: Any) -> None:
        """`asked`: what is asked for, in the query of a GET and in the body of a POST."""
        query, body = asked or (None, None)
        add("GET", path, named, handler, answer, query=query, **others)
        add("POST", path, named, handler, answer, body=body, **others)

    add_both("/translate", "translate", handlers.translate, schemas.DeepLAnswer, bodies.translate)
    add_both("/languages", "languages", handlers.languages, schemas.DeepLLanguages, bodies.languages)
    add_both("/usage", "usage", handlers.usage, schemas.UsageAnswer)
    add("GET", "/glossary-language-pairs", "glossary_pairs", glossaries.pairs, schemas.GlossaryPairs)
    add("GET", "/glossaries", "glossaries", glossaries.list, schemas.GlossariesAnswer)
    made = schemas.GlossaryAnswer
    add("POST", "/glossaries", "glossaries", glossaries.create, made, body=bodies.glossary, status=201)
    add("GET", "/glossaries/{id}", "glossary", glossaries.show, made)
    add("DELETE", "/glossaries/{id}", "glossary", glossaries.delete, status=204)
    add("GET", "/glossaries/{id}/entries", "glossary_entries", glossaries.entries, content={TSV: TEXT})
    add("POST", "/document", "document", handlers.document, schemas.DocumentAnswer, body=bodies.document)
    add_both("/document/{id}", "document_status", handlers.status, schemas.DocumentStatus, bodies.key)
    add_both("/document/{id}/result", "document_result", handlers.result, None, bodies.key, content=FILE)
    return routes.api


class DeepLRoutes:
    """These are the routes without glossaries. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service, uploads: Uploads, pairs: PairResolver, glossaries: Glossaries) -> None:
        self.service, self.uploads, self.glossaries = service, uploads, glossaries
        self.known, self.detector = pairs.languages, pairs.detector

    async def translate(self, request: Request) -> Response:
        """Translate texts, each by itself."""
        parameters, caller = await admit_request(request, "auth_key")
        asked = parse_deepl_request(parameters, self.known, self.service.settings.limits)
        glossary = await self.glossaries.find_terms(parameters, caller, asked.source, asked.target)
        answering = RequestTranslator(self.service, request, caller)
        answering.pay_for(asked.texts)
        sources = await self._sources(asked)
        served = [tell(self.known.find_model(source, asked.target), asked.formality) for source in sources]
        size = weight(asked.texts)
        wish = replace(asked.wish, glossary=glossary)
        found = await answering.texts(await aside(size, asked.join_lines), served, wish)
        return await aside(size, lambda: _answer(asked, sources, found))

    async def languages(self, request: Request) -> Response:
        """The languages that texts can be in, or be translated into."""
        parameters, _ = await admit_request(request, "auth_key")
        kind = parameters.text("type") or "source"
        if kind not in ("source", "target"):
            raise BadRequest("Parameter 'type' is invalid. 'source' and 'target' are valid values.")
        if kind == "source":
            found: list[dict[str, Any]] = [{"language": code, "name": named} for code, named in self.known.deepl_sources().items()]
        else:
            found = [
                {"language": code, "name": named, "supports_formality": self._supports_formality(code)}
                for code, named in self.known.deepl_targets().items()
            ]
        return JSONResponse(found)

    async def usage(self, request: Request) -> Response:
        """What this key has used up this month, and how much it may."""
        _, caller = await admit_request(request, "auth_key")
        used = caller.usage()
        limit = NO_LIMIT if used.limit is None else used.limit
        return JSONResponse({"character_count": used.characters, "character_limit": limit})

    async def document(self, request: Request) -> Response:
        """Translate a document."""
        parameters, caller = await admit_request(request, "auth_key")
        if not self.service.settings.files:
            raise NotFound("No documents are translated here.")
        if parameters.file is None or not parameters.file[1]:
            raise BadRequest("Parameter 'file' not specified")
        name, data = parameters.text("filename") or parameters.file[0], parameters.file[1]
        target = target_of(parameters, self.known)
        source = source_of(parameters, self.known, target)
        refuse_unknown_options(parameters)
        formality = formality_of(parameters, self.known, source, target)
        glossary = await self.glossaries.find_terms(parameters, caller, source, target)
        wanted = parameters.text("output_format")
        if wanted and wanted.lower() != PurePosixPath(name).suffix.lower().removeprefix("."):
            raise BadRequest("Parameter 'output_format' is not supported by this server.")
        self.uploads.check_room(len(data), caller.name)
        file = FileTranslator(self.service, request, caller, name, data)
        if source is None:
            [source] = await self._detect([await asyncio.to_thread(sample_of, data)], target)
        made = await file.translate(tell(self.known.find_model(source, target), formality), glossary)
        key = self.uploads.keep(made, name, caller.name, characters=caller.spent)
        asyncio.get_running_loop().call_later(SECONDS + 1, self.uploads.forget_old)
        kept = self.uploads.find(key, caller.name)
        assert kept is not None, "it was put there just now"
        return JSONResponse({"document_id": key, "document_key": kept.secret})

    async def status(self, request: Request, id: NameInPath) -> Response:
        """How far a document is."""
        kept, _ = await self._find_upload(request, id)
        return JSONResponse({"document_id": id, "status": "done", "billed_characters": kept.characters})

    async def result(self, request: Request, id: NameInPath) -> Response:
        """A translated document, once."""
        kept, owner = await self._find_upload(request, id)
        self.uploads.take(id, owner)
        return Response(kept.data, media_type=BYTES, headers={"Content-Disposition": kept.disposition})

    async def _find_upload(self, request: Request, id: str) -> tuple[StoredFile, str]:
        parameters, caller = await admit_request(request, "auth_key")
        kept = self.uploads.find(id, caller.name)
        offered = parameters.text("document_key") or ""
        if kept is None or not hmac.compare_digest(kept.secret.encode(), offered.encode()):
            raise NotFound("Document not found", "It was fetched before, or its time is over.")
        return kept, caller.name

    def _supports_formality(self, code: str) -> bool:
        target = self.known.find(code)
        return target is not None and self.known.knows_tags(None, target, (FORMAL, INFORMAL))

    async def _sources(self, asked: DeepLRequest) -> list[str]:
        """Find the source of each text: as said, or detected among those that can be translated into the target."""
        if asked.source is not None:
            return [asked.source] * len(asked.texts)
        return await self._detect(asked.texts, asked.target)

    async def _detect(self, texts: Sequence[str], target: str) -> list[str]:
        sources = self.known.sources_of(target)
        return [look.source(sources, target).language for look in await asyncio.to_thread(self.detector.look, texts)]


def _answer(asked: DeepLRequest, sources: list[str], found: list[TextAnswer]) -> Response:
    translations: list[dict[str, Any]] = []
    for text, source, answer in zip(asked.texts, sources, found, strict=True):
        entry: dict[str, Any] = {"detected_source_language": deepl(source), "text": answer.text}
        if asked.billed:
            entry["billed_characters"] = len(text)
        if asked.model_type:
            entry["model_type_used"] = "quality_optimized"
        translations.append(entry)
    return JSONResponse({"translations": translations} | ({"data": translations[0]["text"]} if asked.bare else {}))
