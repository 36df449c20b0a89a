"""A visit to an exported page with Firefox, as web/measure/local.mjs makes it with Chromium; it prints what was found as JSON.

    python benchmarks/web_firefox.py FOLDER SINGLE.html "a sentence" "its translation" [PICTURES]

Firefox is driven by its own Marionette over a socket of this machine, which needs no driver: a message is
`length:[0, id, command, values]`, an answer `length:[1, id, error, result]`. Of axe-core and of narrower windows Chromium tells.
"""

import argparse
import base64
import contextlib
import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from limelight.interop.web.browser import QUIET

PATIENCE = 300.0  # seconds for anything to appear
CHANGED = (".uint8.onnx", "worker.js", "ort.wasm", "pieces.model")
WORDS = "return (document.querySelector('.words') || {}).innerText || ''"
FILL = "const t = document.querySelector('textarea'); t.value = arguments[0]; t.dispatchEvent(new Event('input', {bubbles: true}))"
SURE = "return document.querySelectorAll('.words:not(.stale) span[data-level]').length"
FIND = "const it = [...document.querySelectorAll('button')].find((some) => some.innerText.trim().startsWith(arguments[0]))"
PRESS = f"{FIND}; it?.click(); return !!it"
COUNTS = "return [document.querySelectorAll('fieldset label').length, document.querySelectorAll('canvas').length]"
DARK = "Services.prefs.setIntPref('layout.css.prefers-color-scheme.content-override', arguments[0])"
MUTE = """
const heads = document.querySelector('section select'), many = heads.options.length;
for (let at = 0; at < many; at++) {
  heads.value = String(at); heads.dispatchEvent(new Event('change', {bubbles: true}));
  await new Promise((next) => setTimeout(next, 50));
  const light = document.querySelector('input[type=range]');
  light.value = '0'; light.dispatchEvent(new Event('change', {bubbles: true}));
}
"""


class Firefox:
    """A headless Firefox with a profile of its own, which ends with it."""

    def __init__(self, browser: str) -> None:
        self.number, self.profile = 0, Path(tempfile.mkdtemp())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        prefs = [f'user_pref("{name}", false);' for name in QUIET] + [f'user_pref("marionette.port", {port});']
        (self.profile / "user.js").write_text("\n".join(prefs), "utf-8")
        command = [browser, "--headless", "--no-remote", "--marionette", "--remote-allow-system-access", "--profile", str(self.profile)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.line = socket.socket()
        try:
            self.line = wait(lambda: connect(port), "Firefox")
            self.read()
            self.version = self.ask("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})["capabilities"]["browserVersion"]
            self.ask("WebDriver:SetTimeouts", {"script": int(PATIENCE * 1000), "pageLoad": int(PATIENCE * 1000)})
        except BaseException:
            self.end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.end()

    def end(self) -> None:
        self.line.close()
        self.process.terminate()
        self.process.wait(30)
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, command: str, values: dict[str, Any]) -> Any:
        self.number += 1
        message = json.dumps([0, self.number, command, values]).encode()
        self.line.sendall(str(len(message)).encode() + b":" + message)
        _, number, error, result = self.read()
        if error or number != self.number:
            raise RuntimeError(f"{command}: {error}")
        return result

    def read(self) -> Any:
        size = b""
        while (sign := self.receive(1)) != b":":
            size += sign
        message = b""
        while len(message) < int(size):
            message += self.receive(int(size) - len(message))
        return json.loads(message)

    def receive(self, most: int) -> bytes:
        if not (received := self.line.recv(most)):
            raise ConnectionError("Firefox ended before it answered")
        return received

    def run(self, script: str, *values: Any) -> Any:
        """In the page; a script may await."""
        whole = f"const done = arguments[arguments.length - 1]; (async function () {{ {script} }}).apply(null, arguments).then(done)"
        return self.ask("WebDriver:ExecuteAsyncScript", {"script": whole, "args": list(values)})["value"]

    def open(self, address: str) -> None:
        self.ask("WebDriver:Navigate", {"url": address})

    def press(self, button: str) -> None:
        """The button whose text begins so, when it is there."""
        wait(lambda: self.run(PRESS, button), button)

    def translate(self, sentence: str) -> str:
        self.run(FILL, sentence)
        wait(lambda: self.run(SURE), "a translation")
        return str(self.run(WORDS)).strip()

    def show_dark(self, dark: bool) -> None:
        self.ask("Marionette:SetContext", {"value": "chrome"})
        self.ask("WebDriver:ExecuteScript", {"script": DARK, "args": [0 if dark else 1]})
        self.ask("Marionette:SetContext", {"value": "content"})

    def take_picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("WebDriver:TakeScreenshot", {"full": True})["value"]))


