"""Scores the stored translations of other systems, and those of a translator of ours, on the same sets, with the same sacreBLEU.

python benchmarks/comparison.py                                   the table of docs/comparison.md, from LIMELIGHT_DATA/system-outputs
python benchmarks/comparison.py --translator captions=RUN         a translator of ours beside them, in every direction that it has
                                --sets flores200-devtest          on this set alone

Each cell is BLEU / chrF. A direction that a system lacks is empty. Nothing is trained, and nothing is timed.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "evaluation"))
from stored_outputs import Row, rows

from limelight import Translator
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.inputs import read_parallel
from limelight.evaluation.metrics.metrics import count

SETTINGS = EvaluateSettings(resamples=None)
SETS = ("newstest2018", "newstest2019", "flores200-devtest")
SYSTEMS = ("bergamot-tiny", "bergamot-base-memory", "opusmt", "nllb", "google", "microsoft")
Column = tuple[str, str]  # test set, direction
Scores = dict[str, dict[Column, str]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--translator", action="append", default=[], metavar="NAME=BUNDLE", help="a translator of ours; may be repeated")
    parser.add_argument("--directions", default="en-de,de-en,en-is", help="columns, with commas between them")
    parser.add_argument("--sets", default=",".join(SETS), help="the same; our translators take minutes for the news")
    asked = parser.parse_args()
    if "LIMELIGHT_DATA" not in os.environ:
        parser.error("LIMELIGHT_DATA must name the folder with system-outputs, wmt-news and flores200")
    directions = asked.directions.split(",")
    ours = [name.partition("=")[::2] for name in asked.translator]
    stored = [row for row in rows() if row.test_set in asked.sets.split(",")]
    print(table(scores_of(stored, directions, ours), directions))


def scores_of(stored: Sequence[Row], directions: Sequence[str], ours: Sequence[tuple[str, str]]) -> Scores:
    """`ours`: names and folders of translators, which translate what the others did."""
    found: Scores = {}
    kept = [row for row in stored if row.direction in directions and row.system in SYSTEMS]
    for row in kept:
        found.setdefault(row.system, {})[row.test_set, row.direction] = cell(row, read_parallel([row.output])[0])
    for name, folder in ours:
        translator = Translator.load(folder)
        for row in {(row.test_set, row.direction): row for row in kept}.values():
            if tuple(row.direction.split("-")) in translator.directions:
                found.setdefault(name, {})[row.test_set, row.direction] = cell(row, translated(translator, row))
    return found


def translated(translator: Translator, row: Row) -> list[str]:
    source, target = row.direction.split("-")
    [lines] = read_parallel([row.source])
    return [each.text for each in translator.towards(target, source).translate(lines)]


def cell(row: Row, system: list[str]) -> str:
    [reference] = read_parallel([row.reference])
    bleu, chrf = (count(metric, system, [reference], SETTINGS, row.target).value for metric in ("bleu", "chrf"))
    return f"{bleu:.1f} / {chrf:.1f}"


def table(scores: Scores, directions: Sequence[str]) -> str:
    columns = [(test, direction) for direction in directions for test in SETS if any((test, direction) in each for each in scores.values())]
    return "\n".join(f"| {' | '.join(row)} |" for row in _lines(scores, columns))


def _lines(scores: Scores, columns: Sequence[Column]) -> Iterator[list[str]]:
    yield ["BLEU / chrF", *(f"{test.removesuffix('-devtest')} {direction}" for test, direction in columns)]
    yield ["---"] * (len(columns) + 1)
    for name in sorted(scores, key=lambda name: SYSTEMS.index(name) if name in SYSTEMS else -1):
        yield [name, *(scores[name].get(column, "") for column in columns)]


if __name__ == "__main__":
    main()
