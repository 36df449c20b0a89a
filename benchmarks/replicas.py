"""Servers behind a proxy are killed and replaced one after the other while clients ask: how many requests are lost?

python benchmarks/replicas.py en-de --requests 5000 --proxy haproxy      kill -9 of each in turn, then SIGTERM of each in turn
python benchmarks/replicas.py en-de --requests 5000 --proxy nginx

The proxies run with the files of deploy/, but for ports, TLS and names. A request counts as lost unless it is answered with 200
and the translation that the first server gave. The negative control, --no-retry, takes the retries out of the file: some are lost then.
Everything is on 127.0.0.1 and ends with the script.
"""

import argparse
import http.client
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from serve_process import Server

DEPLOY = Path(__file__).parents[1] / "deploy"
ONES = "one two three four five six seven eight nine".split()
TEXTS = [f"{tens} {ones}" for tens in ("twenty", "thirty", "forty", "fifty") for ones in ONES]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def haproxy_file(ports: list[int], port: int, retry: bool) -> str:
    text = (DEPLOY / "haproxy.cfg").read_bytes().decode().replace("bind :8080", f"bind 127.0.0.1:{port}")
    servers = "\n".join(f"    server s{number} 127.0.0.1:{each}" for number, each in enumerate(ports))
    text = re.sub(r"(    server \S+ \S+\n)+", lambda _: f"{servers}\n", text)
    return text if retry else re.sub(r"^ +(retries|option redispatch|retry-on|option httpchk) .*\n", "", text, flags=re.MULTILINE)


def nginx_file(ports: list[int], port: int, retry: bool) -> str:
    """Of Debian's 1.22, which knows neither `http2 on` nor `resolve`; without TLS."""
    text = (DEPLOY / "nginx.conf").read_bytes().decode()
    text = re.sub(r"^ +(resolver|ssl_\S+|http2|add_header Strict\S*) .*\n", "", text, flags=re.MULTILINE)
    servers = " ".join(f"server 127.0.0.1:{each} max_fails=0;" for each in ports)
    text = re.sub(r"server limelight:5000 resolve max_fails=0;", servers, text)
    text = text.replace("listen 8443 ssl;", f"listen 127.0.0.1:{port};").replace("limit_conn each 32;", "")
    return text if retry else re.sub(r"proxy_next_upstream error.*;", "proxy_next_upstream off;", text)


@contextmanager
def proxy(kind: str, ports: list[int], retry: bool) -> Iterator[int]:
    if shutil.which(kind) is None:
        sys.exit(f"{kind} is not installed here")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        text = (haproxy_file if kind == "haproxy" else nginx_file)(ports, port, retry)
        place = Path(folder, "proxy.conf")
        place.write_bytes(text.replace("/tmp/", f"{folder}/").encode())
        command = ["haproxy", "-f", str(place)] if kind == "haproxy" else ["nginx", "-c", str(place), "-g", "daemon off;"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2.5)  # two health checks
            yield port
        finally:
            process.terminate()
            process.wait()


def ask(port: int, text: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90)
    try:
        body = json.dumps({"q": text, "source": "en", "target": "de"})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = answer.read()
        return answer.status, json.loads(content).get("translatedText", "") if answer.status == 200 else ""
    except (OSError, http.client.HTTPException) as error:
        return 0, type(error).__name__
    finally:
        connection.close()


def load(port: int, requests: int, clients: int, disturb: Callable[[threading.Event], None], wanted: dict[str, str]) -> Counter[str]:
    """What the requests ended with, while `disturb` does its work until they are done."""
    found: Counter[str] = Counter()
    left, lock, over = iter(range(requests)), threading.Lock(), threading.Event()

    def client() -> None:
        while (number := next_of(left, lock)) is not None:
            text = TEXTS[number % len(TEXTS)]
            status, said = ask(port, text)
            with lock:
                found["answered" if (status, said) == (200, wanted[text]) else f"{status} {said}"[:40]] += 1

    threads = [threading.Thread(target=client) for _ in range(clients)]
    disturber = threading.Thread(target=disturb, args=(over,))
    for thread in (*threads, disturber):
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        over.set()
        disturber.join()
    return found


def next_of(numbers: Iterator[int], lock: threading.Lock) -> int | None:
    with lock:
        return next(numbers, None)


class Fleet:
    """A fleet is servers of one bundle, each at a port that stays its own."""

    def __init__(self, bundle: str, size: int) -> None:
        self.bundle, self.ports = bundle, [free_port() for _ in range(size)]
        self.servers: list[Server] = []
        self.ready: list[float] = []  # seconds from the loss of one to its answering again
        self.turns = 0

    def start(self, port: int) -> Server:
        command = [sys.executable, "-m", "limelight", "serve", self.bundle, "--threads", "1", "--port", str(port), "--json"]
        return Server(command)

    def disturb(self, number: signal.Signals) -> Callable[[threading.Event], None]:
        """Each in turn is sent the signal and started again, until it is over; with one always in rest."""

        def work(over: threading.Event) -> None:
            while not over.wait(2.0):
                at = self.turns % len(self.servers)
                began = time.monotonic()
                self.servers[at].process.send_signal(number)
                self.servers[at].process.wait()
                self.servers[at] = self.start(self.ports[at])
                self.ready.append(time.monotonic() - began)
                self.turns += 1

        return work

    def close(self) -> None:
        for server in self.servers:
            server.process.kill()
            server.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--proxy", choices=("haproxy", "nginx"), default="haproxy")
    parser.add_argument("--no-retry", action="store_true", help="the negative control")
    asked = parser.parse_args()
    fleet = Fleet(asked.bundle, asked.servers)
    lost = 0
    try:
        fleet.servers += map(fleet.start, fleet.ports)
        wanted = {text: ask(fleet.ports[0], text)[1] for text in TEXTS}
        with proxy(asked.proxy, fleet.ports, not asked.no_retry) as port:
            for number, name in ((signal.SIGKILL, "kill -9"), (signal.SIGTERM, "SIGTERM")):
                fleet.turns, fleet.ready = 0, []
                found = load(port, asked.requests, asked.clients, fleet.disturb(number), wanted)
                lost += asked.requests - found["answered"]
                if not fleet.turns:
                    sys.exit("all was answered before a server was killed; ask for more with --requests")
                again = f"ready again within {max(fleet.ready, default=0):.1f} s"
                print(
                    f"{asked.proxy}, {name} {fleet.turns} times: {found['answered']} of {asked.requests} answered; {again}; {dict(found)}"
                )
    finally:
        fleet.close()
    sys.exit(bool(lost) != asked.no_retry)


if __name__ == "__main__":
    main()
