"""A LibreTranslate-compatible request is resolved to source, target and translator. The source is given or detected."""

import asyncio
from dataclasses import dataclass

from limelight.serving.compat.detect import DetectedLanguage, Detector
from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.compat.request_parameters import Parameters
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.refusals import BadRequest
from limelight.text.language_names import name

AUTO = "auto"


@dataclass(frozen=True)
class Pair:
    """A pair has a source, a target and a translator. `served` None: both are the same language, and a text is its own translation."""

    source: str
    target: str
    served: ServedModel | None
    detected: DetectedLanguage | None  # if nobody said what the source is


def require(parameters: Parameters, *names: str) -> list[str]:
    """Return the values of these parameters; an empty one is missing."""
    values = [parameters.text(each) for each in names]
    for each, value in zip(names, values, strict=True):
        if not value:
            raise BadRequest(f"Invalid request: missing {each} parameter")
    return [value or "" for value in values]


class PairResolver:
    def __init__(self, languages: ServedLanguages, detector: Detector) -> None:
        self.languages, self.detector = languages, detector

    def resolve(self, source: str, target: str) -> tuple[str | None, str]:
        """Which of our languages are meant. None: the source is to be detected."""
        return None if source.lower() == AUTO else self._resolve_language(source), self._resolve_language(target)

    async def find(self, source: str | None, target: str, sample: str) -> Pair:
        """`sample` is a text, or several, of which the language is detected if the source is None."""
        if source is not None:
            return self._pair(source, target, None)
        # Into what nothing translates only a text goes that is in it already: any other is refused.
        sources = self.languages.sources_of(target) or [each for each in self.languages.all if each != target]
        looks = await asyncio.to_thread(self.detector.look, [sample])
        detected = looks[0].source(sources, target)
        return self._pair(detected.language, target, detected)

    def _resolve_language(self, asked: str) -> str:
        found = self.languages.find(asked)
        if found is None:
            raise BadRequest(f"{asked[:40]} is not supported")
        return found

    def _pair(self, source: str, target: str, detected: DetectedLanguage | None) -> Pair:
        served = self.languages.find_model(source, target)
        if served is None and source != target:
            raise BadRequest(f"{name(target)} ({target}) is not available as a target language from {name(source)} ({source})")
        return Pair(source, target, served, detected)
