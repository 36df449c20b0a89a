"""A rank that dies or freezes at any moment: the job is over in bounded time, names the rank, leaves nothing behind, and goes on (AT-13).

    python benchmarks/survive_frozen.py [--times 10]         so many SIGKILL, and so many SIGSTOP

One run of two ranks. In each of its lives a random rank gets the signal, between steps, in a save or in a validation. With a patience of
10 seconds and a shutdown of 10 seconds, it must be over 15 seconds after SIGKILL and 30 seconds after SIGSTOP, with a code that is not 0,
and five seconds later no process of it may be left. The next life goes on from the last checkpoint; at the end all is, bit for bit, as in
a run that nobody disturbed. Then once more with restarts, where the launcher does all of it by itself.

The control: a run whose ranks have the usual patience of minutes must be seen to be late.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))
from survive_run import SECONDS, Job, differing, ends_cleanly, line

PATIENCE = 10.0
LIMITS = {signal.SIGKILL: 15.0, signal.SIGSTOP: PATIENCE + 10.0 + 10.0}
PHASES = ("steps", "save", "validation")


@dataclass
class Frozen:
    times: int = 0
    good: int = 0  # in time, named, nothing left, and the life after it went on
    worst: float = 0.0  # seconds, as a share of the limit
    differing: int = 0


def frozen(place: Path, times: int, seed: int = 1, patience: float = PATIENCE, numbers: tuple[int, ...] = tuple(LIMITS)) -> Frozen:
    """`times` of each signal to one run, and then to its end."""
    random, found = Random(seed), Frozen()
    steps = 20 + 8 * times * len(numbers)
    variables = {"LIMELIGHT_PATIENCE": f"{patience:g}"}
    job, straight = Job(place / "job", steps, variables=variables), Job(place / "straight", steps)
    try:
        for turn in range(times):
            for number in numbers:
                life(job, PHASES[turn % len(PHASES)], number, random, found)
        code, straight_code = job.finish(), straight.finish()
        assert (code, straight_code) == (0, 0), (code, straight_code, job.log, straight.log)
        found.differing = differing(job, straight)
    finally:
        job.close()
        straight.close()
    return found


def life(job: Job, phase: str, number: int, random: Random, found: Frozen) -> None:
    saved_before = job.saved
    job.start()
    job.wait_for(phase, random)
    rank = random.randrange(job.nproc)
    process = job.rank(rank)
    sent = time.monotonic()
    if process is not None:
        os.kill(process, number)
    code = job.ended(LIMITS[number] + 30)
    seconds = time.monotonic() - sent
    left = job.left_after(5)
    named = names(job.log, rank)
    went_on = saved_before == 0 or job.resumed_from() == saved_before
    good = process is not None and code == 70 and seconds <= LIMITS[number] and named and left == 0 and went_on
    found.times, found.good = found.times + 1, found.good + good
    found.worst = max(found.worst, seconds / LIMITS[number])
    line(phase=phase, signal=signal.Signals(number).name, rank=rank, code=code, seconds=round(seconds, 2), named=named, left=left,
         from_step=saved_before, went_on=went_on, good=good)  # fmt: skip
    if not good:
        sys.stderr.write(job.log[-3000:])


def names(log: str, rank: int) -> bool:
    """The launcher says which rank ended or was stopped."""
    return bool(re.search(rf"^rank {rank} was (ended by SIGKILL|stopped and did not answer)", log, flags=re.M))


def restarted(place: Path, seed: int = 1) -> tuple[bool, int]:
    """With restarts, nobody does anything: one rank is killed, later one is stopped. Does the run end well, and differ from no other?"""
    random = Random(seed)
    job = Job(place / "again", 60, restarts=3, variables={"LIMELIGHT_PATIENCE": f"{PATIENCE:g}"})
    straight = Job(place / "straight-again", 60)
    try:
        job.start()
        for number in LIMITS:
            job.before = job.step
            job.wait_for("steps", random)
            process = job.rank(random.randrange(job.nproc))
            if process is not None:
                os.kill(process, number)
                job._until(lambda gone=process: gone not in job.processes())
        code, straight_code = job.ended(SECONDS), straight.finish()
        again = job.log.count("all ranks are started again")
        line(restarts=again, code=code, left=job.left_after(5))
        return (code, straight_code, again) == (0, 0, 2), differing(job, straight)
    finally:
        job.close()
        straight.close()


def main() -> None:
    """The last line has all figures; exit 1 unless all of them hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="only the signals, without restarts and without the control")
    args = parser.parse_args()
    ends_cleanly()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found = frozen(place / "bounded", args.times, args.seed)
        holds = found.good == found.times and found.differing == 0
        figures = vars(found)
        if not args.short:
            well, other = restarted(place, args.seed)
            control = frozen(place / "patient", 1, args.seed, 45.0, (signal.SIGSTOP,))
            holds = holds and well and other == 0 and control.good == 0
            figures |= {"restarted_by_itself": well, "restarted_differing": other, "control_good": control.good}
    line(**figures, holds=holds)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
