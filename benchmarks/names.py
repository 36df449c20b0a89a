"""Do names survive that a text has a few times? Rare names in the place of the names of held-out sentences, translated by each run.

python benchmarks/names.py tatoeba.de tatoeba.en --held-out test.de test.en RUN [RUN ...]

Names are found in the first two files as a training finds them, and put only where these have them after the same words. Of each name
up to PLACES sentences are made from pairs of the held-out set that are not in the text; a translation keeps it if it has its translation
as a word. Names are told apart by how many pairs of the text have them.
"""

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import polars as pl

from limelight.corpus.feeding.names import TOKENS, Name, NameLexicon, find_names, swap_name
from limelight.translator import Translator

PLACES: Final = 5  # sentences for each name
BOUNDS: Final = (5, 20, 100, 1_000_000)  # pairs that have it


def read_lines(path: Path) -> list[str]:
    return path.read_text("utf-8").removesuffix("\n").split("\n")


def count_pairs(sides: Sequence[Sequence[str]], names: NameLexicon) -> Counter[str]:
    """In how many pairs a name stands on both sides."""
    found = Counter[str]()
    for pair in zip(*sides, strict=True):
        source, target = (set(TOKENS.findall(text)) for text in pair)
        found.update(word for word in source & names.translations.keys() if names.translations[word] in target)
    return found


def make_sentences(held_out: Sequence[Sequence[str]], names: NameLexicon) -> list[tuple[Name, str]]:
    """Sources with another name than they had; each name up to PLACES times."""
    pairs = [pair for pair in zip(*held_out, strict=True) if names.translations.keys() & TOKENS.findall(pair[0])]
    made: list[tuple[Name, str]] = []
    for name in sorted(names.translations.items()):
        only = {before: [name] for before, some in names.after.items() if name in some}
        swapped = (swap_name(pair, 0, NameLexicon(names.translations, only))[0] for pair in pairs)
        different = (source for source, pair in zip(swapped, pairs, strict=True) if source != pair[0])
        made += [(name, source) for source in islice(different, PLACES)]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, nargs=2)
    parser.add_argument("--held-out", type=Path, nargs=2, required=True)
    parser.add_argument("runs", type=Path, nargs="+")
    asked = parser.parse_args()
    text, held_out = ([read_lines(path) for path in paths] for paths in (asked.text, asked.held_out))
    names = find_names(*map(pl.Series, text))
    counts, sentences = count_pairs(text, names), make_sentences(held_out, names)
    groups = [next(bound for bound in BOUNDS if counts[name[0]] <= bound) for name, _ in sentences]
    print(f"{len(names.translations)} names, {len(sentences)} sentences with {len({name for name, _ in sentences})} of them\n")
    print(
        f"| names kept | {' | '.join(f'in up to {bound:,} pairs' for bound in BOUNDS[:-1])} | in more |\n| --- |{' ---: |' * len(BOUNDS)}"
    )
    for run in asked.runs:
        with Translator.load(run, threads=1) as translator:
            made = translator.translate([source for _, source in sentences])
        kept, all_of = Counter[int](), Counter(groups)
        for (name, _), group, each in zip(sentences, groups, made, strict=True):
            kept[group] += bool(re.search(rf"(?<!\w){re.escape(name[1])}(?!\w)", each.text))
        print(f"| {run} | {' | '.join(f'{kept[bound]} of {all_of[bound]}' for bound in BOUNDS)} |", flush=True)


if __name__ == "__main__":
    main()
