"""`limelight translate --cluster ray` lets the nodes of a cluster translate: the same lines as one process, in the same order."""

import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final

import ray

from limelight.bundle import read
from limelight.bundle.layout import EXPORT, GLOSSARY, MANIFEST
from limelight.cli.screen import group_digits
from limelight.cli.translate.chunk_translator import ChunkTranslator, load_translator
from limelight.cli.translate.output import TranslateProgress, count_pieces, list_warnings, open_output, say, warn_of
from limelight.cli.translate.text_lines import Chunk
from limelight.cluster import POLL_SECONDS, count_beats, end_if_lost, join_cluster, our_errors
from limelight.errors import ConfigError, LimelightError, ModelFileError
from limelight.files import sha256_of, write_whole
from limelight.training.run.folder_lock import LOCK, lock_folder

LINES, BYTES = 2_048, 1 << 20  # of a shard: what a lost process costs, and what is sorted by length together
AHEAD: Final = 2  # shards under way for each process that can run: one waits while one is translated
TRIES: Final = 4  # of a shard whose process or node was lost: what ends every process, such as too little memory, must end
# Of the options, those that do not decide what is written. Bundle and glossaries are known by their content.
ASIDE: Final = {"bundle", "texts", "input", "output", "glossary", "quiet", "cluster", "threads", "yes"}
OURS: Final = re.compile(rf"{re.escape(LOCK)}|\d{{7,}}|\..*\.part", re.ASCII | re.DOTALL)  # what OUTPUT.shards/ may hold


def translate_on_cluster(chunks: Iterator[Chunk], account: TranslateProgress, asked: dict[str, Any]) -> None:
    """Write each shard that is missing, then all of them to the output, in order. `asked`: all options, by name."""
    output: Path | None = asked["output"]
    if output is None or str(output) == "-" or (output.exists() and not output.is_file()):
        raise ConfigError("--cluster needs --output FILE: what is done is kept beside it, and the same command goes on")
    if ":" in (asked["device"] or ""):
        raise ConfigError(f"--device {asked['device']}: on a cluster each process is given a device; leave out the number")
    warn_of(read(asked["bundle"], weights=False).settings.aim(asked["target"], asked["source"], asked["tag"] or ()))
    folder = Path(f"{output.resolve()}.shards")
    with ExitStack() as locked:
        with open_output(output) as file:
            refuse_others(folder)
            locked.enter_context(lock_folder(folder, otherwise="give another --output"))
            with our_errors():
                join_cluster()
                places = {name: asked[name] and asked[name].absolute() for name in ("bundle", "glossary")}  # nodes work elsewhere
                work = ShardWork(folder, asked | places | {"threads": asked["threads"] or 1})
                work.join(work.make_missing(chunks, account), file, account)
        drop_shards(folder)
    with suppress(OSError):  # another process may be in it already
        (folder / LOCK).unlink()
        folder.rmdir()
    account.close()


def refuse_others(folder: Path) -> None:
    """What is in the folder will be deleted: files of a person are not."""
    if others := sorted(path.name for path in folder.glob("*") if not OURS.fullmatch(path.name)):
        raise ConfigError(f"{folder} holds {others[0]!r}, which is no part of a translation; move it, or give another --output")


