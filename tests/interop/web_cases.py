"""Searches on tables of probabilities, and texts as ids, as Python finds them.

They are kept in web/tests/local/cases.json, which the browser's code must meet.

python tests/interop/web_cases.py        writes the file anew
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from limelight.bundle import read
from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request, Specials
from limelight.text.normalize import normalize_text

ROOT = Path(__file__).parents[2]
CASES = ROOT / "web" / "tests" / "local" / "cases.json"
PIECES = 8
VARIED: tuple[dict[str, Any], ...] = (
    {"beam": 1}, {"beam": 2}, {"beam": 4, "nbest": 4}, {"beam": 4, "patience": 2.0, "nbest": 3}, {"beam": 4, "length_norm": "power"},
    {"beam": 3, "min_length": 3, "nbest": 2}, {"beam": 4, "no_repeat_ngram": 2}, {"beam": 1, "no_repeat_ngram": 1},
    {"beam": 4, "length_penalty": 0.0},
    {"beam": 4, "max_length": 3, "nbest": 4}, {"beam": 5, "patience": 1.5, "nbest": 5},
)  # fmt: skip
TEXTS = ("seven", "a  b", " x ", "", "Äpfel e\u0301", "⟦0⟧ 12 ⟦1⟧", "日本", "\ufeffnine\u200b ten", "🙂 forty-two", "\u2581")


class Table:
    """The next piece depends on the last one alone."""

    def __init__(self, log_probs: Any) -> None:
        self.log_probs = log_probs

    def start(self, source: Any, width: int = 1) -> "Table":
        return self

    def step(self, token: Any, state: Any) -> tuple[Any, Any]:
        return self.log_probs[token].copy(), state

    def reorder(self, rows: Any) -> None: ...

    def select(self, sentences: Any) -> None: ...


def cases() -> dict[str, Any]:
    made, chance = [], np.random.Generator(np.random.PCG64(7))
    for number in range(66):
        table = np.log(chance.dirichlet(np.full(PIECES, 0.4), PIECES)).clip(-30).round(3).astype(np.float32)
        changes, begin = VARIED[number % len(VARIED)], [5] if number % 5 == 4 else []
        settings = SearchSettings(max_extra=6, max_ratio=1.0).changed(**changes)
        outcome = search(Table(table), [Request([4, 5, 6], begin, given=len(begin))], settings, Specials())[0]
        found = [{"ids": h.ids, "score": round(h.score, 5), "finish": h.finish} for h in outcome.hypotheses]
        rows = [[round(float(x), 3) for x in row] for row in table]
        made.append({"table": rows, "settings": settings.model_dump(mode="json"), "begin": begin, "found": found})
    bundle = read(ROOT / "tests" / "bundles" / "format-1")
    tokenizer = bundle.source_tokenizer
    tidy = [normalize_text(text, bundle.settings.normalization) for text in TEXTS]
    ids = tokenizer.encode_texts(tidy)
    pieces = {"by_words": tokenizer.by_words, "texts": list(TEXTS), "ids": ids, "again": tokenizer.decode(ids)}
    return {"searches": made, "normalization": list(bundle.settings.normalization), "pieces": pieces}


if __name__ == "__main__":
    CASES.write_text(json.dumps(cases(), separators=(",", ":")) + "\n", encoding="utf-8", newline="\n")
    sys.exit(0)
