"""Glossaries in the DeepL-compatible API are created, listed, read and deleted, and named by their id."""

import asyncio
import csv
import io
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.errors import ConfigError
from limelight.serving.access.rate_limits import Caller
from limelight.serving.compat.deepl.glossary_store import GlossaryStore, StoredGlossary, pairs_of, terms_of
from limelight.serving.compat.language_codes import ServedLanguages, deepl
from limelight.serving.compat.request_parameters import NameInPath, Parameters, admit_request
from limelight.serving.compat.translate import RequestTranslator
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside
from limelight.serving.refusals import BadRequest, SwitchedOff
from limelight.text.careful.glossary import Glossary

TSV = "text/tab-separated-values"
LONGEST_NAME = 1_024  # characters, as that API has it


class Glossaries:
    """These are the routes of glossaries. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service, languages: ServedLanguages) -> None:
        self.service, self.known = service, languages
        self.store = GlossaryStore(service.settings.state, service.store)

    async def pairs(self, request: Request) -> Response:
        """The pairs of languages that a glossary can be for."""
        await admit_request(request, "auth_key")
        pairs = {(deepl(source), deepl(target)) for source in self.known.sources for target in self.known.targets_of(source)}
        told = [{"source_lang": source.lower(), "target_lang": target.lower()} for source, target in sorted(pairs)]
        return JSONResponse({"supported_languages": told})

    async def create(self, request: Request) -> Response:
        """Keep a glossary, until nobody has used it for a month."""
        parameters, caller = await admit_request(request, "auth_key")
        settings = self.service.settings
        if not settings.knows_callers:
            raise SwitchedOff("Glossaries are kept for keys, and this server asks for none.")
        name, given, kind = (parameters.text(each) for each in ("name", "entries", "entries_format"))
        if not name or not given:
            raise BadRequest(f"Parameter '{'entries' if name else 'name'}' not specified")
        if len(name) > LONGEST_NAME:
            raise BadRequest(f"The name has more than {LONGEST_NAME:,} characters.")
        pair = self._pair(parameters)
        pairs = await aside(len(given), lambda: _pairs(given, kind or "tsv"))
        if len(pairs) > settings.limits.terms:
            raise BadRequest(f"The glossary has {len(pairs):,} entries, and {settings.limits.terms:,} are allowed.")
        RequestTranslator(self.service, request, caller).pay(0, 1)  # a request, and no translation
        try:
            terms = await asyncio.to_thread(terms_of, pairs)
        except ConfigError as error:
            raise BadRequest("The entries cannot be used", "; ".join(error.problems)[:1_000]) from None
        await self.store.settle(caller.name)
        stored = self.store.add(name, pair, terms, caller.name)
        await self.store.settle(caller.name, stored)
        return JSONResponse(_describe_glossary(stored), 201)

    async def list(self, request: Request) -> Response:
        """The glossaries of this key."""
        _, caller = await admit_request(request, "auth_key")
        await self.store.settle(caller.name)
        return JSONResponse({"glossaries": [_describe_glossary(stored) for stored in self.store.of(caller.name)]})

    async def show(self, request: Request, id: NameInPath) -> Response:
        """A glossary, without its entries."""
        _, caller = await admit_request(request, "auth_key")
        await self.store.settle(caller.name)
        return JSONResponse(_describe_glossary(self.store.find(id, caller.name)))

    async def entries(self, request: Request, id: NameInPath) -> Response:
        """The entries of a glossary: source, tab, target in each line."""
        _, caller = await admit_request(request, "auth_key")
        await self.store.settle(caller.name)
        return Response(self.store.find(id, caller.name).file.entries, media_type=TSV)

    async def delete(self, request: Request, id: NameInPath) -> Response:
        """Delete a glossary."""
        _, caller = await admit_request(request, "auth_key")
        await self.store.settle(caller.name)
        self.store.remove(self.store.find(id, caller.name))
        await self.store.settle(caller.name)
        return Response(status_code=204)

    async def find_terms(self, parameters: Parameters, caller: Caller, source: str | None, target: str) -> Glossary | None:
        """The terms that a translation names by their id. It has to say its source language, and the glossary has to be for that pair."""
        id = parameters.text("glossary_id")
        if not id:
            return None
        if source is None:
            raise BadRequest("Parameter 'glossary_id' needs 'source_lang'.")
        await self.store.settle(caller.name)
        stored = self.store.use(id, caller.name)
        await self.store.settle_use(caller.name)
        of = stored.file.source, stored.file.target
        if (deepl(source), deepl(target)) != (deepl(of[0]), deepl(of[1])):
            raise BadRequest(f"The glossary is for {deepl(of[0])} to {deepl(of[1])}, and not for these languages.")
        return stored.terms

    def _pair(self, parameters: Parameters) -> tuple[str, str]:
        source, target = (self.known.find(parameters.text(f"{side}_lang") or "") for side in ("source", "target"))
        if source is None or target is None or self.known.find_model(source, target) is None:
            raise BadRequest("Value for 'source_lang' or 'target_lang' not supported.", "GET /v2/glossary-language-pairs")
        return source, target


def _pairs(given: str, kind: str) -> list[tuple[str, str]]:
    if kind == "tsv":
        return list(pairs_of(given.replace("\r\n", "\n")))
    if kind != "csv":
        raise BadRequest("Value for 'entries_format' not supported.")
    try:
        rows = [row for row in csv.reader(io.StringIO(given, newline=""), strict=True) if row]
    except csv.Error:
        raise BadRequest("The entries are not well-formed CSV.") from None
    if any(len(row) < 2 for row in rows):
        raise BadRequest("A line of the entries has no target.")
    return [(row[0], row[1]) for row in rows]  # the languages may follow, which are those of the glossary


def _describe_glossary(stored: StoredGlossary) -> dict[str, Any]:
    file = stored.file
    return {
        "glossary_id": file.id,
        "name": file.name,
        "ready": True,
        "source_lang": deepl(file.source).lower(),
        "target_lang": deepl(file.target).lower(),
        "creation_time": file.created,
        "entry_count": file.entries.count("\n"),
    }
