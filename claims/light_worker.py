"""One side of a comparison works here, in whatever environment its interpreter has: the translator of a bundle, or CTranslate2 alone.

    python claims/light_worker.py ours BUNDLE float32       then a line of JSON for each turn on standard input:
    {"do": "file", "texts": ["A dog."]}                      {"wall": 0.01, "processor": 0.01, "texts": ["Ein Hund."], ...}

`file` translates all texts at once, `each` one after the other. Both sides have one thread, and the bare one is given the same batches and
the same beam. Nothing here needs torch.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import ctranslate2
from sentencepiece import SentencePieceProcessor

from limelight.engines.ctranslate2 import CTranslate2Engine
from limelight.translator.searching import cut_batches
from limelight.translator.translate import Translator

Answer = dict[str, Any]


class Ours:
    def __init__(self, folder: str, numbers: str) -> None:
        self.translator = Translator.load(folder, threads=1, dtype=numbers)

    def translate(self, texts: Sequence[str]) -> Answer:
        made = self.translator.translate(texts)
        return {
            "texts": [one.text for one in made],
            "protected": [one.protected for one in made],
            "codes": [[notice.code for notice in one.warnings] for one in made],
        }


class Bare:
    """What a program would write around the engine: SentencePiece before and after, sorted by length and cut as ours are."""

    def __init__(self, folder: str, numbers: str) -> None:
        with Translator.load(folder, threads=1) as ours:
            self.search = ours.settings.search
        place = next(path for path in (Path(folder, "bundle"), Path(folder)) if path.is_dir())
        self.pieces = SentencePieceProcessor(str(place / "pieces.model"))
        self.engine = ctranslate2.Translator(str(place / "ctranslate2"), compute_type=numbers, inter_threads=1, intra_threads=1)

    def translate(self, texts: Sequence[str]) -> Answer:
        rows = self.pieces.encode(list(texts), out_type=str)
        made = [""] * len(texts)
        for batch in cut_batches([len(row) for row in rows], CTranslate2Engine.batch_pieces):
            found = self.engine.translate_batch(
                [rows[at] for at in batch],
                beam_size=self.search.beam,
                length_penalty=self.search.length_penalty,
                max_decoding_length=max(self.search.limit(len(rows[at])) for at in batch),
            )
            for at, result in zip(batch, found, strict=True):
                made[at] = self.pieces.decode(result.hypotheses[0])
        return {"texts": made}


def file(translate: Callable[[Sequence[str]], Answer], texts: Sequence[str]) -> Answer:
    wall, processor = time.perf_counter(), time.process_time()
    made = translate(texts)
    return {"wall": time.perf_counter() - wall, "processor": time.process_time() - processor, **made}


def each(translate: Callable[[Sequence[str]], Answer], texts: Sequence[str]) -> Answer:
    costs = [file(translate, [text]) for text in texts]
    return {name: [cost[name] for cost in costs] for name in ("wall", "processor")}


def main() -> None:
    side, folder, numbers = sys.argv[1:4]
    translate = (Ours if side == "ours" else Bare)(folder, numbers).translate
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whoever prints shall not be read as an answer
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {"file": file, "each": each}[asked["do"]](translate, asked["texts"])
        answers.write(json.dumps({**answer, "torch": find_spec("torch") is not None}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
