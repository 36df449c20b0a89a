"""Whether servers answer /healthz all the time, beside a control that shows what the busy machine itself costs.

    with Probe({"keys": 20001, "open": 20002}) as probe:
        ...
    probe.freezes() -> [Freeze("keys", 71.3, 2.4, 0.1)]      it took 2.4 s while the control took 0.1 s

The control is a server of thirty lines in a process of its own, asked in the same way.
"""

import asyncio
import http.client
import json
import multiprocessing
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

PROCESSES = multiprocessing.get_context("spawn")
EVERY, LIMIT = 0.1, 30.0  # seconds between two questions; for one answer
ALLOWED = 1.0  # seconds that an answer may take beyond what the control takes
NEAR = 5.0  # seconds around it in which the control counts


@dataclass(frozen=True)
class Freeze:
    name: str
    at: float  # of time.monotonic, which all processes share
    seconds: float
    control: float


class Probe:
    def __init__(self, ports: dict[str, int]) -> None:
        ready, told = PROCESSES.Pipe(False)
        self._control = PROCESSES.Process(target=_serve, args=(told,), daemon=True)
        self._control.start()
        self._ports = {**ports, "control": ready.recv()}
        self._ears, mouth = PROCESSES.Pipe(True)
        self._asker = PROCESSES.Process(target=_ask, args=(self._ports, mouth), daemon=True)
        self._asker.start()
        self.seen: list[tuple[str, float, float]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.listen()
        for process in (self._asker, self._control):
            process.kill()
            process.join()

    def listen(self) -> None:
        while self._ears.poll():
            self.seen.append(self._ears.recv())

    def freezes(self) -> list[Freeze]:
        """Answers that came later than the control explains."""
        self.listen()
        control = [(at, took) for name, at, took in self.seen if name == "control"]
        found = []
        for name, at, took in self.seen:
            if name == "control" or took <= ALLOWED:
                continue
            usual = max((other for when, other in control if abs(when - at) < NEAR + took), default=0.0)
            if took > ALLOWED + 2 * usual:
                found.append(Freeze(name, at, round(took, 2), round(usual, 2)))
        return found

    def slowest(self) -> dict[str, float]:
        self.listen()
        return {name: round(max((took for each, _, took in self.seen if each == name), default=0.0), 2) for name in self._ports}


def _ask(ports: dict[str, int], mouth: Connection) -> None:
    while True:
        for name, port in ports.items():
            began = time.monotonic()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
            try:
                connection.request("GET", "/healthz")
                good = connection.getresponse().status == 200
            except OSError:
                good = False
            finally:
                connection.close()
            mouth.send((name, began, time.monotonic() - began if good else LIMIT))
        time.sleep(EVERY)


def _serve(told: Any) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"status": "ok"}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())
