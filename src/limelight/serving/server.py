"""A server that is ready to listen: translators, keys, metrics and logs around one application."""

from dataclasses import dataclass

from fastapi import FastAPI

from limelight.serving.app import make_app
from limelight.serving.compat.codes import Languages
from limelight.serving.detect import Detector
from limelight.serving.keys import Keys
from limelight.serving.logs import Log
from limelight.serving.metrics import Metrics
from limelight.serving.models import WARM_UP, Models
from limelight.serving.service import Service
from limelight.serving.settings import ServeSettings
from limelight.serving.tracing import Tracing


@dataclass(frozen=True)
class Server:
    app: FastAPI
    service: Service
    keys: Keys | None

    @classmethod
    def of(cls, models: Models, settings: ServeSettings, log: Log, tracing: Tracing | None = None) -> "Server":
        keys = None if settings.keys is None else Keys.load(settings.keys)
        metrics = Metrics()
        service = Service(models, settings, metrics)
        metrics.attach(service)
        detector = Detector(Languages(models).all)
        detector.look(WARM_UP)  # it loads its model at first use, and nobody should wait for that
        return cls(make_app(service, keys, metrics, log, tracing, detector), service, keys)
