"""What the docs state about why a word is there: credited pieces are the ones that matter, planted causes and losses are found.

make claim-why                 under a minute: on the bundle of the tests, and on the translator of `limelight demo` where demo/en-de is
make claim-why FULL=1          also trains that translator first, and asks about more of its sentences: some ten minutes
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import permutations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims")]

import torch

from claim import Claims, run
from limelight.cli.inspect.pruning import prune_bundle
from limelight.decoding.steps import never
from limelight.inspection.analysis.attribution import find_effects
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.translator.translate import Translator
from why import interval, measure_costs, number_words, planted_causes

BUNDLE, DEMO = ROOT / "tests" / "bundles" / "format-1", Path("demo/en-de")
TEXTS = [" ".join(some) for some in permutations(("four", "nine", "six", "seven"), 3)][::3]


def ask_digits(claims: Claims, translator: Translator) -> None:
    """Word by word the bundle of the tests turns digits into German, so what each came from is known."""
    right, total, gaps, omitted = 0, 0, [], 0
    for text in TEXTS:
        trace = translator.trace(text, nbest=1)
        words = trace.target.text.split(" ")
        for row, token in enumerate(trace.target.tokens):
            if token.word is not None and token.piece.startswith("\u2581"):
                told = trace.why(row)
                most = max(range(len(told.source)), key=lambda at: told.source[at].effect)
                right, total = right + (trace.source.tokens[most].word == token.word), total + 1
        gaps.append(trace.why(0, "integrated").gap or 0.0)
        left = translator.trace(text, " ".join(words[:-1])).check()
        omitted += any(each.kind == "omission" and each.pieces[-1] == 2 for each in left)
    claims.at_least("digits: share of words credited to their own digit", right / total, 0.95)
    claims.at_least("... last words left out and found", omitted / len(TEXTS), 0.95)
    claims.at_most("integrated gradients: largest gap of their sum", max(gaps), 0.02)


def ask_demo(claims: Claims, bundle: Path, sentences: int) -> None:
    with Translator.load(bundle, engine="torch", threads=1) as translator:
        for name, share in planted_causes(translator, ("occlusion", "value-zeroing")).items():
            claims.at_least(f"demo: tens and units found by {name}", share, 0.95)
        costs = measure_costs(translator, number_words(sentences))
    for rival, bar in (("random", 1.0), ("gradient", 0.5)):
        beyond = [one - other for one, other in zip(costs.replaced["occlusion"], costs.replaced[rival], strict=True)]
        mean, off = interval(beyond)
        claims.at_least(f"... credited pieces replaced, beyond {rival}, at least", mean - off, bar)


def cut_heads(claims: Claims, bundle: Path) -> None:
    """One head of each attention goes; every second text chooses which, and the others tell what it costs."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as place, Translator.load(bundle, engine="torch", threads=1, dtype="float32") as whole:
        chosen = Path(place, "texts")
        chosen.write_text("\n".join(TEXTS) + "\n", "utf-8")
        prune_bundle(whole, bundle, str(chosen), 1, Path(place, "smaller"), found, quiet=True)
        with Translator.load(Path(place, "smaller"), engine="torch", threads=1) as smaller:
            again = [each.text for each in smaller.translate(TEXTS)]
        same = sum(one.text == other for one, other in zip(whole.translate(TEXTS), again, strict=True))
    pruned = found["pruned"]
    claims.at_least("pruning a head of each attention: a piece's log-probability", pruned["per_piece"], -0.1)
    claims.at_least("... share translated as before by the smaller bundle", same / len(TEXTS), 0.9)
    claims.at_most("... its weights over those of the whole", pruned["bytes"][1] / pruned["bytes"][0], 0.95)


def take_time(claims: Claims) -> None:
    """24 pieces of source and 24 of translation, the last of them asked about, on `small`."""
    model = Transformer(ModelConfig.preset("small", 8_000)).eval()
    passes = VariedPass(model, (range(5, 29), [2, *range(5, 28)]), [40], never)
    seconds = []
    for _ in range(4):
        began = time.process_time()
        find_effects(passes, "occlusion")
        seconds.append(time.process_time() - began)
    claims.at_most("occlusion of 24 + 24 pieces on small, seconds of a processor", statistics.median(seconds[1:]), 1.0)


def measure(claims: Claims, full: bool) -> None:
    torch.set_num_threads(1)
    with Translator.load(BUNDLE, engine="torch", threads=1) as translator:
        ask_digits(claims, translator)
    cut_heads(claims, BUNDLE)
    take_time(claims)
    if full:
        with tempfile.TemporaryDirectory() as place:
            subprocess.run([sys.executable, "-m", "limelight", "demo", "-o", place, "--no-open"], check=True, capture_output=True)
            ask_demo(claims, Path(place, "en-de"), 100)
    elif DEMO.is_dir():
        ask_demo(claims, DEMO, 10)


if __name__ == "__main__":
    run(measure, __doc__)
