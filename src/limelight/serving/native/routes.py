"""The routes of the native API under /api/v1 tell all that a translator can, in one shape for every answer.

The body is read strictly (`http.body`), validated with the limits of this server (`requests`), paid for by the caller, and then translated.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from importlib.metadata import version as installed_version
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.serving.access.guard import caller_of, confirm_cost
from limelight.serving.http.described_routes import MANY, DescribedRoutes
from limelight.serving.http.disconnect import while_connected
from limelight.serving.middleware.request_log import note
from limelight.serving.native import responses
from limelight.serving.native.events import encode_translated, stream_events
from limelight.serving.native.matches import RecalledTexts, check_memory, recall_texts
from limelight.serving.native.piece_offsets import locate_pieces
from limelight.serving.native.requests import Terms, TranslateRequest, read_request, requests
from limelight.serving.queue.markup import HtmlMarkup
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.refusals import BadRequest, TooLarge
from limelight.text.careful.glossary import Glossary
from limelight.translator import Translator
from limelight.translator.loading import has_torch
from limelight.translator.translation import Translation

TERMS = 16  # of a glossary that is made in the event loop: 20 translations each, 10 ms at most
_NAMES = ["part", "result", "done", "error"]
_EVENT = {
    "type": "object",
    "description": "With stream=true: each event. Its data is one line of JSON.",
    "required": ["event", "data"],
    "properties": {"event": {"enum": _NAMES}, "data": {"type": "string", "maxLength": MANY}},
}
EVENTS = {"text/event-stream": {"schema": _EVENT}}


def router(service: Service) -> APIRouter:
    routes, native = DescribedRoutes(service.settings, "native", "/api/v1"), Native(service)
    add, asked = routes.add, native.asked
    add("POST", "/translate", native.translate, responses.TranslateAnswer, body=asked.translate, content=EVENTS)
    add("POST", "/tokenize", native.tokenize, responses.TokenizeAnswer, body=asked.tokenize)
    add("POST", "/score", native.score, responses.ScoreAnswer, body=asked.score)
    add("POST", "/corrections", native.correct, responses.CorrectionAnswer, body=asked.correct)
    add("GET", "/models", native.models, responses.ModelsAnswer)
    add("GET", "/models/{id}", native.model, responses.ModelAnswer)
    add("GET", "/health", native.health, responses.HealthAnswer)
    return routes.api


class Native:
    """These are the routes. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.asked = requests(service.settings)

    async def translate(self, request: Request) -> Response:
        """Translate one text or several."""
        begin = time.monotonic()
        asked = await read_request(request, self.asked.translate)
        served, texts = self.service.models.pick(asked.source, asked.target, asked.model, asked.tags), asked.texts
        check_memory(self.service, asked, served)
        untaught = {} if served.translator.settings.is_trained else {"zero_shot": True}
        options = self._options(request, asked, served, sum(map(len, texts)))
        if asked.glossary is not None:
            options = replace(options, glossary=await aside(len(asked.glossary), lambda: make_glossary(asked.glossary), TERMS))
        if asked.format == "html":
            found = await while_connected(request, self._html(texts, options))
        else:
            prefixes = asked.prefixes
            if prefixes is not None:
                await aside(weight(prefixes), lambda: _check_prefixes(prefixes, len(texts), served.translator))
            if asked.stream:
                made = self.service.stream(texts, options, prefixes=prefixes)
                encode = partial(encode_translated, result=lambda at, each: responses.result(texts[at], each, asked))
                return await stream_events(request, made, encode, told=untaught)
            recalled, made_now = await while_connected(request, self._recall_or_translate(asked, options))
            found = recalled.join(_results(request, asked, recalled.left, made_now))
        facts: dict[str, Any] = {"model": served.id, "source": served.source, "target": served.target, **untaught}

        def answer() -> Response:
            return JSONResponse({**facts, "results": list(found), "took_ms": _milliseconds(begin)})

        return await aside(asked.nbest * weight(texts), answer)

    async def tokenize(self, request: Request) -> Response:
        """The pieces that a model makes of a text, with their places in it."""
        asked = await read_request(request, self.asked.tokenize)
        served = self._charge(request, asked.model, len(asked.text))
        source, target = served.translator.tokenizers
        tokenizer, steps = source if asked.side == "source" else target, served.translator.settings.normalization

        def answer() -> Response:
            tidy, pieces = locate_pieces(tokenizer, steps, asked.text)
            return JSONResponse({"model": served.id, "text": tidy, "pieces": [asdict(piece) for piece in pieces]})

        return await aside(weight([asked.text]), answer)

    async def score(self, request: Request) -> Response:
        """How probable a given translation is."""
        asked = await read_request(request, self.asked.score)
        served = self._charge(request, asked.model, len(asked.source) + len(asked.target), asked.tags)
        size = weight([asked.source, asked.target])
        await aside(size, lambda: _check_room(served.translator, [asked.source], [asked.target]))
        options = TranslateOptions(served, caller=caller_of(request).name)
        work = self.service.score([asked.source], [asked.target], options)
        scored = (await while_connected(request, work))[0]
        return JSONResponse({"model": served.id, **scored.as_dict()})

    async def correct(self, request: Request) -> Response:
        """Keep a better translation to learn from, if the operator wants corrections."""
        asked = await read_request(request, self.asked.correct)
        served, caller = self.service.models.pick(asked.source, asked.target, asked.model), caller_of(request)
        characters = len(asked.text) + len(asked.correction) + len(asked.translation)
        caller.spend(characters)
        note(request, characters=characters, texts=1, model=served.id)
        await confirm_cost(request)
        return JSONResponse({"id": await self.service.correct(served, asked.text, asked.correction, asked.translation, caller.name)})

    async def models(self) -> Response:
        """The models of this server."""
        known = self.service.models

        def answer() -> Response:
            told = [responses.model(served, known) for served in known.all]
            offers = {"corrections": self.service.keeps_corrections, "memory": self.service.store is not None}
            offers["desk"] = self.service.settings.desk.on and has_torch()
            return JSONResponse({"models": told, "limits": responses.limits(self.service.settings.limits), **offers})

        return await aside(sum(len(served.directions) for served in known.all), answer)

    async def model(self, id: Annotated[str, Path(min_length=1, max_length=255)]) -> Response:
        """One model; multi:en-fr is one in that direction."""
        known = self.service.models
        served = known.by_id(id)
        return await aside(len(served.directions), lambda: JSONResponse(responses.model(served, known)))

    async def health(self) -> Response:
        """Is it ready, and how much waits?"""
        service = self.service
        found = {
            "status": service.state,
            "version": installed_version("limelight"),
            "uptime_s": round(time.monotonic() - service.started, 3),
            "queue": service.pressure()._asdict(),
            "models": [served.id for served in service.models.all],
        }
        return JSONResponse(found, 200 if service.state == "ready" else 503)

    def _options(self, request: Request, asked: TranslateRequest, served: ServedModel, characters: int) -> TranslateOptions:
        search = _search(asked, served.translator.settings.search)
        check_terms(asked.glossary, characters, self.service.settings.limits.glossary_work)
        if asked.format == "html":
            _check_html(asked)
        caller = caller_of(request)
        caller.spend(characters, len(asked.texts))
        note(request, characters=characters, texts=len(asked.texts), model=served.id)
        return TranslateOptions(
            served,
            search=search,
            align=asked.align,
            probabilities=asked.pieces,
            protect=asked.protect,
            segment=asked.segment,
            deadline=self.service.deadline(asked.timeout),
            caller=caller.name,
        )

    def _charge(self, request: Request, model: str | None, characters: int, tags: Sequence[str] = ()) -> ServedModel:
        served = self.service.models.pick(None, None, model, tags)
        caller_of(request).spend(characters)
        note(request, characters=characters, texts=1, model=served.id)
        return served

    async def _recall_or_translate(self, asked: TranslateRequest, options: TranslateOptions) -> tuple[RecalledTexts, list[Translation]]:
        deadline = options.deadline or self.service.deadline()
        recalled = await recall_texts(self.service, (options.served.source, options.served.target), asked, deadline)
        options = options if recalled.told is None else replace(options, matches=recalled.told)
        return recalled, await self.service.translate(recalled.left, options, prefixes=asked.prefixes)

    async def _html(self, texts: Sequence[str], options: TranslateOptions) -> Iterable[dict[str, Any]]:
        html = HtmlMarkup((options.served.source, options.served.target))
        made, _ = await self.service.markup(texts, html, options)
        return (responses.html_result(text, *page) for text, page in zip(texts, made, strict=True))


