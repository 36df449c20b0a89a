"""What the docs state about runs that survive: one curve for any number of processes, not a bit lost when they are told to stop or killed,
damaged checkpoints never used, bad steps left out by all alike.

make claim-survive              75 s on 2 quiet cores: a case of each, with the controls that must fail
make claim-survive FULL=1       all of it, about an hour and a half: the trials of `python benchmarks/soak.py`, logs in soak/

Network namespaces and small disks need root; without it their trials are SHORT.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "tests", "tests/training")]
os.environ["OMP_NUM_THREADS"] = "1"

from inject_fault import fault_environment
from test_width import TWO, apart, told

from claim import Claims, run
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints import folder as checkpoint_folder
from limelight.training.events import StepReport, read_events
from limelight.training.run_folder import CHECKPOINTS, METRICS, PREPARED, read_status
from soak import TRIALS, tried
from survive_ranks import Ranks, Stage, differing
from survive_resume import chance, control

STEPS, K = 16, 6
KILLED = fault_environment(f"step.forward:kill@{K + 1}#1")  # rank 1


def main(claims: Claims, full: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="claim-survive-") as work:
        stage = Stage(Path(work), STEPS)
        straight = stopped(claims, stage)
        width(claims, stage)
        bad_step(claims, stage)
        place = killed(claims, stage, straight)
        damaged(claims, stage, place)
    if full:
        everything(claims)


def width(claims: Claims, stage: Stage) -> None:
    """AT-12 d, without dropout, whose noise depends on the number of processes. The control divides by the pieces of each process alone."""
    prepared, ways = stage.corpus / PREPARED, {way: dict(TWO[way]) for way in ("ddp", "fsdp", "tensor")}
    alone = told(prepared, 1, {"one": {}})["one"]
    found = told(prepared, 2, {**ways, "wrong": {**TWO["ddp"], "wrong": True}})
    for way in ways:
        claims.at_most(f"2 processes, {way}: loss of 8 steps, from that of 1 process", apart(alone, found[way]), 1e-6)
    claims.at_least("... each divides by its own pieces (control)", apart(alone, found["wrong"]), 1e-5)


def stopped(claims: Claims, stage: Stage) -> Path:
    """AT-01 and AT-10: SIGTERM in step K, then the same command again."""
    straight, place = stage.new("straight"), stage.new("stopped")
    stage.train(straight, "fsdp")
    with Ranks(stage.words(place, "fsdp"), 2, fault_environment(f"step.forward:term@{K}#1")) as ranks:
        codes = ranks.codes()
    status = read_status(place)
    claims.at_least("SIGTERM to one of 2 processes: all end with 75", codes == [75, 75], 1)
    claims.at_most("... steps lost", K - int(status["step"]) if status["state"] == "preempted" else K, 0)
    stage.train(place, "fsdp")
    claims.at_most("... steps and tensors that differ in a bit, in the end", len(differing(place, straight)), 0)
    claims.at_least("... without its random numbers (control)", len(control(stage, straight, "fsdp", K, chance)), 1)
    return straight


def damaged(claims: Claims, stage: Stage, place: Path) -> None:
    """AT-03: single bits of any file of the newest checkpoint, and files cut. The one before must be taken."""
    root = place / CHECKPOINTS
    newest, before = checkpoint.list_checkpoints(root)[:2]
    draw, good, tries = Random(1), 0, 0
    for path in sorted(newest.folder.iterdir()):
        content = path.read_bytes()
        for number in range(12):
            at = draw.randrange(len(content))
            path.write_bytes(content[:at] if number % 4 == 3 else flipped(content, at, draw.randrange(8)))
            found = checkpoint.latest(root)
            taken = found.checkpoint is not None and found.checkpoint.step == before.step
            good += taken and path.name in " ".join(found.refused)
            tries += 1
        path.write_bytes(content)
    claims.at_least(f"{tries} damages of a checkpoint: named, and the one before taken", good, tries)
    whole = checkpoint.latest(root).checkpoint
    claims.at_least("... it is taken when it is whole again (control)", whole is not None and whole.step == newest.step, 1)
    large = stage.folder / "large"
    large.write_bytes(bytes(200_000_000))
    began = time.perf_counter()
    checkpoint_folder.digest_file(large)
    claims.at_least("verified, MB a second", 200 / (time.perf_counter() - began), 200)
    large.unlink()


def flipped(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


def bad_step(claims: Claims, stage: Stage) -> None:
    """AT-09 a: no number on one process."""
    place = stage.new("bad")
    codes = stage.train(place, "ddp", fault=f"step.loss:nan@{K}#1")
    skipped = [e.step for e in read_events(place / METRICS) if isinstance(e, StepReport) and e.skipped]
    claims.at_least(f"no number in step {K} of one process: only that step is left out", skipped == [K], 1)
    claims.at_least("... and the run ends well", codes == [0, 0], 1)


def killed(claims: Claims, stage: Stage, straight: Path) -> Path:
    """AT-02: a process is killed, the other notices; then the same command again. FULL has the launcher, which does that by itself."""
    place = stage.new("killed")
    often = {"checkpoints": {"every_seconds": 0.001}}
    with Ranks(stage.words(place, "fsdp", **often), 2, KILLED) as ranks:
        codes = ranks.codes()
    said = ranks.said.read_bytes().decode(errors="replace")
    claims.at_least("kill -9 of one of 2 processes: the other ends too", codes[0] not in (0, None) and codes[1] == -9, 1)
    claims.at_least("... and says which was lost", "rank 1" in said, 1)
    codes = stage.train(place, "fsdp", **often)
    claims.at_most("... the same command again: differing in a bit", len(differing(place, straight)) if codes == [0, 0] else 1, 0)
    return place


def everything(claims: Claims) -> None:
    folder = Path("soak")
    folder.mkdir(exist_ok=True)
    for trial in TRIALS:
        outcome = tried(trial, trial.whole, folder / f"{trial.name}-1.log")
        claims.ended_well(f"{trial.about}: exit code", 99 if outcome.code is None else outcome.code)
        for name, value in outcome.figures.items():
            if isinstance(value, int | float):
                claims.note(f"... {name}", value)


if __name__ == "__main__":
    run(main, __doc__)
