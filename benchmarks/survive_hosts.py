"""Training on three hosts of which one is cut off, killed, loses its power, comes back or comes late: does the run end as if nothing was?

    python benchmarks/survive_hosts.py                      all cases, about eight minutes
    python benchmarks/survive_hosts.py --cases cut,joins    some of them
    python benchmarks/survive_hosts.py --short              one of them, half a minute
    python benchmarks/survive_hosts.py --keep /tmp/runs     leaves runs and logs there; an undisturbed run that is there is taken

One JSON object per line: the seconds until the others noticed and until they trained again, the steps taken twice, the sizes of the world,
and how far the loss curve is from that of the undisturbed run. The hosts are network namespaces of this machine (`hosts.py`), the runs
those of `limelight train` under torchrun with a common disk. Two controls must fail: a network without enough hosts left, and a curve
of another seed. The exit code is 1 if any case is not as it must be.
"""

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))
from inject_fault import fault_environment
from small_runs import Small, make_corpus, recipe

from hosts import Lan, available, hosts
from hosts_torchrun import Job, Recovery, compared
from limelight.training.run_folder import PREPARED

HOSTS: Final = 3  # that compute; one more keeps the rendezvous
PAUSE: Final = "step.forward:sleep=0.25"  # else a run is over before a host is back
WITHOUT_ENOUGH: Final = 40.0  # seconds in which a network of too few hosts must not finish

Case = Callable[[Lan, Job, int], list[Recovery]]


