"""The LibreTranslate-compatible routes are /translate, /languages, /detect and what clients need beside them.

Clients compare the sentences of errors, so those are that API's own, in the order in which it checks. A translated file is fetched once, by
a name that cannot be guessed. Suggestions are appended to a file that `limelight prepare` reads, each as a line
{"translation": {"en": "...", "de": "..."}}.
"""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast, get_args

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.documents.kinds import KINDS
from limelight.errors import ConfigError
from limelight.serving.access.guard import confirm_cost
from limelight.serving.compat.detect import DetectedLanguage
from limelight.serving.compat.language_pair import AUTO, Pair, PairResolver, require
from limelight.serving.compat.libretranslate import schemas
from limelight.serving.compat.request_parameters import NameInPath, Parameters, admit_request
from limelight.serving.compat.translate import CompatOptions, FileTranslator, RequestTranslator, TextAnswer
from limelight.serving.compat.uploads import BYTES, SECONDS, Uploads, sample_of
from limelight.serving.http.described_routes import FILE, DescribedRoutes
from limelight.serving.middleware.request_log import note
from limelight.serving.queue.markup import HtmlMarkup
from limelight.serving.queue.served_model import MOST_TAGS, ServedModel
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest, NotFound, Stopping, SwitchedOff
from limelight.serving.settings import Limits, MemoryUse
from limelight.text.language_names import name

DEBOUNCE = 500  # milliseconds that a page waits for the next key
UNKNOWN = DetectedLanguage("en", 0.0)  # what that API says of a text in no language
FORMATS = ("text", "html")
LARGEST = 64 << 20  # bytes of suggestions; what people send must not fill the disk


def router(service: Service, uploads: Uploads, pairs: PairResolver) -> APIRouter:
    handlers, bodies = LibreTranslateRoutes(service, uploads, pairs), schemas.LibreTranslateBodies(service.settings)
    routes = DescribedRoutes(service.settings, "LibreTranslate-compatible")

    def add(method: str, path: str, handler: Callable[..., Any], answer: Any = None, **others: Any) -> None:
        routes.add(method, path, handler, answer, name=f"libretranslate_{handler.__name__}", **others)

    add("POST", "/translate", handlers.translate, schemas.TranslatedTextAnswer, body=bodies.translate)
    add("GET", "/languages", handlers.languages, schemas.Languages)
    add("POST", "/detect", handlers.detect, schemas.Guesses, body=bodies.detect)
    add("GET", "/frontend/settings", handlers.settings, schemas.FrontendAnswer)
    add("GET", "/health", handlers.health, schemas.ReadyAnswer)
    add("POST", "/translate_file", handlers.translate_file, schemas.TranslatedFileAnswer, body=bodies.file)
    add("GET", "/download_file/{name}", handlers.download_file, content=FILE)
    add("POST", "/suggest", handlers.suggest, schemas.SuggestAnswer, body=bodies.suggest)
    return routes.api


