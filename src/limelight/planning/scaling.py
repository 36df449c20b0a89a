"""A law predicts the loss of a model from the text it has seen, in nats per target piece of a validation set.

    loss = E + (ln V - E) h / (1 + h)                 between E, which no model gets below, and guessing among V pieces
    h    = a (1 / D + b / N^(ALPHA/DELTA))^DELTA + c / T^beta

N is parameters without embeddings (Gordon et al. 2021 count them so), T target pieces seen, D the text that these passes over `unique`
pieces are worth (`worth`). The first term is the joint law of Bansal et al. 2022 and, in another notation, of Gordon et al. 2021: with
little text a larger model helps little, with much text it does. The second is how far a run has come at all. The sum is bent so that the
loss of a run that has hardly begun stays below that of guessing, as in arXiv 2605.09189.

A run first learns how frequent each piece is, in tens of steps, whatever its size, and a little of what follows what. Until the law above
is lower, the loss is

    U + (ln V - U) / (1 + (steps / n)^2)              from guessing to U (`predict_early_loss`)

where U is the entropy of the pieces of this very text, which is counted (`training.recipe.text_stats`), less what is soon gained. A text
whose pieces are harder to guess by themselves than those of captions stays harder: its level is taken to be higher (`unknown_level`).
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from limelight.model.config import ModelConfig
from limelight.planning.cost.size import parameters

# Hoffmann et al. 2022, equation 10 (E 1.69, A 406.4, alpha 0.34, B 410.7, beta 0.28): language models of 70 M to 16 G parameters on 5 to
# 500 G tokens (the range from memory of the paper). For translation Ghorbani et al. 2021 found exponents of the same order, one for each
# side (not used; from memory of the paper).
ALPHA: Final = 0.34
# Bansal et al. 2022: 0.28 for English to German, 0.25 for Chinese to English, from half a million to half a billion pairs (the range from
# memory of the paper); 0.28 by Hoffmann et al., too.
DELTA: Final = 0.28
# Muennighoff et al. 2023: passes whose worth has decayed to 1/e, for language models up to 9 G parameters; the number from memory of the
# paper, its abstract says that up to 4 passes are worth as much as new text.
WORTH: Final = 15.39


@dataclass(frozen=True)
class Fit:
    """A fit has the constants of the law, from `scaling_runs.json`. `spread`: root of the mean squared difference of the loss.

    `bleu`: of corpora whose runs span a nat, BLEU of greedy translation at a loss of 0, what it loses for each nat, and its spread; it
    holds for losses up to BLEU_UP_TO.
    """

    a: float
    b: float
    c: float
    beta: float
    levels: dict[str, float]  # E of each corpus
    spread: float
    parameters: tuple[float, float]  # of the runs: the least and the most
    seen: tuple[float, float]
    unique: tuple[float, float]
    bleu: dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Beginning:
    """A beginning has the constants of early loss, from the `beginnings` in `scaling_runs.json`, runs that end before they have learnt."""

    gained: float  # nats below the entropy of the pieces, of runs of tens of steps
    steps: float  # after which half of the way there is gone
    harder: float  # nats of level for each nat by which the pieces of a text are harder to guess than captions
    spread: float  # root of the mean squared difference of the loss, where E is not known
    seen: tuple[float, float]
    unique: tuple[float, float]


BLEU_UP_TO: Final = 3.0  # nats: beyond it nothing that is translated is right
FITTED: Final = Fit(
    a=13.938, b=3.0443, c=925680.0, beta=1.0698,
    levels={"multi30k": 0.0, "tatoeba": 0.30522, "wmt14": 1.1381},
    spread=0.074362,
    parameters=(233_728, 176_357_376), seen=(453_484, 7_500_000_000), unique=(121_910, 135_000_000),
    bleu={"multi30k": (53.06, 11.55, 0.92791)},
)  # fmt: skip
# Nats: the entropy of pieces where no text was counted; of the six of `scaling_runs.json` it is 5.8 to 6.9.
USUAL: Final = 6.3
HARDEST: Final = 1.0  # nats of level at most: short runs tell nothing of where a long one ends
CAPTIONS: Final = 0.74  # the entropy of their pieces over that of guessing
BEGINNING: Final = Beginning(
    gained=0.44228, steps=5.7466, harder=2.7594, spread=0.23097, seen=(19_619, 368_079), unique=(18_160, 1_031_881)
)
# By Muon a run comes as far with fewer pieces: with a fourth of c eight runs are met within 0.20 nats (docs/plan.md).
FURTHER_BY_MUON: Final = 4.0
STEP: Final = 3_072  # target pieces, where nobody says how many: what `planning.sizing_rules` takes for short runs
# Nats by which the level of another text may well differ, beside what ours differ among themselves.
WITHOUT_A_RUN: Final = 0.3
BEYOND: Final = 0.05  # nats of doubt for each factor of e outside of what was measured


@dataclass(frozen=True)
class LossPrediction:
    loss: float
    low: float
    high: float
    in_range: bool  # of models, texts and passes that were measured
    notes: tuple[str, ...]
    bleu: tuple[float, float] | None = None  # the least and the most, where our own runs on this corpus tell


def predict_loss(
    config: ModelConfig,
    seen: float,
    unique: float,
    corpus: str | None = None,
    fit: Fit | None = None,
    steps: float | None = None,
    frequencies: float | None = None,
    muon: bool = False,
) -> LossPrediction:
    """Predict the loss after `seen` target pieces of a text that has `unique`. `corpus`: one of those measured, whose level is known.
    `frequencies`: entropy of its target pieces, where it was counted. `muon`: the optimizer.

    Of any other text the level is taken to be that of news or higher; a simpler text, such as captions of pictures, lies below it.
    """
    fit = fit or FITTED
    fit = replace(fit, c=fit.c / FURTHER_BY_MUON) if muon else fit
    known = fit.levels.get(corpus or "")
    level = known if known is not None else unknown_level(fit, config, frequencies)
    first = predict_early_loss(config, seen / STEP if steps is None else steps, frequencies)
    loss = min(first, loss_of(fit, level, config, seen, unique))
    outside = _outside(fit, without_embeddings(config), seen, unique)
    doubt = (BEGINNING.spread if loss == first else fit.spread) ** 2 + sum((BEYOND * math.log(factor)) ** 2 for factor, _ in outside)
    notes = [note for _, note in outside]
    below = 0.0
    if known is None:
        doubt += WITHOUT_A_RUN**2
        below = loss - min(loss, loss_of(fit, min(fit.levels.values()), config, seen, unique))
        notes.append("the level of this text is not known before a run: compare sizes by the difference of their losses")
    reach = 2 * math.sqrt(doubt)
    low, high = max(0.0, loss - math.hypot(below, reach)), min(math.log(config.vocab_size), loss + reach)
    return LossPrediction(loss, low, high, not outside, tuple(notes), None if outside else _bleu(fit, corpus, loss))


def _bleu(fit: Fit, corpus: str | None, loss: float) -> tuple[float, float] | None:
    if corpus not in fit.bleu or loss > BLEU_UP_TO:
        return None
    at_zero, each, off = fit.bleu[corpus]
    return max(0.0, at_zero - each * loss - 2 * off), at_zero - each * loss + 2 * off


def loss_of(fit: Fit, level: float, config: ModelConfig, seen: float, unique: float) -> float:
    short = 1 / worth(seen, unique) + fit.b / without_embeddings(config) ** (ALPHA / DELTA)
    h: float = fit.a * short**DELTA + fit.c / seen**fit.beta
    return level + (math.log(config.vocab_size) - level) * h / (1 + h)


def predict_early_loss(config: ModelConfig, steps: float, frequencies: float | None = None, beginning: Beginning | None = None) -> float:
    """The loss after `steps` steps of a run that has learnt little yet but how frequent each piece is; ln V before the first."""
    b, guessing = beginning or BEGINNING, math.log(config.vocab_size)
    level = min((USUAL if frequencies is None else frequencies) - b.gained, guessing)
    return level + (guessing - level) / (1 + (steps / b.steps) ** 2)


def unknown_level(fit: Fit, config: ModelConfig, frequencies: float | None, beginning: Beginning | None = None) -> float:
    """E of a text that no run was on: that of news, the highest of ours, or more where its pieces are harder to guess."""
    harder = 0.0 if frequencies is None else max(0.0, frequencies - CAPTIONS * math.log(config.vocab_size))
    return max(fit.levels.values()) + min(HARDEST, (beginning or BEGINNING).harder * harder)


def worth(seen: float, unique: float) -> float:
    """New text that would teach as much as `seen` pieces of a text that has `unique` (Muennighoff et al. 2023).

    D = U + U R (1 - e^(-(passes - 1) / R)),  R = WORTH;  what is seen, as long as nothing is seen twice
    """
    passes = seen / unique
    return seen if passes <= 1 else unique * (1 + WORTH * (1 - math.exp(-(passes - 1) / WORTH)))


def without_embeddings(config: ModelConfig) -> float:
    counts = parameters(config)
    return float(counts["encoder"] + counts["decoder"])


def _outside(fit: Fit, count: float, seen: float, unique: float) -> list[tuple[float, str]]:
    """How far a question lies outside of what was measured, and in which way."""
    found = []
    for value, (least, most), name in (
        (count, fit.parameters, "parameters without embeddings"),
        (seen, (min(fit.seen[0], BEGINNING.seen[0]), fit.seen[1]), "target pieces seen"),
        (unique, fit.unique, "target pieces of text"),
    ):
        if value > 1.2 * most:
            beyond = f"{_short(value)} {name}: the runs behind this have {_short(most)} at most, beyond is extrapolated"
            found.append((value / most, beyond))
        elif value < least / 1.2:
            found.append((least / value, f"{_short(value)} {name}: the runs behind this have {_short(least)} at least"))
    return found


def _short(value: float) -> str:
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.2g}{name}" if value < 100 * unit else f"{value / unit:,.0f}{name}"
    return f"{value:.0f}"
