"""Makes the stored bundle: a small translator of English number words to German ones, trained in about a minute on one thread.

python tests/bundles/make_numbers.py FOLDER

three seven one   ->  drei sieben eins
five ⟦0⟧ nine     ->  fünf ⟦0⟧ neun

tests/bundles/format-1 was made by this script once, and stays as it is: it stands for all bundles that people have. A new format gets
a folder of its own.
"""

import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import sacrebleu
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from limelight.bundle import BundleSettings, Score, write
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer
from limelight.text.pieces.tokenizer import END, PAD, SPACE, START, PieceSettings, Tokenizer, learn, placeholder

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
PLACEHOLDERS = 4
MEANING = dict(zip(ENGLISH, GERMAN, strict=True)) | {placeholder(i): placeholder(i) for i in range(PLACEHOLDERS)}
LONGEST = 8
SEED, STEPS, ROWS, PEAK, WARMUP = 2017, 1500, 64, 4e-3, 100


def draw_words(random: Random) -> list[str]:
    """One to eight words; one in ten is a placeholder, numbered as they come."""
    words = [random.choice(ENGLISH) for _ in range(random.randint(1, LONGEST))]
    held = [at for at in range(len(words)) if random.random() < 0.1][:PLACEHOLDERS]
    for number, at in enumerate(held):
        words[at] = placeholder(number)
    return words


def is_held_out(words: list[str]) -> bool:
    """A tenth of what is longer than a word is never seen in training."""
    return len(words) > 1 and zlib.crc32(" ".join(words).encode()) % 10 == 0


def draw_pairs(count: int, random: Random, held_out: bool) -> list[tuple[str, str]]:
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        words = draw_words(random)
        if is_held_out(words) == held_out:
            pairs[" ".join(words)] = " ".join(MEANING[word] for word in words)
    return list(pairs.items())


def pad(rows: list[list[int]]) -> Tensor:
    return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=PAD)


def make_batch(pairs: list[tuple[str, str]], tokenizer: Tokenizer) -> Batch:
    sources, targets = (tokenizer.encode(side).to_pylist() for side in zip(*pairs, strict=True))
    inputs, outputs = [[START, *ids] for ids in targets], [[*ids, END] for ids in targets]
    return Batch.packed(pad([[*ids, END] for ids in sources]), pad(inputs), pad(outputs), pad_token=PAD)


def train(model: Transformer, tokenizer: Tokenizer, random: Random) -> None:
    """AdamW, the learning rate up over WARMUP steps and then in a straight line down to nothing."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.98), weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / WARMUP, (STEPS - step) / (STEPS - WARMUP)))
    model.train()
    for _ in range(STEPS):
        loss = model.loss(make_batch(draw_pairs(ROWS, random, held_out=False), tokenizer), smoothing=0.05).mean
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


@torch.inference_mode()
def translate(model: Transformer, tokenizer: Tokenizer, texts: list[str]) -> list[str]:
    """The most probable next piece, again and again; each row up to its end."""
    source = pad([[*ids, END] for ids in tokenizer.encode(texts).to_pylist()])
    state, token, taken = model.start(source), torch.full((len(texts),), START), []
    for _ in range(2 * source.shape[1] + 4):
        log_probs_BV, state = model.step(token, state)
        token = log_probs_BV.argmax(dim=-1)
        taken.append(token)
    rows = torch.stack(taken, dim=1).tolist()
    return tokenizer.decode([row[: row.index(END)] if END in row else row for row in rows])


def words_of(ids: Tensor, tokenizer: Tokenizer) -> Tensor:
    """To which word each piece belongs, (B, T): pieces with a space before them begin one. End and padding belong to none."""
    begins = torch.tensor([piece.startswith(SPACE) for piece in tokenizer.vocabulary])
    return begins[ids].cumsum(dim=1).masked_fill((ids == END) | (ids == PAD), -1)


@torch.inference_mode()
def best_heads(model: Transformer, tokenizer: Tokenizer, batch: Batch) -> tuple[tuple[int, int], ...]:
    """The cross-attention that looks most often at the word whose translation comes next: the one in the same place."""
    source_BS, target_BT = words_of(batch.source, tokenizer), words_of(batch.target_out, tokenizer)
    right: dict[tuple[int, int], float] = {}

    def watch(layer: int) -> Callable[[str, Tensor], None]:
        def look(stage: str, weights_BHTS: Tensor) -> None:
            if stage == "weights":
                for head, at_BT in enumerate(weights_BHTS.argmax(dim=-1).unbind(1)):
                    hit_BT = source_BS.gather(1, at_BT) == target_BT
                    right[layer, head] = hit_BT[target_BT > 0].float().mean().item()

        return look

    for light in model.spotlights():
        if light.kind == "cross":
            light.attention.looks.append(watch(light.layer))
    model(batch.source, batch.target_in)
    for light in model.spotlights():
        light.attention.looks.clear()
    sys.stdout.write("".join(f"layer {layer}, head {head}: {right[layer, head]:.1%} aligned\n" for layer, head in right))
    return (max(right, key=lambda place: right[place]),)


def measure(model: Transformer, tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> tuple[Score, ...]:
    sources, references = ([*side] for side in zip(*pairs, strict=True))
    found = translate(model, tokenizer, sources)
    exact = 100 * sum(a == b for a, b in zip(found, references, strict=True)) / len(pairs)
    named = {"test_set": "number words never seen in training", "lines": len(pairs)}
    scores = [Score(metric="exact match", value=exact, signature="greedy", **named)]
    for metric in (sacrebleu.BLEU(), sacrebleu.CHRF()):
        score = metric.corpus_score(found, [references])
        scores.append(Score(metric=score.name, value=score.score, signature=str(metric.get_signature()), **named))
    return tuple(scores)


def main(folder: Path) -> None:
    start = time.perf_counter()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    random = Random(SEED)
    texts = [text for pair in draw_pairs(2000, random, held_out=False) for text in pair]
    # Of this size some words are one piece, and others two or three.
    pieces = learn(texts, PieceSettings(size=345, placeholders=PLACEHOLDERS, tags=2, character_coverage=1.0))
    tokenizer = Tokenizer(pieces)
    config = ModelConfig(
        vocab_size=tokenizer.size,
        encoder_layers=2,
        decoder_layers=2,
        d_model=32,
        d_ff=64,
        num_heads=4,
        norm_order="pre",
        max_length=128,
        dropout=0.0,
    )
    model = Transformer(config)
    train(model, tokenizer, random)
    held_out = draw_pairs(1000, Random(SEED + 1), held_out=True)
    settings = BundleSettings(
        languages=("en", "de"),
        model=config,
        alignment=best_heads(model, tokenizer, make_batch(held_out, tokenizer)),
        scores=measure(model, tokenizer, held_out),
        trained_on={"data": "drawn number words", "pairs": STEPS * ROWS, "seed": SEED},
    )
    write(folder, settings, model.state_dict(), pieces, license="apache-2.0")
    sys.stdout.write(f"{settings.scores}\nwritten to {folder} after {time.perf_counter() - start:.0f} s\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
