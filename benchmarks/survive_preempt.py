"""A run that is told to stop, again and again, at random moments, and loses nothing by it (AT-10).

    python benchmarks/survive_preempt.py [--times 20]

One run of two ranks under the launcher gets SIGTERM in each of its lives: before it begins, between steps, in a save, in a validation. Each
time it must end with 75 within 20 seconds, with a checkpoint of the very step it had reached and a status that says so; the next life goes
on from there; and in the end all is, bit for bit, as in a run that nobody disturbed. A second signal must end it within 2 seconds.

The control: the same after SIGKILL, which leaves no time to save, must be seen to lose steps.
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from signal import SIGKILL, SIGTERM

sys.path.insert(0, str(Path(__file__).parent))
from survive_run import PHASES, Job, differing, ends_cleanly, line

PREEMPTED = 75
LIMIT, SECOND_LIMIT = 20.0, 2.0  # seconds


@dataclass
class Preempted:
    times: int = 0
    good: int = 0  # right code, status, checkpoint and time
    lost: int = 0  # steps that were taken and not saved
    worst: float = 0.0  # seconds from the signal to the end
    differing: int = 0  # from a run that nobody disturbed


def preempted(place: Path, times: int, seed: int = 1, number: int = SIGTERM, phases: tuple[str, ...] = PHASES) -> Preempted:
    """`times` signals to one run, and then to its end."""
    random, found = Random(seed), Preempted()
    job, straight = Job(place / "job", steps=20 + 4 * times), Job(place / "straight", steps=20 + 4 * times)
    try:
        for turn in range(times):
            life(job, phases[turn % len(phases)], random, number, found)
        code, straight_code = job.finish(), straight.finish()
        assert (code, straight_code) == (0, 0), (code, straight_code, job.log, straight.log)
        found.differing = differing(job, straight)
    finally:
        job.close()
        straight.close()
    return found


def life(job: Job, phase: str, random: Random, number: int, found: Preempted) -> None:
    job.start()
    job.wait_for(phase, random)
    sent = time.monotonic()
    job.process.send_signal(number)
    code = job.ended(60)
    seconds = time.monotonic() - sent
    step, saved, status = job.step, job.saved, job.status
    lost = step - saved
    # Before there is a run there is no status, and nothing that could be lost.
    as_said = (status.get("state"), status.get("step")) == ("preempted", saved) or not (status or saved)
    good = code == PREEMPTED and seconds <= LIMIT and lost == 0 and as_said and job.left_after(1) == 0
    found.times, found.good, found.lost = found.times + 1, found.good + good, found.lost + lost
    found.worst = max(found.worst, seconds)
    line(phase=phase, code=code, seconds=round(seconds, 2), step=step, saved=saved, status=status.get("state"), good=good)


def second_signal(place: Path) -> tuple[float, bool]:
    """Seconds from the second signal, in a save that takes long, to the end; and whether the checkpoint before is still whole."""
    job = Job(place / "twice", steps=200, save_seconds=1e9, faults="step.forward:sleep=0.05")
    try:
        job.start()
        job.wait_for("steps", Random(1))
        job.process.send_signal(SIGTERM)
        first = job.ended(60)
        before = job.saved
        job.start("ckpt.write:sleep=30,step.forward:sleep=0.05")
        job.wait_for("steps", Random(2))
        job.process.send_signal(SIGTERM)
        time.sleep(2)
        second = time.monotonic()
        job.process.send_signal(SIGTERM)
        code = job.ended(60)
        seconds = time.monotonic() - second
        line(second_signal=round(seconds, 2), codes=[first, code], saved=[before, job.saved], left=job.left_after(1))
        return seconds, job.saved == before > 0 and code == PREEMPTED
    finally:
        job.close()


def main() -> None:
    """The last line has all figures; exit 1 unless all of them hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true", help="only the signals, without the second one and without the control")
    args = parser.parse_args()
    ends_cleanly()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        found = preempted(place / "sigterm", args.times, args.seed)
        holds = found.good == found.times and found.lost == 0 and found.differing == 0
        figures = vars(found)
        if not args.short:
            seconds, whole = second_signal(place)
            control = preempted(place / "sigkill", 2, args.seed, SIGKILL, ("steps",))
            holds = holds and seconds <= SECOND_LIMIT and whole and control.good == 0 and control.lost > 0
            figures |= {"second_seconds": seconds, "checkpoint_before_is_whole": whole, "control_lost": control.lost}
    line(**figures, holds=holds)
    sys.exit(not holds)


if __name__ == "__main__":
    main()
