"""Which attribution to trust: what hiding and replacing the credited pieces costs, and planted causes.

    python benchmarks/why.py BUNDLE [--text FILE] [--sentences 200]

Without --text the sentences are number words of `limelight demo`, and BUNDLE is its translator. Of each sentence one word is asked about,
drawn at random. The `K` source pieces that a method credits most are hidden, or replaced by pieces of other sentences, and what that takes
from the log-probability of the word is compared with the same for the pieces that the aligning head looks at, and for random ones.
Occlusion hides by itself, so the second figure, in which nobody hides, is the fair one. Intervals: 95 %, of the mean over sentences.

Omissions and additions are planted by benchmarks/why_planted.py; benchmarks/why_speed.py times the desk.
"""

import argparse
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from limelight.chance import draws, key_of
from limelight.cli.demo.numerals import english, german
from limelight.decoding.steps import never
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--to", help="of a model that has several languages")
    parser.add_argument("--sentences", type=int, default=200)
    asked = parser.parse_args()
    texts = asked.text.read_bytes().decode().split("\n") if asked.text else number_words(asked.sentences)
    texts = [text for text in texts if text.strip()][: asked.sentences]
    with Translator.load(asked.bundle, engine="torch") as loaded:
        translator = loaded if asked.to is None else loaded.towards(asked.to)
        tell_costs(measure_costs(translator, texts))
        if asked.text is None:
            print("planted causes found", json.dumps({name: round(share, 3) for name, share in planted_causes(translator).items()}))


if __name__ == "__main__":
    main()
