"""Does every answer belong to its request? (AT-16 over HTTP)

    python benchmarks/serve_crossovers.py --requests 10000 --clients 16

Every text is another number. The clients take turns among the three dialects, so that answers of all of them share batches.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from limelight.translator import Translator
from serve_client import Answer, request
from serve_load import Load
from serve_process import Server, limelight


@dataclass(frozen=True)
class Dialect:
    path: str
    body: Callable[[str], dict[str, Any]]
    text: Callable[[Any], str]

    def request(self, text: str) -> bytes:
        return request(self.path, json.dumps(self.body(text)).encode())


DIALECTS = (
    Dialect("/api/v1/translate", lambda text: {"text": text}, lambda found: found["results"][0]["text"]),
    Dialect("/translate", lambda text: {"q": text, "source": "en", "target": "de"}, lambda found: found["translatedText"]),
    Dialect("/v2/translate", lambda text: {"text": [text], "target_lang": "DE"}, lambda found: found["translations"][0]["text"]),
)  # fmt: skip


@dataclass(frozen=True)
class Crossed:
    """`crossed`: the answer to another request. `wrong`: to no request, and not what the text alone gives. `lost`: no answer."""

    requests: int
    crossed: int
    wrong: int
    lost: int
    slips: int  # of the model: it says the same when it translates the text alone


def judge(texts: Sequence[str], found: Sequence[str | None], alone: Callable[[str], str]) -> Crossed:
    """judge(["one", "two"], ["zwei", "eins"], ...) finds two that are crossed."""
    owner = {numbers.in_german(text): text for text in texts}
    crossed = wrong = slips = 0
    for text, translation in zip(texts, found, strict=True):
        if translation is None or translation == numbers.in_german(text):
            continue
        if translation == alone(text):
            slips += 1
        elif translation in owner:
            crossed += 1
        else:
            wrong += 1
    return Crossed(len(texts), crossed, wrong, sum(each is None for each in found), slips)


def measure(server: Server, load: Load, count: int, clients: int, seed: int = 1) -> Crossed:
    texts = numbers.drawn(count, seed)
    spoken = [DIALECTS[number % len(DIALECTS)] for number in range(count)]
    loaded = load.closed(server.port, [dialect.request(text) for dialect, text in zip(spoken, texts, strict=True)], clients)
    answers = sorted(loaded.answers, key=lambda answer: answer.number)
    assert [answer.number for answer in answers] == list(range(count))
    with Translator.load(numbers.BUNDLE, threads=1) as translator:
        return judge(texts, [text_of(answer, dialect) for answer, dialect in zip(answers, spoken, strict=True)],
                     lambda text: translator.translate([text], segment=True)[0].text)  # fmt: skip


def text_of(answer: Answer, dialect: Dialect) -> str | None:
    return dialect.text(json.loads(answer.body)) if answer.good else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--server-core", type=int)
    parser.add_argument("--client-core", type=int)
    args = parser.parse_args()
    serve = limelight(numbers.BUNDLE, "--threads", 1, "--no-ui")
    with Server(serve, args.server_core) as server, Load(args.client_core) as load:
        print(measure(server, load, args.requests, args.clients))


if __name__ == "__main__":
    main()
