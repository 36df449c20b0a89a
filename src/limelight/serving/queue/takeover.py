"""A server takes over what its translators have learnt meanwhile: it looks for another history, loads the version that is in use, and turns
to it between two requests.

A request is matched once, and each of its sentences is translated by what it was matched with. So none is lost and none is mixed. The old
translator is closed when the last request that may hold it is out of time.
"""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor

from limelight.bundle.versions import HISTORY, LEARNT, read_history
from limelight.errors import LimelightError
from limelight.files import Stamp, stamp_of
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel

EVERY = 2.0  # seconds between two looks
logger = logging.getLogger(__name__)


class Takeover:
    """`follow` runs in the event loop as long as the server does. `linger`: seconds that a request may hold its translator."""

    def __init__(self, models: Models, linger: float) -> None:
        self.models, self.linger = models, linger
        self._refused: dict[str, Stamp] = {}
        self._apart = ThreadPoolExecutor(1, "takeover")  # loading takes seconds, and the threads of requests are few

    async def follow(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            for served in self.models.all:
                await self.look(served)

    async def look(self, served: ServedModel) -> bool:
        """Take over what is there now, if it is another version. What cannot be used is refused once, and the old one stays."""
        loaded = served.loaded
        if loaded is None:
            return False
        found = stamp_of(loaded.folder / LEARNT / HISTORY)
        if found in (loaded.history, self._refused.get(served.id, loaded.history)):
            return False
        loop = asyncio.get_running_loop()
        try:
            if (await loop.run_in_executor(self._apart, read_history, loaded.folder)).current == loaded.version:
                self._refused[served.id] = found  # an attempt that was not kept
                return False
            new = await loop.run_in_executor(self._apart, loaded.load)
            if new.directions != served.directions or new.tags != served.tags:
                new.translator.close()
                raise LimelightError("it has other languages or tags; start the server again")
        except Exception as error:  # whatever is wrong with the new one, the old one goes on
            self._refused[served.id] = found
            logger.error("%s: what it has learnt is not taken over: %s", served.id, str(error) or type(error).__name__)
            return False
        self.models.replace(served, new)
        assert new.loaded is not None
        loop.call_later(self.linger, self._apart.submit, served.translator.close)  # it may wait for a search
        logger.warning("%s: version %d is in use", served.id, new.loaded.version)
        return True
