"""What the engines are asked for: sentences of real lengths, and a model of random weights that all of them are given.

Ids are drawn at random, since speed does not depend on them. Lengths are those of Multi30k test_2016_flickr: each translation has
exactly as many pieces as its reference, because a random model does not know when to end.
"""

import gzip
import io
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import torch
from torch import Tensor

from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

VOCAB = 8000
PAD, UNKNOWN, START, END = 0, 1, 2, 3
LENGTHS = Path(__file__).with_name("multi30k_test_lengths.json")
BUDGET = 4096  # pieces of a batch: rows × longest source, its end included
SINGLES = 30
SHAPES = {
    # Hugging Face counts M2M100's positions from pad + 1, and Marian's from 0.
    "small": {"position_layout": "tensor2tensor", "position_offset": PAD + 1},
    "base": {"position_layout": "halves"},
}
Lengths = dict[str, dict[str, int]]


@dataclass(frozen=True)
class Work:
    """Sentences handed over at once: source ids without the end, and how many pieces each translation has, its end not counted."""

    sources: list[list[int]]
    lengths: list[int]

    @property
    def pieces(self) -> int:
        return sum(self.lengths)


def our_model(size: str, seed: int = 0) -> Transformer:
    """Random weights, the same in every process.

    A model as it starts repeats the same piece in every sentence. Louder sub-layers and sharper attention make translations depend on
    their source, so that comparing them compares something; its speed is the same.
    """
    torch.manual_seed(seed)
    return outspoken(Transformer(ModelConfig.preset(size, VOCAB, **SHAPES[size])).eval())


def outspoken(model: Transformer) -> Transformer:
    """The same model with louder sub-layers and sharper attention."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith((".out.weight", ".down.weight")):
                parameter *= 8
            elif name.endswith((".qkv.weight", ".q.weight", ".kv.weight")):
                parameter *= 2
    return model


def padded(sources: Sequence[Sequence[int]]) -> Tensor:
    """Ids with their end (B, S)."""
    longest = max(map(len, sources)) + 1
    return torch.tensor([[*source, END, *[PAD] * (longest - 1 - len(source))] for source in sources])


def random_targets(work: Work, seed: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(4, VOCAB, (length,), generator=generator).tolist() for length in work.lengths]


def real_works(budget: int = BUDGET, seed: int = 0) -> list[Work]:
    """The 1,000 sentences, sorted by source length and cut into batches; after them `SINGLES` sentences by themselves."""
    counts: Lengths = json.loads(LENGTHS.read_bytes())["pairs"]
    lengths = sorted((int(s), int(t)) for s, targets in counts.items() for t, n in targets.items() for _ in range(n))
    cut: list[list[tuple[int, int]]] = [[]]
    for pair in lengths:
        if (pair[0] + 1) * (len(cut[-1]) + 1) > budget:
            cut.append([])
        cut[-1].append(pair)
    singles = [[lengths[(2 * i + 1) * len(lengths) // (2 * SINGLES)]] for i in range(SINGLES)]
    generator = torch.Generator().manual_seed(seed)
    return [
        Work([torch.randint(4, VOCAB, (s,), generator=generator).tolist() for s, _ in pairs], [t for _, t in pairs])
        for pairs in cut + singles
    ]


def count_lengths(folder: Path) -> bytes:
    """Pieces are learnt on the training pairs, as those of multi30k_lengths.json were; its counts must come out again."""

    def lines(name: str) -> list[str]:
        return gzip.decompress((folder / f"{name}.gz").read_bytes()).decode().split("\n")[:-1]

    learnt = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines("train.en") + lines("train.de")),
        model_writer=learnt,
        model_type="bpe",
        vocab_size=VOCAB,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=2,
    )
    pieces = sentencepiece.SentencePieceProcessor(model_proto=learnt.getvalue())

    def counts(name: str) -> Lengths:
        sides = [[len(ids) for ids in pieces.encode(lines(f"{name}.{language}"))] for language in ("en", "de")]
        found: Lengths = {}
        for (source, target), number in sorted(Counter(zip(*sides, strict=True)).items()):
            found.setdefault(str(source), {})[str(target)] = number
        return found

    training = json.loads(LENGTHS.with_name("multi30k_lengths.json").read_bytes())["pairs"]
    if counts("train") != training:
        sys.exit(f"other pieces were learnt here than those of multi30k_lengths.json; is {folder} Multi30k's en-de?")
    what = (
        "Pieces per sentence without the end token, {source: {target: pairs}}: Multi30k test_2016_flickr en-de, with the pieces of "
        "multi30k_lengths.json (benchmarks/translate.py --count-lengths)"
    )
    return json.dumps({"what": what, "pairs": counts("test_2016_flickr")}, separators=(",", ":")).encode() + b"\n"
