"""Rules choose size, batch and passes from text and time, for the advice of a plan and for a run itself.

Numbers without a reason beside them were set by hand, after trials on tens of thousands of pairs; what was measured with care stands in
docs/experiments.md. Pieces are target pieces.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from limelight.model.config import ModelConfig

# The least text for each size, smallest first. Set by hand, and above `small` nothing was tried.
TEXT_FOR: Final = {"tiny": 0, "small": 150_000, "base": 5_000_000, "big": 100_000_000}
# Where models learn by Muon: on 29,000 captions, 400,000 pieces, `slim` has by it after 0.28 of the work what `small` has by AdamW after
# all of it, and by AdamW it has less (docs/experiments.md).
TEXT_BY_MUON: Final = {**TEXT_FOR, "small": 1_000_000, "slim": 150_000}
# Sizes that are never chosen by themselves: text of which 16 passes, about what repeated text is worth at most, are 20 pieces a parameter,
# the measure of Hoffmann et al. 2022 for language models.
TEXT_FOR_MORE: Final = {"3b": 4_000_000_000, "10b": 12_000_000_000}
LARGEST: Final = "big"  # that is chosen by itself
SEEN_PER_PARAMETER: Final = 1.5  # in the whole run; with fewer a smaller model is better (docs/experiments.md)
SEEN_BY_SLIM: Final = 4.0  # the same: below it `tiny`, half as deep, is ahead
STEPS_WANTED: Final = 8_000  # the batch grows only when there are more than enough steps; as many as the published run behind 41.02 took
BATCH: Final = (3_072, 25_000)  # of a step: the least that keeps two cores busy, and the paper's (5.1)
# Beyond the paper's batch only when the paper's number of steps (5.1, 5.2) is had anyway; up to what Ott et al. 2018 trained `big` with on
# 4.5 million pairs (about 400,000 tokens, by memory of the paper). Nothing of it was tried here.
STEPS_OF_THE_PAPER: Final = 100_000
LARGEST_BATCH: Final = 400_000
BATCHES_OF_TEXT: Final = 10  # at least: else a long run on a short text would see all of it several times in a step
LEAST_BATCH: Final = 512  # that a step may see of any text
# Passes over a text after which no more is gained: on 29,000 captions validation stands still after 15 to 25 (docs/experiments.md);
# text repeated more than 16 times is worth next to nothing to language models without dropout (Muennighoff et al. 2023).
EPOCHS_ENOUGH: Final = 40
# On the same captions a model 128 wide still gains after 23, and its published run takes 100, with dropout 0.3.
NARROW, EPOCHS_OF_NARROW = 128, 100
# Pieces for each parameter after which no more is gained, however much text there is: an assumption. The paper's `big` saw 35 (300,000
# steps).
ENOUGH_PER_PARAMETER: Final = 200
LEAST_ENOUGH: Final = 10_000_000  # however short the text
VALIDATION_SHARE: Final = 0.05  # of the time; what it really takes is measured, and the steps follow
LEAST_STEPS: Final = 5  # however small the budget: more would not hold it on a slow machine
LEAST_TRAINING: Final = 5.0  # seconds, however little of the budget is left
# (epochs, dropout): the more often a text is seen, the more a model learns it by heart.
DROPOUT: Final = ((100.0, 0.3), (8.0, 0.2), (0.0, 0.1))
# From so many passes over the text on the rate hardly falls, and the weights are the mean of the last ten validations, an epoch apart.
# With still more a model learns by heart, and its best weights may be old ones.
MANY_EPOCHS: Final = 40.0, 100.0
LONGEST_RISE, RISE_OF_MANY = 4_000, 800  # steps
RATE_AT_256: Final = 2e-3  # the peak; half of it at twice the width
WIDEST_BY_MUON: Final = 256
RATE_BY_MUON: Final = 2.0  # times that by AdamW (docs/experiments.md)
# Times `peak_rate`, beyond which a run is warned. 2.5 trains in published runs with norms after the sub-layers, 4+4 layers, 128 wide.
TOO_HIGH: Final = 3.0
DEPTH_OF_THE_PAPER: Final = 6  # layers of a stack; with norms after the sub-layers deeper ones bear less (Liu et al. 2020)


@dataclass(frozen=True)
class TextStats:
    pairs: float
    source: float  # pieces, with what stands around them
    target: float
    frequencies: float | None = None  # entropy of its target pieces in nats; None: not counted


@dataclass(frozen=True)
class Size:
    name: str
    why: str


@dataclass(frozen=True)
class BatchChoice:
    pieces: float  # of a step
    why: str


def preset_for(
    target: float,
    parameters: Mapping[str, float],
    seen: Callable[[str], float] | None,
    fits: Callable[[str], bool] | None = None,
    muon: bool = False,
) -> Size:
    """The largest size that text, time and memory have use for.

    `seen`: how many pieces a run of a size would see in its time; None: as many as it wants. `fits`: None, all do. `muon`: it learns by it.
    """
    names = list_sizes(target, muon)
    why = f"{target:,.0f} target pieces to learn from are too few for more"
    if names[-1] == LARGEST:
        why = "the largest that is chosen by itself"
    while len(names) > 1:
        if fits is not None and not fits(names[-1]):
            why = "a larger one does not fit into memory"
        elif seen is not None and seen(names[-1]) < count_wanted(names[-1], parameters):
            why = "a larger one would see too little in the time"
        else:
            break
        names.pop()
    return Size(names[-1], why)


def list_sizes(target: float, muon: bool) -> list[str]:
    """Those that a text is long enough for, smallest first."""
    least = TEXT_BY_MUON if muon else TEXT_FOR
    return sorted((name for name in least if target >= least[name]), key=least.__getitem__)


def count_wanted(name: str, parameters: Mapping[str, float]) -> float:
    """Pieces that a model of this size has to see to be better than a smaller one."""
    return (SEEN_BY_SLIM if name == "slim" else SEEN_PER_PARAMETER) * parameters[name]


def enough(target: float, parameters: float, d_model: int) -> float:
    """Pieces after which a model has nothing more to learn from a text."""
    epochs = EPOCHS_OF_NARROW if d_model <= NARROW else EPOCHS_ENOUGH
    return max(min(epochs * target, ENOUGH_PER_PARAMETER * parameters), float(LEAST_ENOUGH))


def is_too_large(parameters: float, target: float, sizes: Mapping[str, float]) -> bool:
    """Tell whether a model is larger than the largest of `sizes`, the presets with their parameters, that a text is long enough for."""
    least = {**TEXT_FOR, **TEXT_FOR_MORE}
    allowed = [sizes[name] for name in least if target >= least[name]]
    return len(allowed) < len(least) and parameters > 1.5 * max(allowed)


def batch_for(seen: float, target: float) -> BatchChoice:
    wanted = min(max(seen / STEPS_WANTED, BATCH[0]), BATCH[1])
    beyond = min(seen / STEPS_OF_THE_PAPER, LARGEST_BATCH)
    most = max(LEAST_BATCH, target / BATCHES_OF_TEXT)
    if most < max(wanted, beyond):
        return BatchChoice(most, "the text is short, and a step should see a small part of it")
    if beyond > wanted:
        return BatchChoice(beyond, f"room for {STEPS_OF_THE_PAPER:,} steps or more, so that devices have enough to do at once")
    if wanted > BATCH[0]:
        return BatchChoice(wanted, f"room for {STEPS_WANTED:,} steps or more")
    return BatchChoice(wanted, "small, so that there are more steps")


def dropout_for(epochs: float) -> float:
    return next(rate for least, rate in DROPOUT if epochs >= least)


def is_seen_often(epochs: float) -> bool:
    return MANY_EPOCHS[0] <= epochs < MANY_EPOCHS[1]


@dataclass(frozen=True)
class RateCurve:
    """A rate curve says how the rate rises and falls, and which weights are averaged."""

    schedule: dict[str, str | int]
    average: dict[str, float | bool]


def curve_for(steps: int, epochs: float, is_new: bool) -> RateCurve:
    """`is_new`: not a translator that learns on."""
    decay = round(min(0.9999, max(0.9, 1 - 20 / steps)), 5)  # over about the last twentieth of the run
    if is_new and is_seen_often(epochs):
        return RateCurve(
            {"name": "inverse_sqrt", "warmup": max(1, min(RISE_OF_MANY, steps // 10))}, {"decay": decay, "best": 10, "latest": True}
        )
    return RateCurve({"warmup": max(1, min(LONGEST_RISE, steps // (10 if is_new else 20)))}, {"decay": decay})


def peak_rate(config: ModelConfig, muon: bool = False) -> float:
    """The learning rate at its highest. Without a norm before each sub-layer a higher one diverges."""
    return RATE_AT_256 * 256 / config.d_model * (0.5 if config.norm_order == "post" else 1.0) * (RATE_BY_MUON if muon else 1.0)


def fits_muon(config: ModelConfig) -> bool:
    """Is it among the widths for which Muon was measured? Its step costs more the wider a model is, and the smaller its batches."""
    return config.d_model <= WIDEST_BY_MUON


def explain_high_rate(config: ModelConfig, rate: float, muon: bool = False) -> str | None:
    """Why a run of this shape at this peak rate may diverge, or never look at its source; None where nothing speaks against it."""
    depth, after = max(config.encoder_layers, config.decoder_layers), config.norm_order == "post"
    highest = TOO_HIGH * peak_rate(config, muon) * (min(1.0, DEPTH_OF_THE_PAPER / depth) if after else 1.0)
    if rate <= highest:
        return None
    norms = f"norms after the sub-layers and {depth} layers" if after else "norms before the sub-layers"
    return f"high for {config.d_model} wide, {norms}: it may diverge, or never look at the source; at most {highest:.2g} is known to train"


def reserve(budget: float) -> float:
    """Seconds of a budget for what comes after training: choosing among the weights, calibration, the test set, the report."""
    return min(20 + 0.02 * budget, 0.25 * budget)


def training_seconds(budget: float, spent: float = 0.0) -> float:
    return max(LEAST_TRAINING, (budget - reserve(budget) - spent) * (1 - VALIDATION_SHARE))


def budget_for(training: float, spent: float = 0.0) -> float:
    """The budget that leaves `training` seconds for steps: the inverse of `training_seconds`."""
    steps_and_before = training / (1 - VALIDATION_SHARE) + spent
    return min((steps_and_before + 20) / 0.98, steps_and_before / 0.75)
