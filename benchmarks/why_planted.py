"""Words planted in translations: how many that were left out or put in are found, beside what confidence alone finds.

    python benchmarks/why_planted.py BUNDLE LINES CHOOSE [--to fr] [--sentences 1000] [--choosing 150] [--kept FOLDER]

One word of each translation is left out, and in another copy of it one word of another translation is put in. Thresholds are chosen on
lines of CHOOSE, so that F1 is greatest, and measured on those of LINES. What was found in a sentence is a line of FOLDER/measured.jsonl,
numbers alone: a run that was stopped goes on with the first sentence that is not there, and the same words are drawn.
"""

import argparse
import hashlib
import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from limelight.bundle.layout import WEIGHTS
from limelight.files import sha256_of
from limelight.inspection.analysis import attribution
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.translator.translate import Translator

Judged = Sequence[tuple[float, bool]]  # how well each is founded, and whether it was planted
KEPT = Path("build", "planted")


@dataclass
class Planted:
    """What `--check` says of words or translations, and what confidence says of the same, each with whether it was planted."""

    checked: list[tuple[float, bool]] = field(default_factory=list)
    mean: list[tuple[float, bool]] = field(default_factory=list)  # log-probability of a piece
    least: list[tuple[float, bool]] = field(default_factory=list)  # that of the least likely piece


def plant(translator: Translator, texts: Sequence[str], kept: Path, model: str, seed: int = 1) -> list[dict[str, Any]]:
    """For each sentence what was found; what `kept` has already of this model is not found again."""
    languages, told = translator.settings.languages, hashlib.sha256("\n".join(texts).encode()).hexdigest()
    found = read_kept(kept, {"model": model, "languages": list(languages), "texts": told, "seed": seed})
    usual, attribution.OMITTED, attribution.ADDED = (attribution.OMITTED, attribution.ADDED), math.inf, math.inf  # all effects are told
    try:
        made = [each.text.split(" ") for each in translator.translate(list(texts))] if len(found) < len(texts) else []
        strangers = sorted({word for words in made for word in words if is_plain(word)})
        with kept.open("ab") as file:
            for at in range(len(found), len(texts)):
                found.append(plant_both(translator, texts[at], made[at], strangers, random.Random(f"{seed} {at}")))
                file.write(json.dumps(found[-1]).encode() + b"\n")
                file.flush()
    finally:
        attribution.OMITTED, attribution.ADDED = usual
    return found


