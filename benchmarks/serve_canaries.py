"""Nothing that a user sends is written down (AT-24).

    python benchmarks/serve_canaries.py --requests 1000

Every request carries a word of its own that no other text has: in the text, a language, a name of a file or model, a query, a header,
a key, a path, a body that is not understood, or a text that makes the engine fail with an error that quotes it. Then everything that
the server wrote is searched for these words: its log, its metrics, and its folder for temporary files.
"""

import argparse
import json
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parent))
import serve_numbers as numbers
from serve_client import request
from serve_load import Load
from serve_process import Server, beside

CRASH = "crash me"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
FILE = {"Content-Type": "multipart/form-data; boundary=limit"}
NASTY = ("\r\n", "\x1b[31m", "\u2028", "<script>", "{}%s")  # what breaks lines, screens and formats


def canary() -> str:
    return f"canary{secrets.token_hex(8)}"


def _json(path: str, **fields: object) -> bytes:
    return request(path, json.dumps(fields).encode())


def _file(name: str, text: str, target: str = "de") -> bytes:
    def part(field: str, value: str, more: str = "") -> str:
        return f'--limit\r\nContent-Disposition: form-data; name="{field}"{more}\r\n\r\n{value}\r\n'

    parts = part("source", "en") + part("target", target) + part("file", text, f'; filename="{name}"')
    return request("/translate_file", f"{parts}--limit--\r\n".encode(), headers=FILE)


# What is wanted is an answer of any kind, also a refusal; each is a way for a word of the user's into a log.
WAYS: dict[str, Callable[[str], bytes]] = {
    "text": lambda word: _json("/api/v1/translate", text=f"one {word}"),
    "text with line breaks": lambda word: _json("/api/v1/translate", text=f"one{NASTY[0]}{word}{NASTY[1]}{NASTY[2]}two"),
    "streamed text": lambda word: _json("/api/v1/translate", text=f"one {word}", stream=True),
    "q": lambda word: _json("/translate", q=f"{word} two", source="en", target="de", alternatives=1),
    "DeepL's text": lambda word: _json("/v2/translate", text=[f"three {word}"], target_lang="DE"),
    "query": lambda word: request(f"/translate?q={word}&source=en&target=de", method="POST"),
    "form": lambda word: request("/translate", f"q={word}&source=en&target=de".encode(), headers=FORM),
    "html": lambda word: _json("/translate", q=f"<b>one</b> {word}{NASTY[3]}", source="en", target="de", format="html"),
    "language": lambda word: _json("/translate", q="one", source=word[:30], target="de"),
    "format": lambda word: _json("/translate", q="one", source="en", target="de", format=word),
    "model": lambda word: _json("/api/v1/translate", text="one", model=word),
    "name of a key": lambda word: _json("/api/v1/translate", text="one", **{word: 1}),
    "glossary": lambda word: _json("/api/v1/translate", text="one", glossary={word: word}),
    "prefix": lambda word: _json("/api/v1/translate", text="one", prefix=word),
    "broken JSON": lambda word: request("/translate", f'{{"q": "{word}'.encode()),
    "JSON with a key twice": lambda word: request("/api/v1/translate", f'{{"{word}": 1, "{word}": 2}}'.encode()),
    "too long a text": lambda word: _json("/api/v1/translate", text=word * 400),
    "path": lambda word: request(f"/{word}/{quote(NASTY[0])}"),
    "download": lambda word: request(f"/download_file/{word}.txt"),
    "name of a model in the path": lambda word: request(f"/api/v1/models/{word}"),
    "header": lambda word: request("/languages", headers={"User-Agent": word, "X-Request-Id": word, "Referer": word}),
    "trace header": lambda word: request("/languages", headers={"traceparent": word, "X-Trace-ID": word}),
    "host": lambda word: request("/languages", headers={"X-Forwarded-Host": word, "X-Forwarded-For": word}),
    "api_key": lambda word: _json("/translate", q="one", source="en", target="de", api_key=word),
    "bearer": lambda word: request("/languages", headers={"Authorization": f"Bearer {word}"}),
    "DeepL's key": lambda word: request("/v2/usage", headers={"Authorization": f"DeepL-Auth-Key {word}"}),
    "cookie": lambda word: request("/languages", headers={"Cookie": f"session={word}"}),
    "detect": lambda word: _json("/detect", q=f"this is {word}"),
    "tokenize": lambda word: _json("/api/v1/tokenize", text=word),
    "score": lambda word: _json("/api/v1/score", source=word, target=word),
    "suggest": lambda word: _json("/suggest", q=word, s=word, source="en", target="de"),
    "name of a file": lambda word: _file(f"{word}.txt", "one"),
    "kind of a file": lambda word: _file(f"one.{word}", "one"),
    "file": lambda word: _file("one.txt", f"one {word}"),
    "HTML file": lambda word: _file("one.html", f"<p>one {word}"),
    "broken XLIFF": lambda word: _file("one.xliff", f"<xliff><{word}>"),
    "crash": lambda word: _json("/api/v1/translate", text=f"{CRASH} {word}"),
    "crash, LibreTranslate": lambda word: _json("/translate", q=f"{CRASH} {word}", source="en", target="de"),
    "crash, DeepL": lambda word: _json("/v2/translate", text=[f"{CRASH} {word}"], target_lang="DE"),
    "crash, streamed": lambda word: _json("/api/v1/translate", text=f"{CRASH} {word}", stream=True),
    "crash, file": lambda word: _file("one.txt", f"{CRASH} {word}"),
    "deadline": lambda word: _json("/api/v1/translate", text=f"one {word}", timeout=0.001),
}  # fmt: skip


