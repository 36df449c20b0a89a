"""A store on the loopback, in the process that started them, lets the ranks of one machine meet."""

import socket

from torch.distributed import Store, TCPStore  # type: ignore[attr-defined, unused-ignore]


def host_store(listening: socket.socket, size: int) -> Store:
    """By itself a store listens on every interface, whatever address it is given. It is open as long as this value is kept."""
    address, port = listening.getsockname()
    return TCPStore(address, port, size, is_master=True, master_listen_fd=listening.detach(), wait_for_workers=False)
