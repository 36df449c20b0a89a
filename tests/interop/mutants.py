"""Files of models changed by chance, and what an import makes of them. A process of its own, since a crash must not end the tests.

python mutants.py FOLDER COUNT SEED NAME...     of each file: how many mutants were refused, imported, and what else happened
"""

import json
import os
import re
import resource
import shutil
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

import torch

from limelight.bundle import read
from limelight.errors import LimelightError
from limelight.interop import published_pieces
from limelight.interop.ctranslate2 import load
from limelight.interop.huggingface.load import import_folder
from limelight.interop.quarantine import pieces_problem

HEADER, PIECES, CONFIG, NUMBERS = "model.safetensors", "source.spm", "config.json", "vocab.json"
ENGINE, ENGINE_CONFIG, ENGINE_PIECES = "model.bin", "config.json", "shared_vocabulary.json"
PICKLED = "pytorch_model.bin"
MARIAN = (HEADER, PIECES, CONFIG, NUMBERS, "tokenizer_config.json")
ENGINES = (ENGINE, ENGINE_CONFIG, ENGINE_PIECES)
NASTY_NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 10**30, 10_000_000, 1e308, -0.5, 0.5)
NASTY: tuple[Any, ...] = (
    *NASTY_NUMBERS,
    None,
    True,
    "",
    "x" * 5000,
    "</s>",
    [],
    {},
    [[]],
    {"a": {"b": []}},
    "\x00\u2028",
)
NASTY_BYTES = (
    b"\xff",
    b"\x00",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\x80" * 12,
    b"NaN",
    b"{",
    b'"',
    b"1e999",
)


def mutants(name: str, content: bytes, count: int, seed: int) -> Iterator[bytes]:
    """As many different ones, none of which is the file itself."""
    draw, made = Random(f"{name} {seed}"), {hash(content)}
    while len(made) <= count:
        new = _mutant(name, content, draw)
        if hash(new) not in made:
            made.add(hash(new))
            yield new


def _mutant(name: str, content: bytes, draw: Random) -> bytes:
    if name.endswith(".json"):
        return _other_json(content, draw) if draw.random() < 0.6 else _other_bytes(content, [(0, len(content))], draw)
    if name.endswith(".safetensors"):
        end = 8 + struct.unpack("<Q", content[:8])[0]
        if draw.random() < 0.5:
            header = _other_json(content[8:end], draw)
            return struct.pack("<Q", len(header)) + header + content[end:]
        return _other_bytes(content, [(0, 8), (8, end)], draw)
    if name == ENGINE:  # numbers and names, not the weights between them
        spots = [found.start() for found in re.finditer(rb"(en|de)coder/", content)]
        around = [(0, 60), *((max(0, at - 10), min(len(content), at + 90)) for at in draw.sample(spots, 4))]
        return _other_bytes(content, around, draw)
    if name == PICKLED:  # what torch unpickles first, anything, and the directory of the zip
        return _other_bytes(content, [(0, 8000), (0, len(content)), (len(content) - 6000, len(content))], draw)
    # A SentencePiece model: 2 kB of pieces and settings, then a large table of replacements, then a few more settings.
    pieces, last = min(2000, len(content)), max(0, len(content) - 200)
    return _other_bytes(content, [(0, pieces), (0, len(content)), (last, len(content))], draw)


def _other_bytes(content: bytes, ranges: list[tuple[int, int]], draw: Random) -> bytes:
    new = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        begin, end = draw.choice(ranges)
        at, other = draw.randrange(begin, end), draw.randrange(begin, end)
        many = draw.choice((1, 2, 8, 60))
        how = draw.randrange(7)
        if how == 0:
            new[at : at + 1] = bytes([content[at] ^ 1 << draw.randrange(8)])
        elif how == 1:
            new[at : at + 1] = draw.randbytes(1)
        elif how == 2:
            nasty = draw.choice(NASTY_BYTES)
            new[at : at + len(nasty)] = nasty
        elif how == 3:
            new[at:at] = draw.choice((content[other : other + many], draw.choice(NASTY_BYTES), draw.randbytes(many)))
        elif how == 4:
            del new[at : at + many]
        elif how == 5:
            new[at : at + many] = content[other : other + many]
        else:
            del new[draw.randrange(len(new)) if new else 0 :]
            break
    return bytes(new)


