"""From and into which language a LibreTranslate-compatible request wants to translate, by which translator; said or detected."""

import asyncio
from dataclasses import dataclass

from limelight.serving.compat.codes import Languages
from limelight.serving.compat.parameters import Parameters
from limelight.serving.detect import Detected, Detector
from limelight.serving.models import Served
from limelight.serving.refusals import BadRequest
from limelight.text.language_names import name

AUTO = "auto"


@dataclass(frozen=True)
class Pair:
    """`served` None: both are the same language, and a text is its own translation."""

    source: str
    target: str
    served: Served | None
    detected: Detected | None  # if nobody said what the source is


def required(parameters: Parameters, *names: str) -> list[str]:
    """Their values. What is empty is missing."""
    values = [parameters.text(each) for each in names]
    for each, value in zip(names, values, strict=True):
        if not value:
            raise BadRequest(f"Invalid request: missing {each} parameter")
    return [value or "" for value in values]


class Pairs:
    def __init__(self, languages: Languages, detector: Detector) -> None:
        self.languages, self.detector = languages, detector

    def known(self, source: str, target: str) -> tuple[str | None, str]:
        """Which of our languages are meant. None: the source is to be detected."""
        return None if source.lower() == AUTO else self._known(source), self._known(target)

    async def find(self, source: str | None, target: str, sample: str) -> Pair:
        """`sample` is a text, or several, of which the language is detected if the source is None."""
        if source is not None:
            return self._pair(source, target, None)
        sources = self.languages.sources_of(target)
        if not sources:  # it can only be refused
            return self._pair(self.languages.sources[0], target, None)
        looks = await asyncio.to_thread(self.detector.look, [sample])
        detected = looks[0].source(sources, target)
        return self._pair(detected.language, target, detected)

    def _known(self, asked: str) -> str:
        found = self.languages.find(asked)
        if found is None:
            raise BadRequest(f"{asked[:40]} is not supported")
        return found

    def _pair(self, source: str, target: str, detected: Detected | None) -> Pair:
        served = self.languages.served(source, target)
        if served is None and source != target:
            raise BadRequest(
                f"{name(target)} ({target}) is not available as a target language from {name(source)} ({source})"
            )
        return Pair(source, target, served, detected)
