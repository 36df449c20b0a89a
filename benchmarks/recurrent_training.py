"""One model of the comparison in training: the same batches, loss, optimizer and schedule for each, and how it is scored."""

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sacrebleu
import torch
from torch import nn

from limelight import runtime
from limelight.decoding.config import SearchSettings
from limelight.decoding.search import search
from limelight.decoding.steps import Request
from limelight.decoding.task import pad_rows
from limelight.engines.torch import OnHost
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.text.pieces.tokenizer import END, PAD, START, Tokenizer
from limelight.training.step.trained_model import MasterWeights
from recurrent_models import Recurrent

TRANSFORMER, LSTM, FED = "transformer", "lstm", "input-feeding"
MODELS: dict[str, Callable[[int], nn.Module]] = {
    TRANSFORMER: lambda vocab: Transformer(ModelConfig.preset("small", vocab)),
    LSTM: lambda vocab: Recurrent(vocab, input_feeding=False),
    FED: lambda vocab: Recurrent(vocab, input_feeding=True),
}
WARM_UP, CLIP = (
    0.08,
    1.0,
)  # share of the training time until the learning rate is at its peak; largest norm of the gradient
DECODED_AT_ONCE = 8192  # target pieces, about

Pair = tuple[list[int], list[int]]
Results = dict[str, Any]


@dataclass(frozen=True)
class Work:
    """What a process gets to do, as it must travel to it."""

    model: str
    train: list[Pair]
    held_out: list[Pair]
    references: list[str]  # the targets of held_out as text
    tokenizer: bytes
    joined: int  # captions to a sentence
    length: int  # target pieces of such a sentence, about
    budget: int  # target pieces of a batch, padding included
    seconds: float  # of training: the learning rate ends with them
    peak: float
    threads: int


class Training:
    """One model that learns from endless batches: bfloat16 weights with float32 masters, AdamW, the rate up and down again."""

    def __init__(self, work: Work) -> None:
        runtime.choose_threads(work.threads)
        runtime.keep_freed_memory()
        torch.manual_seed(0)
        self.work, self.tokenizer = work, Tokenizer(work.tokenizer)
        self.model = MODELS[work.model](self.tokenizer.size).train()
        self.masters = MasterWeights(self.model)
        self.optimizer = torch.optim.AdamW(self.masters.parameters(), lr=work.peak, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
        self.batches, self.kept = endless(work), list[Batch]()
        self.spent = 0.0

    def step(self, batch: Batch) -> float:
        """Seconds, without the making of the batch."""
        start = time.perf_counter()
        for group in self.optimizer.param_groups:
            group["lr"] = self.work.peak * rate(self.spent / self.work.seconds)
        self.model.loss(batch, smoothing=0.1).mean.backward()
        self.masters.take_gradients()
        nn.utils.clip_grad_norm_(self.masters.parameters(), CLIP)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.masters.publish()
        seconds = time.perf_counter() - start
        self.spent += seconds
        return seconds

    def turn(self, seconds: float) -> Results:
        """Train until so many seconds are spent in all."""
        before, pieces, steps = self.spent, 0, 0
        while self.spent < seconds:
            batch = next(self.batches)
            self.step(batch)
            pieces, steps = pieces + batch.target_grid.pieces, steps + 1
        return {"pieces": pieces, "seconds": self.spent - before, "steps": steps}

    def timed(self, batches: int) -> tuple[int, float]:
        """Target pieces and seconds of so many batches from short to long, the same each time, so that their kernels are made once."""
        if not self.kept:
            every = list(cut(joined_pairs(self.work, random.Random(0)), self.work.budget))
            self.kept = [every[len(every) * (2 * number + 1) // (2 * batches)] for number in range(batches)]
        return sum(batch.target_grid.pieces for batch in self.kept), sum(self.step(batch) for batch in self.kept)

    @torch.inference_mode()
    def score(self) -> Results:
        """nll a piece, BLEU of greedy search, and its speed: in float32, as a `Translator` computes on a CPU."""
        model = MODELS[self.work.model](self.tokenizer.size).eval()
        loaded = model.load_state_dict(self.masters.named, strict=False)  # tables of positions are in no checkpoint
        assert not loaded.unexpected_keys
        losses = [model.loss(batch) for batch in cut(self.work.held_out, self.work.budget)]
        found, pieces, start = [], 0, time.perf_counter()
        rows = DECODED_AT_ONCE // self.work.length
        for at in range(0, len(self.work.held_out), rows):
            requests = [Request(source) for source, _ in self.work.held_out[at : at + rows]]
            # Loops are what an untrained model does; they would cost time and say nothing.
            limits = SearchSettings(beam=1, max_ratio=1.3, max_extra=10, max_length=500)
            ids = [outcome.hypotheses[0].ids for outcome in search(OnHost(model), requests, limits)]
            found, pieces = found + self.tokenizer.decode(ids), pieces + sum(map(len, ids))
        seconds, bleu = time.perf_counter() - start, sacrebleu.corpus_bleu(found, [self.work.references])
        return {
            "nll": sum(x.nll.item() for x in losses) / sum(int(x.pieces) for x in losses),
            "bleu": bleu.score,
            "decoded_pieces_per_second": pieces / seconds,
            "length_ratio": bleu.sys_len / bleu.ref_len,
            "example": found[0],
        }


def rate(share: float) -> float:
    """The learning rate as a share of its peak: up in a straight line, then down along a cosine. rate(1) -> 0"""
    if share < WARM_UP:
        return max(0.02, share / WARM_UP)
    return 0.5 + 0.5 * math.cos(math.pi * min(1.0, (share - WARM_UP) / (1 - WARM_UP)))


def endless(work: Work) -> Iterator[Batch]:
    """Epoch after epoch, sentences of about the same length together, in random order."""
    chance = random.Random(0)
    while True:
        batches = list(cut(joined_pairs(work, chance), work.budget))
        chance.shuffle(batches)
        yield from batches


def joined_pairs(work: Work, chance: random.Random) -> list[Pair]:
    """All captions in another order, some of them to a sentence."""
    order, some = chance.sample(work.train, len(work.train)), work.joined
    return [join(order[at : at + some]) for at in range(0, len(order) - some + 1, some)]


def join(pairs: list[Pair]) -> Pair:
    return [i for source, _ in pairs for i in source], [i for _, target in pairs for i in target]


def cut(sentences: list[Pair], budget: int) -> Iterator[Batch]:
    """Sorted by length, as many at once as keep rows × longest target within the budget."""
    rows: list[Pair] = []
    for pair in sorted(sentences, key=lambda pair: (len(pair[1]), len(pair[0]))):
        if rows and (len(pair[1]) + 1) * (len(rows) + 1) > budget:
            yield make_batch(rows)
            rows = []
        rows.append(pair)
    if rows:
        yield make_batch(rows)


def make_batch(rows: list[Pair]) -> Batch:
    source = pad_rows([[*s, END] for s, _ in rows], PAD)
    target_in, target_out = pad_rows([[START, *t] for _, t in rows], PAD), pad_rows([[*t, END] for _, t in rows], PAD)
    return Batch.packed(source, target_in, target_out, PAD)
