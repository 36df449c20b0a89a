"""Small prepared folders, and the experiments with them that both the tests and the claims run.

python prepared_corpora.py resume < job.json    goes on from saved states, in a process that knows nothing but the folder and the states
"""

import hashlib
import io
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import sentencepiece

from limelight.corpus.feeding.batches import BatchSettings, PairBatch
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import TEXT_SCHEMA, PreparedCorpus, ids_schema, write_table
from limelight.corpus.manifest import CorpusEntry, CorpusManifest, FileEntry, InputEntry, Shard
from limelight.files import sha256_of
from limelight.text.pieces.tokenizer import Tokenizer

NAMES = ("law", "news", "empty")
WEIGHTS = (1.0, 2.5, 0.5)
ROWS = ((260, 40, 0), (0, 0, 0), (200, 0, 0), (0, 21, 0))  # of each shard: an empty shard, an empty corpus, and gaps


def make(
    folder: Path,
    rows: Sequence[Sequence[int]] = ROWS,
    weights: Sequence[float] = WEIGHTS,
    names: Sequence[str] = NAMES,
    seed: int = 1,
) -> Path:
    """A folder as `prepare` leaves it, with random sentences. Line numbers count up within each corpus."""
    chance = random.Random(seed)
    lines = [0] * len(names)
    (folder / "shards").mkdir(parents=True)
    (folder / "pieces.model").write_bytes(piece_model())
    tokenizer = Tokenizer(piece_model())
    shards = []
    for number, by_corpus in enumerate(rows):
        pairs = []
        for corpus, count in enumerate(by_corpus):
            for _ in range(count):
                source = sentence(chance, chance.randint(1, 14))
                target = sentence(chance, max(1, len(source.split()) + chance.randint(-2, 2)))
                segment = f"s{lines[corpus]}" if lines[corpus] % 3 else None
                pairs.append((source, target, corpus, corpus, lines[corpus], segment))
                lines[corpus] += 1
        columns = list(zip(*pairs, strict=True)) or [()] * len(TEXT_SCHEMA)
        text = pa.table([pa.array(c, f.type) for c, f in zip(columns, TEXT_SCHEMA, strict=True)], schema=TEXT_SCHEMA)
        schema = ids_schema((tokenizer.size, tokenizer.size))
        ids = [tokenizer.encode(text[side].combine_chunks()).cast(schema.field(side).type) for side in schema.names]
        shards.append(write_shard(folder, f"train-{number:05}", by_corpus, text, pa.table(ids, schema=schema)))
    return finish(folder, shards, names, weights, tokenizer.size)


def make_from_lengths(folder: Path, source: Sequence[int], target: Sequence[int]) -> Path:
    """One corpus with pairs of these lengths and random ids, without text."""
    chance = np.random.default_rng(1)
    (folder / "shards").mkdir(parents=True)
    (folder / "pieces.model").write_bytes(b"none")
    schema = ids_schema((16_000, 16_000))
    columns = []
    for lengths in (source, target):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        values = chance.integers(4, 16_000, offsets[-1], dtype=np.uint16)
        columns.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values)).cast(schema.field(0).type))
    rows = len(source)
    text = {"source": [""] * rows, "target": [""] * rows, "corpus": [0] * rows, "file": [0] * rows, "line": range(rows)}
    text_table = pa.table({**text, "segment": [None] * rows}, schema=TEXT_SCHEMA)
    shards = [write_shard(folder, "train-00000", [rows], text_table, pa.table(columns, schema=schema))]
    return finish(folder, shards, ["lengths"], [1.0], 16_000)


def write_shard(folder: Path, name: str, rows: Sequence[int], text: pa.Table, ids: pa.Table) -> Shard:
    return Shard(
        name=name,
        rows=sum(rows),
        rows_by_corpus=list(rows),
        text=write_table(folder / "shards" / f"{name}.text.arrow", text),
        ids=write_table(folder / "shards" / f"{name}.ids.arrow", ids),
    )