def _other_json(content: bytes, draw: Random) -> bytes:
    """The same with a few values replaced, keys renamed, removed, doubled."""
    value = json.loads(content)
    for _ in range(draw.choice((1, 1, 2, 3))):
        place = value
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            if not keys:
                break
            key = draw.choice(keys)
            if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.8:
                place = place[key]
                continue
            _change(place, key, draw)
            break
    made = json.dumps(value, ensure_ascii=draw.random() < 0.5).encode(errors="surrogatepass")
    if draw.random() < 0.05 and isinstance(value, dict) and value:
        made = made[:-1] + b"," + made[1:]  # every key twice
    return made


def _change(place: Any, key: Any, draw: Random) -> None:
    how = draw.randrange(6)
    old = place[key]
    if how == 0:
        del place[key]
    elif how == 1 and isinstance(place, dict):
        place[draw.choice(("", "self", "__class__", "x" * 300, str(key)[:-1], str(key) + "\u0300"))] = place.pop(key)
    elif how == 2 and type(old) is int:
        place[key] = old + draw.choice((-1, 1, 7, 1000, -1000))
    elif how == 3:
        place[key] = _own(draw.choice(list(place.values() if isinstance(place, dict) else place)))
    else:
        place[key] = _own(draw.choice(NASTY))


def _own(value: Any) -> Any:
    """A copy, so that no value ends up inside itself; what is nested too deep for that is never gone into."""
    try:
        return deepcopy(value)
    except RecursionError:
        return value


def outcome(attempt: Callable[[Path], None], output: Path) -> str:
    """refused: an error of ours. imported: a bundle that has what it says, finite. Else what came instead."""
    shutil.rmtree(output, ignore_errors=True)
    try:
        attempt(output)
    except LimelightError as error:
        if output.exists():
            return "refused, but something was written"
        return "refused" if error.exit_code == 66 else f"refused with code {error.exit_code}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:150]} at {_where(error)}"
    bundle = read(output)
    weights, model = bundle.weights(), bundle.settings.model
    sizes = (bundle.source_tokenizer.size, bundle.target_tokenizer.size)
    rows = [len(weights[name]) for name in ("source_embedding.weight", "target_embedding.weight") if name in weights]
    if not all(bool(torch.isfinite(weight).all()) for weight in weights.values()):
        return "imported with numbers that are none"
    if sizes != (model.source_vocab, model.vocab_size) or not set(rows) <= set(sizes):
        return f"imported with {sizes} pieces for {rows} rows"
    return "imported"


def _where(error: BaseException) -> str:
    trace, last = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if "limelight" in name:
            last = f"{Path(name).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return last


def run(folder: Path, name: str, count: int, seed: int) -> dict[str, Any]:
    """Mutants of one file of a folder, imported one after the other."""
    content, found, slowest = (folder / name).read_bytes(), Counter[str](), 0.0

    def attempt(output: Path) -> None:
        if (folder / "model.bin").is_file():
            load.import_model(folder, output, ("en", "de"))
        else:
            import_folder(folder, output, ("en", "de"))

    # Pieces that stay the same need not be tried for every mutant of another file.
    published_pieces.pieces_problem = lru_cache(4)(pieces_problem)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        for mutant in mutants(name, content, count, seed):
            (folder / name).write_bytes(mutant)
            begin = time.process_time()
            what = outcome(attempt, folder.with_name("made"))
            slowest = max(slowest, time.process_time() - begin)
            found[what] += 1
    finally:
        (folder / name).write_bytes(content)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"outcomes": dict(found), "seconds": round(slowest, 2), "megabytes": peak // 1024}


if __name__ == "__main__":
    torch.set_num_threads(1)
    place, many, chance, *names = sys.argv[1:]
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # SentencePiece says what it thinks of each
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(shutil.copytree(place, Path(scratch) / "m"))
        answer = {name: run(copy, name, int(many), int(chance)) for name in names}
    sys.stdout.write(json.dumps(answer) + "\n")
