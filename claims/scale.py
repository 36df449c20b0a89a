"""What the docs state about scale: one of many who create an object does, a writer that was overtaken writes nothing more, a run at s3://
that lost its machine goes on elsewhere without a differing bit, and a quota is exact over all servers of a store.

make claim-scale                two and a half minutes on a shared core; needs moto, a server of S3: tests/addresses/moto_process.py
make claim-scale FULL=1         also 20 kills of one process and of two, and servers behind nginx, HAProxy and Envoy that are killed and
                                upgraded under 5,000 requests each: about half an hour
"""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ("tests/addresses", "tests/store", "tests/training")
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", *TESTS)]
os.environ["OMP_NUM_THREADS"] = "1"

from moto_process import SERVER, environment, serving_s3
from obstore.store import MemoryStore
from stores import Careless, read_files, write_files
from test_object_store import race
from test_settled_usage import KEY, answer, spend

from claim import Claims, run
from limelight.addresses.lease import Lease
from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import OvertakenError, Snapshots
from limelight.serving.access.usage import Ledger
from limelight.serving.queue.served_store import ServedStore
from limelight.serving.refusals import QuotaExceeded
from limelight.store.store import open_store
from survive_ranks import ONE, Stage, differing
from survive_storage import RemoteRun

PROXIES = ("nginx", "haproxy", "envoy")


def main(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="claim-scale-") as work:
        counted(claims, Path(work))
        if SERVER is None:
            claims.at_least("moto_server is installed", 0, 1)
            return
        with serving_s3() as port:
            os.environ |= environment(port)
            raced(claims)
            overtaken(claims, Path(work))
            killed(claims, Path(work))
        if full:
            everything(claims, Path(work))


def counted(claims: Claims, work: Path) -> None:
    """Three servers of one store, and 60 requests at once of which a quota has room for 14."""
    opened = [ServedStore(open_store(f"sqlite:///{work}/store.db")) for _ in range(3)]
    room = (KEY.characters_per_month or 0) // 7

    async def ask() -> int:
        ledgers = [Ledger(store=each) for each in opened]
        return sum(await asyncio.gather(*(answer(ledgers[number % 3], 7) for number in range(60))))

    def ask_each() -> int:
        ledgers, granted = [Ledger(store=each) for each in opened], 0
        for number in range(60):
            try:
                spend(ledgers[number % 3], 7)
                granted += 1
            except QuotaExceeded:
                continue
        return granted

    claims.at_least("servers that count for themselves: answered, of 14 (control)", ask_each(), room + 1)
    claims.at_most("servers of one store: answered beyond or below the quota", abs(asyncio.run(ask()) - room), 0)
    for each in opened:
        each.close()


def raced(claims: Claims) -> None:
    claims.at_most("16 create an object at once: others than one who did", abs(race(ObjectStore("s3://bucket/race")) - 1), 0)
    claims.at_least("... where conditions are ignored (control)", race(Careless("s3://bucket/careless", MemoryStore())), 2)


def overtaken(claims: Claims, work: Path) -> None:
    """A trainer falls silent, another takes its lease and the run, and the first one comes back."""
    store = ObjectStore("s3://bucket/overtaken")
    slow, quick = Snapshots(store, "slow"), Snapshots(store, "quick")
    slow.begin(work / "slow")
    slow.commit(write_files(work / "slow", a="1"))
    leases = [Lease(store, holder, renewed=0.25, stale=1.0) for holder in ("slow", "quick")]
    leases[0].acquire()
    leases[0]._ended.set()  # it renews no more
    leases[1].acquire()
    quick.begin(work / "quick")
    wrote = 0
    for number in range(5):
        try:
            wrote += slow.commit(write_files(work / "slow", a=f"late {number}"))
        except OvertakenError:
            continue
    claims.at_most("a writer that was overtaken: commits that succeed, of 5", wrote, 0)
    quick.commit(write_files(work / "quick", b="2"))
    Snapshots(store, "third").begin(work / "third")
    claims.at_least("... what a third machine finds is the other's", read_files(work / "third") == {"a": "1", "b": "2"}, 1)
    leases[1].release()


def killed(claims: Claims, work: Path) -> None:
    stage = Stage(work, 50)
    straight, other = stage.new("straight"), stage.new("other")
    stage.train(straight, ONE)
    remote = RemoteRun(stage, ONE, "s3://bucket/killed")
    claims.at_least("kill -9 of a run at s3:// after it saved: it goes on from step", remote.strike(False) and remote.struck[-1].step, 1)
    if not remote.struck:  # it was done before: the line above says that this is short
        return
    claims.at_most("... damaged at the address", remote.struck[-1].damaged, 0)
    (work / "fetched").mkdir()
    codes = remote.finish(work / "fetched")
    claims.ended_well("... another machine ends it: exit code", 1 if codes[0] is None else codes[0])
    claims.at_most("... differing in a bit from a run on a disk", len(differing(work / "fetched", straight)), 0)
    stage.train(other, ONE, seed=2)
    claims.at_least("... from a run with another seed (control)", len(differing(work / "fetched", other)), 1)


def everything(claims: Claims, work: Path) -> None:
    for kind in (ONE, "ddp"):
        storm = [sys.executable, str(ROOT / "benchmarks" / "survive_storage.py"), "--kind", kind]
        claims.ended_well(f"20 kills at s3://, {kind}: exit code", subprocess.run(storm).returncode)
    bundle = shutil.copytree(ROOT / "tests" / "bundles" / "format-1", work / "en-de")
    probe = work / "probe.en"
    probe.write_text("three seven one\nfour two\nnine eight six five\n")
    subprocess.run([sys.executable, "-m", "limelight", "export", str(bundle), "--quantize", "int8", "--probe", str(probe)], check=True)
    for proxy in PROXIES:
        if shutil.which(proxy) is None:
            claims.note(f"{proxy} is not installed, not measured", 0)
            continue
        words = [sys.executable, str(ROOT / "benchmarks" / "replicas.py"), str(bundle), "--requests", "2500", "--proxy", proxy]
        claims.ended_well(f"servers behind {proxy}, killed and upgraded: exit code", subprocess.run(words).returncode)
        claims.ended_well("... traces found again: exit code", subprocess.run([*words, "--traces"]).returncode)


if __name__ == "__main__":
    run(main, __doc__)
