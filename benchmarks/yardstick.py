"""What bare PyTorch does with the same work: batches of real lengths, torch.nn.Transformer, and the matrix products alone.

Nothing of Limelight is used here. Ids are drawn at random, since speed does not depend on them; lengths are those of Multi30k.
"""

import json
import math
import multiprocessing
import random
import time
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAD, START, END = 0, 2, 3
VOCAB = 8000
WARM_UP = 8  # batches: optimizer state, and in bf16 the kernels that oneDNN compiles for each shape; float32 has no such kernels
SIZES = {
    "small": {"d": 256, "heads": 4, "ff": 1024, "layers": 3},
    "base": {"d": 512, "heads": 8, "ff": 2048, "layers": 6},
}
Tensors = tuple[Tensor, Tensor, Tensor]  # source, target_in, target_out
Step = Callable[[Tensor, Tensor, Tensor], None]


def real_batches(budget: int = 4096, seed: int = 0) -> list[Tensors]:
    """29,000 pairs sorted by length, cut so that rows × longest target <= budget, in random order. About 1 % target padding."""
    counts = json.loads(Path(__file__).with_name("multi30k_lengths.json").read_text())["pairs"]
    lengths = [(int(s), int(t)) for s, targets in counts.items() for t, n in targets.items() for _ in range(n)]
    lengths.sort(key=lambda pair: (pair[1], pair[0]))
    cut: list[list[tuple[int, int]]] = [[]]
    for pair in lengths:
        if (pair[1] + 1) * (len(cut[-1]) + 1) > budget:
            cut.append([])
        cut[-1].append(pair)
    rng = random.Random(seed)
    rng.shuffle(cut)
    generator = torch.Generator().manual_seed(seed)
    return [random_ids(batch, generator) for batch in cut]


def random_ids(lengths: list[tuple[int, int]], generator: torch.Generator) -> Tensors:
    def rows(sizes: list[int]) -> Tensor:
        ids = torch.randint(4, VOCAB, (len(sizes), max(sizes) + 1), generator=generator)
        places, ends = torch.arange(ids.shape[1]), torch.tensor(sizes)[:, None]
        return ids.where(places < ends, torch.where(places == ends, END, PAD))

    source, target_out = rows([s for s, _ in lengths]), rows([t for _, t in lengths])
    started = torch.cat([torch.full((len(lengths), 1), START), target_out[:, :-1]], dim=1)
    return source, started.where(target_out != PAD, PAD), target_out


class StockTransformer(nn.Module):
    """torch.nn.Transformer as its documentation shows it, with tied embeddings and sinusoidal positions."""

    def __init__(self, d: int, heads: int, ff: int, layers: int) -> None:
        super().__init__()
        self.d = d
        self.embedding = nn.Embedding(VOCAB, d, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        angle = torch.arange(1024.0)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
        self.register_buffer("positions", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.dropout = nn.Dropout(0.1)
        self.body = nn.Transformer(d, heads, layers, layers, ff, 0.1, batch_first=True, norm_first=False)

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * math.sqrt(self.d) + self.positions[: ids.shape[1]])

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = torch.zeros(source.shape).masked_fill(source == PAD, -torch.inf)
        out = self.body(
            self.embed(source),
            self.embed(target),
            tgt_mask=causal,
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        return F.linear(out, self.embedding.weight)


class StockStep:
    """One training step: forward, label-smoothed loss, backward, clipping, fused AdamW."""

    def __init__(self, size: str, bf16: bool) -> None:
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nn.Transformer warns about its own nested tensors
            self.model = StockTransformer(**SIZES[size]).train()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-4, fused=True)
        self.bf16 = bf16

    def __call__(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            logits = self.model(source, target_in)
        loss = F.cross_entropy(logits.flatten(0, 1).float(), target_out.flatten(), ignore_index=PAD, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def gemm_seconds(size: str, source_positions: int, target_positions: int, dtype: torch.dtype, repeats: int = 3) -> float:
    """Best time of the bare matrix products of one step: forward and both backward products of every linear layer.

    This is the limit of the machine for that step: no attention, no norms, no softmax, no optimizer, operands at hand.
    """
    c = SIZES[size]
    d, ff, layers, s, t = c["d"], c["ff"], c["layers"], source_positions, target_positions
    encoder = [(s, d, 3 * d, layers), (s, d, d, layers), (s, d, ff, layers), (s, ff, d, layers)]
    decoder = [
        (t, d, 3 * d, layers),
        (t, d, d, 3 * layers),
        (s, d, 2 * d, layers),
        (t, d, ff, layers),
        (t, ff, d, layers),
    ]
    total = 0.0
    for rows, inputs, outputs, count in [*encoder, *decoder, (t, d, VOCAB, 1)]:
        x, w, g = (torch.randn(shape).to(dtype) for shape in ((rows, inputs), (outputs, inputs), (rows, outputs)))
        times = []
        for _ in range(repeats + 1):
            start = time.perf_counter()
            x @ w.T, g @ w, g.T @ x
            times.append(time.perf_counter() - start)
        total += count * min(times[1:])
    return total


class Contestant:
    """A training step in a process of its own, so that one's memory settings do not help or hurt another. Idle while others run."""

    def __init__(self, make: Callable[[], Step], warm_up: int) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_serve, args=(make, warm_up, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def seconds(self, batch: int) -> float:
        self.pipe.send(batch)
        return float(self.pipe.recv())

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join(timeout=10)


def _serve(make: Callable[[], Step], warm_up: int, pipe: Connection) -> None:
    batches = real_batches()
    step = make()
    for batch in batches[:warm_up]:
        step(*batch)
    while (number := pipe.recv()) is not None:
        start = time.perf_counter()
        step(*batches[number])
        pipe.send(time.perf_counter() - start)


def speeds(
    makers: dict[str, Callable[[], Step]], size: str, rounds: int, per_round: int, numbers: torch.dtype = torch.bfloat16
) -> dict[str, list[float]]:
    """{name: maker of a step} -> {name: [target pieces per second, one per round]}, and the limit of the products alone in `numbers`,
    interleaved batch by batch."""
    batches = real_batches()
    contestants = {}
    for name, make in makers.items():
        contestants[name] = Contestant(make, 1 if name == "nn.Transformer fp32" else WARM_UP)
        contestants[name].seconds(WARM_UP)  # returns when it is warm
    seconds = {name: [0.0] * rounds for name in [*makers, "limit"]}
    pieces = [0.0] * rounds
    for r in range(rounds):
        for number in range(WARM_UP + r * per_round, WARM_UP + (r + 1) * per_round):
            source, target_in, target_out = batches[number]
            pieces[r] += float((target_out != PAD).sum())
            for name, contestant in contestants.items():
                seconds[name][r] += contestant.seconds(number)
            seconds["limit"][r] += gemm_seconds(size, source.numel(), target_in.numel(), numbers)
    for contestant in contestants.values():
        contestant.stop()
    return {name: [p / s for p, s in zip(pieces, times, strict=True)] for name, times in seconds.items()}
