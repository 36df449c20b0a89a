"""Training from prepared text at s3://, through a cache of a tenth of it: the same bits as from a disk, and how long does it wait?

    python benchmarks/loader_cache.py            Multi30k in 60 shards and 60 steps of `tiny`, five runs; needs moto and LIMELIGHT_DATA
    python benchmarks/loader_cache.py --delay 0.2 --preset toy --steps 30

The server is moto in a process of its own, behind a proxy that holds each request back by 20 ms. There are runs from the disk; from the
address; from there without fetching ahead, which is the control; and from there with a kill -9 in the middle. Figures are told as JSON:

    differ              steps, tensors and parts of the state that are not as on the disk, of the run and of the one that was killed
    waited              share of the time of the steps that went by waiting for batches, which this process makes itself
    waited_for_shards   the part of it that went by waiting for files, but for the first group: what the address costs
    held                most bytes in the cache at any moment, as a share of the text, in which a file that is on its way counts
"""

import argparse
import gzip
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / place) for place in ("addresses", "training")]
from moto_process import SERVER, environment, serving_s3

from limelight.addresses.folders import publish
from limelight.addresses.object_store import ObjectStore
from limelight.corpus import prepare as preparing
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shard_cache import BOUND, GIGABYTE, ShardCache
from limelight.corpus.inputs import Inputs
from limelight.corpus.manifest import CorpusManifest, FileEntry
from limelight.corpus.remote import list_prepared
from limelight.training.events import StepReport, read_events
from limelight.training.run_folder import METRICS
from survive_ranks import PROCESSES, _life, differing

SHARDS: Final = 60
AT_ONCE: Final = 2  # shards: two groups of them are less than a tenth
ADDRESS: Final = "s3://bucket/prepared"
BEHIND: Final = "LOADER_CACHE_BEHIND"  # a variable: nothing is fetched ahead


def prepare_text(folder: Path, pairs: int) -> Path:
    """The captions of Multi30k in more shards than so small a text would have."""
    data, find = Path(os.environ["LIMELIGHT_DATA"]) / "multi30k", Inputs.find
    for split, most in (("train", pairs), ("val", 100)):
        for language in ("en", "de"):
            lines = gzip.decompress((data / f"{split}.{language}.gz").read_bytes()).split(b"\n")[:most]
            (folder / f"{split}.{language}").write_bytes(b"".join(line + b"\n" for line in lines))
    train, valid = ([str(folder / f"{split}.{language}") for language in ("en", "de")] for split in ("train", "val"))
    settings = PrepareSettings(
        languages=("en", "de"), corpora=[{"name": "captions", "paths": train}], held_out={"valid": valid, "test_pairs": 0},
        pieces={"size": 2000},
    )  # fmt: skip
    setattr(preparing.Inputs, "find", lambda asked: replace(find(asked), buckets=SHARDS))  # noqa: B010
    preparing.prepare(settings, folder / "prepared", LocalEngine(0), lambda progress: None)
    return folder / "prepared"