class LibreTranslateRoutes:
    """These are the routes. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service, uploads: Uploads, pairs: PairResolver) -> None:
        self.service, self.uploads, self.pairs = service, uploads, pairs

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        parameters, caller = await admit_request(request, "api_key")
        limits = self.service.settings.limits
        texts, several = _texts(parameters)
        source, target = require(parameters, "source", "target")
        alternatives, memory = _alternatives(parameters, limits), _memory(parameters)
        _check_size(texts, limits)
        known = self.pairs.resolve(source, target)
        html = _format(parameters) == "html"
        answering = RequestTranslator(self.service, request, caller)
        answering.pay_for(texts)
        pair = await self.pairs.find(*known, "\n".join(texts))
        markup = HtmlMarkup((pair.source, pair.target)) if html else None
        wish = CompatOptions(0 if html else alternatives, markup, memory=memory)
        found = await answering.texts(texts, [_tell(pair.served, parameters)] * len(texts), wish)
        size = (alternatives + 1) * weight(texts)
        return await aside(size, lambda: JSONResponse(_answer(found, several, alternatives > 0, pair)))

    async def languages(self, request: Request) -> Response:
        """The languages of this server, and what each can be translated into."""
        await admit_request(request, "api_key")
        known = self.pairs.languages
        return JSONResponse(
            # A language can be "translated" into itself: that API says so, and clients take it out again.
            [{"code": code, "name": name(code), "targets": [code, *known.targets_of(code)]} for code in known.all]
        )

    async def detect(self, request: Request) -> Response:
        """The language of a text: up to three, best first, with how sure one can be, up to 100."""
        parameters, caller = await admit_request(request, "api_key")
        texts, _ = _texts(parameters)
        _check_size(texts, self.service.settings.limits)
        RequestTranslator(self.service, request, caller).pay(0, len(texts))  # a request, and no translation
        looks = await asyncio.to_thread(self.pairs.detector.look, ["\n".join(texts)])
        return JSONResponse([_format_detected(each) for each in looks[0].best or [UNKNOWN]])

    async def settings(self, request: Request) -> Response:
        """What a page needs to know of this server."""
        await admit_request(request, "api_key")
        settings = self.service.settings
        target = self.pairs.languages.targets[0]
        return JSONResponse(
            {
                "charLimit": settings.limits.characters,
                "frontendTimeout": DEBOUNCE,
                "apiKeys": settings.keys is not None,
                "keyRequired": settings.keys is not None,
                "suggestions": settings.suggestions is not None or self.service.keeps_corrections,
                "filesTranslation": settings.files,
                "supportedFilesFormat": [f".{kind}" for kind in KINDS],
                "language": {
                    "source": {"code": AUTO, "name": "Auto Detect"},
                    "target": {"code": target, "name": name(target)},
                },
            }
        )

    async def health(self, request: Request) -> Response:
        """Is the server ready?"""
        await admit_request(request, "api_key")
        if self.service.state != "ready":
            raise Stopping(f"the server is {self.service.state}", retry_after=5.0)
        return JSONResponse({"status": "ok"})

    async def translate_file(self, request: Request) -> Response:
        """Translate a file; the answer says where the translation is, for 15 minutes."""
        parameters, caller = await admit_request(request, "api_key")
        settings = self.service.settings
        if not settings.files:
            raise SwitchedOff("Files translation are disabled on this server.")
        name, data = _file(parameters)
        memory, check = _memory(parameters), parameters.flag("check")
        known = self.pairs.resolve(*require(parameters, "source", "target"))
        self.uploads.check_room(len(data), caller.name)
        file = FileTranslator(self.service, request, caller, name, data)
        pair = await self.pairs.find(*known, await asyncio.to_thread(sample_of, data))
        made = await file.translate(_tell(self._named(pair.served, parameters), parameters), memory=memory, check=check)
        if self.service.state == "draining":  # nobody could fetch it any more
            raise Stopping("the server is draining", "send the file again in a moment", retry_after=5.0)
        key = self.uploads.keep(made, name, caller.name)
        asyncio.get_running_loop().call_later(SECONDS + 1, self.uploads.forget_old)
        place = f"{request.url.scheme}://{request.url.netloc}{settings.prefix}/download_file/{key}"
        return JSONResponse({"translatedFileUrl": place})

    def _named(self, served: ServedModel | None, parameters: Parameters) -> ServedModel | None:
        """The model that is named, in the same direction. That API names none; here the page does, where it has several."""
        model = parameters.text("model")
        return served if served is None or model is None else self.service.models.pick(served.source, served.target, model)

    async def download_file(self, request: Request, name: NameInPath) -> Response:
        """A translated file, once."""
        _, caller = await admit_request(request, "api_key")
        kept = self.uploads.take(name, caller.name)
        if kept is None:
            raise NotFound("there is no such file", "it was fetched before, or its time is over: translate it again")
        return Response(kept.data, media_type=BYTES, headers={"Content-Disposition": kept.disposition})

    async def suggest(self, request: Request) -> Response:
        """Keep a better translation, if the operator wants suggestions."""
        parameters, caller = await admit_request(request, "api_key")
        place, keeps = self.service.settings.suggestions, self.service.keeps_corrections
        if place is None and not keeps:
            raise SwitchedOff("Suggestions are disabled on this server.")
        text, better, source, target = require(parameters, "q", "s", "source", "target")
        _check_size([max(text, better, key=len)], self.service.settings.limits)
        begin, end = self.pairs.resolve(source, target)
        if begin is None:  # what is learnt from must be known, not guessed
            raise BadRequest(f"{AUTO} is not supported")
        if begin == end:
            raise BadRequest("a suggestion is in another language than its text")
        caller.spend(len(text) + len(better))
        note(request, characters=len(text) + len(better), texts=1)
        await confirm_cost(request)
        served = self.pairs.languages.find_model(begin, end)
        if keeps and served is not None:
            await self.service.correct(served, text, better, "", caller.name)
        elif place is not None:
            line = json.dumps({"translation": {begin: text, end: better}}, ensure_ascii=False)
            await asyncio.to_thread(_append, place, line.encode() + b"\n")
        else:
            raise BadRequest(f"{source} is not translated into {target} here")
        return JSONResponse({"success": True})


def _tell(served: ServedModel | None, parameters: Parameters) -> ServedModel | None:
    """The same model, told the tags that are asked for. That API has none; here the page sends them with a file."""
    tags = parameters.texts("tags")
    if served is None or not tags:
        return served
    if len(tags) > MOST_TAGS:
        raise BadRequest(f"Invalid request: there are {len(tags)} tags, at most {MOST_TAGS} are told")
    try:
        return served.turn(served.direction, tags)
    except ConfigError as error:
        raise BadRequest(f"Invalid request: {error}") from None


def _texts(parameters: Parameters) -> tuple[list[str], bool]:
    """The texts, and whether they came as a list. Only JSON has lists."""
    given = parameters.one("q")
    if not given:  # also 0, which is no text, and an empty list
        raise BadRequest("Invalid request: missing q parameter")
    return parameters.texts("q") if isinstance(given, list) else require(parameters, "q"), isinstance(given, list)


def _memory(parameters: Parameters) -> MemoryUse | None:
    """That API has none; our own page and programs ask for it."""
    asked = parameters.text("memory") or ""
    if asked not in ("", *get_args(MemoryUse)):
        raise BadRequest("Invalid request: memory parameter is neither empty nor use nor tell")
    return cast(MemoryUse, asked) or None


def _alternatives(parameters: Parameters, limits: Limits) -> int:
    given = parameters.one("alternatives")
    if given is None:
        return 0
    try:
        if not isinstance(given, str | int | float) or isinstance(given, bool):
            raise ValueError
        wanted = max(0, int(given))
    except ValueError:
        raise BadRequest("Invalid request: alternatives parameter is not a number") from None
    if wanted > limits.alternatives:
        raise BadRequest(f"Invalid request: alternatives parameter must be <= {limits.alternatives}")
    return wanted


def _check_size(texts: list[str], limits: Limits) -> None:
    """Too many, or one of them too long: that API says both with the same words."""
    sizes = [(len(texts), limits.texts), *((len(text), limits.characters) for text in texts)]
    for size, most in sizes:
        if size > most:
            raise BadRequest(f"Invalid request: request ({size}) exceeds text limit ({most})")


def _format(parameters: Parameters) -> str:
    wanted = parameters.text("format") or "text"
    if wanted not in FORMATS:
        raise BadRequest(f"{wanted[:40]} format is not supported")
    return wanted


def _answer(found: list[TextAnswer], several: bool, with_alternatives: bool, pair: Pair) -> dict[str, Any]:
    """Answer in the shape in which `q` came."""
    answer: dict[str, Any] = {"translatedText": [each.text for each in found] if several else found[0].text}
    if with_alternatives:
        answer["alternatives"] = [each.alternatives for each in found] if several else found[0].alternatives
    if pair.detected is not None:
        detected = _format_detected(pair.detected)
        answer["detectedLanguage"] = [detected] * len(found) if several else detected
    return answer


def _format_detected(detected: DetectedLanguage) -> dict[str, Any]:
    return {"confidence": round(100 * detected.confidence, 1), "language": detected.language}


def _file(parameters: Parameters) -> tuple[str, bytes]:
    if parameters.file is None:
        raise BadRequest("Invalid request: missing file parameter")
    name, data = parameters.file
    if not name or not data:
        raise BadRequest("Invalid request: empty file")
    return name, data


def _append(place: Path, line: bytes) -> None:
    """Append in one write, so that lines of several servers do not mix. Others on this machine may not read what people wrote."""
    number = os.open(place, os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        if os.fstat(number).st_size + len(line) > LARGEST:
            raise SwitchedOff("No more suggestions are taken.", "the operator has to move the file away")
        os.write(number, line)
    finally:
        os.close(number)
