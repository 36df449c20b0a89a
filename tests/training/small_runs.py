"""Small real runs: number words to learn, a toy model, and processes that train it, are told to stop, and go on.

    corpus = make_corpus(folder)
    straight = Small(corpus, folder / "straight");  straight.live() -> 0
    broken = Small(corpus, folder / "broken");      broken.live(Signal(after_step=7)) -> 75;  broken.live() -> 0
    story(straight.run) == story(broken.run)

Each `live` is a new process that calls `training.run.run.train` as the command does. They are forked from a server that has loaded
torch and nothing else has happened in, since loading takes longer than such a run.
"""

import hashlib
import importlib
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random
from typing import Any

import torch

from limelight import bundle
from limelight.corpus.config import PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.prepare import prepare
from limelight.training.checkpoints import checkpoint
from limelight.training.config import Recipe
from limelight.training.events import Event, RunNotice, StepReport, ValidReport, read_events
from limelight.training.recipe.choose import merge
from limelight.training.recipe.request import TrainRequest
from limelight.training.run import leader
from limelight.training.run import run as runs
from limelight.training.run_folder import BUNDLE, CHECKPOINTS, METRICS, PREPARED, REPORT_MD
from limelight.training.step import step

sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
import inject_fault
from make_numbers import draw_pairs

inject_fault.install()  # every process of such a run imports this file

PAIRS, PIECES, STEPS = 260, 320, 40  # an epoch has about 27 steps
SHORT = {"schedule": {"steps": 12, "warmup": 3}, "validation": {"every": 4}}
STOPPED, INTERRUPTED, DONE = 75, 130, 0
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["limelight.training.run.run", "torch._dynamo", "sacrebleu"])  # it knows no path of ours


