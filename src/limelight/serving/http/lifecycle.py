"""The server binds, serves, and drains: told to stop, it still answers what it was asked before.

signal    the service is draining: not ready, and soon nothing new is taken; answers say that the connection ends
2 s       nobody can connect any more (sooner if nobody is connected)
...       what is under way is answered, up to `drain_seconds`; then idle connections are closed
again     a second signal: what is under way is refused, and it is over within 4 s
"""

import asyncio
import contextlib
import errno
import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Protocol, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from limelight.errors import ConfigError, LimelightError
from limelight.serving.http.connection import LimitedProtocol, make_protocol
from limelight.serving.http.connection_shares import RESERVE
from limelight.serving.http.watchdog import pause, watch
from limelight.serving.settings import ServeSettings

SIGNALS = (signal.SIGINT, signal.SIGTERM)
ECHO_SECONDS = 0.1  # a terminal signals the whole group, and a parent such as make passes it on: that is one signal
NOTICE_SECONDS = 2.0  # in which whoever asks hears that we stop; later the port is free for the next server
LAST_SECONDS = 0.2  # for those who connected at the last moment and have not yet sent their request
OVERTIME_SECONDS = 3.0  # after an end that was not waited for, threads that still compute are not waited for either
FILES = 512  # descriptors beside connections: models, threads, logs


class Drainable(Protocol):
    """A service that can be drained ends without losing a request."""

    def drain(self) -> None:
        """Take nothing new, or soon no more."""

    async def wait_drained(self) -> None:
        """Returns when nothing is under way."""


def serve(app: ASGIApp, settings: ServeSettings, service: Drainable, *, started: Callable[[str], None]) -> int:
    """Runs until it is told to stop, and returns the exit code: 0, 130 after Ctrl-C, 128 + signal if it was told twice."""
    _check_uvicorn()
    listener = bind_socket(settings.host, settings.port)
    _allow_files(settings.limits.connections + RESERVE + FILES)
    _keep_what_is_loaded()
    allowed = os.environ.get("FORWARDED_ALLOW_IPS", "127.0.0.1")  # as uvicorn has it
    proxies = ProxyHeadersMiddleware(cast(Any, app), allowed).trusted_hosts
    config = uvicorn.Config(
        app,
        http=make_protocol(settings.limits, proxies.__contains__),
        forwarded_allow_ips=allowed,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
    )
    server = DrainingServer(config, service, settings, lambda: started(address(listener, settings.host)))
    try:
        server.run(sockets=[listener])
    except SystemExit:
        raise LimelightError("the server could not start; its log says why") from None
    finally:
        listener.close()
    return server.exit_code


def bind_socket(host: str, port: int) -> socket.socket:
    """A socket with that address. It does not listen yet."""
    try:
        family, kind, number, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except socket.gaierror as error:
        raise ConfigError(f"host={host} is no address of this machine ({error.strerror}); try --host 127.0.0.1") from None
    listener = socket.socket(family, kind, number)
    try:
        if os.name != "nt":  # there it would let two programs have one port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of the last server may linger
        listener.bind(place)
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}, port {port}: {_why(error, port)}") from None
    listener.setblocking(False)
    return listener


def address(listener: socket.socket, host: str) -> str:
    """address(..., "::1") -> "http://[::1]:5000" """
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