def drop_shards(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != LOCK:
            path.unlink()


@dataclass(frozen=True)
class NodeWork:
    address: str
    asked: dict[str, Any] = field(compare=False)


def find_address(asked: dict[str, Any]) -> str:
    """Of the options and files that decide what is written, and of the version of this program."""
    folder = read(asked["bundle"], weights=False).folder
    files = [folder / MANIFEST, folder / GLOSSARY, *([asked["glossary"]] if asked["glossary"] else [])]
    files += [folder / EXPORT / "model.bin"] if asked["engine"] != "torch" else []
    content = [sha256_of(path) if path.is_file() else "" for path in files]
    options = {name: str(value) for name, value in asked.items() if name not in ASIDE}
    return hashlib.sha256(json.dumps([version("limelight"), content, options], sort_keys=True).encode()).hexdigest()


@cache
def open_engine(work: NodeWork) -> ChunkTranslator:
    """Once in each process; another bundle under the same name, or another version, would spoil the text."""
    try:
        problem = "" if find_address(work.asked) == work.address else "it, its glossary or the version of limelight differs"
    except LimelightError as error:
        problem = str(error)
    if problem:
        node = ray.util.get_node_ip_address()
        raise ModelFileError(f"{work.asked['bundle']} on the node {node} is not what it is here: {problem}; give all nodes the same")
    return ChunkTranslator.of(load_translator(work.asked), work.asked)


def translate_shard(work: NodeWork, chunk: Chunk, digest: str, beats: Any) -> bytes:
    beats.add.remote()
    done, lines = open_engine(work).translate(chunk)
    facts = {"digest": digest, "lines": len(done), "pieces": count_pieces(done), "warnings": list_warnings(chunk.first, done)}
    return json.dumps(facts).encode() + b"\n" + lines


class ShardWork:
    def __init__(self, folder: Path, asked: dict[str, Any]) -> None:
        self.folder, self._node_work = folder, NodeWork(find_address(asked), asked)
        self._needs = {"CPU": asked["threads"], "GPU": int((asked["device"] or "").startswith("cuda"))}
        self._processes, self._counted = self._count_processes(), time.monotonic()
        if not self._processes:
            wanted = " and ".join(f"{number} {kind}" for kind, number in self._needs.items() if number)
            raise ConfigError(f"no node of the cluster has {wanted} for a process that translates; see ray status, and --threads")
        self._beats, self._sent = count_beats(), dict[Any, SentShard]()
        # Ray itself would try again for ever what ends for want of memory: here the tries are counted.
        needs = {"num_cpus": self._needs["CPU"], "num_gpus": self._needs["GPU"]}
        self._translate = ray.remote(translate_shard).options(max_retries=0, **needs)

    def make_missing(self, chunks: Iterator[Chunk], account: TranslateProgress) -> int:
        shards = kept = 0
        began = time.monotonic()
        for size, made in end_if_lost(self._run(cut_shards(chunks)), self._beats, self._is_waiting):
            account.tell()
            shards += 1
            if made is None:
                kept += 1
                account.total_bytes = account.total_bytes and max(1, account.total_bytes - size)
                continue
            account.lines += made["lines"]
            account.pieces += made["pieces"]
            account.busy = time.monotonic() - began
            account.done_bytes += size
        if kept and not account.quiet:
            say(f"{group_digits(kept)} of {group_digits(shards)} shards were there already\n")
        return shards

    def join(self, shards: int, file: BinaryIO, account: TranslateProgress) -> None:
        for number in range(shards):
            with self._place(number).open("rb") as shard:
                account.warn(json.loads(shard.readline())["warnings"])
                shutil.copyfileobj(shard, file)

    def _run(self, shards: Iterator[Chunk]) -> Iterator[tuple[int, dict[str, Any] | None]]:
        """The size of each shard when it is there, with its facts if it was made now."""
        for number, chunk in enumerate(shards):
            digest = hashlib.sha256(json.dumps([self._node_work.address, chunk.first, chunk.texts]).encode()).hexdigest()
            if self._is_there(number, digest):
                yield chunk.bytes, None
                continue
            while len(self._sent) >= AHEAD * self._processes:
                yield from self._receive()
            self._send(SentShard(number, chunk, digest))
        while self._sent:
            yield from self._receive()

    def _send(self, shard: "SentShard") -> None:
        self._sent[self._translate.remote(self._node_work, shard.chunk, shard.digest, self._beats)] = shard

    def _is_waiting(self) -> bool:
        """Is anything sent and not done? Else it is the text that comes slowly."""
        sent = list(self._sent)
        return bool(sent) and bool(ray.wait(sent, num_returns=len(sent), timeout=0)[1])

    def _receive(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Wait for one shard, and keep it. What was lost with its process is sent again."""
        (ready,), _ = ray.wait(list(self._sent))
        shard = self._sent.pop(ready)
        if time.monotonic() - self._counted > POLL_SECONDS:  # nodes come and go
            self._processes, self._counted = self._count_processes() or 1, time.monotonic()
        try:
            made = ray.get(ready)
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError as error:
            shard.refuse_more_tries(error)
            self._send(replace(shard, tries=shard.tries + 1))
        else:
            write_whole(self._place(shard.number), made)
            yield shard.chunk.bytes, json.loads(made[: made.index(b"\n")])

    def _place(self, number: int) -> Path:
        return self.folder / f"{number:07}"

    def _is_there(self, number: int, digest: str) -> bool:
        try:
            with self._place(number).open("rb") as shard:
                return bool(json.loads(shard.readline())["digest"] == digest)
        except (FileNotFoundError, ValueError):
            return False

    def _count_processes(self) -> int:
        alive = (node["Resources"] for node in ray.nodes() if node["Alive"])
        return sum(min(int(has.get(kind, 0) // number) for kind, number in self._needs.items() if number) for has in alive)


@dataclass(frozen=True)
class SentShard:
    number: int
    chunk: Chunk
    digest: str
    tries: int = 1

    def refuse_more_tries(self, error: Exception) -> None:
        if self.tries == TRIES:
            last = self.chunk.first + len(self.chunk.texts) - 1
            raise LimelightError(
                f"lines {group_digits(self.chunk.first)} to {group_digits(last)} were sent {TRIES} times, and each time what translated "
                f"them was lost ({type(error).__name__}); look at nodes and their memory (ray status), and run the same command again: "
                "it goes on"
            )


def cut_shards(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """The same shards of the same text, however its chunks come; `bytes` are each one's own."""
    first, texts, size = 1, list[str](), 0
    for text in (text for chunk in chunks for text in chunk.texts):
        texts.append(text)
        size += len(text.encode()) + 1
        if len(texts) == LINES or size >= BYTES:
            yield Chunk(first, texts, size)
            first, texts, size = first + len(texts), [], 0
    if texts:
        yield Chunk(first, texts, size)
