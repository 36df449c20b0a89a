"""The LibreTranslate-compatible routes are /translate, /languages, /detect and what clients need beside them.

Clients compare the sentences of errors, so those are that API's own, in the order in which it checks.
"""

import asyncio
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.documents.document import KINDS
from limelight.serving.access.guard import admit
from limelight.serving.compat.detect import DetectedLanguage, Detector
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.compat.language_pair import AUTO, Pair, PairResolver, require
from limelight.serving.compat.libretranslate.files import Files
from limelight.serving.compat.libretranslate.suggestions import Suggestions
from limelight.serving.compat.request_parameters import Parameters, read_parameters
from limelight.serving.compat.translate import CompatOptions, RequestTranslator, TextAnswer
from limelight.serving.compat.uploads import Uploads
from limelight.serving.queue.markup import HtmlMarkup
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest, Stopping
from limelight.serving.settings import Limits
from limelight.text.language_names import name

DEBOUNCE = 500  # milliseconds that a page waits for the next key
UNKNOWN = DetectedLanguage("en", 0.0)  # what that API says of a text in no language
FORMATS = ("text", "html")


def router(service: Service, uploads: Uploads, detector: Detector | None = None) -> APIRouter:
    """`detector`: one to share with others; its model takes a moment to load."""
    languages = ServedLanguages(service.models)
    pairs = PairResolver(languages, detector or Detector(languages.all))
    texts, files = LibreTranslateRoutes(service, pairs), Files(service, uploads, pairs)
    suggestions = Suggestions(service.settings, pairs)
    api = APIRouter(tags=["LibreTranslate-compatible"])
    api.add_api_route("/translate", texts.translate, methods=["POST"], name="libretranslate_translate")
    api.add_api_route("/languages", texts.languages, methods=["GET"], name="libretranslate_languages")
    api.add_api_route("/detect", texts.detect, methods=["POST"], name="libretranslate_detect")
    api.add_api_route("/frontend/settings", texts.settings, methods=["GET"], name="libretranslate_settings")
    api.add_api_route("/health", texts.health, methods=["GET"], name="libretranslate_health")
    api.add_api_route("/translate_file", files.translate, methods=["POST"], name="libretranslate_translate_file")
    api.add_api_route("/download_file/{name}", files.download, methods=["GET"], name="libretranslate_download_file")
    api.add_api_route("/suggest", suggestions.suggest, methods=["POST"], name="libretranslate_suggest")
    return api


class LibreTranslateRoutes:
    """These are the routes without files. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service, pairs: PairResolver) -> None:
        self.service, self.pairs = service, pairs

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        limits = self.service.settings.limits
        texts, several = _texts(parameters)
        source, target = require(parameters, "source", "target")
        alternatives = _alternatives(parameters, limits)
        _check_size(texts, limits)
        known = self.pairs.resolve(source, target)
        html = _format(parameters) == "html"
        answering = RequestTranslator(self.service, request, caller)
        answering.pay_for(texts)
        pair = await self.pairs.find(*known, "\n".join(texts))
        markup = HtmlMarkup((pair.source, pair.target)) if html else None
        wish = CompatOptions(0 if html else alternatives, markup)
        found = await answering.texts(texts, [pair.served] * len(texts), wish)
        size = (alternatives + 1) * weight(texts)
        return await aside(size, lambda: JSONResponse(_answer(found, several, alternatives > 0, pair)))

    async def languages(self, request: Request) -> Response:
        """The languages of this server, and what each can be translated into."""
        await _check_key(request)
        known = self.pairs.languages
        return JSONResponse(
            # A language can be "translated" into itself: that API says so, and clients take it out again.
            [{"code": code, "name": name(code), "targets": [code, *known.targets_of(code)]} for code in known.all]
        )

    async def detect(self, request: Request) -> Response:
        """The language of a text: up to three, best first, with how sure one can be, up to 100."""
        parameters = await read_parameters(request)
        caller = admit(request, parameters.key("api_key"))
        texts, _ = _texts(parameters)
        _check_size(texts, self.service.settings.limits)
        RequestTranslator(self.service, request, caller).pay(0, len(texts))  # a request, and no translation
        looks = await asyncio.to_thread(self.pairs.detector.look, ["\n".join(texts)])
        return JSONResponse([_format_detected(each) for each in looks[0].best or [UNKNOWN]])

    async def settings(self, request: Request) -> Response:
        """What a page needs to know of this server."""
        await _check_key(request)
        settings = self.service.settings
        target = self.pairs.languages.targets[0]
        return JSONResponse(
            {
                "charLimit": settings.limits.characters,
                "frontendTimeout": DEBOUNCE,
                "apiKeys": settings.keys is not None,
                "keyRequired": settings.keys is not None,
                "suggestions": settings.suggestions is not None,
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
        await _check_key(request)
        if self.service.state != "ready":
            raise Stopping(f"the server is {self.service.state}", retry_after=5.0)
        return JSONResponse({"status": "ok"})


async def _check_key(request: Request) -> None:
    """Also a GET may carry a key in its body, as libretranslatepy's do."""
    admit(request, (await read_parameters(request)).key("api_key"))


def _texts(parameters: Parameters) -> tuple[list[str], bool]:
    """The texts, and whether they came as a list. Only JSON has lists."""
    given = parameters.one("q")
    if not given:  # also 0, which is no text, and an empty list
        raise BadRequest("Invalid request: missing q parameter")
    return parameters.texts("q") if isinstance(given, list) else require(parameters, "q"), isinstance(given, list)


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