def make_corpus(folder: Path) -> Path:
    """Text and, beside it, what `prepare` makes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = draw_pairs(4 * PAIRS, Random(3), held_out=False)
    pairs = [pair for pair in drawn if len(pair[0].split()) <= 4][:PAIRS]  # short: an untrained model never ends by itself
    for language, side in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
        (folder / f"numbers.{language}").write_bytes("".join(f"{text}\n" for text in side).encode())
    prepare(data(folder), folder / PREPARED, LocalEngine(0), lambda _: None)
    return folder


def data(corpus: Path) -> PrepareSettings:
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[{"name": "numbers", "paths": [str(corpus / f"numbers.{language}") for language in ("en", "de")]}],
        filters={"wrong_language": "off"},  # too few different words to tell
        held_out={"valid_pairs": 16, "test_pairs": 0},
        pieces={"size": PIECES, "character_coverage": 1.0},
    )


def recipe(corpus: Path, **changes: Any) -> Recipe:
    """64 wide, 2+2 layers, dropout, warm-up; two workers make the batches only where that is asked for."""
    model = {"vocab_size": PIECES, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2, "num_heads": 4, "d_ff": 128}
    values = {
        "data": data(corpus),
        "model": {**model, "dropout": 0.1, "max_length": 22},  # a model that never ends goes on for so long
        "batch": {"budget": 256},
        "schedule": {"steps": STEPS, "warmup": 10},
        "validation": {"every": 20, "sentences": 4},
        "probes": {"sentences": 1, "longest": 12},
        "average": {"decay": 0.9},
        "machine": {"device": "cpu", "threads": 1, "precision": "float32", "workers": 0},
    }
    return Recipe(**merge(values, changes))


@dataclass(frozen=True)
class Signal:
    """When a process gets one: right after a step was told, or as the `nth` call of a function begins, such as "module:Class.name"."""

    after_step: int | None = None
    inside: str | None = None
    nth: int = 1
    times: int = 1
    number: int = signal.SIGTERM
    group: bool = False  # to all processes of the run, as from a keyboard


@dataclass
class Small:
    """A run in the making."""

    corpus: Path
    run: Path
    changes: Mapping[str, Any] = field(default_factory=dict)
    prepared: bool = True  # already, so that a process need not
    reports: bool = False  # a report is written, which takes longer than so small a run

    def __post_init__(self) -> None:
        if self.prepared and not self.run.exists():
            shutil.copytree(self.corpus / PREPARED, self.run / PREPARED)

    def begin(self, told: Signal | None = None) -> BaseProcess:
        process = PROCESSES.Process(target=_life, args=(recipe(self.corpus, **self.changes), self.run, told, self.reports))
        process.start()
        return process

    def live(self, told: Signal | None = None, seconds: float = 120) -> int:
        """The exit code of a process that trains until it is done or told to stop."""
        process = self.begin(told)
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"{self.run} took longer than {seconds} seconds")
        return process.exitcode

    @property
    def said(self) -> list[str]:
        """What the last process would have printed at its end."""
        return json.loads(self.run.with_suffix(".said").read_bytes())

    @property
    def stopped_within(self) -> float:
        """Seconds of computing from the first signal to the end of `train`: what it takes on a machine that does nothing else."""
        return float(json.loads(self.run.with_suffix(".seconds").read_bytes()))

    @property
    def saved(self) -> checkpoint.Checkpoint:
        found = checkpoint.latest(self.run / CHECKPOINTS)
        assert found.checkpoint is not None and not found.refused
        return found.checkpoint

    @property
    def status(self) -> dict[str, Any]:
        return json.loads((self.run / "status.json").read_bytes())

    @property
    def has_report(self) -> bool:
        return (self.run / REPORT_MD).stat().st_size > 100


def _life(wanted: Recipe, run: Path, told: Signal | None, reports: bool) -> None:
    if not reports:
        leader.write_report = lambda folder: None
    torch.set_num_threads(1)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as on a terminal, also where the tests run under nohup
    os.setsid()
    sender = Sender(told or Signal())
    if told and told.inside:
        module, _, name = told.inside.partition(":")
        wrap(importlib.import_module(module), name, sender.call)
    step.gradients = partial(seen, run.with_suffix(".seen"), step.gradients)
    result = runs.train(
        TrainRequest(data=None, recipe=wanted, export=False),
        run,
        LocalEngine(0),
        sender.watch,
        lambda _: None,
        ["limelight"],
    )
    run.with_suffix(".said").write_bytes(json.dumps(result.lines).encode())
    if sender.sent is not None:
        run.with_suffix(".seconds").write_bytes(json.dumps(time.process_time() - sender.sent).encode())
    sys.exit(result.exit_code)


def wrap(place: Any, name: str, around: Callable[..., Any]) -> None:
    """Let `around(original, *args)` stand for a function of a module, or of a class in it."""
    *classes, last = name.split(".")
    for each in classes:
        place = getattr(place, each)
    original = getattr(place, last)
    setattr(place, last, lambda *args, **more: around(original, *args, **more))


class Sender:
    def __init__(self, told: Signal) -> None:
        self.told, self.calls, self.sent = told, 0, None

    def send(self) -> None:
        self.sent = time.process_time()
        for _ in range(self.told.times):
            if self.told.group:
                os.killpg(0, self.told.number)
            else:
                os.kill(os.getpid(), self.told.number)

    def watch(self, event: Event) -> None:
        if isinstance(event, StepReport) and event.step == self.told.after_step:
            self.send()

    def call(self, original: Callable[..., Any], *args: Any, **more: Any) -> Any:
        self.calls += 1
        if self.calls == self.told.nth:
            self.send()
        return original(*args, **more)


def seen(path: Path, original: Callable[..., Any], numbers: Any, shares: Any, *rest: Any, **more: Any) -> Any:
    """Writes down which samples a step is made of, before it is computed."""
    with path.open("ab") as file:
        for share in shares:
            content = b"".join(array.tobytes() for array in (share.samples, share.source, share.target))
            place = f"{share.epoch} {share.window} {share.batch}"
            file.write(f"{place} {hashlib.sha256(content).hexdigest()}\n".encode())
    return original(numbers, shares, *rest, **more)


def story(run: Path) -> list[tuple[Any, ...]]:
    """All that was told of a run and does not depend on the clock, floats as their bits."""
    lines: list[tuple[Any, ...]] = []
    for event in read_events(run / METRICS):
        if isinstance(event, StepReport):
            floats = (event.loss, event.nll, event.gradient_norm, event.learning_rate, event.epoch, event.padding)
            counts = (event.step, event.steps, event.source_pieces, event.target_pieces, event.skipped)
            lines.append(("step", *counts, *(value.hex() for value in floats)))
        elif isinstance(event, ValidReport):
            floats = (event.nll, event.bleu, event.chrf)
            lines.append(("valid", event.step, event.best, event.samples, *(value.hex() for value in floats)))
    return lines


def batches(run: Path) -> list[bytes]:
    """Of each batch that was computed, by whichever process: its epoch, window and number, and the SHA-256 of samples and ids."""
    return run.with_suffix(".seen").read_bytes().split(b"\n")[:-1]


def remains(run: Path) -> dict[str, str]:
    """SHA-256 of every tensor of the last checkpoint and of the bundle, and of the rest of the state but the clock."""
    found = checkpoint.latest(run / CHECKPOINTS).checkpoint
    assert found is not None
    tensors = {f"checkpoint {name}": tensor for name, tensor in found.tensors().items()}
    tensors |= {f"bundle {name}": tensor for name, tensor in bundle.read(run / BUNDLE).weights().items()}
    state = {key: value for key, value in found.state.items() if key != "pace"}
    hashes = {name: _sha256(tensor.contiguous().view(-1).view(torch.uint8).numpy()) for name, tensor in tensors.items()}
    return {**hashes, **{f"state {key}": json.dumps(value) for key, value in state.items()}, "step": str(found.step)}


def _sha256(content: Any) -> str:
    return hashlib.sha256(content.tobytes()).hexdigest()


def check_equal(run: Small, straight: Small) -> None:
    """0 differing bits, and no batch computed twice."""
    told, expected = story(run.run), story(straight.run)
    different = [pair for pair in zip(told, expected, strict=False) if pair[0] != pair[1]]
    assert not different[:1] and len(told) == len(expected)
    assert batches(run.run) == batches(straight.run)
    left, wanted = remains(run.run), remains(straight.run)
    assert {name for name in left.keys() | wanted.keys() if left.get(name) != wanted.get(name)} == set()


def notices(run: Path, kind: str) -> list[RunNotice]:
    return [event for event in read_events(run / METRICS) if isinstance(event, RunNotice) and event.kind == kind]


def last_step_of_first_epoch(run: Path) -> int:
    """A batch is a step here."""
    return [line.split()[0] for line in batches(run)].index(b"1")
