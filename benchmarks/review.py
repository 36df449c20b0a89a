"""What to review first: of the wrong words, the share met in the first 30 % of a document, and whether what is said of a text holds.

    python benchmarks/review.py BUNDLE --fit val.en val.de --test test.en test.de --other tatoeba.en tatoeba.de [--to de] [--sentences 1000]

A word is wrong where the reference lacks it (docs/confidence.md). Texts are read in an order until 30 % of all words of the translation are
read, so that long texts cost what they cost. The orders: our confidence, lowest first; the model's log-probability, of the whole and per
piece; any (random: 30 % of the wrong words are expected in it). Intervals: 95 %, by drawing sentences anew 1,000 times; `better` is our
order minus the better of the two log-probabilities, in the same draws. The calibration is fitted on --fit, in memory; the bundle stays.
Files may be packed by gzip. "unedited": word for word the reference, punctuation at the ends of words aside.
"""

import argparse
import gzip
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from limelight.evaluation.confidence.calibration import Claims, check, collect, fit_calibration, right_words
from limelight.translator import Translator

SHARE, DRAWS = 0.3, 1_000
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ReviewedSet:
    claims: Claims
    words: Numbers  # of each sentence
    wrong: Numbers  # words of each sentence
    whole: Numbers  # log-probability of each sentence
    mean: Numbers  # log-probability per piece


def read_lines(path: Path, most: int) -> list[str]:
    data = path.read_bytes()
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
    return text.split("\n")[:-1][:most]


def translate(translator: Translator, paths: list[Path], most: int) -> ReviewedSet:
    sources, references = (read_lines(path, most) for path in paths)
    made = translator.translate(sources, probabilities=True)
    claims = collect([(each.words, each.confidence) for each in made], references)
    right = [right_words([word.text for word in each.words], reference) for each, reference in zip(made, references, strict=True)]
    mean = np.array([math.log(max(each.confidence, 1e-300)) for each in made])
    pieces = np.array([len(each.pieces) + 1.0 for each in made])
    words = np.array([float(len(each)) for each in right])
    return ReviewedSet(claims, words, words - np.array([float(sum(each)) for each in right]), mean * pieces, mean)


def share_found(order: Numbers, words: Numbers, wrong: Numbers) -> float:
    """Of the wrong words, in the first `SHARE` of all words by this order; of the text at the edge a part."""
    by = np.argsort(order, kind="stable")
    read, room = np.cumsum(words[by]), SHARE * words.sum()
    parts = np.clip((room - (read - words[by])) / np.maximum(words[by], 1), 0, 1)
    return float((wrong[by] * parts).sum() / max(1.0, wrong.sum()))


def measure(found: ReviewedSet, confidence: Numbers) -> dict[str, object]:
    orders = {"confidence": confidence, "log-probability": found.whole, "log-probability per piece": found.mean}
    random = np.random.default_rng(17)
    drawn: dict[str, list[float]] = {name: [] for name in (*orders, "better")}
    for _ in range(DRAWS):
        some = random.integers(0, len(found.words), len(found.words))
        shares = {name: share_found(order[some], found.words[some], found.wrong[some]) for name, order in orders.items()}
        for name, share in shares.items():
            drawn[name].append(share)
        drawn["better"].append(shares["confidence"] - max(shares["log-probability"], shares["log-probability per piece"]))
    told: dict[str, object] = {"wrong words": float(found.wrong.sum() / found.words.sum()), "random": SHARE}
    told |= {name: round(share_found(order, found.words, found.wrong), 4) for name, order in orders.items()}
    told["intervals"] = {name: [round(float(each), 4) for each in np.percentile(values, [2.5, 97.5])] for name, values in drawn.items()}
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    for name in ("--fit", "--test", "--other"):
        parser.add_argument(name, type=Path, nargs=2, required=name != "--other")
    parser.add_argument("--to")
    parser.add_argument("--sentences", type=int, default=1_000)
    asked = parser.parse_args()
    with Translator.load(asked.bundle) as loaded:
        loaded.calibration = None
        translator = loaded.towards(asked.to) if asked.to else loaded
        translator.calibration = None
        calibration = fit_calibration(translate(translator, asked.fit, asked.sentences).claims)
        assert calibration is not None, "the set to fit on is too small"
        for name, paths in (("test", asked.test), ("other", asked.other)):
            if paths is None:
                continue
            found = translate(translator, paths, asked.sentences)
            said = np.array([calibration.words.at(claimed) for claimed in found.claims.words.tolist()])
            confidence = np.ones(len(found.words))
            confidence[found.claims.spoken] = found.claims.means(said)
            checked = check(found.claims, calibration)
            told = {"set": name, "sentences": len(found.words), **measure(found, confidence)}
            if checked is not None and checked.unedited is not None:
                one = checked.unedited
                bins = [[each.count, round(each.confidence, 3), round(each.right, 3)] for each in one.bins]
                told |= {"unedited": round(one.right, 4), "error": round(one.error, 4), "auc": one.auc, "bins": bins}
            print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
