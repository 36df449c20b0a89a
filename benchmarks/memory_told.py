"""What similar matches of a memory are worth to a model that is told them, and what foreign ones cost it: chrF by bands of similarity.

    python benchmarks/memory_told.py text FOLDER                  train.jsonl: 100,000 strings of l10n, none of them tested
    python benchmarks/memory_told.py text DENSE --run 50          in runs of neighbours: as many similar ones as in the whole memory
    limelight train FOLDER/train.jsonl --source en --target de -o RUN --preset tiny --anyway batch.augment.matches=0.25
    limelight train DENSE/train.jsonl --source en --target de --from RUN --replay 0 -o TAUGHT --anyway batch.augment.matches=0.7
    python benchmarks/memory_told.py fill FOLDER                  l10n.db and europarl.db; what is there already stays
    python benchmarks/memory_told.py measure TAUGHT FOLDER

Tested are the test set of l10n, whose strings no package of the memory has, and 500 strings of the test packages that the memory has:
the band 100. Each is translated `without` the memory and `with` it: of the same text its translation is used, of a similar one the model is
told it; `match` is the score of the match itself as the translation. Below 0.7 nothing is told, but for the band 50-69: what would it do?
`foreign`: the test set is told what a memory of Europarl has from 0.7 on; its nearest sentence there, however unlike; the translation of
any string of l10n, and of any sentence of Europarl, drawn by chance. One JSON object on standard output.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from sacrebleu.metrics import CHRF

from limelight.store.memory import LEAST, MemoryMatch
from limelight.store.store import Store, open_store
from limelight.translator import Translator
from memory import DATA, PAIR, lines_of, sentences, strings

TRAINED = 100_000
EXACT = 500
FOREIGN = 100_000  # sentences of Europarl
BANDS = {"100": 1.0, "85-99": 0.85, "70-84": LEAST, "50-69": 0.5, "below": 0.0}  # and what begins each
Texts = list[tuple[str, str]]


def tested() -> tuple[Texts, Texts]:
    """The test set, and strings of its packages that packages for training have, too."""
    test = list(zip(*(lines_of(f"l10n/test.en-de.{side}.gz") for side in PAIR), strict=True))
    rows = [line.split("\t") for line in (DATA / "l10n/packages.tsv").read_text(encoding="utf-8").splitlines()]
    packages = {row[rows[0].index("package")] for row in rows if row[rows[0].index("split")] == "test"}
    known = {source for source, _ in strings()}
    own = (row for row in map(json.loads, lines_of("l10n/tm.en-de.jsonl.gz")) if row["pkg"] in packages)
    both = {row["src"]: row["tgt"] for row in own if row["src"] in known and len(row["src"].split()) > 2 and "\n" not in row["src"]}
    return test, Random(1).sample(sorted(both.items()), EXACT)


def write_text(folder: Path, run: int) -> dict[str, Any]:
    held = {source.strip() for some in tested() for source, _ in some}
    pairs = sorted({pair for pair in strings() if pair[0].strip() not in held and "\n" not in pair[0] + pair[1]})
    folder.mkdir(parents=True, exist_ok=True)
    places = Random(2).sample(range(len(pairs) // run), TRAINED // run)
    chosen = [pair for place in places for pair in pairs[place * run : (place + 1) * run]]
    (folder / "train.jsonl").write_text(
        "".join(json.dumps(dict(zip(PAIR, pair, strict=True)), ensure_ascii=False) + "\n" for pair in chosen), encoding="utf-8"
    )
    return {"strings": len(pairs), "written": len(chosen)}


def open_memories(folder: Path) -> tuple[Store, Store]:
    own, foreign = (open_store(f"sqlite:///{folder}/{name}.db") for name in ("l10n", "europarl"))
    return own, foreign


def fill(folder: Path) -> dict[str, Any]:
    told = {}
    for name, store, pairs in zip(("l10n", "europarl"), open_memories(folder), (strings(), islice(sentences(), FOREIGN)), strict=True):
        told[name] = add(store, pairs)
        store.close()
    return told


def add(store: Store, pairs: Iterable[tuple[str, str]]) -> int:
    for done in store.memory.add(PAIR, pairs, "benchmark"):
        print(f"{done.added} added, {done.known} known", file=sys.stderr)
    return sum(count for _, _, count in store.memory.list_origins())


def find_best(store: Store, texts: Sequence[str]) -> list[MemoryMatch | None]:
    return [next(iter(store.memory.find(PAIR, text, 1, 0.0)), None) for text in texts]


def judge(translations: Sequence[str], references: Sequence[str]) -> float:
    return round(CHRF().corpus_score(list(translations), [list(references)]).score, 2)


def measure_bands(translator: Translator, store: Store, texts: Texts, plain: Sequence[str]) -> dict[str, Any]:
    best = find_best(store, [source for source, _ in texts])
    told: dict[str, Any] = {}
    places: dict[str, list[int]] = {band: [] for band in BANDS}
    for at, match in enumerate(best):
        places[next(band for band, least in BANDS.items() if (match.score if match else 0) >= least)].append(at)
    for band, own in places.items():
        matches = [match.target if (match := best[at]) else "" for at in own]
        references, without = [texts[at][1] for at in own], [plain[at] for at in own]
        told[band] = {"strings": len(own), "without": judge(without, references), "match": judge(matches, references)}
        if band == "100":
            told[band]["with"] = told[band]["match"]
        elif band != "below":
            made = [each.text for each in translator.translate([texts[at][0] for at in own], matches=matches)]
            told[band] |= {"with": judge(made, references), "changed": sum(a != b for a, b in zip(made, without, strict=True))}
            told[band]["copied"] = sum(a == b for a, b in zip(made, matches, strict=True))
    return told


def measure_foreign(translator: Translator, foreign: Store, test: Texts, plain: Sequence[str]) -> dict[str, Any]:
    sources, references = [source for source, _ in test], [target for _, target in test]
    nearest, random = find_best(foreign, sources), Random(3)
    ways: dict[str, list[str]] = {
        "Europarl from 0.7 on": [match.target if match and match.score >= LEAST else "" for match in nearest],
        "nearest of Europarl": [match.target if match else "" for match in nearest],
    }
    for name, pairs in (("any of l10n", strings()), ("any of Europarl", islice(sentences(), FOREIGN))):
        ways[name] = random.sample([target for _, target in pairs], len(test))
    told: dict[str, Any] = {"strings": len(test), "without": judge(plain, references)}
    for name, matches in ways.items():
        made = [each.text for each in translator.translate(sources, matches=matches)]
        told[name] = {"with": judge(made, references), "changed": sum(a != b for a, b in zip(made, plain, strict=True))}
        told[name]["told"] = sum(map(bool, matches))
    told["similarity of the nearest"] = round(sum(match.score for match in nearest if match) / len(nearest), 3)
    return told


def measure(run: Path, folder: Path) -> dict[str, Any]:
    own, foreign = open_memories(folder)
    test, exact = tested()
    with Translator.load(run) as translator:
        plain = [each.text for each in translator.translate([source for source, _ in [*test, *exact]])]
        bands = measure_bands(translator, own, [*test, *exact], plain)
        return {"bands": bands, "foreign": measure_foreign(translator, foreign, test, plain[: len(test)])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (("text", ["folder"]), ("fill", ["folder"]), ("measure", ["run", "folder"])):
        command = commands.add_parser(name)
        for word in words:
            command.add_argument(word, type=Path)
        if name == "text":
            command.add_argument("--run", type=int, default=1, help="Strings that follow each other in alphabetical order.")
    asked = vars(parser.parse_args())
    work = {"text": write_text, "fill": fill, "measure": measure}[asked.pop("command")]
    json.dump(work(**asked), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
