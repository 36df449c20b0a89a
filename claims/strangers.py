"""What the docs state about strangers: requests that are made to freeze a server, pages of other sites, clients without a key, placeholders
judged by gettext, and a useless translator that is called useless.

make claim-strangers            under a minute on 2 cores
make claim-strangers FULL=1     the campaign (benchmarks/campaign.py) as well: texts, documents, requests, kills, clocks; hours

Wants gettext (msgfmt), and reads the software strings from the folder that LIMELIGHT_DATA names.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("claims", "benchmarks", "tests/translator", "tests/documents")]

import judged_by_msgfmt as msgfmt
from random_weights import random_translator

from claim import Claims, run
from limelight.decoding.config import SearchSettings
from limelight.documents.document import translate_document
from limelight.evaluation.verdict import Bound, QualityEvidence, Use, judge
from serve_process import Server, limelight

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
DATA = Path(os.environ.get("LIMELIGHT_DATA", "."))
SECONDS = 1.0  # that the attacks give themselves; the server ends them then
NESTED = {"字" * (length + 1): "a" for length in range(200)}
ATTACKS: dict[str, dict[str, Any]] = {
    "words of a term that are hyphens": {
        "text": "one",
        "prefix": "-" * 80,
        "glossary": {"one": " ".join(["-"] * 30 + ["x"])},
    },
    "200 terms, each inside the next": {"text": "字" * 1900, "glossary": NESTED},
    "60 flags, beam 16": {"text": "🇩🇪" * 60, "beam": 16, "segment": False},
    "shouting, with stops": {"text": ["A. " * 1600] * 20},
    "placeholders without end": {"text": "%s " * 1500},
}
CAMPAIGN = {"texts": 40_000, "documents": 20_000, "requests": 20_000, "kills": 30, "clock": None, "run-damage": None}


def call(port: int, path: str, body: Any = None, **headers: str) -> int:
    """The status of the answer."""
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json", **headers})
    try:
        with urlopen(request, timeout=60) as answer:
            answer.read()
            return int(answer.status)
    except HTTPError as error:
        return error.code


class Probe:
    """Asks /healthz again and again, and remembers the longest wait."""

    def __init__(self, port: int) -> None:
        self.port, self.worst, self.over = port, 0.0, threading.Event()
        self.thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Probe":
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    def _run(self) -> None:
        while not self.over.wait(0.05):
            began = time.monotonic()
            call(self.port, "/healthz")
            self.worst = max(self.worst, time.monotonic() - began)


def attacks(claims: Claims) -> None:
    with Server(limelight(f"num={BUNDLE}", "--threads", 1)) as server:
        call(server.port, "/api/v1/translate", {"text": "one"})
        for name, body in ATTACKS.items():
            with Probe(server.port) as probe:
                call(server.port, "/api/v1/translate", {**body, "timeout": SECONDS})
                time.sleep(0.5)
                before = server.cpu_seconds
                time.sleep(0.5)
                after = server.cpu_seconds - before
            claims.at_most(f"{name}: longest wait of /healthz, s", probe.worst, 1)
            claims.at_most("... computed from 0.5 to 1 s after the answer, s", after, 0.25)
        foreign = {"Content-Type": "text/plain", "Sec-Fetch-Site": "cross-site", "Origin": "http://elsewhere.example"}
        status = call(server.port, "/api/v1/translate", {"text": "one"}, **foreign)
        claims.at_least("a page of another site: refused with", status, 403)
        claims.at_most("... and a program: answered with", call(server.port, "/api/v1/translate", {"text": "one"}), 200)
        server.signal()
        claims.ended_well("exit code after SIGTERM", server.ended(30) or 0)


def keys(claims: Claims, work: Path) -> None:
    made = [
        sys.executable,
        "-m",
        "limelight",
        "serve",
        "--make-key",
        "claim",
        "--api-key-file",
        str(work / "keys.toml"),
    ]
    subprocess.run(made, check=True, capture_output=True)
    with Server(limelight(f"num={BUNDLE}", "--threads", 1, "--api-key-file", work / "keys.toml")) as server:
        claims.at_most("languages of a server with keys, without one", call(server.port, "/languages"), 200)
        claims.at_least("a text without a key", call(server.port, "/api/v1/translate", {"text": "one"}), 401)
        large = {"q": "a" * 100_000, "source": "en", "target": "de"}  # a dialect whose key may stand in the body
        claims.at_least("100 kB without a key in a header", call(server.port, "/translate", large), 413)


def catalogue(claims: Claims) -> None:
    entries = [*islice(msgfmt.wicked(), 60), *islice(msgfmt.real(DATA), 20 if DATA.name else 0)]
    with random_translator() as translator, tempfile.TemporaryDirectory() as place:
        search = SearchSettings(beam=1)
        done = translate_document(msgfmt.catalogue(entries), "po", ("en", "de"), lambda t: translator.translate(t, search))
        said = msgfmt.complaints(done.data, Path(place))
    claims.at_most(f"what msgfmt -c holds against {len(entries)} entries, random weights", len(said), 0)


def useless(claims: Claims) -> None:
    evidence = QualityEvidence(chrf=Bound(8.0, 7.6), bleu=Bound(0.1, 0.0), sentences=500, degenerate=480, epochs=0.1)
    claims.at_most("BLEU 0.1: verdicts other than not usable", getattr(judge(evidence), "use", None) != Use.NOT_USABLE, 0)


def measure(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory() as place:
        attacks(claims)
        keys(claims, Path(place))
        catalogue(claims)
        useless(claims)
        for part, count in CAMPAIGN.items() if full else ():
            words = [sys.executable, str(ROOT / "benchmarks" / "campaign.py"), part, *([str(count)] if count else [])]
            claims.ended_well(f"campaign: {part}", subprocess.run(words, check=False, cwd=place).returncode)


if __name__ == "__main__":
    run(measure, __doc__)
