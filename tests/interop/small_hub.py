"""A hub of one's own: the part of the hub's HTTP API that fetching and pushing need, from memory, on a port of this machine."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class SmallHub:
    """`repositories[id][file]` is what it has, a data set under "datasets/OWNER/NAME"; `asked` is what was asked of it.

    `licenses[id]`, and `broken`: files of which one byte is sent otherwise than listed, half of which is sent, or which lies elsewhere.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: dict[str, bool] = {}
        self.asked: list[str] = []
        self.licenses: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            do_HEAD = do_POST = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)
        self.asked.append(f"{request.command} {path}")
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        parts = path.strip("/").split("/")
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            self.repositories.setdefault(name, {})
            self.private[name] = asked.get("private") is True or asked.get("visibility") == "private"
            _say(request, {"url": f"{self.address}/{name}"})
        elif path == "/api/validate-yaml":  # the metadata of a card
            right = json.loads(body)["content"].startswith("---\nlanguage:\n")
            _say(request, {"errors": [] if right else [{"message": "no metadata"}], "warnings": []})
        elif parts[:2] == ["api", "models"] and "/".join(parts[2:4]) in self.repositories:
            self._about("/".join(parts[2:4]), parts[4:], body, request)
        elif parts[:2] == ["api", "datasets"] and "/".join(parts[1:4]) in self.repositories:
            self._about("/".join(parts[1:4]), parts[4:], body, request)
        elif parts[:1] == ["datasets"] and parts[3:4] == ["resolve"] and "/".join(parts[5:]) in self.repositories["/".join(parts[:3])]:
            self._send_file("/".join(parts[:3]), "/".join(parts[5:]), request)
        elif parts[2:3] == ["resolve"] and "/".join(parts[4:]) in self.repositories.get("/".join(parts[:2]), {}):
            if parts[3] not in ("main", COMMIT):
                _fail(request, "RevisionNotFound")
            else:
                self._send_file("/".join(parts[:2]), "/".join(parts[4:]), request)
        else:
            _fail(request, "EntryNotFound" if parts[2:3] == ["resolve"] else "RepoNotFound")

    def _send_file(self, name: str, file: str, request: BaseHTTPRequestHandler) -> None:
        content = self.repositories[name][file]
        how = self.broken.get(file)
        if how == "changed":
            content = bytes([content[0] ^ 1]) + content[1:]
        if how == "cut" and request.command == "GET":
            del self.broken[file]  # once
            request.send_response(200)
            for key, value in {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "Content-Length": str(len(content))}.items():
                request.send_header(key, value)
            request.end_headers()
            request.wfile.write(content[: len(content) // 2])
            request.close_connection = True
            return
        _give(request, content)

    def _about(self, name: str, rest: list[str], body: bytes, request: BaseHTTPRequestHandler) -> None:
        files = self.repositories[name]
        if rest[:1] == ["preupload"]:
            wanted = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in json.loads(body)["files"]]
            _say(request, {"files": wanted, "commitOid": COMMIT})
        elif rest[:1] == ["commit"]:
            for line in body.decode().strip().split("\n"):
                entry = json.loads(line)
                if entry["key"] == "file":
                    files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
            _say(request, {"commitUrl": f"{self.address}/{name}/commit/{COMMIT}", "commitOid": COMMIT})
        elif rest[:1] == ["tree"]:
            _say(
                request,
                [{"type": "file", "path": p, "size": len(c), "oid": hashlib.sha1(c).hexdigest()} for p, c in files.items()],
            )
        elif rest[:1] == ["revision"] and rest[1] not in ("main", COMMIT):
            _fail(request, "RevisionNotFound")
        else:
            _say(
                request,
                {
                    "id": name.removeprefix("datasets/"),
                    "modelId": name,
                    "sha": COMMIT,
                    "siblings": [_list_file(p, c) for p, c in files.items()],
                    "tags": [f"license:{self.licenses[name]}"] if name in self.licenses else [],
                },
            )


def _list_file(path: str, content: bytes) -> dict[str, Any]:
    """Large files have a SHA-256, small ones what git calls them."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    large = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return {"rfilename": path, "size": len(content), "blobId": blob} | ({"lfs": large} if path.endswith(".safetensors") else {})


def _say(request: BaseHTTPRequestHandler, value: Any) -> None:
    _send(request, 200, json.dumps(value).encode(), {"Content-Type": "application/json", "X-Repo-Commit": COMMIT})


def _give(request: BaseHTTPRequestHandler, content: bytes) -> None:
    _send(request, 200, content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": COMMIT})


def _fail(request: BaseHTTPRequestHandler, code: str) -> None:
    _send(request, 404, b"{}", {"X-Error-Code": code, "X-Error-Message": "there is none"})


def _send(request: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for name, value in {**headers, "Content-Length": str(len(content))}.items():
        request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)
