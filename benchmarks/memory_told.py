"""What similar matches of a memory are worth to a model that is told them, and what foreign ones cost it: chrF by bands of similarity.

    python benchmarks/memory_told.py text FOLDER                  train.jsonl: 100,000 strings of l10n, none of them tested
    limelight train FOLDER/train.jsonl --source en --target de -o RUN --preset tiny --steps 3000 --anyway batch.augment.matches=0.15
    python benchmarks/memory_told.py measure RUN --memory sqlite:///FOLDER/l10n.db --foreign sqlite:///FOLDER/europarl.db

Tested are the test set of l10n, whose strings no package of the memory has, and 500 strings of the test packages that the memory has:
the band 100. Every band is translated without the memory, and told its best match; `target` is the match itself as the translation.
`foreign`: the test set is told its nearest sentence of Europarl, however unlike, and the translation of another string of the memory drawn
by chance. The memories are filled if they are not there. One JSON object on standard output.
"""

import argparse
import json
import sys
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from limelight.store.memory import MemoryMatch
from limelight.store.store import Store, open_store
from limelight.translator import Translator
from memory import DATA, PAIR, lines_of, sentences, strings
from sacrebleu.metrics import CHRF

TRAINED = 100_000
EXACT = 500
BANDS = {"100": (1.0, 1.01), "85-99": (0.85, 1.0), "70-84": (0.7, 0.85), "below": (0.0, 0.7)}
Texts = list[tuple[str, str]]


def tested() -> tuple[Texts, Texts]:
    """The test set, and strings of its packages that packages for training have, too."""
    test = list(zip(*(lines_of(f"l10n/test.en-de.{side}.gz") for side in PAIR), strict=True))
    rows = [line.split("\t") for line in (DATA / "l10n/packages.tsv").read_text(encoding="utf-8").splitlines()]
    packages = {row[rows[0].index("package")] for row in rows if row[rows[0].index("split")] == "test"}
    known = {source for source, _ in strings()}
    own = (row for row in map(json.loads, lines_of("l10n/tm.en-de.jsonl.gz")) if row["pkg"] in packages)
    both = {row["src"]: row["tgt"] for row in own if row["src"] in known and 2 < len(row["src"].split()) and "\n" not in row["src"]}
    return test, Random(1).sample(sorted(both.items()), EXACT)


def write_text(folder: Path) -> dict[str, Any]:
    held = {source.strip() for some in tested() for source, _ in some}
    pairs = sorted({pair for pair in strings() if pair[0].strip() not in held and "\n" not in pair[0] + pair[1]})
    folder.mkdir(parents=True, exist_ok=True)
    chosen = Random(2).sample(pairs, TRAINED)
    (folder / "train.jsonl").write_text(
        "".join(json.dumps(dict(zip(PAIR, pair, strict=True)), ensure_ascii=False) + "\n" for pair in chosen), encoding="utf-8"
    )
    return {"strings": len(pairs), "written": len(chosen)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("text").add_argument("folder", type=Path)
    asked = parser.parse_args()
    json.dump(write_text(asked.folder), sys.stdout)
    print()


if __name__ == "__main__":
    main()
