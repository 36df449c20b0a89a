"""Which attribution to trust: what hiding and replacing the credited pieces costs, planted causes, planted omissions and additions.

    python benchmarks/why.py BUNDLE [--text FILE] [--sentences 200] [--planted-only]

Without --text the sentences are number words of `limelight demo`, and BUNDLE is its translator. Of each sentence one word is asked about,
drawn at random. The `K` source pieces that a method credits most are hidden, or replaced by pieces of other sentences, and what that takes
from the log-probability of the word is compared with the same for the pieces that the aligning head looks at, and for random ones.
Occlusion hides by itself, so the second figure, in which nobody hides, is the fair one. Intervals: 95 %, of the mean over sentences.

Words are planted in the translations of half the sentences to choose thresholds, and in those of the other half to measure them.
"""

import argparse
import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from limelight.chance import draws, key_of
from limelight.cli.demo.numerals import english, german
from limelight.decoding.steps import never
from limelight.inspection.analysis import omissions
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import METHODS, Attribution, Method
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.translator.translate import Translator

K = 2
RIVALS = ("attention", "random")
Values = dict[str, list[float]]


@dataclass
class Costs:
    """Costs by method or rival, one number for each sentence, and the gaps of integrated gradients."""

    hidden: Values = field(default_factory=dict)
    replaced: Values = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)


def number_words(count: int, seed: int = 1) -> list[str]:
    found = draws(key_of(seed), range_of(count)) % 1_000_000
    return [english(int(number)) for number in found]


def range_of(count: int):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.arange(count)


def measure_costs(translator: Translator, texts: Sequence[str], seed: int = 1) -> Costs:
    chance, costs = random.Random(seed), Costs()
    strange = [number for ids in translator.source_ids(list(texts)) for number in ids]
    for text in texts:
        trace = translator.trace(text, nbest=1)
        rows = [at for at, token in enumerate(trace.target.tokens) if token.word is not None]
        columns = [at for at, token in enumerate(trace.source.tokens) if token.word is not None]
        if not rows or len(columns) <= K:
            continue
        row = chance.choice(rows)
        chosen = {method: most_credited(told, columns) for method, told in attributions(trace, row, costs)}
        layer, head = (int(part) for part in trace.align.head.split(".")[1:])
        looked = trace.attention["cross"][layer, head, row]
        chosen["attention"] = sorted(columns, key=lambda at: -float(looked[at]))[:K]
        chosen["random"] = chance.sample(columns, K)
        instead = {at: chance.choice(strange) for at in columns}
        for name, pieces in chosen.items():
            hidden, replaced = costs_of(trace, row, pieces, instead)
            costs.hidden.setdefault(name, []).append(hidden)
            costs.replaced.setdefault(name, []).append(replaced)
    return costs


def attributions(trace: LiveTrace, row: int, costs: Costs) -> Iterator[tuple[str, Attribution]]:
    for method in METHODS:
        told = trace.why(row, method)
        if told.gap is not None:
            costs.gaps.append(told.gap)
        yield method, told


def most_credited(told: Attribution, columns: Sequence[int]) -> list[int]:
    return sorted(columns, key=lambda at: -told.source[at].effect)[:K]


def costs_of(trace: LiveTrace, row: int, pieces: Sequence[int], instead: dict[int, int]) -> tuple[float, float]:
    forced, model = trace.forced, trace.forced.lit.model
    inputs, wanted = forced.inputs[: row + 1], [forced.outputs[row]]
    own, hidden = VariedPass(model, (forced.source, inputs), wanted, never).without([(), pieces]).sum(dim=1).tolist()
    other = [instead[at] if at in pieces else number for at, number in enumerate(forced.source)]
    replaced = float(VariedPass(model, (other, inputs), wanted, never).without([()]).sum())
    return own - hidden, own - replaced


def planted_causes(translator: Translator, methods: Sequence[Method] = METHODS) -> dict[str, float]:
    """Of twenty-one ... ninety-nine: the units are credited to the units and the tens to the tens, in all of these cases or fewer."""
    right, cases = dict.fromkeys((*methods, "attention"), 0), 0
    for number in (each for each in range(21, 100) if each % 10):
        trace = translator.trace(english(number), nbest=1)
        if trace.target.text != german(number):
            continue
        cases += 2
        first = next(at for at, token in enumerate(trace.source.tokens) if token.word is not None)  # after the tags
        for row, column in ((0, first + 2), (2, first)):
            for method in methods:
                right[method] += most_credited(trace.why(row, method), range(first, first + 3))[0] == column
            right["attention"] += any(link[:2] == (column, row) for link in trace.align.links)
    return {name: count / max(cases, 1) for name, count in right.items()}


@dataclass
class Planted:
    """Words with the largest effect on them, and whether each was planted."""

    words: list[tuple[float, bool]] = field(default_factory=list)
    sure: list[tuple[float, bool]] = field(default_factory=list)  # the same words by their log-probability


def plant(translator: Translator, texts: Sequence[str], seed: int = 1) -> dict[str, Planted]:
    """A word left out of a translation, and one of another put into it; all effects, whatever the threshold."""
    chance, found = random.Random(seed), {"omission": Planted(), "addition": Planted()}
    usual, omissions.OMITTED, omissions.ADDED = (omissions.OMITTED, omissions.ADDED), math.inf, math.inf
    try:
        made = [each.text.split(" ") for each in translator.translate(list(texts))]
        for text, words in zip(texts, made, strict=True):
            if len(words) < 4:
                continue
            trace = translator.trace(text, nbest=1)
            left = plant_omission(translator, trace, words, chance)
            found["omission"].words += left
            place, strange = chance.randrange(1, len(words)), chance.choice(chance.choice(made))
            if strange.isalpha() and len(strange) > 3 and strange not in words:
                added = translator.trace(text, " ".join([*words[:place], strange, *words[place:]]), nbest=1)
                note_additions(added, place, found["addition"])
    finally:
        omissions.OMITTED, omissions.ADDED = usual
    return found


