"""A server joins translators, keys, metrics and logs with one application, ready to listen."""

from dataclasses import dataclass

from fastapi import FastAPI

from limelight.serving.access.keys import Keys
from limelight.serving.app import make_app
from limelight.serving.compat.detect import Detector
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.middleware.logs import Log
from limelight.serving.middleware.metrics import Metrics
from limelight.serving.middleware.otel import OtelTracing
from limelight.serving.queue.models import WARM_UP, Models
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings


@dataclass(frozen=True)
class Server:
    app: FastAPI
    service: Service
    keys: Keys | None

    @classmethod
    def of(cls, models: Models, settings: ServeSettings, log: Log, tracing: OtelTracing | None = None) -> "Server":
        keys = None if settings.keys is None else Keys.load(settings.keys)
        metrics = Metrics()
        service = Service(models, settings, metrics)
        metrics.attach(service)
        detector = Detector(ServedLanguages(models).all)
        detector.look(WARM_UP)  # it loads its model at first use, and nobody should wait for that
        return cls(make_app(service, keys, metrics, log, tracing, detector), service, keys)
