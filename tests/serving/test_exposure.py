"""AT-08: who can reach a server, and what it answers to whom, on every route that it has."""

import asyncio
import io
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts
from starlette.responses import JSONResponse, Response

import warm_process
from limelight.errors import ConfigError
from limelight.serving.access.keys import Keys
from limelight.serving.http.lifecycle import bind_socket
from limelight.serving.middleware.logs import json_lines
from limelight.serving.queue.models import Models, load
from limelight.serving.server import Server
from limelight.serving.settings import ServeSettings

OPEN = {"/healthz", "/readyz"}
PUBLIC = ("/translate", "/languages", "/detect", "/frontend", "/health", "/spec", "/download_file", "/suggest", "/v2/")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
BODIES = (b"", b'{"q": "", "source": "en", "target": "de"}')
BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"


def test_a_server_that_others_can_reach_asks_for_a_key_or_for_a_clear_word(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--api-key-file"):
        ServeSettings(host="0.0.0.0")
    assert ServeSettings().host == "127.0.0.1"
    assert ServeSettings(host="0.0.0.0", keys=tmp_path / "keys.toml").wide


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    models = load([f"en-de={BUNDLE}"], threads=1)
    yield models
    models.close()


class Matrix:
    """Every route x method x key, with and without a body (AT-08 b)."""

    def __init__(self, models: Models, keys: Path | None) -> None:
        self.log = io.BytesIO()
        self.app = Server.of(models, ServeSettings(keys=keys, metrics=True), json_lines(self.log)).app
        self.asked = 0

    def paths(self) -> list[str]:
        templates = [str(each.path) for each in iter_route_contexts(self.app.routes)]
        found = [path.replace("{id}", "x").replace("{name}", "x") for path in templates]
        return sorted({*found, "/nothing", "/v2/nothing", "/translate/nothing"})

    async def violations(self, right: str, methods: Sequence[str] = METHODS) -> list[str]:
        keys = {"none": None, "wrong": "x" * len(right), "truncated": right[:-1], "right": right}
        found = []
        for path, method, name, body in itertools.product(self.paths(), methods, keys, BODIES):
            status, content = await self.answer(method, path, keys[name], body)
            if problem := self.problem(path, method, name, status, content):
                found.append(f"{method} {path} with {name} key: {status} {problem}")
        return found

    async def answer(self, method: str, path: str, key: str | None, body: bytes) -> tuple[int, bytes]:
        """Straight into the app, as a server would: two thousand times through a client take too long."""
        sent: list[Any] = []
        left = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return left.pop() if left else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"127.0.0.1:5000"), (b"content-type", b"application/json")]
        headers += [(b"content-length", str(len(body)).encode())] if body else []
        headers += [(b"authorization", f"Bearer {key}".encode())] if key else []
        asked = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": headers}
        await self.app({**asked, "scheme": "http", "root_path": "", "server": ("127.0.0.1", 5000)}, receive, send)
        return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])

    def problem(self, path: str, method: str, key: str, status: int, content: bytes) -> str | None:
        self.asked += 1
        line = json.loads(self.log.getvalue())
        self.log.seek(0)
        self.log.truncate()
        admitted = line.get("caller") == "forum"
        if path in OPEN or (path, method) == ("/languages", "GET"):  # names of languages, for clients that ask before
            return None if status < 500 else "failed"
        if method == "OPTIONS" and path.startswith(PUBLIC):
            return None if (status, content) == (204, b"") else "a browser cannot ask first"
        if line.get("refusal") == "unguarded":
            return "forgot to ask, and was closed"
        if key == "right":
            return None if admitted else "was not admitted"
        return "was admitted" if admitted or status < 400 else None


@pytest.mark.slow
def test_only_probes_are_answered_without_a_key_on_every_route_with_every_method(models: Models, tmp_path: Path) -> None:
    key = Keys.add_key(tmp_path / "keys.toml", "forum")
    matrix = Matrix(models, tmp_path / "keys.toml")
    assert {"/", "/translate", "/v2/translate", "/api/v1/translate", "/metrics", "/spec"} <= set(matrix.paths())
    assert asyncio.run(matrix.violations(key)) == []
    assert matrix.asked == len(matrix.paths()) * len(METHODS) * 4 * len(BODIES)


@pytest.mark.slow
def test_a_server_without_keys_would_fail_on_every_route(models: Models) -> None:
    """The control of the test above."""
    matrix = Matrix(models, None)
    found = asyncio.run(matrix.violations("k" * 43, ("GET", "POST")))
    for path in set(matrix.paths()) - OPEN - {"/languages"}:
        assert any(f" {path} with" in each for each in found), path
    assert any("GET /frontend/settings with wrong key: 200 was admitted" in each for each in found)


@pytest.mark.slow
def test_a_route_that_somebody_adds_without_asking_is_closed(models: Models, tmp_path: Path) -> None:
    key = Keys.add_key(tmp_path / "keys.toml", "forum")
    matrix = Matrix(models, tmp_path / "keys.toml")

    async def careless() -> Response:
        return JSONResponse({"secret": 1})

    for path in ("/translate/careless", "/v2/careless", "/api/v1/careless", "/careless"):
        matrix.app.add_api_route(path, careless, methods=["GET", "POST"])
        assert path in matrix.paths()
        assert asyncio.run(matrix.answer("POST", path, key, b"{}")) == (200, b'{"secret":1}')
        for body in (b"", b'{"api_key": "wrong"}'):
            status, content = asyncio.run(matrix.answer("POST", path, None, body))
            assert status >= 400 and b"secret" not in content


@pytest.mark.process
def test_by_default_the_socket_is_on_loopback() -> None:
    listener = bind_socket(ServeSettings().host, 0)
    try:
        assert listener.getsockname()[0] == "127.0.0.1"
    finally:
        listener.close()


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="reads the sockets of a process as Linux lists them")
def test_by_default_only_this_machine_can_connect() -> None:
    """AT-08 a: every listening socket of a real server is on loopback."""
    command = [sys.executable, "-m", "limelight", "serve", f"en-de={BUNDLE}", "--port", "0", "--json", "--threads", "1"]
    server = warm_process.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["address"]
        assert address.startswith("http://127.0.0.1:")
        assert listening(server.pid) == [f"127.0.0.1:{address.rsplit(':', 1)[1]}"]
    finally:
        server.terminate()
        server.communicate(timeout=30)


def listening(pid: int) -> list[str]:
    """Addresses of all sockets that a process listens on, of both families."""
    handles = [str(each.readlink()) for each in Path(f"/proc/{pid}/fd").iterdir() if each.is_symlink()]
    mine = {handle.removeprefix("socket:[").removesuffix("]") for handle in handles if handle.startswith("socket:")}
    found = []
    for table in ("tcp", "tcp6"):
        for row in Path(f"/proc/net/{table}").read_bytes().decode().split("\n")[1:-1]:
            fields = row.split()
            if fields[3] == "0A" and fields[9] in mine:
                host, port = fields[1].split(":")
                dotted = ".".join(str(byte) for byte in reversed(bytes.fromhex(host))) if table == "tcp" else host
                found.append(f"{dotted}:{int(port, 16)}")
    return found


def test_a_store_beside_a_folder_of_state_is_refused(tmp_path: Path) -> None:
    """What stands in the folder would silently count no more."""
    with pytest.raises(ConfigError, match="leave one out"):
        ServeSettings(store="sqlite:///a.db", state=tmp_path)