class DrainingServer(uvicorn.Server):
    """The server is uvicorn's with another end: its own closes idle connections at once, with requests that are on their way."""

    def __init__(self, config: uvicorn.Config, service: Drainable, settings: ServeSettings, started: Callable[[], None]) -> None:
        super().__init__(config)
        self.service, self.tell = service, started
        self.drain_seconds = settings.drain_seconds
        self.silence = None if settings.watchdog_seconds == "off" else settings.watchdog_seconds
        self.watchdog: asyncio.Task[None] | None = None
        self.protocol = cast(type[LimitedProtocol], config.http)
        self.exit_code = 0
        self.stopped_at: float | None = None
        self.hurry = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            if self.silence is not None:
                self.watchdog = asyncio.create_task(watch(self.silence))
            self.tell()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Have the loop hear signals: it wakes up whichever thread one came to. Only the main thread can; elsewhere nothing is heard."""
        loop = asyncio.get_running_loop()
        main = threading.current_thread() is threading.main_thread()
        heard = [number for number in SIGNALS if main and signal.getsignal(number) is not signal.SIG_IGN]
        before: dict[int, Any] = {}
        for number in heard:
            try:
                loop.add_signal_handler(number, self._handle_signal, number)
            except NotImplementedError:  # a loop of Windows
                hear = lambda number, _: loop.call_soon_threadsafe(self._handle_signal, signal.Signals(number))  # noqa: E731
                before[number] = signal.signal(number, hear)
        if main and self.silence is not None and hasattr(signal, "SIGTSTP"):
            loop.add_signal_handler(signal.SIGTSTP, pause, self.silence)
            heard.append(signal.SIGTSTP)
        try:
            yield
        finally:
            for number in heard:
                signal.signal(number, before[number]) if number in before else loop.remove_signal_handler(number)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._begin_to_stop()
        assert self.stopped_at is not None
        end = asyncio.ensure_future(self._end(sockets or []))
        hurry = asyncio.ensure_future(self.hurry.wait())
        left = self.stopped_at + self.drain_seconds - asyncio.get_running_loop().time()
        await asyncio.wait({end, hurry}, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if end.done():
            end.result()
        else:
            end.cancel()
            await self._abandon(sockets or [])
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.lifespan.shutdown(), timeout=1.0)

    def _handle_signal(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if self.stopped_at is None:
            self.exit_code = 0 if number == signal.SIGTERM else 128 + number
            self._begin_to_stop()
        elif now - self.stopped_at > ECHO_SECONDS:
            self.exit_code = 128 + number
            self.hurry.set()

    def _begin_to_stop(self) -> None:
        if self.stopped_at is None:
            self.stopped_at = asyncio.get_running_loop().time()
            self.should_exit = True
            self.service.drain()
            self.protocol.draining = True
            for connection in self._connections():
                if connection.front is not None:
                    connection.shutdown()

    async def _end(self, listeners: list[socket.socket]) -> None:
        await self._notice()
        await self._stop_listening(listeners)
        if self._connections():
            await self.service.wait_drained()
            await asyncio.sleep(LAST_SECONDS)
        for connection in self._connections():
            connection.shutdown()
        while any(not connection.leaving or connection.transport.get_write_buffer_size() for connection in self._connections()):
            await asyncio.sleep(0.02)
        if self._connections():  # they have all that we said, and may still be saying something
            await asyncio.sleep(LAST_SECONDS)

    async def _notice(self) -> None:
        """Wait until everybody had time to hear it, or nobody is there."""
        alone = 0
        for _ in range(round(NOTICE_SECONDS / 0.05)):
            await asyncio.sleep(0.05)
            alone = 0 if self._connections() else alone + 1
            if alone == 3:
                return

    async def _stop_listening(self, listeners: list[socket.socket]) -> None:
        """Whoever is connected but not yet accepted when a socket is closed is reset. So hardly anybody is let in any more, then all are
        accepted, the last by hand, and in the same breath it is closed."""
        loop = asyncio.get_running_loop()
        for listener in listeners:
            listener.listen(0)
        for _ in range(5):
            await asyncio.sleep(0)
        last = [connected for listener in listeners for connected in _accept_waiting(listener)]
        self._close(listeners)
        for connected in last:
            await loop.connect_accepted_socket(self._connection, connected)

    def _connection(self) -> LimitedProtocol:
        return self.protocol(self.config, self.server_state, self.lifespan.state, asyncio.get_running_loop())

    def _close(self, listeners: list[socket.socket]) -> None:
        for server in self.servers:
            server.close()
        for listener in listeners:
            listener.close()

    async def _abandon(self, listeners: list[socket.socket]) -> None:
        """There is no more time. Who has no answer yet is told that there will be none."""
        stop = threading.Timer(OVERTIME_SECONDS, os._exit, [self.exit_code])
        stop.daemon = True
        stop.start()
        self._close(listeners)
        for connection in self._connections():
            connection.abandon()
        for _ in range(10):
            await asyncio.sleep(0.05)
            if not self._connections():
                break
        for connection in self._connections():
            connection.transport.abort()
        tasks = list(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=0.5)

    def _connections(self) -> list[LimitedProtocol]:
        return cast(list[LimitedProtocol], list(self.server_state.connections))


def _accept_waiting(listener: socket.socket) -> Iterator[socket.socket]:
    with contextlib.suppress(OSError):  # nobody is waiting any more
        while True:
            yield listener.accept()[0]


def _why(error: OSError, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"another program does; stop it, or choose another port (--port {port + 1}, or 0 for any)"
    if error.errno == errno.EACCES:
        return "ports below 1024 are for the administrator; choose a higher one (--port 5000)"
    if error.errno == errno.EADDRNOTAVAIL:
        return "this machine has no such address; try --host 127.0.0.1"
    return str(error.strerror)


def _check_uvicorn() -> None:
    """What we overrule must be there to be overruled: else nobody would call it, and no limit would hold."""
    ours = [name for name in vars(LimitedProtocol) if name.startswith("on_")]
    if missing := [name for name in ours if not hasattr(HttpToolsProtocol, name)]:
        raise ConfigError(f"uvicorn {uvicorn.__version__} has no {', '.join(missing)}; pip install 'uvicorn==0.54'")


def _allow_files(wanted: int) -> None:
    """Many systems allow 1,024 descriptors unless a program asks for more, and a connection is one."""
    if os.name == "nt":  # there sockets are not counted as files
        return
    resource = import_module("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _keep_what_is_loaded() -> None:
    """torch and its friends are 270,000 objects that never go. Looking through them takes the collector an eighth of a second, in which
    nobody is answered, now and then and once more at the end."""
    gc.collect()
    gc.freeze()
    gc.enable()
