"""What the docs state about the lighting desk: what is shown is what the model did, dimmers do what they say, and it is light to send.

make claim-desk                 under a minute on 2 cores, on the bundle of the tests
make claim-desk FULL=1          also `limelight demo` from nothing, and the page in a browser (Chromium, `make web` before): about 8 minutes
"""

import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims")]

import torch

from claim import Claims, run
from limelight.bundle import BundleSettings
from limelight.engines.torch import TorchEngine
from limelight.inspection.saving.page import PAGE
from limelight.inspection.trace import Trace
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.serving.desk.page import FOLDER
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator.translate import Translator

BUNDLE = ROOT / "tests" / "bundles" / "format-1"
TEXTS = ("one two three", "nine eight seven six five", "four", "zero zero one two nine five three")
KINDS = ("enc", "dec", "cross")


def true(claims: Claims, translator: Translator) -> None:
    """Of the JSON that a page gets, every number is compared with Python's by tests and by the flows of the page."""
    traces = [translator.trace(text) for text in TEXTS]
    sums = max(float(abs(trace.attention[kind].sum(-1) - 1).max()) for trace in traces for kind in KINDS)
    claims.at_most("attention: rows differ from a sum of 1 by", sums, 1e-5)
    ahead = max(float(np.triu(trace.attention["dec"], 1).max()) for trace in traces)
    claims.at_most("... what a piece sees of what comes after it", ahead, 0)
    claims.at_most("log-probability, forced pass against search", max(each.difference for each in traces), 1e-3)
    claims.at_most("all gates at 1: translations that differ", sum(map(different, traces, again(translator, 1.0))), 0)
    dark = [trace.target.text for trace in again(translator, 0.0, TEXTS[:1] * 2)]
    claims.at_least("all gates at 0: the translation differs (control)", dark[0] != traces[0].target.text, 1)
    claims.at_most("solo against the rest muted: largest difference", solo(translator), 0)
    blind = [translator.trace(text, gates={"cross.*.*": 0}) for text in ("one two three", "nine eight seven")]
    claims.at_most("all cross heads dark: two sources, two translations", different(*blind), 0)


def again(translator: Translator, gate: float, texts: tuple[str, ...] = TEXTS) -> list[Trace]:
    return [translator.trace(text, gates={"*": gate}) for text in texts]


def different(one: Trace, other: Trace) -> bool:
    same = one.target.text == other.target.text and one.target.logp == other.target.logp
    return not (same and [t.logp for t in one.target.tokens] == [t.logp for t in other.target.tokens])


def solo(translator: Translator) -> float:
    """cross.1.0 alone of its layer, said in two ways."""
    heads = translator.settings.model.num_heads
    alone = translator.trace(TEXTS[0], gates={"cross.1.*": 0, "cross.1.0": 1})
    muted = translator.trace(TEXTS[0], gates={f"cross.1.{head}": 0 for head in range(1, heads)})
    if alone.target.text != muted.target.text:
        return 1.0
    return max(abs(a.logp - b.logp) for a, b in zip(alone.target.tokens, muted.target.tokens, strict=True))


