"""A `Lease` lets one process at a time work at an address, and passes on when its holder no longer renews it.

It is one object, replaced only by who knows its version (a put on the condition of its ETag). No clock is compared with another: whoever
wants the lease watches it by its own clock, and takes it when it was not renewed for STALE seconds. A holder that was only slow finds the
lease taken; that it writes nothing more is not the lease's work but that of the numbers of snapshots.
"""

import json
import logging
import os
import secrets
import socket
import threading
import time
from typing import Final

from limelight.addresses.object_store import ObjectStore
from limelight.errors import ConfigError, LimelightError

NAME: Final = "lease.json"
RENEWED: Final = 10.0  # seconds between two renewals
STALE: Final = 60.0  # seconds without one after which the lease may be taken

logger = logging.getLogger(__name__)


class Lease:
    def __init__(self, store: ObjectStore, holder: str, renewed: float = RENEWED, stale: float = STALE) -> None:
        """`holder` names a folder of this machine that one process at a time may use: its own lease is taken again at once."""
        self.store, self._holder, self._renewed, self._stale = store, holder, renewed, stale
        self._version = ""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="lease", daemon=True)
        self.lost = False

    def acquire(self, patience: float = 0.0) -> None:
        """Wait for a holder that may be dead; one that is seen to renew is alive, and the lease is refused after `patience` seconds."""
        began = since = time.monotonic()
        seen = None
        while True:
            found = self.store.get_versioned(NAME)
            now = time.monotonic()
            if found is None:
                if version := self.store.put_new(NAME, self._describe()):
                    self._version = version
                    break
                continue
            content, version = found
            if _is_held(content, "") or _is_held(content, self._holder) or (version == seen and now - since >= self._stale):
                if self._replace(version):
                    break
                continue
            if version != seen:
                if seen is not None and now - began >= patience:
                    raise ConfigError(
                        f"another process is training at {self.store.address} and renewed its lease a moment ago: {content[:200]!r}; "
                        "wait for it, or give another address with -o"
                    )
                seen, since = version, now
            time.sleep(min(1.0, self._renewed / 4))
        self._thread.start()

    def release(self) -> None:
        """At an orderly end the next one need not wait."""
        self._ended.set()
        self._thread.join()
        try:
            if not self.lost and self._version:
                self.store.replace(NAME, self._describe(released=True), self._version)
        except LimelightError as error:
            logger.warning("the lease is free in %.0f s only: %s", self._stale, error)

    def _renew(self) -> None:
        while not self._ended.wait(self._renewed):
            try:
                if not self._replace(self._version):
                    self.lost = True
                    return
            except LimelightError as error:  # who is cut off goes on: it may come back before anybody takes over
                logger.warning("the lease could not be renewed: %s", error)

    def _replace(self, version: str) -> bool:
        """Also what stands there now, if it is ours: the answer to an earlier renewal was lost."""
        new = self.store.replace(NAME, self._describe(), version)
        if new is None and (found := self.store.get_versioned(NAME)) and found[1] != version and _is_held(found[0], self._holder):
            return self._replace(found[1])
        self._version = new or ""
        return new is not None

    def _describe(self, released: bool = False) -> bytes:
        """Never twice the same, so that a version stands for one renewal."""
        who = {"holder": "" if released else self._holder, "host": socket.gethostname(), "process": os.getpid()}
        return json.dumps({**who, "renewal": secrets.token_hex(8)}).encode()


def _is_held(content: bytes, holder: str) -> bool:
    return f'"holder": "{holder}"'.encode() in content