def _results(request: Request, asked: TranslateRequest, texts: list[str], made: Sequence[Translation]) -> Iterable[dict[str, Any]]:
    """Each is made when it is looked at: many of them not in the event loop."""
    note(request, pieces=sum(each.source_pieces for each in made))
    return (responses.result(text, each, asked) for text, each in zip(texts, made, strict=True))


def _search(asked: TranslateRequest, own: SearchSettings) -> SearchSettings | None:
    """None where nothing is asked for, so that most requests share their batches. More translations need a wider beam."""
    wanted: dict[str, Any] = {}
    if asked.nbest != own.nbest:
        wanted["nbest"] = asked.nbest
        if asked.beam is None and asked.nbest > own.beam:
            wanted["beam"] = -(-asked.nbest // own.groups) * own.groups
    if asked.beam is not None:
        wanted["beam"] = asked.beam
    if asked.length_penalty is not None:
        wanted["length_penalty"] = asked.length_penalty
    try:
        return own.changed(**wanted) if wanted else None
    except ConfigError as error:
        raise BadRequest("; ".join(error.problems), "Change beam or nbest.") from None


def check_terms(glossary: Terms | None, characters: int, most: int) -> None:
    terms = len(glossary or ())
    if terms * characters > most:
        said = f"glossary: {terms:,} terms for {characters:,} characters; terms times characters may be {most:,}"
        raise TooLarge(said, "Send the texts in several requests, or only the terms that occur in them.")


def make_glossary(terms: Terms | None) -> Glossary:
    try:
        return Glossary.of(terms or {})
    except ConfigError as error:
        raise BadRequest("glossary: " + "; ".join(error.problems)) from None


def _check_prefixes(prefixes: Sequence[str], texts: int, translator: Translator) -> None:
    if len(prefixes) != texts:
        raise BadRequest(f"there are {len(prefixes)} prefixes for {texts} texts", "Give one for all, or one for each.")
    _check_room(translator, [], list(dict.fromkeys(prefixes)))


def _check_room(translator: Translator, sources: Sequence[str], targets: Sequence[str]) -> None:
    """A translator cuts what it translates, but cannot cut what it is told to write."""
    room = translator.settings.model.max_length - 1
    if any(not 0 < len(ids) <= room for ids in translator.source_ids(sources)):
        raise BadRequest(f"the source has no pieces, or more than the {room} that the model can look at at once")
    if any(len(ids) >= room for ids in translator.target_ids(targets)):
        raise BadRequest(f"what the translation is to be has more than the {room - 1} pieces that the model can write")


def _check_html(asked: TranslateRequest) -> None:
    """What cannot be done with pages is refused, not left out."""
    unused = {"nbest": asked.nbest > 1, "align": asked.align, "pieces": asked.pieces, "stream": asked.stream}
    unused["prefix"] = asked.prefixes is not None
    if any(unused.values()):
        named = ", ".join(name for name, given in unused.items() if given)
        raise BadRequest(f"{named}: not with format=html", 'Leave it out, or send format="text".')


def _milliseconds(begin: float) -> float:
    return round((time.monotonic() - begin) * 1000, 3)
