"""A server whose engine is strange on purpose: slow, or failing. All the rest is the real one.

    python benchmarks/serve_strange.py FOLDER queue.batch_pieces=16 --slow 0.3 --reached FILE
    python benchmarks/serve_strange.py FOLDER --fails "crash me"

--slow      each batch takes at least so many seconds
--reached   receives a line of JSON for each batch that reaches the engine: {"at": 71.3, "sources": [[5, 6, 7], ...]}
--speed     pieces a second that the queue is told to begin with
--fails     a batch with these words in it fails, with an error that quotes the whole text
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from limelight.bundle import read
from limelight.cli.settings_arguments import put_setting
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Outcome, Request
from limelight.engines.engine import Engine
from limelight.serving.http.lifecycle import serve
from limelight.serving.middleware.logs import json_lines
from limelight.serving.queue.models import Models, ServedModel
from limelight.serving.server import Server
from limelight.serving.settings import ServeSettings
from limelight.translator.loading import open_engines
from limelight.translator.translate import Translator

SPEED = 1e9  # pieces a second that the queue is told: nothing is refused because it would take long, so that what waits can be watched


class Slowed:
    """All that the engine is, and every batch written down before it begins."""

    def __init__(self, engine: Engine, seconds: float, reached: Path | None) -> None:
        self.engine, self.seconds = engine, seconds
        self.reached = reached.open("wb", buffering=0) if reached is not None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        began = time.monotonic()
        if self.reached is not None:
            sources = [list(request.source) for request in requests]
            self.reached.write(json.dumps({"at": began, "sources": sources}).encode() + b"\n")
        found = self.engine.search(requests, settings)
        time.sleep(max(0.0, self.seconds - (time.monotonic() - began)))
        return found


class Failing(Translator):
    words: str | None = None

    def begin(self, asked: Sequence[Any], *rest: Any) -> list[Any]:
        for each in asked:
            if self.words is not None and self.words in each.care.given:
                raise RuntimeError(f"cannot translate {each.care.given!r}")
        return super().begin(asked, *rest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("settings", nargs="*", help="section.key=value")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--reached", type=Path)
    parser.add_argument("--fails")
    parser.add_argument("--speed", type=float, default=SPEED)
    args = parser.parse_args()
    values: dict[str, Any] = {"port": 0, "threads": 1, "page": False, "metrics": True}
    for written in args.settings:
        put_setting(values, *written.split("=", 1))
    settings, bundle = ServeSettings(**values), read(args.folder)
    engine: Any = Slowed(open_engines(bundle, "cpu", None, 1, None).first, args.slow, args.reached)
    translator = Failing(engine, bundle.settings, bundle.source_tokenizer, bundle.target_tokenizer)
    translator.words = args.fails
    made = Server.of(Models([ServedModel(args.folder.name, translator, args.speed)]), settings, json_lines(sys.stderr.buffer))
    sys.exit(
        serve(
            made.app,
            settings,
            made.service,
            started=lambda address: print(json.dumps({"address": address}), flush=True),
        )
    )


if __name__ == "__main__":
    main()
