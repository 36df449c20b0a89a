"""A browser translates the probes of an export, headless and on this machine alone, to prove that the page does what torch does."""

import json
import os
import secrets
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Final

from limelight.bundle.bundle import Bundle
from limelight.engines.torch import TorchEngine
from limelight.errors import ModelFileError
from limelight.files import write_whole
from limelight.interop.parity import NONSENSE, Parity, ParityProbes, compare, plain_search, translate_probes
from limelight.runtime import count_threads, end_process
from limelight.translator.loading import specials
from limelight.translator.translate import Translator

BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge", "firefox", "firefox-esr")
# A new profile of Firefox would else open a page of welcome, and tell its makers of itself.
QUIET: Final = ("app.normandy.enabled", "browser.aboutwelcome.enabled", "datareporting.policy.dataSubmissionEnabled")
PATIENCE: Final = 600.0  # seconds for all probes
START: Final = 120  # seconds until the page is open; a browser in a sandbox that cannot read its profile may wait for ever
LARGEST: Final = 64 << 20  # bytes of an answer
JOBS: Final = "jobs"


def find_browsers() -> list[str]:
    return list(filter(None, map(shutil.which, BROWSERS)))


def prove_in_browser(
    bundle: Bundle, folder: Path, model: str, numbers: Sequence[str], probes: ParityProbes, browser: str
) -> list[Parity]:  # fmt: skip
    """The figures in each kind of numbers; an error when a translation is another than torch's beyond the bounds."""
    if probes.origin == NONSENSE:  # line breaks are cut in another way there, and marks of menus (_File, &File) are text
        plain = [text for text in probes.texts if text.isprintable() and not set("_&~^") & set(text)]
        probes = ParityProbes(plain or probes.texts, NONSENSE)
    ours = TorchEngine(bundle.load_model(), specials(bundle), bundle.settings.alignment, count_threads(None).value)
    wanted = translate_probes(bundle, ours, probes)
    views = probes.share_out(Translator(ours, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer))
    search = plain_search(bundle.settings.search)
    jobs = [
        {
            "model": model,
            "numbers": each,
            "source": view.settings.languages[0],
            "target": view.settings.languages[1],
            "names": _names(view),
            "beam": search.beam,
            "texts": [probes.texts[at] for at in places],
        }
        for each in numbers
        for view, places in views
    ]
    answers = iter(run_jobs(folder, jobs, browser)["results"])
    made = []
    for each in numbers:
        theirs = list(wanted)
        for _, places in views:
            for at, found in zip(places, next(answers), strict=True):
                theirs[at] = replace(wanted[at], text=found["text"], score=found["score"])
        made.append(compare(wanted, theirs, Path(browser).name, each, probes.origin))
    judged = [each for each in made if each.probe != NONSENSE or each.numbers == "float32"]  # others are measured, which is said
    if problems := [f"{parity.numbers}: {problem}" for parity in judged for problem in parity.problems()]:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ModelFileError(
            f"in a browser the export of {bundle.folder} does not translate as the bundle does, and was not kept:\n{listed}\n"
            f"{next(each for each in judged if each.problems()).advice}"
        )
    return made


def run_jobs(folder: Path, jobs: Sequence[dict[str, Any]], browser: str, patience: float = PATIENCE) -> dict[str, Any]:
    """What prove.html answers: for each job its translations, and how long things took. ChildProcessError: the browser does not start."""
    answers, word, begun = Queue[bytes](), secrets.token_urlsafe(16), threading.Event()
    asked = json.dumps(jobs, ensure_ascii=False).encode()
    handler = partial(ProofHandler, directory=str(folder), word=word, asked=asked, answers=answers, begun=begun)
    profiles = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # what a browser leaves running may still write there
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server, profiles as profile:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/{word}/prove.html#{JOBS}"
        flags = _flags(browser, Path(profile))
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            process = subprocess.Popen([browser, *flags, address], **quiet)  # type: ignore[call-overload]
        except OSError as error:
            server.shutdown()
            raise ChildProcessError(f"{browser} does not start: {error}") from None
        try:
            answer = _wait(answers, process, patience, browser, begun)
        finally:
            end_process(process)
            server.shutdown()
    found: dict[str, Any] = json.loads(answer)
    if "error" in found:
        raise ModelFileError(f"the page cannot translate in {browser}: {found['error'][:500]}")
    return found


class ProofHandler(SimpleHTTPRequestHandler):
    """A proof handler serves the folder, the jobs and the place for answers to whoever knows the word."""

    def __init__(
        self, *arguments: Any, word: str, asked: bytes, answers: "Queue[bytes]", begun: threading.Event, **named: Any
    ) -> None:  # fmt: skip
        self.word, self.asked, self.answers, self.begun = word, asked, answers, begun
        super().__init__(*arguments, **named)

    def translate_path(self, path: str) -> str:
        """Without the word there is nothing."""
        return super().translate_path(path.removeprefix(f"/{self.word}")) if path.startswith(f"/{self.word}/") else ""

    def do_GET(self) -> None:
        if self.path != f"/{self.word}/{JOBS}":
            super().do_GET()
            return
        self.begun.set()
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.asked)))
        self.end_headers()
        self.wfile.write(self.asked)

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length", "0"))
        welcome = self.path == f"/{self.word}/{JOBS}" and 0 < size <= LARGEST
        if welcome:
            self.answers.put(self.rfile.read(size))
        self.send_response(204 if welcome else 403)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing is logged: requests hold no text, and nobody reads them."""


def _flags(browser: str, profile: Path) -> list[str]:
    if "firefox" in Path(browser).name:
        write_whole(profile / "user.js", "".join(f'user_pref("{name}", false);\n' for name in QUIET).encode())
        return ["--headless", "--no-remote", "--profile", str(profile)]
    flags = ["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}"]
    return [*flags, "--no-sandbox"] if os.name != "nt" and os.geteuid() == 0 else flags  # as root Chromium starts in no other way


def _wait(
    answers: "Queue[bytes]", process: "subprocess.Popen[bytes]", patience: float, browser: str, begun: threading.Event
) -> bytes:  # fmt: skip
    for second in range(max(1, round(patience))):
        try:
            return answers.get(timeout=1)
        except Empty:
            code = process.poll()
            if not begun.is_set() and (code is not None or second >= START):
                how = "has not opened the page" if code is None else f"ended with code {code} before it opened the page"
                raise ChildProcessError(f"{browser} {how}; start it by hand") from None
            if code is not None:
                raise ModelFileError(f"{browser} ended with code {code} before it had translated; start it by hand to see why") from None
    raise ModelFileError(f"{browser} has not translated the probes in {patience:.0f} s; give fewer lines with --probe")


def _names(view: Translator) -> list[str]:
    tags, before = view.settings.tags, view.settings.source_begin
    return [] if tags is None else [name for name, number in tags.names.items() if number in before]
