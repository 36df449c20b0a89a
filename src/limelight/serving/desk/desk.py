"""The handlers of the lighting desk make traces, files of them, and rankings of heads. They also serve the probes that training left;
all are under /api/v1.

A trace counts for its caller as a translation does. It is made in a thread beside the event loop, written as JSON there too, and thrown
away: who asks for another part of it names it, and it is made again.
"""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from limelight.decoding.steps import IsOver
from limelight.inspection.trace import Trace
from limelight.inspection.wire.arrays import Encoding
from limelight.inspection.wire.trace_json import as_json
from limelight.serving.access.guard import caller_of
from limelight.serving.desk.files import TYPES, file_of
from limelight.serving.desk.importance import HeadRankings, make_importance_task, rank_heads
from limelight.serving.desk.probes import probe, probes
from limelight.serving.desk.requests import ExportRequest, TraceRequest, desk_requests
from limelight.serving.desk.trace_pool import DeskPool, TraceInputs, new_name
from limelight.serving.http.compression import json_answer
from limelight.serving.http.disconnect import while_connected
from limelight.serving.middleware.request_log import note
from limelight.serving.native.events import format_event, stream_events
from limelight.serving.native.requests import read_request
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import Service
from limelight.serving.queue.text_thread import aside, weight
from limelight.serving.queue.work import Deadline
from limelight.serving.refusals import BadRequest

Id = Annotated[str, Path(min_length=1, max_length=64)]
Numbers = Annotated[str | None, Query(max_length=4_000, pattern=r"^[0-9]{1,3}(,[0-9]{1,3})*$")]
Parts = Annotated[str | None, Query(max_length=16_000, pattern=r"^[a-z0-9_.]{1,40}(,[a-z0-9_.]{1,40})*$")]
LOOKS = 60.0  # seconds between two looks for what is kept no longer
STAGES = "stages"  # may stand among the parts, for those that are named beside them
ModelName = Annotated[str | None, Query(max_length=255)]


@dataclass(frozen=True)
class TraceResponse:
    response: Response
    pieces: int


