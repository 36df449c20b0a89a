"""An OPUS of one's own: its API and its store of archives, on a port of this machine."""

import io
import json
import re
import threading
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TEXT = {
    "Tatoeba.de-en.de": "".join(f"Satz {n}.\n" for n in range(500)).encode(),
    "Tatoeba.de-en.en": "".join(f"Sentence {n}.\n" for n in range(500)).encode(),
    "LICENSE": b"\n====\nCC-BY 2.0 FR\nSee https://tatoeba.org\n",
    "README": b"Tatoeba\n",
}


def pack(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


class SmallOpus:
    """`archives[(corpus, version, "de-en")]` is what it has; `asked` what was asked of it. `how` may be:

    no-parts, no-size, less, more, hang-up, fail, away (leads to a file), other (an API that is none), plain (names an unsafe address)
    """

    def __init__(self) -> None:
        self.archives: dict[tuple[str, str, str], bytes] = {("Tatoeba", "v2023-04-12", "de-en"): pack(TEXT)}
        self.asked: list[str] = []
        self.how = ""
        opus = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                opus.answer(self)

            do_HEAD = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        split = urlsplit(request.path)
        self.asked.append(f"{request.command} {request.path} {request.headers.get('Range') or ''}".strip())
        if split.path == "/opusapi/":
            asked = {key: value[0] for key, value in parse_qs(split.query).items()}
            _send(request, 200, b"<html>" if self.how == "other" else json.dumps({"corpora": self._list(asked)}).encode())
            return
        key = tuple(split.path.strip("/").removesuffix(".zip").split("/"))
        if key not in self.archives:
            _send(request, 404, b"")
        else:
            self._give(request, self.archives[key])  # type: ignore[index]

    def _list(self, asked: dict[str, str]) -> list[dict[str, Any]]:
        assert asked["preprocessing"] == "moses"
        found = [
            (corpus, version, pair)
            for corpus, version, pair in self.archives
            if (corpus, pair) == (asked["corpus"], f"{asked['source']}-{asked['target']}") and asked["version"] in ("latest", version)
        ]
        store = "file:///etc" if self.how == "plain" else self.address
        return [
            {"url": f"{store}/{'/'.join(key)}.zip", "size": len(self.archives[key]) // 1024 + 1, "latest": "True", "corpus": key[0]}
            for key in found
        ]

    def _give(self, request: BaseHTTPRequestHandler, content: bytes) -> None:
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range") or "")
        if self.how == "fail" and request.command == "GET" and not wanted:
            _send(request, 503, b"")
        elif self.how == "away" and request.command == "GET" and not wanted:
            _send(request, 302, b"", {"Location": "file:///etc/passwd"})
        elif self.how == "no-size":
            _send(request, 200, content, length=-1)
        elif wanted and self.how != "no-parts":
            _send(request, 206, content[int(wanted[1]) : int(wanted[2]) + 1])
        elif request.command == "GET" and self.how == "hang-up":
            _send(request, 200, content[: len(content) // 2], length=len(content))
            request.close_connection = True
        elif request.command == "GET" and self.how in ("less", "more"):
            _send(request, 200, content[:-9] if self.how == "less" else content + b"123")
        else:
            _send(request, 200, content, {} if self.how == "no-parts" else {"Accept-Ranges": "bytes"})


def _send(
    request: BaseHTTPRequestHandler, status: int, content: bytes, headers: dict[str, str] | None = None, length: int | None = None
) -> None:
    request.send_response(status)
    for name, value in {**(headers or {}), "Content-Length": str(len(content) if length is None else length)}.items():
        if value != "-1":
            request.send_header(name, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(content)