@contextmanager
def delayed(port: int, seconds: float) -> Iterator[int]:
    """The port of a proxy that holds back all that is sent to the server."""
    listener = socket.create_server(("127.0.0.1", 0))

    def hand_on(here: socket.socket, there: socket.socket, wait: float) -> None:
        with suppress(OSError):
            while data := here.recv(1 << 16):
                time.sleep(wait)
                there.sendall(data)
        for each in (here, there):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, server = listener.accept()[0], socket.create_connection(("127.0.0.1", port))
                for ends in ((client, server, seconds), (server, client, 0.0)):
                    threading.Thread(target=hand_on, args=ends, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield listener.getsockname()[1]
    listener.close()


def live(words: tuple[str, ...], said: str, variables: dict[str, str]) -> None:
    """One process of a run. What it waited for shards is left beside what it said."""
    follow, waits = ShardCache.follow, list[float]()

    def follow_by_the_clock(cache: ShardCache, now: Sequence[FileEntry], coming: Sequence[FileEntry]) -> None:
        began = time.perf_counter()
        follow(cache, now, [] if variables.get(BEHIND) else coming)
        waits.append(time.perf_counter() - began)

    setattr(ShardCache, "follow", follow_by_the_clock)  # noqa: B010
    try:
        _life(words, said, variables)
    finally:
        Path(said).with_suffix(".waits").write_bytes(json.dumps(waits).encode())


class Text:
    """A prepared text, and runs that learn from it."""

    def __init__(self, folder: Path, asked: argparse.Namespace) -> None:
        self.folder, self.asked = folder, asked
        self.prepared = asked.text.resolve() if asked.text else prepare_text(folder, asked.pairs)
        self.shards = len(CorpusManifest.load(self.prepared).splits["train"])
        self.bytes = sum(path.stat().st_size for path in (self.prepared / "shards").glob("train-*"))

    def begin(self, name: str, place: str, **variables: str) -> Any:
        words = ["train", place, "-o", str(self.folder / name), "--preset", self.asked.preset, "--steps", str(self.asked.steps)]
        words += ["--plain", "--no-export", "--threads", "1", "--precision", "float32", "--device", "cpu", "checkpoints.every_seconds=3"]
        words += [f"batch.shards_at_once={AT_ONCE}", f"batch.budget={self.asked.cells}", "accumulate=1", "validation.sentences=8"]
        words += [f"validation.every={self.asked.steps}", "probes.sentences=0", "model.dropout=0.1"]
        given = {"LIMELIGHT_CACHE": str(self.folder / f"{name}-cache"), BOUND: repr(self.bytes / 10 / GIGABYTE), "OMP_NUM_THREADS": "1"}
        process = PROCESSES.Process(target=live, args=(tuple(words), str(self.folder / f"{name}.said"), given | variables))
        process.start()
        return process

    def train(self, name: str, place: str, **variables: str) -> int:
        """The most bytes that the cache held."""
        process, most = self.begin(name, place, **variables), 0
        while process.is_alive():
            most = max(most, self.count_held(name))
            process.join(0.02)
        print(name, "ended", flush=True)
        if process.exitcode:
            sys.exit(f"{name} ended with {process.exitcode}: {(self.folder / f'{name}.said').read_bytes()[-2000:].decode()}")
        return most

    def kill_and_train(self, name: str, place: str) -> int:
        """The step it was killed at, after it had saved something."""
        process = self.begin(name, place)
        while (at := len(self.steps(name))) < self.asked.steps // 2 or not any((self.folder / name / "checkpoints").glob("step-*")):
            assert process.is_alive(), (self.folder / f"{name}.said").read_bytes()[-2000:].decode()
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self.train(name, place)
        return at

    def count_held(self, name: str) -> int:
        held = 0
        for path in (self.folder / f"{name}-cache").glob("prepared/*/*"):
            with suppress(FileNotFoundError):
                held += path.stat().st_size
        return held

    def steps(self, name: str) -> list[StepReport]:
        path = self.folder / name / METRICS
        return [event for event in read_events(path) if isinstance(event, StepReport)] if path.exists() else []

    def share_of_steps(self, name: str, seconds: float) -> float:
        return round(seconds / sum(step.seconds for step in self.steps(name)), 4)

    def waited(self, name: str) -> float:
        return self.share_of_steps(name, sum(step.waited for step in self.steps(name)))

    def waited_for_shards(self, name: str) -> float:
        return self.share_of_steps(name, sum(json.loads((self.folder / f"{name}.waits").read_bytes())[1:]))


def measure(text: Text) -> dict[str, Any]:
    place = str(text.prepared)
    text.train("disk", place)
    held = text.train("address", ADDRESS)
    text.train("behind", ADDRESS, **{BEHIND: "1"})
    killed = text.kill_and_train("killed", ADDRESS)
    disk = text.folder / "disk"
    return {
        "shards": text.shards,
        "bytes": text.bytes,
        "steps": len(text.steps("address")),
        "differ": {name: len(differing(text.folder / name, disk)) for name in ("address", "behind", "killed")},
        "killed_at": killed,
        "held": round(held / text.bytes, 4),
        "waited": {name: text.waited(name) for name in ("disk", "address", "behind")},
        "waited_for_shards": {name: text.waited_for_shards(name) for name in ("address", "behind")},
    }


def problems(found: dict[str, Any]) -> list[str]:
    waited = found["waited_for_shards"]
    wrong = [f"{name} differs from the disk" for name, count in found["differ"].items() if count]
    wrong += ["the cache held more than its tenth"] if found["held"] > 0.1 else []
    wrong += ["training waited for shards for more than 5 % of its time"] if waited["address"] >= 0.05 else []
    return wrong + ([] if waited["behind"] > waited["address"] else ["without fetching ahead it did not wait longer: the control fails"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a prepared corpus of 40 shards or more; else Multi30k is prepared")
    parser.add_argument("--pairs", type=int, default=29_000, help="of Multi30k")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--cells", type=int, default=4096, help="of a batch")
    parser.add_argument("--delay", type=float, default=0.02, help="seconds by which each request is held back")
    asked = parser.parse_args()
    if SERVER is None:
        sys.exit("moto_server is not installed: tests/addresses/moto_process.py says how")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # so that nothing is left running
    with serving_s3() as server, delayed(server, asked.delay) as port, tempfile.TemporaryDirectory(prefix="loader-cache-") as folder:
        os.environ |= environment(port)
        text = Text(Path(folder), asked)
        publish(ObjectStore(ADDRESS), text.prepared, list_prepared(text.prepared))
        found = measure(text)
    wrong = problems(found)
    print(json.dumps(found | {"problems": wrong}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