def connect(port: int) -> socket.socket | None:
    with contextlib.suppress(OSError):
        return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    return None


def wait(found: Any, what: str) -> Any:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if value := found():
            return value
        time.sleep(0.2)
    raise TimeoutError(f"{what} has not come in {PATIENCE:.0f} s")


class FolderHandler(SimpleHTTPRequestHandler):
    """Serves a folder; of the file whose name ends with `changed[0]` one byte is another."""

    def __init__(self, *arguments: Any, changed: list[str], **named: Any) -> None:
        self.changed = changed
        super().__init__(*arguments, **named)

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        with contextlib.suppress(ConnectionError):  # a page that refuses one file hangs up on the others
            if not (self.changed and path.name.endswith(self.changed[0])):
                super().do_GET()
                return
            content = bytearray(path.read_bytes())
            content[len(content) // 2] ^= 1
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""


@contextlib.contextmanager
def served(folder: Path, changed: list[str]) -> Iterator[str]:
    """Each server is a new address, so nothing that was kept of another is used."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(FolderHandler, directory=str(folder), changed=changed)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def visit(browser: str, folder: Path, single: Path, sentence: str, wanted: str, pictures: Path | None) -> dict[str, Any]:
    with Firefox(browser) as firefox:
        found: dict[str, Any] = {"browser": f"Firefox {firefox.version}"}
        with served(folder, []) as address:
            firefox.open(address)
            firefox.press("Download")
            found["online"] = firefox.translate(sentence) == wanted
            found["alternatives"], found["heat_maps"] = firefox.run(COUNTS)
            firefox.run(MUTE)
            found["dark_differs"] = bool(wait(lambda: firefox.run(SURE) and firefox.run(WORDS).strip() != wanted, "another translation"))
            firefox.run("await navigator.serviceWorker.ready; await new Promise((next) => setTimeout(next, 500))")
        firefox.open(address)  # the server is gone
        found["offline"] = firefox.translate(sentence) == wanted
        found["refused"] = 0
        for name in CHANGED:
            with served(folder, [name]) as address:
                firefox.open(address)
                firefox.press("Download")
                said = wait(lambda: firefox.run("return document.querySelector('[role=alert]')?.innerText"), "a refusal")
                found["refused"] += "was changed" in said
        firefox.open(single.resolve().as_uri())
        found["file"] = firefox.translate(sentence) == wanted
        for dark in (False, True) if pictures else ():
            firefox.show_dark(dark)
            for width in (500, 1280):
                firefox.ask("WebDriver:SetWindowRect", {"width": width, "height": 1000})
                pictures.mkdir(parents=True, exist_ok=True)
                firefox.take_picture(pictures / f"firefox-{width}-{'dark' if dark else 'light'}.png")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("single", type=Path)
    parser.add_argument("sentence")
    parser.add_argument("wanted")
    parser.add_argument("pictures", type=Path, nargs="?")
    parser.add_argument("--browser", default="firefox-esr")
    asked = parser.parse_args()
    print(json.dumps(visit(asked.browser, asked.folder, asked.single, asked.sentence, asked.wanted, asked.pictures), indent=1))


if __name__ == "__main__":
    main()
