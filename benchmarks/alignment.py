"""Which words a head links, beside eflomal's links of the same pairs: the error rate of alignments, lower is better.

python benchmarks/alignment.py RUN ... --train train.en train.de --test test.en test.de      eflomal-align on the PATH (PyPI: eflomal)

The target is the reference, so that all runs and eflomal align the same words. eflomal learns from both files, in both directions: links
that both find are sure, links that either finds are possible (Och and Ney 2003). Of a run those heads are taken that its bundle names,
else those that its export would choose, measured on the test pairs themselves.
"""

import argparse
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from limelight.bundle import read
from limelight.engines.torch import specials_of
from limelight.interop.alignment_heads import best_heads, record_attention
from limelight.text.pieces.piece_words import words_of

Links = set[tuple[int, int]]


def read_lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").removesuffix("\n").split("\n")


def read_links(line: str) -> Links:
    return {(int(a), int(b)) for a, b in (link.split("-") for link in line.split())}


def draw_diagonal(possible: Links) -> Links:
    """Of a sentence with as many words: the control."""
    source, target = (max((link[side] for link in possible), default=0) for side in (0, 1))
    return {(round(t * source / max(1, target)), t) for t in range(target + 1)}


def align_by_eflomal(train: Sequence[str], test: Sequence[str]) -> tuple[list[Links], list[Links]]:
    """Sure and possible links of the test pairs."""
    both = [[" ".join(line.lower().split()) or "-" for path in side for line in read_lines(path)] for side in zip(train, test, strict=True)]
    with tempfile.TemporaryDirectory() as place:
        files = [Path(place, name) for name in ("source", "target", "forward", "reverse")]
        for path, lines in zip(files, both, strict=False):
            path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        words = [option for pair in zip("stfr", map(str, files), strict=True) for option in (f"-{pair[0]}", pair[1])]
        subprocess.run(["eflomal-align", *words], check=True, capture_output=True)
        found = [[read_links(line) for line in read_lines(str(path))] for path in files[2:]]
    some = [links[-len(read_lines(test[0])) :] for links in found]
    return [a & b for a, b in zip(*some, strict=True)], [a | b for a, b in zip(*some, strict=True)]


def align_by_heads(run: Path, test: Sequence[str]) -> tuple[list[Links], str]:
    bundle = read(run / "bundle" if (run / "bundle").is_dir() else run)
    model, special = bundle.load_model(), specials_of(bundle.settings.model)
    tokenizers = (bundle.source_tokenizer, bundle.target_tokenizer)
    ids = [each.encode_texts(read_lines(path)) for each, path in zip(tokenizers, test, strict=True)]
    heads = bundle.settings.alignment or best_heads(model, *ids, special).chosen
    layer = heads[0][0]
    linked = []
    for number, weights in enumerate(record_attention(model, *ids, special)[layer]):
        best = weights[[head for _, head in heads]].mean(axis=0).argmax(axis=1).tolist()
        source, target = (words_of(t.pieces(side[number])) for t, side in zip(tokenizers, ids, strict=True))
        linked.append({(s, t) for at, looked in enumerate(best) for s in source[looked] for t in target[at]})
    return linked, ", ".join(f"{a}.{b}" for a, b in heads)


def count_errors(found: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links]) -> float:
    hits = sum(len(a & s) + len(a & p) for a, s, p in zip(found, sure, possible, strict=True))
    return 1 - hits / sum(len(a) + len(s) for a, s in zip(found, sure, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--train", nargs=2, required=True)
    parser.add_argument("--test", nargs=2, required=True)
    asked = parser.parse_args()
    sure, possible = align_by_eflomal(asked.train, asked.test)
    print("| | heads | error rate of alignment |\n| --- | --- | --- |")
    for run in asked.runs:
        found, heads = align_by_heads(run, asked.test)
        print(f"| {run.name} | {heads} | {count_errors(found, sure, possible):.3f} |")
    print(f"| word by word along the diagonal (control) | | {count_errors(list(map(draw_diagonal, possible)), sure, possible):.3f} |")


if __name__ == "__main__":
    main()