def plant_omission(translator: Translator, trace: LiveTrace, words: Sequence[str], chance: random.Random) -> list[tuple[float, bool]]:
    """The source word is that which the left-out word is linked to, if no other is linked to it too."""
    linked = {target: source for source, target, _ in trace.align.words}
    alone = [target for target, source in linked.items() if list(linked.values()).count(source) == 1 and target < len(words)]
    alone = [target for target in alone if words[target].isalpha() and len(words[target]) > 3]
    if not alone:
        return []
    left = chance.choice(alone)
    shorter = translator.trace(trace.source.text, " ".join([*words[:left], *words[left + 1 :]]), nbest=1)
    told = [each for each in shorter.check() if each.kind == "omission"]
    return [(each.effect, trace.source.tokens[each.pieces[0]].word == linked[left]) for each in told]


def note_additions(trace: LiveTrace, place: int, found: Planted) -> None:
    tokens = trace.target.tokens
    for each in trace.check():
        if each.kind == "addition":
            planted = tokens[each.pieces[0]].word == place
            found.words.append((each.effect, planted))
            found.sure.append((min(tokens[at].logp for at in each.pieces), planted))


def recall_and_precision(words: Sequence[tuple[float, bool]], below: float) -> tuple[float, float]:
    flagged = [planted for value, planted in words if value < below]
    return sum(flagged) / max(1, sum(planted for _, planted in words)), sum(flagged) / max(1, len(flagged))


def separation(words: Sequence[tuple[float, bool]]) -> float:
    """How often a planted word has less than one that was not: the area under the curve."""
    planted, others = ([value for value, is_planted in words if is_planted == which] for which in (True, False))
    below = sum((one < other) + (one == other) / 2 for one in planted for other in others)
    return below / max(1, len(planted) * len(others))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean, and how far to both sides it may be off."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((each - mean) ** 2 for each in values) / max(1, len(values) - 1))
    return mean, 1.96 * spread / math.sqrt(len(values))


def differences(one: Sequence[float], other: Sequence[float]) -> list[float]:
    return [mine - theirs for mine, theirs in zip(one, other, strict=True)]


def tell_costs(costs: Costs) -> None:
    """Of each method what hiding and what replacing takes, and for both how much more than what each rival's pieces take."""
    heads = [f"{what}, beyond {rival}" for what in ("hidden", "replaced") for rival in RIVALS]
    print(f"{'credited by':14s} {'hidden':>14s} {'replaced':>14s} " + " ".join(f"{head:>25s}" for head in heads))
    for name in (*METHODS, *RIVALS):
        told = [interval(values[name]) for values in (costs.hidden, costs.replaced)]
        beyond = [interval(differences(values[name], values[rival])) for values in (costs.hidden, costs.replaced) for rival in RIVALS]
        cells = [f"{mean:6.2f} ± {off:4.2f}" for mean, off in told] + [f"{mean:+6.2f} ± {off:4.2f}" for mean, off in beyond]
        print(f"{name:14s} " + " ".join(f"{cell:>{14 if at < 2 else 25}s}" for at, cell in enumerate(cells)))
    within = sum(gap <= 0.02 for gap in costs.gaps) / len(costs.gaps)
    print(f"integrated gradients complete within 2 %: {100 * within:.1f} % of {len(costs.gaps)}; worst {100 * max(costs.gaps):.1f} %")


def choose_threshold(words: Sequence[tuple[float, bool]]) -> float:
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
    """Thresholds that the first half chose, and the ones in use, on the second half."""
    for kind, usual in (("omission", omissions.OMITTED), ("addition", omissions.ADDED)):
        chose, other = chosen_by[kind], measured_on[kind]
        planted = sum(is_planted for _, is_planted in other.words)
        print(f"{kind}s planted: {planted} of {len(other.words)} words, separation {separation(other.words):.3f}")
        tell_threshold("by what came from what, chosen", other.words, choose_threshold(chose.words))
        tell_threshold("by what came from what, in use", other.words, usual)
        if other.sure:
            print(f"  by confidence alone: separation {separation(other.sure):.3f}")
            tell_threshold("by confidence alone, chosen", other.sure, choose_threshold(chose.sure))


def tell_threshold(name: str, words: Sequence[tuple[float, bool]], below: float) -> None:
    planted, flagged = sum(is_planted for _, is_planted in words), sum(value < below for value, _ in words)
    recall, precision = recall_and_precision(words, below)
    cells = [
        f"{100 * share:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
        for share, (low, high) in ((recall, wilson(recall, planted)), (precision, wilson(precision, flagged)))
    ]
    print(f"  {name:32s} below {below:6.2f}   recall {cells[0]}   precision {cells[1]}   {flagged} reported")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--to", help="of a model that has several languages")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--planted-only", action="store_true", help="only omissions and additions")
    asked = parser.parse_args()
    texts = asked.text.read_bytes().decode().split("\n") if asked.text else number_words(asked.sentences)
    texts = [text for text in texts if text.strip()][: asked.sentences]
    with Translator.load(asked.bundle, engine="torch") as loaded:
        translator = loaded if asked.to is None else loaded.towards(asked.to)
        if not asked.planted_only:
            tell_costs(measure_costs(translator, texts))
        if asked.text is None:
            print("planted causes found", json.dumps({name: round(share, 3) for name, share in planted_causes(translator).items()}))
        else:
            tell_planted(plant(translator, texts[::2]), plant(translator, texts[1::2]))


if __name__ == "__main__":
    main()