def undisturbed(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    _start(job, range(HOSTS))
    job.wait_for(steps // 2)
    return []


def cut(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """A switch dies; the host behind it never comes back."""
    _start(job, range(HOSTS))
    job.wait_for(steps // 3)
    lan.cut(2)
    return [job.recovers({0, 1})]


def mended(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """The same, but someone puts the cable back: the host joins by itself."""
    lost = cut(lan, job, steps)
    lan.mend(2)
    return [*lost, job.recovers({0, 1})]


def killed(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """All processes of a host die, and its torchrun is started again."""
    _start(job, range(HOSTS))
    job.wait_for(steps // 3)
    lan.kill(1)
    lost = job.recovers({0, 2})
    job.start(1)
    return [lost, job.recovers({0, 2})]


def power(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """The host of rank 0, which writes, is gone without a word, and comes back."""
    _start(job, range(HOSTS))
    job.wait_for(steps // 3)
    lan.cut(0)
    lan.kill(0)
    lost = job.recovers({1, 2})
    lan.mend(0)
    job.start(0)
    return [lost, job.recovers({1, 2})]


def joins(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """Two begin; the third comes later."""
    _start(job, range(HOSTS - 1))
    job.wait_for(steps // 4)
    job.start(2)
    return [job.recovers({0, 1})]


def crawls(lan: Lan, job: Job, steps: int) -> list[Recovery]:
    """A line of 20 megabit per second, in mid-run: slower, and nobody is lost."""
    _start(job, range(HOSTS))
    job.wait_for(steps // 3)
    lan.slow(1, "20mbit")
    job.wait_for(steps // 3 + 10)
    lan.fast(1)
    return []


CASES: Final[dict[str, Case]] = {case.__name__: case for case in (cut, mended, killed, power, joins, crawls)}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", default=",".join((*CASES, *CONTROLS)))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--short", action="store_true", help="one case of 60 steps against a run in one process, no controls")
    parser.add_argument("--keep", type=Path, help="folder for the runs and the logs of the hosts")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the hosts are taken away
    reason = available()
    if reason is not None:
        print(json.dumps({"skipped": reason}))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.keep or Path(temporary)
        corpus = folder / "corpus" if (folder / "corpus").exists() else make_corpus(folder / "corpus")
        straight = folder / "undisturbed"
        if asked.short:
            assert Small(corpus, straight, changes_of(60)).live() == 0
            return verdict(list(measured(folder, corpus, ["cut"], 60)), [])
        if not straight.exists():
            told(run_case(folder, corpus, straight.name, undisturbed, asked.steps))
        names = asked.cases.split(",")
        cases = list(measured(folder, corpus, [name for name in names if name in CASES], asked.steps))
        return verdict(cases, [CONTROLS[name](folder, corpus, asked.steps) for name in names if name in CONTROLS])


def measured(folder: Path, corpus: Path, names: Sequence[str], steps: int) -> Iterator[dict[str, Any]]:
    for name in names:
        yield told(run_case(folder, corpus, name, CASES[name], steps, folder / "undisturbed"))


def told(figures: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(figures), flush=True)
    return figures


def verdict(cases: Sequence[Mapping[str, Any]], controls: Sequence[Mapping[str, Any]]) -> int:
    """The last line: all of it in a few numbers."""
    good, found = sum(case["as_undisturbed"] for case in cases), sum(control["found"] for control in controls)
    recoveries = [recovery for case in cases for recovery in case["recoveries"]]
    worst = {key: max((recovery[key] for recovery in recoveries), default=0) for key in ("noticed", "again", "lost")}
    apart = max((case["last"] for case in cases), default=0.0)
    told({"as_undisturbed": f"{good}/{len(cases)}", "controls": f"{found}/{len(controls)}", **worst, "last": apart})
    return 0 if good == len(cases) and found == len(controls) else 1


def run_case(folder: Path, corpus: Path, name: str, case: Case, steps: int, straight: Path | None = None) -> dict[str, Any]:
    began = time.monotonic()
    with hosts(HOSTS + 1) as lan:
        job = prepared_job(lan, folder, corpus, name, "2:3", steps)
        recoveries = case(lan, job, steps)
        codes = job.ends()
    figures = {"case": name, "seconds": round(time.monotonic() - began, 1), "worlds": job.worlds, "exit_codes": codes}
    figures["recoveries"] = [asdict(each) for each in recoveries]
    if straight is not None:
        difference = compared(folder / name, straight)
        figures |= {"as_undisturbed": difference.none and 0 in codes.values(), **asdict(difference)}
    return figures


def too_few(folder: Path, corpus: Path, steps: int) -> dict[str, Any]:
    """A control: all three are needed and one is cut off for good, so that the run must not be done."""
    with hosts(HOSTS + 1) as lan:
        job = prepared_job(lan, folder, corpus, "too_few", "3", steps)
        _start(job, range(HOSTS))
        job.wait_for(steps // 3)
        lan.cut(2)
        codes = job.ends(WITHOUT_ENOUGH)
    return told({"control": "too few hosts", "found": 0 not in codes.values() and job.step < steps, "step": job.step})


def another_seed(folder: Path, corpus: Path, steps: int) -> dict[str, Any]:
    """A control: what is not the same run must not look like it."""
    other = Small(corpus, folder / "another_seed", {**changes_of(steps), "seed": 2})
    assert other.live(seconds=600) == 0
    difference = compared(other.run, folder / "undisturbed")
    return told({"control": "another seed", "found": not difference.none, **asdict(difference)})


def prepared_job(lan: Lan, folder: Path, corpus: Path, name: str, nodes: str, steps: int) -> Job:
    run, path = folder / name, folder / f"{name}.toml"
    shutil.copytree(corpus / PREPARED, run / PREPARED)
    recipe(corpus, **changes_of(steps)).save(path)
    return Job(lan, path, run, nodes, fault_environment(PAUSE))


def changes_of(steps: int) -> dict[str, Any]:
    """Without dropout, whose noise depends on the size of the world. GELU has no kink as ReLU has, where a rounding error turns a gradient.

    A checkpoint every other second.
    """
    return {
        "model": {"dropout": 0.0, "activation": "gelu"},
        "schedule": {"steps": steps, "warmup": 20},
        "validation": {"every": steps // 2},
        "checkpoints": {"every_seconds": 2.0},
        "probes": {"sentences": 0},
    }


def _start(job: Job, which: range) -> None:
    for host in which:
        job.start(host)


CONTROLS: Final = {control.__name__: control for control in (too_few, another_seed)}

if __name__ == "__main__":
    sys.exit(main())
