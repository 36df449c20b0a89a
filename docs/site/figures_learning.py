"""Figures of the page on learning. A toy model learns to reverse digits while the page is built."""

from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from figures_style import SECOND, SPOT, THIRD, Drawn, figure, matrix
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.training.config import ScheduleSettings
from limelight.training.step.learning_rate import rate

PAD, START, END, FIRST = 0, 2, 3, 4
STEPS, ROWS, PEAK, LONGEST = 500, 32, 3e-3, 8
SHOWN = "3141592"
SNAPSHOTS = (0, 150, 250, STEPS)


@dataclass(frozen=True)
class Learnt:
    losses: list[float]
    looks: dict[int, np.ndarray]  # type: ignore[type-arg]  # by step: where the answer to SHOWN looks, (T, S), mean of the last layer's heads
    right: float  # of 200 strings drawn anew


@cache
def reversal() -> Learnt:
    torch.manual_seed(0)
    random, model = Random(0), Transformer(ModelConfig.preset("toy", 14, dropout=0.0))
    schedule = ScheduleSettings(steps=STEPS, warmup=50)
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.98))
    losses, looks = [], {0: _looks(model)}
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = PEAK * rate(step, schedule)
        loss = model.train().loss(_batch([_draw(random) for _ in range(ROWS)])).mean
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(float(loss.detach()))
        if step in SNAPSHOTS:
            looks[step] = _looks(model)
    return Learnt(losses, looks, _right(model, [_draw(Random(1000 + n)) for n in range(200)]))


def _draw(random: Random) -> list[int]:
    return [random.randrange(FIRST, 14) for _ in range(random.randint(1, LONGEST))]


def _pad(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def _batch(strings: list[list[int]]) -> Batch:
    answers = [string[::-1] for string in strings]
    return Batch.packed(
        _pad([[*s, END] for s in strings]),
        _pad([[START, *a] for a in answers]),
        _pad([[*a, END] for a in answers]),
        PAD,
    )


@torch.inference_mode()
def _looks(model: Transformer) -> np.ndarray:  # type: ignore[type-arg]
    string, seen = [FIRST + int(digit) for digit in SHOWN], []
    light = model.eval().spotlights()[-1].attention
    light.looks.append(lambda stage, value: seen.append(value[0].mean(0).numpy()) if stage == "weights" else None)
    model(_pad([[*string, END]]), _pad([[START, *string[::-1]]]))
    light.looks.clear()
    return np.array(seen[0])


@torch.inference_mode()
def _right(model: Transformer, strings: list[list[int]]) -> float:
    right = 0
    for string in strings:
        state, token, answer = model.eval().start(_pad([[*string, END]])), torch.tensor([START]), []
        while len(answer) <= LONGEST and (not answer or answer[-1] != END):
            log_probs, state = model.step(token, state)
            token = log_probs.argmax(-1)
            answer.append(int(token))
        right += answer == [*string[::-1], END]
    return right / len(strings)


def loss_falls() -> Drawn:
    learnt = reversal()
    drawn, (place,) = figure(5.8, 2.6)
    place.plot(range(1, STEPS + 1), learnt.losses, color=SPOT, linewidth=1.2)
    chance = float(np.log(10))
    place.axhline(chance, color="#888888", linewidth=0.8, linestyle=":")
    place.set(xlabel="step", ylabel="nats per piece", ylim=(0, None))
    caption = (
        f"A toy model (2+2 layers, 64 wide) learns to reverse digits: the loss of {STEPS} batches of {ROWS} "
        f"strings, from "
        f"{learnt.losses[0]:.2f} to {np.mean(learnt.losses[-20:]):.3f}. The dotted line, {chance:.2f}, is knowing "
        f"that digits come and no more. In the "
        f"end {100 * learnt.right:.1f} % of 200 strings drawn anew are reversed without a fault."
    )
    return Drawn(drawn, caption, "The training loss falls")


def light_learns() -> Drawn:
    learnt = reversal()
    drawn, axes = figure(8.6, 2.5, columns=len(SNAPSHOTS))
    rows, columns = [*SHOWN[::-1], "end"], [*SHOWN, "end"]
    for at, (place, step) in enumerate(zip(axes, SNAPSHOTS, strict=True)):
        matrix(place, learnt.looks[step], rows if at == 0 else (), columns, vmin=0, vmax=1)
        place.tick_params(axis="x", labelrotation=0)
        place.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=0, ha="center")
        place.set_xlabel(f"after {step} steps")
    anti = float(np.mean([learnt.looks[STEPS][t, len(SHOWN) - 1 - t] for t in range(len(SHOWN))]))
    caption = (
        f"The same model while it learns: where each digit of the answer (rows) looks in {SHOWN} (columns), mean "
        f"over the heads of the last layer. "
        f"Nobody told it where to look. At the end {100 * anti:.0f} % of the light lies on the digit that is copied."
    )
    return Drawn(drawn, caption, "Cross-attention before, during and after learning to reverse digits")


def schedules() -> Drawn:
    drawn, (place,) = figure(5.6, 2.4)
    steps = np.arange(1, 10_001, 20)
    for name, colour in (("inverse_sqrt", SECOND), ("stable_decay", SPOT), ("cosine", THIRD)):
        settings = ScheduleSettings(name=name, steps=10_000, warmup=1000)  # type: ignore[arg-type]
        place.plot(steps, [rate(int(step), settings) for step in steps], color=colour, label=name)
    place.set(xlabel="step", ylabel="part of the peak rate", ylim=(0, 1.05))
    place.legend()
    caption = (
        "The three schedules over 10,000 steps with a warm-up of 1,000; <code>inverse_sqrt</code> is the paper's, "
        "<code>stable_decay</code> the default here."
    )
    return Drawn(drawn, caption, "Learning rate over the steps for three schedules")


def smoothing() -> Drawn:
    """The loss as a function of the probability of the right piece, the rest shared alike."""
    vocabulary = 1000
    p = np.linspace(1 / vocabulary, 0.9999, 2000)
    rest = (1 - p) / (vocabulary - 1)
    drawn, (place,) = figure(5.6, 2.6)
    best = {}
    for s, colour in ((0.0, SECOND), (0.1, SPOT), (0.2, THIRD)):
        mean_log = (np.log(p) + (vocabulary - 1) * np.log(rest)) / vocabulary
        loss = -(1 - s) * np.log(p) - s * mean_log
        best[s] = float(p[np.argmin(loss)])
        place.plot(p, loss, color=colour, label=f"s = {s}")
        place.plot(best[s], loss.min(), marker="o", color=colour)
    place.set(xlabel="probability of the right piece", ylabel="loss, nats", ylim=(0, 6))
    place.legend()
    caption = (
        f"The loss of one piece, of {vocabulary:,}, when the others share the rest alike. Without smoothing it is "
        f"least at certainty; with "
        f"s = 0.1 at p = {best[0.1]:.2f}: beyond that, being surer is punished."
    )
    return Drawn(drawn, caption, "Loss by probability of the right piece, for three amounts of smoothing")
