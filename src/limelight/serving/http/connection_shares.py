"""Connections get places: no more for one address than its share, and a reserve for probes. See docs/operate.md."""

from collections import Counter
from collections.abc import Callable
from ipaddress import IPv6Address
from typing import Protocol

from limelight.serving.http.hosts import address_of
from limelight.serving.settings import Limits

RESERVE = 64  # connections beside the limit
PROBES = (b"healthz", b"readyz")


class Seated(Protocol):
    """`Seated` is a connection as the crowd sees it. `front` is the request that is being answered, if there is one."""

    @property
    def front(self) -> object | None: ...

    def vacate(self) -> None:
        """Close at once: somebody else has the place."""


class Crowd:
    """`trusts` tells proxies by their address: they bring many clients, so they have no share."""

    def __init__(self, limits: Limits, trusts: Callable[[str], bool] = lambda address: False) -> None:
        self.limits, self._trusts = limits, trusts
        self._homes: dict[Seated, str | None] = {}  # of those who have a place
        self._held: Counter[str | None] = Counter()  # places by home
        self._idle: dict[Seated, None] = {}  # longest first; they have a place
        self._reserve: dict[Seated, None] = {}  # longest first

    def seat(self, connection: Seated, client: tuple[str, int] | None) -> bool:
        """Has it a place now? `client` is its address, if it has one."""
        home = None if client is None or self._trusts(client[0]) else home_of(client[0])
        share_used = home is not None and self._held[home] >= self.limits.address_connections
        if share_used or len(self._homes) >= self.limits.connections:
            idle = (each for each in self._idle if not share_used or self._homes[each] == home)
            if (longest := next(idle, None)) is None:
                return False
            self.remove(longest)
            longest.vacate()
        self._reserve.pop(connection, None)
        self._homes[connection] = home
        self._held[home] += 1
        return True

    def reserve(self, connection: Seated) -> bool:
        """Is it in the reserve now? No: every place there is that of a probe which is being answered."""
        if len(self._reserve) >= RESERVE:
            silent = next((each for each in self._reserve if each.front is None), None)
            if silent is None:
                return False
            self.remove(silent)
            silent.vacate()
        self._reserve[connection] = None
        return True

    def mark(self, connection: Seated, *, idle: bool) -> None:
        """Called when it changes: who becomes idle is the last to go."""
        self._idle.pop(connection, None)
        if idle and connection in self._homes:
            self._idle[connection] = None

    def remove(self, connection: Seated) -> None:
        self._idle.pop(connection, None)
        self._reserve.pop(connection, None)
        if connection in self._homes:
            home = self._homes.pop(connection)
            self._held[home] -= 1
            if not self._held[home]:
                del self._held[home]  # else every address that ever came would be remembered


def home_of(address: str) -> str:
    """What counts as one client: home_of("2001:db8::1:2:3:4") -> "2001:db8::", for in version 6 one client has a whole /64."""
    found = address_of(address)
    return str(IPv6Address(int(found) >> 64 << 64)) if isinstance(found, IPv6Address) else str(found or address)


def is_probe(method: bytes, url: bytes) -> bool:
    """True for the path of a probe, whatever path a proxy puts before it."""
    return method in (b"GET", b"HEAD") and url.partition(b"?")[0].rpartition(b"/")[2] in PROBES