def light(claims: Claims, translator: Translator) -> None:
    """A model of 6 layers and 8 heads with random weights; 24 pieces on both sides."""
    tokenizer: Tokenizer = translator.tokenizers[0]
    config = ModelConfig(vocab_size=tokenizer.size, encoder_layers=6, decoder_layers=6, num_heads=8, d_model=128, d_ff=256)
    torch.manual_seed(1)
    settings = BundleSettings(languages=("en", "de"), model=config)
    large = Translator(TorchEngine(Transformer(config).eval()), settings, tokenizer, tokenizer)
    ids = [5 + number % (tokenizer.size - 8) for number in range(23)]
    words = ("one two three four five six seven eight nine zero " * 9).split(" ")
    text = next(text for n in range(90) if len(large.source_ids([text := " ".join(words[:n])])[0]) >= 23)
    trace = large.trace(text, target=ids)
    shape = trace.attention["cross"].shape
    payload = json.dumps(trace.as_json(), ensure_ascii=False).encode()
    claims.note(f"trace of 6 layers, 8 heads, {shape[2]} x {shape[3]} pieces, KB", len(payload) / 1000)
    claims.at_most("... compressed, KB", len(gzip.compress(payload)) / 1000, 60)
    text = " ".join(TEXTS)
    plain, traced = [], []
    for _ in range(7):  # in turns, since the speed of a shared machine moves
        plain.append(timed(lambda: translator.translate([text], segment=False)))
        traced.append(timed(lambda: translator.trace(text)))
    ratio = statistics.median(b / a for a, b in zip(plain, traced, strict=True))
    claims.at_most("a trace, times a translation", ratio, 3)


def timed(work) -> float:  # type: ignore[no-untyped-def]
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def page(claims: Claims) -> None:
    files = [path for path in FOLDER.rglob("*") if path.is_file()]
    if not files:
        sys.exit("the page is not built; run `make web` first")
    packed = sum(len(gzip.compress(path.read_bytes(), 9)) for path in files) / 1000
    claims.at_most("the page with the desk, compressed, KB", packed, 150)
    alone = PAGE.read_bytes()
    claims.at_most("... as one file for exports, KB", len(alone) / 1000, 350)
    hosts = b"".join(path.read_bytes() for path in files).count(b'<script src="http') + alone.count(b'<script src="http')
    claims.at_most("... scripts from elsewhere", hosts, 0)


def demo(claims: Claims, folder: Path) -> None:
    """In a process of its own, from nothing."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "limelight", "demo", "-o", str(folder / "demo"), "--no-open", "--json"]
    done = subprocess.run(command, capture_output=True, check=False)
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(done.stderr.decode(errors="replace")[-2000:])
    found = json.loads(done.stdout)
    claims.at_most("limelight demo, seconds", seconds, 240)
    claims.at_least("... unseen numbers without a fault, %", 100 * found["exact"] / found["unseen"], 98)
    claims.at_least("... tens and units cross in the light, %", 100 * found["swapped"] / found["cases"], 95)


def quick(claims: Claims) -> None:
    """In a browser, with made-up weights: what the page adds to the time of the model."""
    for pieces, most in ((48, 300.0), (256, 3000.0)):
        command = ["node", "measure/desk_speed.mjs", str(pieces)]
        found = json.loads(subprocess.run(command, cwd=ROOT / "web", capture_output=True, check=True).stdout)
        size = f"{pieces} x {pieces} pieces, 6 layers, 8 heads"
        claims.at_most(f"{size}: answer to picture, ms", statistics.median(found["answer_ms"]), most)
        claims.note("... the first, with everything still to be built, ms", found["first_ms"])
        if pieces == 48:
            claims.at_most("... pointer to cell, p95, ms", found["hover_p95_ms"], 16)
        else:
            claims.at_most("... pointer to cell, median, ms", found["hover_median_ms"], 50)
        claims.at_most("... errors on the page", len(found["problems"]), 0)


def browsed(claims: Claims) -> None:
    for name, script in (
        ("kernels and state of the page: failures", "test"),
        ("flows in a browser: failures", "flows"),
    ):
        done = subprocess.run(["npm", "run", script], cwd=ROOT / "web", capture_output=True, check=False)
        claims.ended_well(name, done.returncode)


def measure(claims: Claims, full: bool) -> None:
    with Translator.load(BUNDLE, threads=1, engine="torch") as translator:
        true(claims, translator)
        light(claims, translator)
    page(claims)
    if full:
        with tempfile.TemporaryDirectory() as place:
            demo(claims, Path(place))
        quick(claims)
        browsed(claims)


if __name__ == "__main__":
    run(measure, __doc__)
