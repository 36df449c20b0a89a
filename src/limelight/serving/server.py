"""A server joins translators, keys, metrics and logs with one application, ready to listen."""

import logging
import threading
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
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.queue.service import Service
from limelight.serving.settings import ServeSettings
from limelight.text.language_names import name

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Server:
    app: FastAPI
    service: Service
    keys: Keys | None
    detector: Detector

    @classmethod
    def of(
        cls, models: Models, settings: ServeSettings, log: Log, tracing: OtelTracing | None = None, store: ServedStore | None = None
    ) -> "Server":
        keys = None if settings.keys is None else Keys.load(settings.keys)
        metrics = Metrics()
        service = Service(models, settings, metrics, store)
        metrics.attach(service)
        detector = Detector(ServedLanguages(models).all)
        return cls(make_app(service, keys, metrics, log, tracing, detector), service, keys, detector)

    def read_ahead(self) -> None:
        """Read the tables of languages, in a thread, once there is an address: a second that neither the start nor a request waits for."""
        threading.Thread(target=self._read_tables, name="languages", daemon=True).start()

    def _read_tables(self) -> None:
        try:
            name(self.service.models.all[0].source)
            self.detector.look(WARM_UP)
        except OSError as error:  # as where there is no room to unpack them
            logger.warning("the languages of texts cannot be told: %s", error.strerror)
