"""Who gets in without a key? (AT-08)

    python benchmarks/serve_exposure.py

Every route that the application has, with every method, and with no key, a wrong one, the right one without its end, and the right one:
only /healthz, /readyz and /languages answer without.
"""

import argparse
import io
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from limelight.serving.access.keys import Keys
from limelight.serving.queue.models import Models, ServedModel
from limelight.serving.server import Server as Made
from limelight.serving.settings import ServeSettings
from limelight.translator import Translator
from serve_client import Answer, request
from serve_load import Load
from serve_process import Server, limelight

OPEN = ("/healthz", "/readyz", "/languages")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
BODY = b'{"q": "one", "text": ["one"], "source": "en", "target": "de", "target_lang": "DE", "side": "source"}'


@dataclass(frozen=True)
class Exposed:
    cells: int  # route, method, key
    let_in: list[str]  # that answered without a good key
    shut_out: list[str]  # that did not answer with one
    control: int  # cells that answer when no key is asked for


def routes(settings: ServeSettings) -> list[str]:
    """The paths of the application with these settings, the names in them filled in."""
    with Translator.load(numbers.BUNDLE, threads=1) as translator:
        app = Made.of(Models([ServedModel("numbers", translator, 1e6)]), settings, io.BytesIO()).app
        found = {path for route in app.routes for path in paths(route)}
    return sorted(found)


def paths(route: object) -> Iterator[str]:
    """Routers may hold routers."""
    for inner in getattr(getattr(route, "original_router", route), "routes", None) or []:
        yield from paths(inner)
    path = getattr(route, "path", None)
    if path:
        yield "/".join("numbers" if part.startswith("{") else part for part in path.split("/"))


def asked(path: str, method: str, key: str | None) -> bytes:
    name = "DeepL-Auth-Key" if path.startswith("/v2/") else "Bearer"
    headers = {} if key is None else {"Authorization": f"{name} {key}"}
    return request(path, BODY if method not in ("GET", "HEAD") else b"", method=method, headers=headers)


def matrix(load: Load, core: int | None = None) -> Exposed:
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "keys.toml")
        key = Keys.add_key(file, "tester")
        table = routes(ServeSettings(keys=file, metrics=True))
        keys = {"none": None, "wrong": "x" * len(key), "truncated": key[:-1], "right": key}
        cells = [(path, method, whose) for path in table for method in METHODS for whose in keys]
        bundle = (numbers.BUNDLE, "--threads", 1, "--metrics")
        with Server(limelight(*bundle, "--api-key-file", file), core) as server:
            found = _answers(load, server, [asked(path, method, keys[whose]) for path, method, whose in cells])
        with Server(limelight(*bundle), core) as server:
            free = _answers(load, server, [asked(path, method, None) for path, method, whose in cells if whose == "none"])
    good = {cell: answer.status < 400 for cell, answer in zip(cells, found, strict=True)}
    let_in = [" ".join(cell) for cell, is_good in good.items() if is_good and cell[2] != "right" and cell[0] not in OPEN]
    shut = [
        " ".join(cell)
        for cell, answer in zip(cells, found, strict=True)
        if (cell[2] == "right" and answer.status in (401, 403) and "suggest" not in cell[0])
        or (cell[0] in OPEN and cell[1] == "GET" and not answer.good)
    ]
    return Exposed(len(cells), let_in, shut, sum(answer.status < 400 for answer in free))


def _answers(load: Load, server: Server, raws: list[bytes]) -> list[Answer]:
    return sorted(load.closed(server.port, raws, 4).answers, key=lambda answer: answer.number)


def listens_wide() -> str:
    """What it says when it is told to listen on all addresses without a key; empty if it does."""
    command = [*limelight(numbers.BUNDLE), "--host", "0.0.0.0"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    return done.stderr.decode() if done.returncode else ""


def listeners(server: Server) -> set[str]:
    """Addresses on which the process listens, in hexadecimal as the system tells them."""
    sockets = {path.readlink().name for path in Path(f"/proc/{server.pid}/fd").iterdir() if path.is_symlink()}
    inodes = {name[8:-1] for name in sockets if name.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in Path(f"/proc/{server.pid}/net/{table}").read_bytes().decode().split("\n")[1:-1]]
        found |= {row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes}
    return found


def timing(tries: int) -> float:
    """Welch's t of the time that a key takes which is all wrong, against one that is right in its first 31 characters."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "keys.toml")
        right = Keys.add_key(file, "tester")
        keys = Keys.load(file)
    near = right[:31] + "".join("x" if letter != "x" else "y" for letter in right[31:])
    times: dict[str, list[int]] = {"y" * len(right): [], near: []}
    random = Random(1)
    for _ in range(tries):
        for key in random.sample(list(times), 2):
            began = time.perf_counter_ns()
            keys.find(key)
            times[key].append(time.perf_counter_ns() - began)
    # The slowest are those in which the system did something else.
    kept = [sorted(taken)[: int(0.95 * tries)] for taken in times.values()]
    spread = math.sqrt(sum(statistics.variance(taken) / len(taken) for taken in kept))
    return abs(statistics.mean(kept[0]) - statistics.mean(kept[1])) / spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server-core", type=int)
    args = parser.parse_args()
    with Load() as load:
        found = matrix(load, args.server_core)
    print(f"{found.cells} cells, let in {found.let_in}, shut out {found.shut_out}; without keys {found.control} answer")
    print(f"told to listen wide: {listens_wide().strip()!r}")
    with Server(limelight(numbers.BUNDLE, "--no-ui"), args.server_core) as server:
        print(f"listens on {listeners(server)}")
    print(f"t of the time for keys: {timing(10_000):.2f}")


if __name__ == "__main__":
    main()
