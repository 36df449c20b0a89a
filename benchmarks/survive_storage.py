"""kill -9 of a run at s3://, again and again, each time on a machine that has nothing of it: does it end with the same bits as on a disk?

    python benchmarks/survive_storage.py                        20 kills of one process, about four minutes on 2 busy cores
    python benchmarks/survive_storage.py --kind ddp             of two processes that train together; fsdp, too
    AWS_ENDPOINT_URL=http://rgw:7480 AWS_ACCESS_KEY_ID=... python benchmarks/survive_storage.py --address s3://bucket/run    another server

Without --address the server is moto, in a process of its own. A third of the kills come at any moment of a life, the others soon after a
snapshot appeared, so that it gets on. A life after a kill has a new LIMELIGHT_CACHE, as on another machine: it waits until the lease is
stale (2 s here in place of 60, which is the only thing that is changed) and fetches the newest snapshot. After each kill all that this
snapshot names is fetched and every byte verified. A control must be found: a run that goes on from a checkpoint with one other bit.
"""

import argparse
import json
import os
import secrets
import signal
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parents[1] / "tests" / place) for place in ("addresses", "training")]
from inject_fault import fault_environment
from moto_process import SERVER, environment, serving_s3

from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import FOLDER, Snapshots
from limelight.training.checkpoints import checkpoint
from limelight.training.run_folder import CHECKPOINTS
from survive_ranks import ONE, STALE, Ranks, Stage, differing, size_of
from survive_storm import one_bit

FAULTS: Final = "step.forward:sleep=0.05"  # changes no number
SAVING: Final = {"every_seconds": 0.5}
SECONDS: Final = 600.0  # in which a life must have put a snapshot
STEPS_PER_KILL: Final = 20


@dataclass(frozen=True)
class Struck:
    """What a kill left at the address."""

    snapshot: int  # the number of the newest
    step: int  # that the next life goes on from
    orphans: int  # objects that no snapshot names: it was killed while it put them
    damaged: int  # checkpoints that do not verify, and objects that are named and are not whole


class RemoteRun:
    """A run at an address, where its text is prepared already. Each life is on a machine of its own."""

    def __init__(self, stage: Stage, kind: str, address: str, seed: int = 1) -> None:
        self.stage, self.kind, self.store = stage, kind, ObjectStore(address)
        self.chance, self.lives, self.struck = Random(seed), 0, list[Struck]()
        first = Snapshots(self.store, "first")
        first.begin(stage.folder / f"nothing-{kind}")
        first.commit(stage.new(f"first-{kind}"))

    def begin(self, faults: str = FAULTS) -> Ranks:
        self.lives += 1
        machine = self.stage.folder / f"machine-{self.lives}"
        words = self.stage.words(Path("run"), self.kind, checkpoints=SAVING)
        words[words.index("-o") + 1] = self.store.address
        variables = fault_environment(faults) | {"LIMELIGHT_CACHE": str(machine), STALE: "2.0"}
        return Ranks(words, size_of(self.kind), variables, self.stage.folder / "remote.said")

    def strike(self, anywhere: bool) -> bool:
        """One life, and its end at any moment, or soon after a snapshot. False: it was done before."""
        with self.begin() as ranks:
            if anywhere:
                return self._wait(ranks, self.chance.uniform(0, 6.0)) and self._look(ranks)
            was, until = self._newest(), time.monotonic() + SECONDS
            while self._newest() <= was + 1:  # the first is the one that keeps others out
                assert time.monotonic() < until, f"no snapshot within {SECONDS:.0f} s: {ranks.said.read_bytes()[-2000:].decode()}"
                if not self._wait(ranks, 0.1):
                    return False
            return self._wait(ranks, self.chance.uniform(0, 1.0)) and self._look(ranks)

    def finish(self, into: Path) -> list[int | None]:
        """Undisturbed to its end, on yet another machine; then all of it is fetched."""
        with self.begin("") as ranks:
            codes = ranks.codes()
        Snapshots(self.store).fetch(dict, into)
        return codes

    def _look(self, ranks: Ranks) -> bool:
        """At what is left when they are killed."""
        for rank, process in enumerate(ranks.processes):
            ranks.kill(rank)
            process.join()
        snapshots = Snapshots(self.store)
        kept = [snapshots._read(number) for number in snapshots._numbers()]
        named = {file.name for each in kept if each for file in each.files.values()}
        with tempfile.TemporaryDirectory(dir=self.stage.folder) as folder:
            number = snapshots.fetch(dict, Path(folder)).number
            found = checkpoint.latest(Path(folder) / CHECKPOINTS)
        orphans = sum(name not in named for name in self.store.names("objects"))
        step = found.checkpoint.step if found.checkpoint else 0
        self.struck.append(Struck(number, step, orphans, len(found.refused)))
        return True

    def _newest(self) -> int:
        return max((int(Path(name).stem) for name in self.store.names(FOLDER)), default=0)

    def _wait(self, ranks: Ranks, seconds: float) -> bool:
        """False: it has ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and all(ranks.alive):
            time.sleep(0.02)
        if all(ranks.alive):
            return True
        codes = ranks.codes(30.0)
        assert set(codes) == {0}, f"ended with {codes}: {ranks.said.read_bytes()[-2000:].decode()}"
        return False


def stormed(stage: Stage, kind: str, address: str, kills: int, seed: int = 1) -> dict[str, Any]:
    straight = stage.new(f"straight-{kind}")
    assert set(stage.train(straight, kind)) == {0}, straight.with_suffix(".said").read_bytes()[-2000:].decode()
    run = RemoteRun(stage, kind, address, seed)
    while len(run.struck) < kills and run.strike(anywhere=run.chance.random() < 1 / 3):
        print(json.dumps(asdict(run.struck[-1])), flush=True)
    fetched = stage.folder / f"fetched-{kind}"
    fetched.mkdir()
    codes = run.finish(fetched)
    return {
        "kind": kind,
        "kills": len(run.struck),
        "while_putting": sum(each.orphans > 0 for each in run.struck),
        "went_on_from": len({each.step for each in run.struck} - {0}),  # different checkpoints
        "damaged": sum(each.damaged for each in run.struck),
        "ended_well": int(set(codes) == {0}),
        "differ": len(differing(fetched, straight)),
        "differ_in_the_control": len(one_bit(stage, kind, straight)),
    }


def problems(found: dict[str, Any], kills: int) -> list[str]:
    wrong = [f"{name} is {found[name]}" for name in ("damaged", "differ") if found[name]]
    wrong += [] if found["kills"] == kills and found["ended_well"] else ["it did not reach its end, or before all kills"]
    wrong += [] if 4 * found["went_on_from"] >= kills else ["it hardly got on between the kills"]
    return wrong + ([] if found["differ_in_the_control"] else ["one other bit was not found"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--kind", default=ONE, help="one process; or two: ddp, fsdp, hybrid or tensor")
    parser.add_argument("--steps", type=int, default=0, help="of the run; else enough for the kills on a quiet machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", default="", help="where a run may be made; else moto is started")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))  # so that nothing is left running
    with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="survive-storage-") as folder:
        if not asked.address:
            if SERVER is None:
                sys.exit("moto_server is not installed: tests/addresses/moto_process.py says how")
            os.environ |= environment(stack.enter_context(serving_s3()))
        stage = Stage(Path(folder), asked.steps or 40 + asked.kills * STEPS_PER_KILL)
        found = stormed(stage, asked.kind, asked.address or f"s3://bucket/{secrets.token_hex(4)}", asked.kills, asked.seed)
    wrong = problems(found, asked.kills)
    print(json.dumps(found | {"problems": wrong}))
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
