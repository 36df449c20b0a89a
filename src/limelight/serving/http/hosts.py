"""The `Host` of a request must name this server or be an address, else the request is refused.

A page of another site can have its own name point to 127.0.0.1 and then talk to a server there as if it were its own ("DNS
rebinding"). The browser still says the name in `Host`, so a name that is not ours gives it away.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address

from limelight.serving.refusals import BadRequest
from limelight.serving.settings import ServeSettings

HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]*)(:[0-9]{0,5})?")


class Misdirected(BadRequest):
    """The request was meant for another server."""

    code = "misdirected"


def check_host(host: str | None, address: str | None, settings: ServeSettings) -> None:
    """`host` is the header, `address` the one that the connection came to."""
    if not HOST.fullmatch(host or ""):
        raise BadRequest("The Host header is no name of a host.")
    if settings.wide and not settings.hosts:
        return
    name = name_of(host or "")
    if _is_loopback(name) or name in {name_of(known) for known in settings.hosts}:
        return
    # Probes and load balancers call by address, and a rebound name is never one.
    if settings.wide and address_of(name) is not None and address_of(name) == address_of(address or ""):
        return
    raise Misdirected(
        "This server does not go by the name in the Host header.",
        "If it should, add the name to `hosts` in its settings.",
    )


def name_of(host: str) -> str:
    """localhost:5000 -> localhost; [::1]:5000 -> ::1; Example.org. -> example.org"""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().rstrip(".")


def _is_loopback(name: str) -> bool:
    address = address_of(name)
    return name == "localhost" or (address is not None and address.is_loopback)


@lru_cache(maxsize=1024)
def address_of(name: str) -> IPv4Address | IPv6Address | None:
    """Return an address, or None for a name. A socket for both families gives the old one as ::ffff:10.0.0.5."""
    try:
        address = ip_address(name)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
