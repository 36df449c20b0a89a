"""The directions of a model are views of one translator, which share its engine; here they are found again, and have their glossaries."""

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from limelight.bundle import BundleSettings
from limelight.text.careful.glossary import Glossary
from limelight.text.languages import Direction

MOST_VIEWS = 256  # of one translator: strangers may ask for any
View = TypeVar("View")


class Directions(Generic[View]):
    """Directions keep the views that were asked for last, and the glossary of each direction that has one."""

    def __init__(self, settings: BundleSettings) -> None:
        self.settings = settings  # as they are in the bundle
        self.glossaries: dict[Direction, Glossary | None] = {}
        self._views: dict[tuple[str | None, str | None, tuple[str, ...]], View] = {}
        self._lock = threading.Lock()

    def find(self, target: str | None, source: str | None, tags: Sequence[str], make: Callable[[BundleSettings], View]) -> View:
        """The view that was made when the same was asked for before, else a new one."""
        if isinstance(tags, str):
            raise TypeError("tags wants a list of names, not one name; write [name]")
        asked = (target, source, tuple(tags))
        with self._lock:
            view = self._views.pop(asked) if asked in self._views else make(self.settings.aim(*asked))
            self._views[asked] = view
            if len(self._views) > MOST_VIEWS:
                del self._views[next(iter(self._views))]
        return view

    def forget(self) -> None:
        with self._lock:
            self._views.clear()
