"""How much does the search of a trained translator matter: beam and length penalty chosen on the validation set, then the least risk?

    python benchmarks/recipe_search.py /tmp/recipe/tiny-1200/1/baseline --text /tmp/recipe/text

TEXT is what benchmarks/recipe.py unpacked. Nothing is chosen by the test sets. The least risk takes, of the eight best of a beam of eight,
the one most like the others by chrF, each weighed by its probability.
"""

import argparse
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import sacrebleu

from limelight.decoding.risk import pairwise_chrf
from limelight.translator import Translation, Translator
from recipe import TESTS

BEAMS: Final = (1, 4, 8)
PENALTIES: Final = (0.0, 0.6, 1.0, 1.4, 1.8)
NBEST: Final = 8
VALID: Final = 500  # sentences


def read(text: Path, name: str, most: int | None = None) -> tuple[list[str], list[str]]:
    source, target = ((text / f"{name}.{code}").read_text(encoding="utf-8").splitlines()[:most] for code in ("en", "de"))
    return source, target


def bleu(made: list[str], wanted: list[str]) -> float:
    return float(sacrebleu.BLEU().corpus_score(made, [wanted]).score)


def take_least_risk(found: Translation) -> str:
    """Of its hypotheses, whose scores are log-probabilities: there is no length penalty."""
    texts = [found.text, *(each.text for each in found.alternatives)]
    scores = np.array([found.score, *(each.score for each in found.alternatives)])
    weights = np.exp(scores - scores.max())
    return texts[int(np.argmax(pairwise_chrf(texts) @ (weights / weights.sum())))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="a folder with valid.en, valid.de and the test sets")
    parser.add_argument("--tests", default=",".join(TESTS), help="with commas")
    asked = parser.parse_args()
    tests = asked.tests.split(",")
    with Translator.load(asked.run, threads=1) as translator:
        usual = translator.settings.search
        sources, wanted = read(asked.text, "valid", VALID)
        scores = {}
        for beam, penalty in product(BEAMS, PENALTIES):
            if beam > 1 or penalty == usual.length_penalty:
                search = usual.changed(beam=beam, length_penalty=penalty)
                scores[beam, penalty] = bleu([each.text for each in translator.translate(sources, search)], wanted)
                print(f"validation, beam {beam}, length penalty {penalty}: {scores[beam, penalty]:.2f}", flush=True)
        beam, penalty = max(scores, key=lambda key: scores[key])
        rows = {
            f"beam {usual.beam}, length penalty {usual.length_penalty:g}: the default": usual,
            f"beam {beam}, length penalty {penalty:g}: chosen": usual.changed(beam=beam, length_penalty=penalty),
            "least risk of the eight best, no length penalty": usual.changed(beam=NBEST, nbest=NBEST, length_penalty=0.0),
        }
        print(f"\n| | {' | '.join(tests)} | mean |\n| --- |{' --- |' * (len(tests) + 1)}")
        for name, search in rows.items():
            cells = []
            for test in tests:
                sources, wanted = read(asked.text, test)
                made = translator.translate(sources, search)
                cells.append(bleu([take_least_risk(each) if search.nbest > 1 else each.text for each in made], wanted))
            print(f"| {name} | {' | '.join(f'{cell:.2f}' for cell in (*cells, sum(cells) / len(cells)))} |", flush=True)


if __name__ == "__main__":
    main()
