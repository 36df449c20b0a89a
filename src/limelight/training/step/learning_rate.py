"""The learning rate, as a part of its peak, and the batches of a step are functions of the step and of the settings.

All three rise in a straight line, n / warmup at step n, and are exactly 1 at its end. Then:

    inverse_sqrt   sqrt(warmup / n)                             the paper's (5.3), divided by its peak; it has no end and no floor
    cosine         floor + (1 - floor) (1 + cos(pi t)) / 2      Loshchilov and Hutter 2017; t goes from 0 to 1 after the warm-up
    stable_decay   1, then 1 - (1 - floor) t                    Hu et al. 2024; t goes from 0 to 1 in the last `decay` of the steps

The last two are exactly `floor` at the last step and stay there. What a run takes by itself is the third with decay=1: up, and straight
down; with a budget `run.loop` moves its last step after each validation (`budget_clock`), and so the settings are part of a checkpoint.
Larger batches towards the end do what a lower rate does (Smith et al. 2018): `count_batches`.
"""

import math

from limelight.training.config import ScheduleSettings


def rate(step: int, settings: ScheduleSettings) -> float:
    """The factor for the peak rate, from 0 to 1. Step 1 is the first.

    `stable_decay` never falls before the warm-up has ended; with decay=1 it falls from there on.
    """
    assert step >= 1, "step 1 is the first"
    if settings.name == "inverse_sqrt":  # the paper's own is this times 1 / sqrt(d_model warmup); without warm-up 1 / sqrt(n)
        return step / settings.warmup if step < settings.warmup else math.sqrt(max(settings.warmup, 1) / step)
    if step >= settings.steps:
        return settings.floor
    if step <= settings.warmup:
        return step / settings.warmup
    if settings.name == "cosine":
        fallen = (1 - math.cos(math.pi * _interpolate(step, settings.warmup, settings.steps))) / 2
    else:
        begin = max(float(settings.warmup), settings.steps * (1 - settings.decay))
        fallen = _interpolate(step, begin, settings.steps)
    return max(settings.floor, 1 - (1 - settings.floor) * fallen)


def _interpolate(step: int, begin: float, end: int) -> float:
    """Which part of the way from `begin` to `end` lies behind `step`; 0 before it."""
    return max(0.0, (step - begin) / (end - begin))


def count_batches(step: int, settings: ScheduleSettings, accumulate: int) -> int:
    """Batches of a step: `accumulate` in the first half, then in a straight line up to `batch_growth` times as many at the last step."""
    grown = min(1.0, _interpolate(step, settings.steps / 2, settings.steps))
    return round(accumulate * (1 + (settings.batch_growth - 1) * grown))


def compute_growth_ahead(step: int, settings: ScheduleSettings, accumulate: int) -> float:
    """How many times as many batches as step `step` the steps after it have, in the mean; after 0, as the first step."""
    steps, half, grown = settings.steps, settings.steps / 2, max(0.0, step - settings.steps / 2)
    if settings.batch_growth == 1 or step >= steps:
        return 1.0
    ahead = accumulate * (1 + (settings.batch_growth - 1) * (half**2 - grown**2) / (2 * half * (steps - step)))
    return ahead / count_batches(step, settings, accumulate)
