"""The routes of the review cut a document into segments, the worst first, and put reviewed texts back into it.

Nothing is kept between the two: whoever reviews has the document and the texts, and sends both, so that it outlives any server.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.decoding.steps import IsOver
from limelight.documents.archives.archive import ARCHIVES
from limelight.documents.segments import ReviewSegment, list_segments
from limelight.documents.sentences import count_characters
from limelight.documents.translating import TranslatedDocument
from limelight.errors import DeadlineError
from limelight.serving.access.guard import caller_of
from limelight.serving.http.described_routes import DescribedRoutes
from limelight.serving.http.disconnect import while_connected
from limelight.serving.middleware.request_log import note
from limelight.serving.native.requests import read_request
from limelight.serving.native.routes import TERMS, check_terms, make_glossary
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.queue.text_thread import aside
from limelight.serving.refusals import SwitchedOff, TooLarge
from limelight.serving.review import schemas
from limelight.serving.review.schemas import MOST_CHARACTERS, MOST_SEGMENTS
from limelight.text.careful.glossary import Glossary, Term, unmet
from limelight.translator.translation import DIGITS, Translation


def router(service: Service) -> APIRouter:
    routes, review = DescribedRoutes(service.settings, "review", "/api/v1"), ReviewRoutes(service)
    routes.add("POST", "/documents", review.document, schemas.SegmentsAnswer, body=review.bodies[0])
    routes.add("POST", "/documents/file", review.put_back, schemas.ReviewedAnswer, body=review.bodies[1])
    return routes.api


class ReviewRoutes:
    """These are the routes. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service) -> None:
        self.service, self.bodies = service, schemas.review_requests(service.settings)

    async def document(self, request: Request) -> Response:
        """Translate a document, and tell its segments, the worst first."""
        asked = await read_request(request, self.bodies[0])
        served, caller, limits = self._pick(asked, asked.tags), caller_of(request), self.service.settings.limits
        kind, data = asked.kind, await aside(len(asked.data), asked.decode)
        texts = -(-len(data) // limits.characters)
        caller.spend(len(data), texts)
        note(request, characters=len(data), texts=texts, model=served.id)
        glossary = None if asked.glossary is None else await aside(len(asked.glossary), lambda: make_glossary(asked.glossary), TERMS)
        deadline, memory, name = self.service.deadline(), asked.memory, caller.name
        options = TranslateOptions(
            served, probabilities=True, glossary=glossary, check=asked.check, memory=memory, deadline=deadline, caller=name
        )
        facts = {"model": served.id, "source": served.source, "target": served.target}
        terms = served.translator.glossary if glossary is None else glossary
        spend_rest = caller.spend_rest(len(data))

        def admit(sources: Sequence[str]) -> None:
            _check_count(len(sources))
            if kind in ARCHIVES:
                spend_rest(characters := count_characters(sources))
                note(request, characters=max(characters, len(data)))
            check_terms(asked.glossary, sum(map(len, sources)), limits.glossary_work)

        def answer(done: TranslatedDocument) -> Response:
            segments = list_segments(done)
            _check_count(len(segments))
            return JSONResponse({**facts, "left": done.counts.left, "segments": describe_segments(segments, terms, deadline.is_over)})

        return await while_connected(request, self.service.finish_document(data, kind, options, answer, admit))

    async def put_back(self, request: Request) -> Response:
        """Put translations into a document, by the ids of its segments."""
        asked = await read_request(request, self.bodies[1])
        served, kind = self._pick(asked), asked.kind
        caller_of(request).spend(0)
        note(request, texts=1, model=served.id)
        data = await aside(len(asked.data), asked.decode)
        given = await aside(len(asked.segments), lambda: {name: each.read() for name, each in asked.segments.items()})
        languages, deadline = (served.source, served.target), self.service.deadline()
        place = self.service.documents.place(data, kind, languages, given, deadline, lambda sources: _check_count(len(sources)))
        done = await while_connected(request, place)

        def answer() -> Response:
            left = [(each.unit.line, each.notices[0]) for each in done.units if each.confidence is None]
            refused = [{"line": line, **notice._asdict()} for line, notice in left]
            return JSONResponse({"data": base64.b64encode(done.data).decode(), "refused": refused})

        return await aside(len(data), answer)

    def _pick(self, asked: schemas.FileRequest, tags: Sequence[str] = ()) -> ServedModel:
        if not self.service.settings.files:
            raise SwitchedOff("no documents are translated on this server")
        return self.service.models.pick(asked.source, asked.target, asked.model, tags)


def _check_count(segments: int) -> None:
    if segments > MOST_SEGMENTS:
        raise TooLarge(f"the document has {segments:,} segments; {MOST_SEGMENTS:,} are reviewed at once", "Part it.")


def describe_segments(segments: Sequence[ReviewSegment], glossary: Glossary | None, is_over: IsOver) -> list[dict[str, Any]]:
    """`SegmentAnswer`s, as many characters as may be. Of equal texts the terms are looked for once."""
    known: dict[tuple[str, str], tuple[list[dict[str, Any]], int]] = {}
    told, size = [], 0
    for each in segments:
        if is_over():
            raise DeadlineError("the terms of the document were not found in time")
        if (pair := (each.source, each.text)) not in known:
            terms = _find_terms(each, glossary)
            known[pair] = terms, len(json.dumps(terms))
        terms, letters = known[pair]
        size += letters + len(each.source) + len(each.text) + sum(len(reason.message) for reason in each.reasons)
        if size > MOST_CHARACTERS:
            said = f"the segments and their terms have more than {MOST_CHARACTERS:,} characters"
            raise TooLarge(said, "Part the document, or send fewer terms.")
        told.append(_describe(each, terms))
    return told


def _find_terms(each: ReviewSegment, glossary: Glossary | None) -> list[dict[str, Any]]:
    terms: Sequence[Term] = () if glossary is None else glossary.find(each.source)
    lost = set(unmet(terms, each.text))
    return [{"source": term.source, "targets": list(term.targets), "met": term not in lost} for term in terms]


def _describe(each: ReviewSegment, terms: list[dict[str, Any]]) -> dict[str, Any]:
    made = each.result if isinstance(each.result, Translation) else None
    return {
        "id": each.name,
        "line": each.line,
        "source": each.source,
        "text": each.text,
        "confidence": None if made is None else round(made.confidence, DIGITS),
        "unedited": None if made is None or made.unedited is None else round(made.unedited, DIGITS),
        "from_memory": made is not None and made.from_memory,
        "reasons": [reason._asdict() for reason in each.reasons],
        "terms": terms,
    }
