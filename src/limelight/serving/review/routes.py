"""The routes of the review cut a document into segments, the worst first, and put reviewed texts back into it.

Nothing is kept between the two: whoever reviews has the document and the texts, and sends both, so that it outlives any server.
"""

import base64
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.documents.segments import ReviewSegment, list_segments
from limelight.serving.access.guard import caller_of
from limelight.serving.http.described_routes import DescribedRoutes
from limelight.serving.http.disconnect import while_connected
from limelight.serving.middleware.request_log import note
from limelight.serving.native.requests import read_request
from limelight.serving.native.routes import check_terms, make_glossary
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service, TranslateOptions
from limelight.serving.queue.text_thread import aside
from limelight.serving.refusals import Forbidden, TooLarge
from limelight.serving.review import schemas
from limelight.serving.review.schemas import MOST_SEGMENTS
from limelight.text.careful.glossary import Glossary, Term, unmet
from limelight.translator.translation import DIGITS, Translation


def router(service: Service) -> APIRouter:
    routes, review = DescribedRoutes(service.settings, "review", "/api/v1"), ReviewRoutes(service)
    routes.add("POST", "/documents", review.document, schemas.SegmentsAnswer, body=review.bodies[0])
    routes.add("POST", "/documents/file", review.reviewed, schemas.ReviewedAnswer, body=review.bodies[1])
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
        check_terms(asked.glossary, len(data), limits.glossary_work)
        texts = -(-len(data) // limits.characters)
        caller.spend(len(data), texts)
        note(request, characters=len(data), texts=texts, model=served.id)
        glossary = None if asked.glossary is None else await aside(len(data), lambda: make_glossary(asked.glossary))
        memory, name = asked.memory == "use", caller.name
        options = TranslateOptions(served, probabilities=True, glossary=glossary, check=asked.check, memory=memory, caller=name)
        done = await while_connected(request, self.service.document(data, kind, options, MOST_SEGMENTS))
        facts = {"model": served.id, "source": served.source, "target": served.target, "left": done.counts.left}
        terms = served.translator.glossary if glossary is None else glossary

        def answer() -> Response:
            segments = list_segments(done)
            if len(segments) > MOST_SEGMENTS:
                raise TooLarge(f"the document has {len(segments):,} segments; {MOST_SEGMENTS:,} are reviewed at once", "Part it.")
            return JSONResponse({**facts, "segments": [_segment(each, terms) for each in segments]})

        return await aside(len(data), answer)

    async def reviewed(self, request: Request) -> Response:
        """Put translations into a document, by the ids of its segments."""
        asked = await read_request(request, self.bodies[1])
        served, kind = self._pick(asked), asked.kind
        caller_of(request).spend(0)
        note(request, texts=1, model=served.id)
        data = await aside(len(asked.data), asked.decode)
        given = await aside(len(asked.segments), lambda: {name: each.read() for name, each in asked.segments.items()})
        place = self.service.documents.place(data, kind, (served.source, served.target), given, self.service.deadline(), MOST_SEGMENTS)
        done = await while_connected(request, place)

        def answer() -> Response:
            left = [(each.unit.line, each.notices[0]) for each in done.units if each.confidence is None]
            refused = [{"line": line, **notice._asdict()} for line, notice in left]
            return JSONResponse({"data": base64.b64encode(done.data).decode(), "refused": refused})

        return await aside(len(data), answer)

    def _pick(self, asked: schemas.FileRequest, tags: Sequence[str] = ()) -> ServedModel:
        if not self.service.settings.files:
            raise Forbidden("no documents are translated on this server")
        return self.service.models.pick(asked.source, asked.target, asked.model, tags)


def _segment(each: ReviewSegment, glossary: Glossary | None) -> dict[str, Any]:
    """A `SegmentAnswer`."""
    made = each.result if isinstance(each.result, Translation) else None
    terms: Sequence[Term] = () if glossary is None else glossary.find(each.source)
    lost = unmet(terms, each.text)
    return {
        "id": each.name,
        "line": each.line,
        "source": each.source,
        "text": each.text,
        "confidence": None if made is None else round(made.confidence, DIGITS),
        "unedited": None if made is None or made.unedited is None else round(made.unedited, DIGITS),
        "from_memory": made is not None and made.from_memory,
        "reasons": [reason._asdict() for reason in each.reasons],
        "terms": [{"source": term.source, "targets": list(term.targets), "met": term not in lost} for term in terms],
    }