def read_kept(kept: Path, named: dict[str, Any]) -> list[dict[str, Any]]:
    """The first line says of which sentences and of which model the others are; a last line without an end is dropped."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    whole = kept.read_bytes().rpartition(b"\n")[0] if kept.is_file() else b""
    first, *lines = [json.loads(line) for line in whole.split(b"\n")] if whole else [named]
    if first != named:
        raise SystemExit(f"{kept} is of other sentences or of another model; remove it, or give another --kept")
    kept.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in (first, *lines)))
    return lines


def is_plain(word: str) -> bool:
    return word.isalpha() and len(word) > 3


def plant_both(translator: Translator, text: str, words: list[str], strangers: Sequence[str], chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if len(words) < 4:
        return found
    whole = translator.trace(text, nbest=1)
    if (left := choose_left(whole, words, chance)) is not None:
        place, cause = left
        shorter = translator.trace(text, " ".join([*words[:place], *words[place + 1 :]]), nbest=1)
        told = [each for each in shorter.check() if each.kind == "omission"]
        found["omission"] = [(each.effect, whole.source.tokens[each.pieces[0]].word == cause) for each in told]
        found["translation"] = [judge_whole(whole, False), judge_whole(shorter, True)]
    if others := [word for word in strangers if word not in words]:
        place, stranger = chance.randrange(1, len(words)), chance.choice(others)
        longer = translator.trace(text, " ".join([*words[:place], stranger, *words[place:]]), nbest=1)
        found["addition"] = [*judge_words(longer, place)]
    return found


def choose_left(trace: LiveTrace, words: Sequence[str], chance: random.Random) -> tuple[int, int] | None:
    """A word to leave out, with the source word that it is linked to, if no other is linked to it too."""
    linked = {target: source for source, target, _ in trace.align.words}
    alone = [target for target, source in linked.items() if list(linked.values()).count(source) == 1 and target < len(words)]
    alone = [target for target in alone if is_plain(words[target])]
    left = chance.choice(alone) if alone else None
    return None if left is None else (left, linked[left])


def judge_whole(trace: LiveTrace, planted: bool) -> tuple[float, float, float, bool]:
    """A translation by its least founded source word, and by the log-probabilities of its pieces."""
    sure = [token.logp for token in trace.target.tokens]
    lowest = min((each.effect for each in trace.check() if each.kind == "omission"), default=0.0)
    return lowest, sum(sure) / len(sure), min(sure), planted


def judge_words(trace: LiveTrace, place: int) -> Iterator[tuple[float, float, float, bool]]:
    tokens = trace.target.tokens
    for each in trace.check():
        if each.kind == "addition":
            sure = [tokens[at].logp for at in each.pieces]
            yield each.effect, sum(sure) / len(sure), min(sure), tokens[each.pieces[0]].word == place


def gather(found: Sequence[dict[str, Any]]) -> dict[str, Planted]:
    made = {"omission": Planted(), "translation": Planted(), "addition": Planted()}
    for sentence in found:
        for kind, rows in sentence.items():
            for effect, *sure, planted in rows:
                made[kind].checked.append((effect, planted))
                if sure:
                    made[kind].mean.append((sure[0], planted))
                    made[kind].least.append((sure[1], planted))
    return made


def recall_and_precision(words: Judged, below: float) -> tuple[float, float]:
    flagged = [planted for value, planted in words if value < below]
    return sum(flagged) / max(1, sum(planted for _, planted in words)), sum(flagged) / max(1, len(flagged))


def separation(words: Judged) -> float:
    """How often a planted word has less than one that was not: the area under the curve, by ranks."""
    ordered, ranks, at = sorted(words), 0.0, 0
    for _, same in itertools.groupby(ordered, key=lambda word: word[0]):
        some = [planted for _, planted in same]
        ranks += sum(some) * (at + (len(some) + 1) / 2)
        at += len(some)
    planted = sum(is_planted for _, is_planted in words)
    return 1 - (ranks - planted * (planted + 1) / 2) / max(1, planted * (len(words) - planted))


def choose_threshold(words: Judged) -> float:
    """That with the greatest F1: a value halfway between two of those that were seen."""
    values = sorted({value for value, _ in words})
    between = [(one + other) / 2 for one, other in itertools.pairwise(values)]
    return max(between, key=lambda below: f1(*recall_and_precision(words, below)), default=0.0)


def f1(recall: float, precision: float) -> float:
    return 2 * recall * precision / (recall + precision) if recall + precision else 0.0


def wilson(part: float, count: int) -> tuple[float, float]:
    """95 % of a share of so many."""
    z, count = 1.96, max(count, 1)
    middle = (part + z * z / (2 * count)) / (1 + z * z / count)
    off = z / (1 + z * z / count) * math.sqrt(part * (1 - part) / count + z * z / (4 * count * count))
    return max(0.0, middle - off), min(1.0, middle + off)


def tell_planted(chosen_by: dict[str, Planted], measured_on: dict[str, Planted]) -> None:
    titles = {"omission": "left out: its source word", "translation": "left out: its translation", "addition": "put in"}
    in_use = {"omission": attribution.OMITTED, "translation": attribution.OMITTED, "addition": attribution.ADDED}
    for kind, title in titles.items():
        chose, other = chosen_by[kind], measured_on[kind]
        print(f"{title}: {sum(planted for _, planted in other.checked)} planted of {len(other.checked)}")
        tell_threshold("--check, threshold in use", other.checked, in_use[kind])
        tell_threshold("--check, chosen", other.checked, choose_threshold(chose.checked))
        if other.mean:
            tell_threshold("confidence alone, mean, chosen", other.mean, choose_threshold(chose.mean))
            tell_threshold("confidence alone, least, chosen", other.least, choose_threshold(chose.least))


def tell_threshold(name: str, words: Judged, below: float) -> None:
    planted, flagged = sum(is_planted for _, is_planted in words), sum(value < below for value, _ in words)
    recall, precision = recall_and_precision(words, below)
    cells = [
        f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
        for share, (low, high) in ((recall, wilson(recall, planted)), (precision, wilson(precision, flagged)))
    ]
    told = f"recall {cells[0]}   precision {cells[1]}   {flagged} reported   separation {separation(words):.3f}"
    print(f"  {name:32s} below {below:6.2f}   {told}")


def read_texts(path: Path, most: int) -> list[str]:
    return [text for text in path.read_bytes().decode().split("\n") if text.strip()][:most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("choose", type=Path)
    parser.add_argument("--to", help="of a model that has several languages")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--choosing", type=int, default=150)
    parser.add_argument("--kept", type=Path, default=KEPT)
    asked = parser.parse_args()
    with Translator.load(asked.bundle, engine="torch") as loaded:
        translator = loaded if asked.to is None else loaded.towards(asked.to)
        model = sha256_of(asked.bundle / WEIGHTS)
        chosen = plant(translator, read_texts(asked.choose, asked.choosing), asked.kept / "chosen.jsonl", model)
        found = plant(translator, read_texts(asked.lines, asked.sentences), asked.kept / "measured.jsonl", model)
    tell_planted(gather(chosen), gather(found))


if __name__ == "__main__":
    main()