class Desk:
    """These are the handlers of the routes. Each says in one line what it does; FastAPI shows it."""

    def __init__(self, service: Service) -> None:
        self.service, self.settings = service, service.settings.desk
        self.asked = desk_requests(service.settings)
        self.traces = DeskPool("trace", self.settings.at_once, self.settings.waiting)
        self.rankings = HeadRankings(self.settings.jobs, lambda: service.under_way.draining)
        self.inputs = TraceInputs(self.settings.kept)
        self._forgetting: asyncio.TimerHandle | None = None

    async def trace(self, request: Request) -> Response:
        """Translate a sentence and see how: pieces, probabilities, the attention of every head, the search."""
        asked = await read_request(request, self.asked.trace)
        served, owner = self._pick_model(asked.model, asked.tags), caller_of(request).name
        name, before = new_name(), new_name()
        changed, deadline = False, self.service.deadline()

        def answer(trace: Trace) -> Response:
            nonlocal changed
            changed = asked.changes.any()
            beside = None if changed else translation_beside(served, asked, trace, deadline.left)
            return self._answer(request, trace, asked, name, before, beside)

        response = await self._run_trace(request, served, asked, answer, deadline)
        if changed:
            self.inputs.keep(owner, before, served, asked.model_copy(update={"interventions": None}))
        self.inputs.keep(owner, name, served, asked, before)
        self._forget_in_time()
        return response

    def _forget_in_time(self) -> None:
        """Whatever comes after: texts, and a model that is in use no longer, are not kept beyond their time."""
        if self._forgetting is None and len(self.inputs):
            self._forgetting = asyncio.get_running_loop().call_later(LOOKS, self._forget)

    def _forget(self) -> None:
        self._forgetting = None
        self.inputs.forget_old()
        self._forget_in_time()

    async def again(
        self,
        request: Request,
        id: Id,
        include: Parts = None,
        stages: Parts = None,
        layers: Numbers = None,
        heads: Numbers = None,
        encoding: Encoding | None = None,
    ) -> Response:
        """Other parts of a trace that was made before; all of it if none are named."""
        kept = self.inputs.find(id, caller_of(request).name)
        parts = [] if include is None else [each for each in include.split(",") if each != STAGES]
        parts += [] if stages is None else stages.split(",")
        wanted: dict[str, Any] = {
            "include": None if include is None and stages is None else parts,
            "encoding": encoding,
        }
        wanted |= {"layers": _numbers(layers), "heads": _numbers(heads)}
        asked = kept.asked.model_copy(update={name: value for name, value in wanted.items() if value is not None})

        def answer(trace: Trace) -> Response:
            return self._answer(request, trace, asked, id, kept.before)

        return await self._run_trace(request, kept.served, asked, answer)

    async def export(self, request: Request) -> Response:
        """A trace that was made before as a file."""
        wanted: ExportRequest = await read_request(request, self.asked.export)
        kept = self.inputs.find(wanted.trace_id, caller_of(request).name)

        def answer(trace: Trace) -> Response:
            headers = {"Content-Disposition": f'attachment; filename="limelight-trace.{wanted.format}"'}
            content = file_of(trace, wanted, self.settings.answer_bytes)
            return Response(content, headers=headers, media_type=TYPES[wanted.format])

        return await self._run_trace(request, kept.served, kept.asked, answer)

    async def why(self, request: Request) -> Response:
        """What a piece of a translation came from: pieces of the source, and of the translation before it."""
        wanted = await read_request(request, self.asked.why)
        kept = self.inputs.find(wanted.trace_id, caller_of(request).name)

        def answer(trace: Any) -> Response:
            if wanted.piece >= len(trace.target.tokens):
                raise BadRequest("there is no such piece", f"They are 0 to {len(trace.target.tokens) - 1}.")
            told = asdict(trace.why(wanted.piece, wanted.method, wanted.instead_of))
            if wanted.check:
                told["unmatched"] = [asdict(each) for each in trace.check()]
            return json_answer(_encode_json(told), request)

        return await self._run_trace(request, kept.served, kept.asked, answer)

    async def importance(self, request: Request) -> Response:
        """Which heads matter: each is muted in turn. Tells how far it is, and then what it found, as server-sent events."""
        asked = await read_request(request, self.asked.importance)
        served, caller = self._pick_model(asked.model, asked.tags), caller_of(request)
        task = await aside(weight(asked.sentences or ()), lambda: make_importance_task(served, asked, caller.name))
        caller.spend(task.characters, task.sentences)
        note(request, characters=task.characters, texts=task.sentences, model=served.id)

        async def encode(told: tuple[str, dict[str, Any]]) -> bytes:
            return format_event(told[0], {"model": served.id, **told[1]})

        longest = self.settings.pieces
        found = self.rankings.run(task.key, caller.name, lambda report: rank_heads(served, task, longest, report))
        return await stream_events(request, found, encode)

    async def probes(self, request: Request, model: ModelName = None) -> Response:
        """Sentences that were traced while the model was trained, and at which steps."""
        caller_of(request)
        served = self._pick_model(model)
        found = await self.traces.run(lambda: probes(served.run), self.service.deadline())
        return JSONResponse({"model": served.id, "probes": found})

    async def probe(
        self,
        request: Request,
        n: Annotated[int, Path(ge=0, le=999)],
        step: Annotated[int, Path(ge=0, le=1 << 53)],
        model: ModelName = None,
    ) -> Response:
        """One of these traces."""
        caller_of(request)
        served = self._pick_model(model)

        def answer() -> Response:
            told = probe(served.run, n, step)
            told["model"]["id"] = served.id
            return json_answer(_encode_json({**told, "trace_id": f"probe.{n}.{step}"}), request)

        return await self.traces.run(answer, self.service.deadline())

    def close(self) -> None:
        self.traces.close()
        self.rankings.close()

    def _pick_model(self, model: str | None, tags: Sequence[str] = ()) -> ServedModel:
        known = self.service.models
        named = model is not None and (model != "default" or any(each.id == model for each in known.all))
        return known.pick(None, None, model if named else known.all[0].id, tags)

    async def _run_trace(
        self,
        request: Request,
        served: ServedModel,
        asked: TraceRequest,
        answer: Callable[[Trace], Response],
        deadline: Deadline | None = None,
    ) -> Response:
        """Charge for a trace, and make it while the client is there; it is written by `answer` in the same thread."""
        deadline = deadline or self.service.deadline()
        caller_of(request).spend(asked.characters)
        note(request, characters=asked.characters, texts=1, model=served.id)
        begin = time.monotonic()

        def work() -> TraceResponse:
            trace = make_trace(served, asked, self.settings.pieces, deadline.is_over)
            if deadline.is_over():
                raise deadline.late("the trace")
            return TraceResponse(answer(trace), len(trace.source.tokens))

        done = await while_connected(request, self.traces.run(work, deadline))
        note(request, pieces=done.pieces)
        self.service.watching.stage("trace", time.monotonic() - begin)
        return done.response

    def _answer(
        self,
        request: Request,
        trace: Trace,
        asked: TraceRequest,
        name: str,
        before: str,
        beside: dict[str, Any] | None = None,
    ) -> Response:
        most = self.settings.answer_bytes
        told = as_json(trace, asked.include, asked.layers, asked.heads, asked.encoding, most_bytes=most)
        if "baseline" in told:
            told["baseline"]["trace_id"] = before
        if beside is not None:
            told["translation"] = beside
        return json_answer(_encode_json({"v": told.pop("v"), "trace_id": name, **told}), request)


def make_trace(served: ServedModel, asked: TraceRequest, longest: int, is_over: IsOver) -> Trace:
    """Make a trace, not in the event loop: already thousands of dimmers take a while to be understood."""
    made = served.translator.trace(
        asked.source,
        asked.target,
        prefix=asked.prefix,
        changes=asked.changes,
        search=asked.search(served.translator.settings.search),
        nbest=asked.nbest,
        topk=asked.topk,
        longest=longest,
        is_over=is_over,
    )
    return replace(made, model=replace(made.model, id=served.id))


def translation_beside(served: ServedModel, asked: TraceRequest, trace: Trace, seconds: float) -> dict[str, Any] | None:
    """What /translate answers to the same text, where it is another translation: a guard searched again, or something was protected."""
    if asked.target is not None or asked.prefix:
        return None
    search = asked.search(served.translator.settings.search)
    [made] = served.translator.translate([asked.source], search, timeout=seconds)
    if made.text == trace.target.text:
        return None
    return {"text": made.text, "warnings": [{"code": each.code, "message": each.message} for each in made.warnings]}


def _numbers(written: str | None) -> list[int] | None:
    return None if written is None else [int(each) for each in written.split(",")]


def _encode_json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