def finish(folder: Path, shards: list[Shard], names: Sequence[str], weights: Sequence[float], vocab_size: int) -> Path:
    model = folder / "pieces.model"
    corpora = [
        CorpusEntry(name=name, weight=weight, read=0, kept={}, dropped={}, warned={}) for name, weight in zip(names, weights, strict=True)
    ]
    inputs = [InputEntry(corpus=c, paths=[f"{name}.en", f"{name}.de"], sha256=["", ""]) for c, name in enumerate(names)]
    content = json.dumps([shard.model_dump() for shard in shards]).encode()
    CorpusManifest(
        address=hashlib.sha256(content).hexdigest(),
        text_address=hashlib.sha256(content).hexdigest(),
        languages=("en", "de"),
        corpora=corpora,
        inputs=inputs,
        settings={},
        pieces=[FileEntry(path=model.name, bytes=model.stat().st_size, sha256=sha256_of(model))],
        vocab_sizes=(vocab_size, vocab_size),
        splits={"train": shards},
        statistics={},
    ).save(folder)
    return folder


def sentence(chance: random.Random, length: int) -> str:
    return " ".join(chance.choices(lexicon(), k=length))


@cache
def lexicon() -> list[str]:
    """Few words, so that a sampler learns them quickly."""
    return words(random.Random(6), 200)


def words(chance: random.Random, count: int) -> list[str]:
    return ["".join(chance.choices("abcdefgh", k=chance.randint(1, 7))) for _ in range(count)]


@cache
def piece_model() -> bytes:
    """Learnt from other words than those of the lexicon, which are therefore cut into many pieces."""
    chance, model = random.Random(5), io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words(chance, 3000)),
        model_writer=model,
        model_type="unigram",
        vocab_size=150,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        hard_vocab_limit=False,
        minloglevel=2,
        num_threads=1,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    return model.getvalue()


def global_batches(folder: Path, settings: BatchSettings, world: int, workers: int, batches: int) -> list[list[int]]:
    """Samples of the global batches, the rows of the ranks put back between each other."""
    prepared = PreparedCorpus.open(folder)
    with ExitStack() as stack:
        loaders = [Loader(prepared, settings, rank=rank, world=world, workers=workers) for rank in range(world)]
        ranks = [stack.enter_context(loader) for loader in loaders]
        for rank in ranks:
            rank.start()  # all at once, as in a real run
        return [interleaved([share.samples for share in shares]) for shares in itertools.islice(zip(*ranks, strict=True), batches)]


def interleaved(shares: Sequence[Iterable[int]]) -> list[int]:
    rows = itertools.chain.from_iterable(itertools.zip_longest(*shares))
    return [int(row) for row in rows if row is not None]


def digest_of(batches: list[list[int]]) -> str:
    return hashlib.sha256(json.dumps(batches).encode()).hexdigest()


def fingerprint(batch: PairBatch) -> str:
    """Of all that training could notice: samples, padded ids, and the numbers of the batch."""
    digest = hashlib.sha256(repr((batch.epoch, batch.number, batch.rows, batch.targets, batch.source.shape)).encode())
    for array in (batch.samples, batch.source, batch.target):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def stops_that_differ(folder: Path, settings: BatchSettings, stops: Sequence[int], last: int, per_process: int) -> list[int]:
    """Stops after so many batches, then goes on to batch `last` in a new process: where does anything differ from never stopping?"""
    with Loader(PreparedCorpus.open(folder), settings) as loader:
        straight = list(itertools.islice(loader, last))
    expected = [fingerprint(batch) for batch in straight]
    differing = []
    for begin in range(0, len(stops), per_process):
        some = stops[begin : begin + per_process]
        states = [straight[stop - 1].state for stop in some]
        job = {"folder": str(folder), "settings": settings.model_dump(), "states": states, "last": last, "done": some}
        command = [sys.executable, __file__, "resume"]
        answer = subprocess.run(command, input=json.dumps(job).encode(), stdout=subprocess.PIPE, check=True).stdout
        resumed = json.loads(answer)
        differing += [stop for stop, after in zip(some, resumed, strict=True) if after != expected[stop:]]
    return differing


def resume(job: dict[str, Any]) -> list[list[str]]:
    answers = []
    for state, done in zip(job["states"], job["done"], strict=True):
        loader = Loader(PreparedCorpus.open(Path(job["folder"])), BatchSettings(**job["settings"]), state=state)
        answers.append([fingerprint(batch) for batch in itertools.islice(loader, job["last"] - done)])
    return answers


if __name__ == "__main__":
    sys.stdout.write(json.dumps(resume(json.loads(sys.stdin.read()))))
