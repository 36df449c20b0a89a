"""OpenTelemetry gets one span for each request, if it is installed and the environment names a collector:

    pip install 'limelight[tracing]'
    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 limelight serve en-de

A span has what the line in the log has, and the stages as events. Of the client's headers only `traceparent` is read: `tracestate` and
`baggage` would carry whatever it put there to the collector.
"""

import logging
from collections.abc import Mapping
from typing import Any

from limelight.serving.middleware.logs import Value

try:
    from opentelemetry import context, trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    INSTALLED = True
except ImportError:
    INSTALLED = False

logger = logging.getLogger(__name__)

NAMES = {
    "method": "http.request.method",
    "route": "http.route",
    "status": "http.response.status_code",
    "id": "limelight.request_id",
    "caller": "limelight.caller",
    "characters": "limelight.characters",
    "texts": "limelight.texts",
    "pieces": "limelight.pieces",
    "model": "limelight.model",
    "refusal": "limelight.refusal",
    "error": "error.type",
}


def stage(name: str, seconds: float) -> None:
    """An event in the span of the request that is being worked on, if there is one."""
    # The end of a wait is told by whoever made room, often in the name of another request.
    if INSTALLED and name != "wait":
        trace.get_current_span().add_event(name, {"limelight.seconds": seconds})


class OtelTracing:
    def __init__(self, exporter: "SpanExporter") -> None:
        named = Resource.create()  # from OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
        if str(named.attributes.get("service.name", "")).startswith("unknown_service"):
            named = named.merge(Resource({"service.name": "limelight"}))
        self._provider = TracerProvider(resource=named, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("limelight.serving")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "OtelTracing | None":
        wanted = environment.get("OTEL_TRACES_EXPORTER", "")
        named = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT") or environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        if wanted == "none" or not (wanted or named):
            return None
        if not INSTALLED:
            logger.warning("the environment asks for traces, but OpenTelemetry is not installed: pip install 'limelight[tracing]'")
            return None
        return cls(ConsoleSpanExporter() if wanted == "console" else OTLPSpanExporter())

    def begin(self, traceparent: str | None) -> "RequestSpan":
        parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent} if traceparent else {})
        return RequestSpan(self._tracer.start_span("request", context=parent, kind=trace.SpanKind.SERVER))

    def close(self) -> None:
        """Sends what has not been sent."""
        self._provider.shutdown()


class RequestSpan:
    """A span belongs to one request; what is worked on until `end` belongs to it."""

    def __init__(self, span: Any) -> None:
        self._span = span
        self._token = context.attach(trace.set_span_in_context(span))

    def end(self, line: Mapping[str, Value]) -> None:
        context.detach(self._token)
        self._span.update_name(f"{line['method']} {line['route']}")
        self._span.set_attributes({NAMES[name]: value for name, value in line.items() if name in NAMES and value is not None})
        if isinstance(status := line["status"], int) and status >= 500:
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()
