"""Digit strings to copy, reverse and sort: the smallest tasks that need a whole encoder-decoder.

python examples/digits.py reverse      trains a toy model, answers, and draws where each piece of the answer looked

draw_string(Random(0))            ->  [10, 4, 12]       ids: digit 0 is 4
make_batch(strings, "sort")       source = the string and END, target = the sorted string and END
exact_match(train(config, "sort", seed=0), "sort", held_out_strings())  ->  1.0
"""

import argparse
import time
import zlib
from collections.abc import Callable
from random import Random

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer

PAD, START, END, FIRST_DIGIT, VOCABULARY = 0, 2, 3, 4, 14
LONGEST = 10

String = list[int]
TASKS: dict[str, Callable[[String], String]] = {"copy": list, "reverse": lambda string: string[::-1], "sort": sorted}


def draw_string(random: Random) -> String:
    return [random.randrange(FIRST_DIGIT, VOCABULARY) for _ in range(random.randint(1, LONGEST))]


def is_held_out(string: String) -> bool:
    """A tenth of all strings, never seen in training."""
    return zlib.crc32(bytes(string)) % 10 == 0


def training_strings(count: int, random: Random) -> list[String]:
    strings: list[String] = []
    while len(strings) < count:
        string = draw_string(random)
        if not is_held_out(string):
            strings.append(string)
    return strings


def held_out_strings(count: int = 500) -> list[String]:
    """All different."""
    random, strings = Random(2017), dict[tuple[int, ...], None]()
    while len(strings) < count:
        string = draw_string(random)
        if is_held_out(string):
            strings[tuple(string)] = None
    return [list(string) for string in strings]


def pad(strings: list[String]) -> Tensor:
    return pad_sequence([torch.tensor(string) for string in strings], batch_first=True, padding_value=PAD)


def make_batch(strings: list[String], task: str) -> Batch:
    targets = [TASKS[task](string) for string in strings]
    source = pad([[*string, END] for string in strings])
    return Batch.packed(source, pad([[START, *t] for t in targets]), pad([[*t, END] for t in targets]), pad_token=PAD)


def train(config: ModelConfig, task: str, seed: int, steps: int = 450, rows: int = 32, peak: float = 3e-3, warmup: int = 50) -> Transformer:
    """AdamW, the learning rate up over `warmup` steps and then in a straight line down to nothing."""
    torch.manual_seed(seed)
    random, model = Random(seed), Transformer(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=peak, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / warmup, (steps - step) / (steps - warmup)))
    model.train()
    for _ in range(steps):
        loss = model.loss(make_batch(training_strings(rows, random), task)).mean
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return model.eval()


@torch.inference_mode()
def greedy(model: Transformer, source: Tensor) -> list[String]:
    """The most probable next piece, again and again; each row up to its END."""
    state, token = model.start(source), torch.full((len(source),), START)
    pieces: list[Tensor] = []
    for _ in range(LONGEST + 2):
        log_probs_BV, state = model.step(token, state)
        token = log_probs_BV.argmax(dim=-1)
        pieces.append(token)
    rows = torch.stack(pieces, dim=1).tolist()
    return [row[: row.index(END)] if END in row else row for row in rows]


def exact_match(model: Transformer, task: str, strings: list[String]) -> float:
    """The share of strings whose whole answer is right."""
    answers = greedy(model, make_batch(strings, task).source)
    return sum(answer == TASKS[task](string) for answer, string in zip(answers, strings, strict=True)) / len(strings)


@torch.inference_mode()
def cross_attention(model: Transformer, source: Tensor, target_in: Tensor) -> Tensor:
    """What the heads of the last layer look at on average, (T, S) for one sentence."""
    seen: list[Tensor] = []
    light = model.spotlights()[-1].attention
    light.looks.append(lambda stage, value: seen.append(value[0].mean(0)) if stage == "weights" else None)
    try:
        model(source, target_in)
    finally:
        light.looks.clear()
    return seen[0]


def picture(rows: list[str], columns: list[str], weights_TS: Tensor) -> str:
    """A heat map of characters: a row for each piece of the answer, darker where it looked."""
    shades = " .:-=+*#%@"
    lines = ["      " + "  ".join(columns)]
    for label, row in zip(rows, weights_TS.tolist(), strict=True):
        lines.append(f"   {label}  " + "  ".join(shades[min(int(w * len(shades)), len(shades) - 1)] for w in row))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(f"A toy Transformer (2+2 layers, 64 wide) learns to {args.task} digits ...")
    start = time.perf_counter()
    model = train(ModelConfig.preset("toy", VOCABULARY, dropout=0.0), args.task, args.seed)
    print(f"trained in {time.perf_counter() - start:.0f} s")
    print(f"{100 * exact_match(model, args.task, held_out_strings()):.1f} % of 500 strings it never saw are answered without a fault")
    string = [FIRST_DIGIT + int(digit) for digit in "3141592"]
    (answer,) = greedy(model, pad([[*string, END]]))
    said = [str(piece - FIRST_DIGIT) if piece >= FIRST_DIGIT else "?" for piece in answer]
    print(f"\n3141592 -> {''.join(said)}\n")
    print("Where each piece of the answer (down) looked in the source (across), mean of the last layer's heads:\n")
    weights_TS = cross_attention(model, pad([[*string, END]]), pad([[START, *answer]]))
    print(picture([*said, "/"], [*"3141592", "/"], weights_TS))


if __name__ == "__main__":
    main()
