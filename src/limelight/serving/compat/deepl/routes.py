"""The DeepL-compatible routes under /v2 translate, list languages and tell usage. Documents and glossaries stand beside them.

What cannot be done as asked is refused, never left out in silence; and no bad request is answered with 5xx, for clients would try again.
"""

import asyncio
from dataclasses import replace
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.serving.access.guard import admit
from limelight.serving.access.rate_limits import Caller
from limelight.serving.compat.deepl.documents import DocumentRoutes
from limelight.serving.compat.deepl.glossaries import Glossaries
from limelight.serving.compat.deepl.request import DeepLRequest, parse_deepl_request
from limelight.serving.compat.detect import Detector
from limelight.serving.compat.language_codes import ServedLanguages, deepl
from limelight.serving.compat.request_parameters import Parameters, read_parameters
from limelight.serving.compat.translate import RequestTranslator, TextAnswer
from limelight.serving.compat.uploads import Uploads
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest

NO_LIMIT = 1_000_000_000_000  # characters; clients want a number


def router(service: Service, uploads: Uploads | None = None, detector: Detector | None = None) -> APIRouter:
    """`detector`: one to share with others; its model takes a moment to load."""
    languages = ServedLanguages(service.models)
    glossaries = Glossaries(service, languages)
    texts = DeepLRoutes(service, languages, detector or Detector(languages.all), glossaries)
    documents = DocumentRoutes(service, languages, uploads or Uploads(), texts.detector, glossaries)
    api = APIRouter(prefix="/v2", tags=["DeepL-compatible"])
    both = ["GET", "POST"]

    def add(path: str, route: Any, methods: list[str], named: str) -> None:
        for method in methods:  # apart, so that each has a name of its own in the description
            api.add_api_route(path, route, methods=[method], name=f"deepl_{named}_{method.lower()}")

    add("/translate", texts.translate, both, "translate")
    add("/languages", texts.languages, both, "languages")
    add("/usage", texts.usage, both, "usage")
    add("/glossary-language-pairs", glossaries.pairs, ["GET"], "glossary_pairs")
    add("/glossaries", glossaries.list, ["GET"], "glossaries")
    add("/glossaries", glossaries.create, ["POST"], "glossaries")
    add("/glossaries/{id}", glossaries.show, ["GET"], "glossary")
    add("/glossaries/{id}", glossaries.delete, ["DELETE"], "glossary")
    add("/glossaries/{id}/entries", glossaries.entries, ["GET"], "glossary_entries")
    add("/document", documents.translate, ["POST"], "document")
    add("/document/{id}", documents.status, both, "document_status")
    add("/document/{id}/result", documents.result, both, "document_result")
    return api


class DeepLRoutes:
    """These are the routes without documents. Each says in one line what it does; FastAPI shows it."""

    def __init__(
        self, service: Service, languages: ServedLanguages, detector: Detector, glossaries: Glossaries
    ) -> None:
        self.service, self.known, self.detector, self.glossaries = service, languages, detector, glossaries

    async def translate(self, request: Request) -> Response:
        """Translate texts, each by itself."""
        parameters, caller = await admit_request(request)
        asked = parse_deepl_request(parameters, self.known, self.service.settings.limits)
        glossary = self.glossaries.find_terms(parameters, caller, asked.source, asked.target)
        answering = RequestTranslator(self.service, request, caller)
        answering.pay_for(asked.texts)
        sources = await self._sources(asked)
        served = [self.known.find_model(source, asked.target) for source in sources]
        size = weight(asked.texts)
        wish = replace(asked.wish, glossary=glossary)
        found = await answering.texts(await aside(size, asked.join_lines), served, wish)
        return await aside(size, lambda: _answer(asked, sources, found))

    async def languages(self, request: Request) -> Response:
        """The languages that texts can be in, or be translated into."""
        parameters, _ = await admit_request(request)
        kind = parameters.text("type") or "source"
        if kind not in ("source", "target"):
            raise BadRequest("Parameter 'type' is invalid. 'source' and 'target' are valid values.")
        if kind == "source":
            found: list[dict[str, Any]] = [
                {"language": code, "name": named} for code, named in self.known.deepl_sources().items()
            ]
        else:
            found = [
                {"language": code, "name": named, "supports_formality": False}
                for code, named in self.known.deepl_targets().items()
            ]
        return JSONResponse(found)

    async def usage(self, request: Request) -> Response:
        """What this key has used up this month, and how much it may."""
        _, caller = await admit_request(request)
        used = caller.usage()
        limit = NO_LIMIT if used.limit is None else used.limit
        return JSONResponse({"character_count": used.characters, "character_limit": limit})

    async def _sources(self, asked: DeepLRequest) -> list[str]:
        """Find the source of each text: as said, or detected among those that can be translated into the target."""
        if asked.source is not None:
            return [asked.source] * len(asked.texts)
        sources = self.known.sources_of(asked.target)
        looks = await asyncio.to_thread(self.detector.look, asked.texts)
        return [look.source(sources, asked.target).language for look in looks]


def _answer(asked: DeepLRequest, sources: list[str], found: list[TextAnswer]) -> Response:
    translations: list[dict[str, Any]] = []
    for text, source, answer in zip(asked.texts, sources, found, strict=True):
        entry: dict[str, Any] = {"detected_source_language": deepl(source), "text": answer.text}
        if asked.billed:
            entry["billed_characters"] = len(text)
        if asked.model_type:
            entry["model_type_used"] = "quality_optimized"
        translations.append(entry)
    return JSONResponse({"translations": translations})


async def admit_request(request: Request) -> tuple[Parameters, Caller]:
    """Read parameters, also from the body of a GET; the key also from a parameter, as it was long ago."""
    parameters = await read_parameters(request)
    return parameters, admit(request, parameters.key("auth_key"))