@dataclass(frozen=True)
class Privacy:
    requests: int
    unanswered: int
    failed_on_purpose: int  # answers of 500: the crashes happened
    leaks: int  # words found
    where: str
    lines_missing: int  # of the log: one request, one line
    lines_broken: int  # that are no JSON
    files_left: int
    control: int  # words found in what was planted


def leaks(words: Sequence[str], places: dict[str, bytes]) -> dict[str, set[str]]:
    """Which words are where, also if they were escaped, in capitals, or cut."""
    found = {}
    for name, content in places.items():
        lowered = content.lower()
        found[name] = {word for word in words if word[:20].encode() in lowered}
    return found


def measure(load: Load, count: int, core: int | None = None) -> Privacy:
    with tempfile.TemporaryDirectory() as place:
        command = beside("serve_strange.py", numbers.BUNDLE, "queue.wait_seconds=600", "--fails", CRASH)
        with Server(command, core, {"TMPDIR": place}) as server:
            words, ways = [canary() for _ in range(count)], list(WAYS.values())
            raws = [ways[number % len(ways)](word) for number, word in enumerate(words)]
            answers = load.closed(server.port, raws, 8).answers
            (metrics,) = load.closed(server.port, [request("/metrics")], 1).answers
            time.sleep(1.0)
            log = server.log
            left = [path for path in Path(place).rglob("*") if path.is_file()]
            places = {"log": log, "metrics": metrics.body, **{path.name: path.read_bytes() for path in left}}
            places["names of files"] = " ".join(path.name for path in left).encode()
        found = leaks(words, places)
        lines = [line for line in log.split(b"\n") if line.startswith(b"{")]
        broken = [line for line in log.split(b"\n")[:-1] if not _is_json(line)]
        requests = sum(re.search(rb'"route"', line) is not None for line in lines)
        assert metrics.status == 200, "there are no metrics to look into"
        return Privacy(
            count,
            sum(answer.lost is not None for answer in answers),
            sum(answer.status == 500 for answer in answers),
            sum(map(len, found.values())),
            ", ".join(name for name, some in found.items() if some) or "nowhere",
            count + 1 - requests,
            len(broken),
            len(left),
            len(leaks(words, {"planted": words[0].upper().encode() + b" " + words[1].encode()})["planted"]),
        )


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--server-core", type=int)
    args = parser.parse_args()
    with Load() as load:
        found = measure(load, args.requests, args.server_core)
    print("\n".join(f"{each.name:18s} {getattr(found, each.name)}" for each in fields(found)))


if __name__ == "__main__":
    main()
