"""Probes are a few sentences, traced again and again while a model learns, to watch attention come about:

    RUN/probes/sentences.json         what they are
    RUN/probes/00/2000.json.gz        the first of them at step 2000, as `inspection.wire.trace_json` writes a trace, attention in bytes

They are traced by the weights that were just validated, and translated as the validation translates. Nothing is drawn and nothing of
the training is touched: with and without probes a run takes the same steps, bit for bit. Equal runs leave equal files. One that
was stopped and went on may have kept others of its steps, since what was thinned out after the checkpoint does not come back.
"""

import gzip
import json
import logging
import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from limelight.decoding.config import SearchSettings
from limelight.errors import DataError, LimelightError
from limelight.files import write_whole
from limelight.inspection.trace import Trace
from limelight.inspection.wire.trace_json import as_json
from limelight.training.config import ProbeSettings
from limelight.training.events import Event, RunNotice, ValidReport, Watcher
from limelight.training.run_folder import DAMAGED, PROBE, PROBES, list_probed_steps
from limelight.training.validation.validator import Validator, sample_by_length

SENTENCES = "sentences.json"
PARTS = ("attn", "tokens", "align", "stats")  # without the tree of the search, which would be the larger half
TOPK = 4
MOST = 8  # of a file

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Probe:
    source: str
    reference: str | None = None  # of the validation set


def add_probes(watch: Watcher, run: Path, settings: ProbeSettings, validator: Validator, validated: int | None = None) -> Watcher:
    """A watcher that tells `watch`, and after each validation traces the probes. `validated`: the last validation that a run which goes on
    has made; None for a new one."""
    if not settings.sentences:
        return watch
    probes, able = Probes(run / PROBES, settings, validator), True
    try:
        said = probes.begin(validated)
    except OSError as error:
        said, able = f"no sentences are traced, {run / PROBES} cannot be written: {error}", False
    if said:
        watch(RunNotice(validated or 0, 0.0, "note", said))
    if not able:
        return watch

    def told(event: Event) -> None:
        watch(event)
        if isinstance(event, ValidReport):
            try:
                probes.trace(event.step)
            except (LimelightError, OSError) as error:  # a picture less; the run is worth more
                logger.warning("step %s: the probes were not traced: %s", event.step, error)

    return told


class Probes:
    def __init__(self, folder: Path, settings: ProbeSettings, validator: Validator) -> None:
        self.folder, self.settings, self.validator = folder, settings, validator
        self.sentences: list[Probe] = []

    def begin(self, validated: int | None) -> str | None:
        """Of a run that goes on, the same sentences, without what was traced after its last validation. Returns what there is to say
        of new ones."""
        known = None if validated is None else read_sentences(self.folder)
        if known is not None and validated is not None:
            self.sentences = known
            for step in [step for step in list_probed_steps(self.folder) if step > validated]:
                self.forget(step)
            return None
        shutil.rmtree(self.folder, ignore_errors=True)
        self.sentences, said = self._choose()
        if self.sentences:
            self.folder.mkdir(parents=True)
            content = json.dumps([asdict(probe) for probe in self.sentences], ensure_ascii=False, indent=1)
            write_whole(self.folder / SENTENCES, content.encode() + b"\n")
        return said

    def _choose(self) -> tuple[list[Probe], str]:
        if self.settings.file is not None:
            every = [Probe(line) for line in read_probe_file(Path(self.settings.file))]
        else:
            usual = self.validator.usual
            every = [Probe(*pair) for pair in zip(usual.sources, usual.references, strict=True)]
        with closing(self.validator.translator(0)) as translator:
            lengths = [len(ids) for ids in translator.source_ids([probe.source for probe in every])]
        fitting = [p for p, n in zip(every, lengths, strict=True) if 0 < n <= self.settings.longest]
        if self.settings.file is not None:
            left = len(every) - len(fitting)
            more = f"; {left} more have over {self.settings.longest} pieces and are left out" if left else ""
            return fitting, f"{len(fitting)} sentences of {self.settings.file} are traced at each validation{more}"
        places = sample_by_length([probe.source for probe in fitting], self.settings.sentences)
        chosen = list({fitting[i].source: fitting[i] for i in places}.values())
        return chosen, f"{len(chosen)} sentences of the validation set are traced at each validation, for the report"

    def trace(self, step: int) -> None:
        longest, beam = self.settings.longest, self.validator.settings.beam
        search = SearchSettings(beam=beam, max_length=longest)
        with closing(self.validator.translator(step)) as translator:
            for number, probe in enumerate(self.sentences):
                try:
                    trace = translator.trace(probe.source, search=search, nbest=1, topk=TOPK, longest=longest)
                    self._write(self.place(number, step), trace)
                except Exception as error:  # a picture less, whatever the reason; the run is worth more
                    kind = type(error).__name__
                    logger.warning("step %s: probe %s was not traced: %s: %s", step, number, kind, error)
        self.thin()

    def _write(self, place: Path, trace: Trace) -> None:
        told = as_json(trace, PARTS) | {"timing_ms": {}}  # equal runs, equal bytes
        place.parent.mkdir(exist_ok=True)
        content = json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()
        write_whole(place, gzip.compress(content, mtime=0), durable=False)

    def thin(self) -> None:
        """Until there are no more validations and bytes than allowed; the first and the last always stay."""
        steps = list_probed_steps(self.folder)
        while len(steps) > 2 and (len(steps) > self.settings.steps or self.bytes() > 1e6 * self.settings.megabytes):
            gone = least_missed(steps)
            self.forget(gone)
            steps.remove(gone)

    def forget(self, step: int) -> None:
        for number in range(MOST):
            self.place(number, step).unlink(missing_ok=True)

    def place(self, number: int, step: int) -> Path:
        return self.folder / f"{number:02}" / f"{step}{PROBE}"

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob(f"*/*{PROBE}"))


def least_missed(steps: Sequence[int]) -> int:
    """The inner one whose neighbours stand closest, the earliest of several: least_missed([1, 4, 5, 9]) -> 4"""
    gaps = [after - before for before, after in zip(steps, steps[2:], strict=False)]
    return steps[1 + gaps.index(min(gaps))]


def read_sentences(folder: Path) -> list[Probe] | None:
    try:
        found = [Probe(**each) for each in json.loads((folder / SENTENCES).read_bytes())]
    except DAMAGED:
        return None
    return found if 0 < len(found) <= MOST else None


def read_probe_file(path: Path) -> list[str]:
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as sentences to watch ({error}); give UTF-8 text, one in each line") from None
    found = [line.strip() for line in lines if line.strip()]
    if not 1 <= len(found) <= MOST:
        raise DataError(f"{path} has {len(found)} sentences to watch; give 1 to {MOST}, one in each line")
    return found
