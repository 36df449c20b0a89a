"""Files that change, vanish or cannot be written under a run and under a server: a helpful end, or it goes on; never a traceback.

Each case is a real `limelight train` or `limelight serve`. What must hold: no traceback, an exit code that docs/survive.md knows, a message
that names what is wrong, nothing silently wrong: a run that ends with 0 has the bits of an undisturbed one, unless it says what changed.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import serve_numbers
from campaign_clock import translated
from campaign_journal import Journal
from campaign_requests import BROKEN
from limelight.training.run_folder import CHECKPOINTS, PREPARED
from serve_process import Server, limelight
from survive_disk import disk, resize, used
from survive_run import SECONDS, Job, differing

KNOWN = {0, 2, 65, 66, 69, 70, 74, 75}
STEPS = 40


def run(journal: Journal, count: int) -> None:
    for number in journal.numbers(min(count, len(CASES))):
        case = CASES[number]
        with tempfile.TemporaryDirectory(prefix="campaign-damage-") as folder:
            try:
                found = case(Path(folder))
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
        for what in found:
            journal.fault(number, case.__name__, seen=what[-1500:])


def judged(job: Job, code: int | None, wanted: set[int], says: str = "") -> list[str]:
    wrong = [] if code in wanted else [f"ended with {code}: {job.log[-700:]}"]
    wrong += [f"a traceback: {job.log[-1200:]}"] if "Traceback" in job.log else []
    return wrong + ([f"does not say {says!r}: {job.log[-700:]}"] if says and says not in job.log else [])


def stopped(folder: Path, name: str = "job") -> Job:
    """A run that was told to stop after a checkpoint."""
    job = Job(folder / name, STEPS, 1)
    job.start()
    job.wait_for("save", Random(1))
    job.process.send_signal(signal.SIGTERM)
    assert job.ended(SECONDS) == 75, job.log[-1500:]
    return job


def straight(folder: Path) -> Job:
    job = Job(folder / "straight", STEPS, 1)
    assert job.finish() == 0, job.log[-1500:]
    return job


def _deleted_under(
    folder: Path, moment: str, delete: Callable[[Job], None], wanted: set[int], times: int = 1, same: bool = False
) -> list[str]:
    """`same`: a run that ends well all the same has the bits of one that nobody disturbed."""
    other, job = straight(folder) if same else None, Job(folder / "job", STEPS, 1)
    job.start()
    try:
        for _ in range(times):
            job.wait_for(moment, Random(1))
            delete(job)
        code = job.ended(SECONDS)
        wrong = judged(job, code, wanted)
        return wrong + (["other bits"] if other and code == 0 and differing(job, other) else [])
    finally:
        job.close()


def _delete(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def checkpoint_deleted_under_a_run(folder: Path) -> list[str]:
    def delete(job: Job) -> None:
        for path in (job.run / CHECKPOINTS).glob("step-*"):
            _delete(path)

    return _deleted_under(folder, "save", delete, {0, 74}, times=3, same=True)


def checkpoints_folder_deleted_under_a_run(folder: Path) -> list[str]:
    return _deleted_under(folder, "save", lambda job: _delete(job.run / CHECKPOINTS), {0, 74}, same=True)


def run_folder_deleted_under_a_run(folder: Path) -> list[str]:
    return _deleted_under(folder, "steps", lambda job: _delete(job.run), KNOWN - {75})


def prepared_text_deleted_under_a_run(folder: Path) -> list[str]:
    return _deleted_under(folder, "steps", lambda job: _delete(job.run / PREPARED), KNOWN - {75})


def _resumed_with(folder: Path, change: Callable[[Path, Job], None], wanted: set[int], same: bool) -> list[str]:
    other, job = straight(folder), stopped(folder)
    try:
        change(folder / "corpus", job)
        code = job.finish()
        wrong = judged(job, code, wanted)
        if code == 0 and same and differing(job, other):
            wrong.append(f"other bits, and nobody was told: {job.log[-700:]}")
        return wrong
    finally:
        job.close()


def _spoil(corpus: Path) -> None:
    path = corpus / "numbers.de"
    path.write_bytes(path.read_bytes().replace(b"eins", b"zwei"))


def corpus_changed_before_resume(folder: Path) -> list[str]:
    """What was prepared is kept, so that the run is the same; or it says that the text is another."""
    return _resumed_with(folder, lambda corpus, job: _spoil(corpus), KNOWN, same=True)


def corpus_deleted_before_resume(folder: Path) -> list[str]:
    return _resumed_with(folder, lambda corpus, job: shutil.rmtree(corpus), KNOWN, same=True)


def a_shard_of_the_text_damaged_before_resume(folder: Path) -> list[str]:
    def damage(corpus: Path, job: Job) -> None:
        largest = max((path for path in (job.run / PREPARED).rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
        data = bytearray(largest.read_bytes())
        data[len(data) // 2] ^= 0x55
        largest.write_bytes(data)

    return _resumed_with(folder, damage, KNOWN, same=True)


def recipe_changed_before_resume(folder: Path) -> list[str]:
    def change(corpus: Path, job: Job) -> None:
        path = job.folder / "recipe.toml"
        text = path.read_text()
        assert "seed" in text
        path.write_text(text.replace("seed = ", "seed = 7"))

    return _resumed_with(folder, change, {2}, same=True)


def run_folder_made_read_only(folder: Path) -> list[str]:
    """By a mount, since root may write anywhere else."""
    wrong: list[str] = []
    with disk(folder / "disk", 96 << 20) as place:
        job = stopped(place)
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        log = folder / "log"
        with log.open("wb") as said:
            words = [*_words(job), "-o", str(job.run)]
            code = subprocess.run(words, cwd=folder, stdout=said, stderr=said, timeout=SECONDS).returncode
        subprocess.run(["mount", "-o", "remount,rw", place], check=True)
        told = log.read_text(errors="replace")
        wrong += [f"ended with {code}: {told[-700:]}"] if code not in (2, 66, 74) else []
        wrong += [f"a traceback: {told[-1200:]}"] if "Traceback" in told else []
        wrong += judged(job, job.finish(), {0})
        job.close()
    return wrong


def _words(job: Job) -> list[str]:
    import sys

    return [sys.executable, "-m", "limelight", "train", str(job.folder / "recipe.toml"), "--plain", "--workers", "0"]


def disk_full_under_a_run(folder: Path) -> list[str]:
    """While it trains; with room again the same command goes on to the same bits."""
    other, wrong = straight(folder), list[str]()
    with disk(folder / "disk", 96 << 20) as place:
        shutil.copytree(folder / "corpus", place / "corpus")
        job = Job(place / "job", STEPS, 1)
        job.start()
        try:
            job.wait_for("save", Random(1))
            resize(place, used(place) + (64 << 10))
            code = job.ended(SECONDS)
            wrong += judged(job, code, {0, 74})
            resize(place, 96 << 20)
            wrong += judged(job, job.finish(), {0}) if code else []
            wrong += ["other bits"] if differing(job, other) else []
        finally:
            job.close()
    return wrong


def bundle_deleted_under_a_server(folder: Path) -> list[str]:
    bundle = folder / "bundle"
    shutil.copytree(serve_numbers.BUNDLE, bundle)
    wrong: list[str] = []
    with Server(limelight(bundle)) as server:
        shutil.rmtree(bundle)
        for more in ({}, {"glossary": {"one": "eins"}}, {"beam": 4, "nbest": 2}):
            status, answer = translated(server.port, **more)
            if status != 200 or answer["results"][0]["text"] != "drei sieben eins":
                wrong.append(f"{status} {str(answer)[:300]}")
        server.signal()
        wrong += [] if server.ended(60) == 0 else ["did not stop"]
        wrong += [f"a traceback: {server.log[-900:]!r}"] if BROKEN.search(server.log) else []
    return wrong


def state_of_a_server_on_a_full_disk(folder: Path) -> list[str]:
    """What keys have used cannot be written; texts are translated all the same."""
    from campaign_requests import make_key

    wrong: list[str] = []
    key, file = make_key(folder)
    with disk(folder / "disk", 1 << 20) as place, Server(limelight(serve_numbers.BUNDLE, "--api-key-file", file, f"state={place / 'state'}")) as server:  # fmt: skip
        wrong += [] if translated(server.port, key)[0] == 200 else ["not even before"]
        with (place / "filler").open("wb") as filler:
            try:
                while filler.write(b"x" * 4096):
                    filler.flush()
            except OSError:
                os.sync()
        statuses = [translated(server.port, key)[0] for _ in range(5)]
        wrong += [f"with a full disk {statuses}"] if set(statuses) != {200} else []
        server.signal()
        code = server.ended(60)
        wrong += [f"ended with {code}: {server.log[-700:]!r}"] if code not in (0, 74) else []
        wrong += [f"a traceback: {server.log[-900:]!r}"] if BROKEN.search(server.log) else []
    return wrong


CASES: tuple[Callable[[Path], list[str]], ...] = (
    checkpoint_deleted_under_a_run,
    checkpoints_folder_deleted_under_a_run,
    run_folder_deleted_under_a_run,
    prepared_text_deleted_under_a_run,
    corpus_changed_before_resume,
    corpus_deleted_before_resume,
    a_shard_of_the_text_damaged_before_resume,
    recipe_changed_before_resume,
    run_folder_made_read_only,
    disk_full_under_a_run,
    bundle_deleted_under_a_server,
    state_of_a_server_on_a_full_disk,
)
