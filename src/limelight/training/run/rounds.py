"""Rounds of back-translation lead to a run with monolingual text. Each model but the first learns from pairs that the one before has made:

    1-yao-en     learns the other direction from the real text, and translates news.yao into English
    RUN          learns en to yao from the real text and those pairs, whose sources carry the tag `synthetic`

With a second round the model of the first translates English back for a better model of the other direction, and that one news.yao again.
Every model is an ordinary run, in RUN/synthetic/ but for the last, and goes on like one.
"""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.parquet as pq

from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.engine import ExchangeEngine, Progress
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import HELD_OUT
from limelight.corpus.prepare import prepare
from limelight.errors import ConfigError, LimelightError
from limelight.files import whole_folder, write_whole
from limelight.reporting.units import time_taken
from limelight.text.languages import Direction
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.events import RunNotice, Watcher
from limelight.training.processes.stop_signals import Stopped
from limelight.training.recipe.monolingual import COUNTS, PAIRS, LineDrawing, MonoText, SyntheticCounts
from limelight.training.recipe.replay import choose_held_out, split_off_at, write_pairs
from limelight.training.recipe.request import TrainRequest, TrainResult, differences
from limelight.training.run.back_translation import BackTranslator
from limelight.training.run.result import EXIT_CODES
from limelight.training.run_folder import SYNTHETIC_FOLDER, RunChoice, RunFacts, State, write_status

# Parts of a budget: of a model before the last, of its translating, and of the last. Set by hand: a translator that is half as good as it
# could be makes poor sources, and the last model has to see the most text. Steps are shared likewise, but for the translating.
BEFORE, TRANSLATING, LAST = 35, 10, 55
MOST_SYNTHETIC: Final = 2 / 3  # of the pairs that are seen; real text is seen more often where there would be more
ASKED, TEXT, REAL, SOURCES = "asked.json", "text", "real", "source.txt"
Lead = Callable[[TrainRequest, Path, float, Sequence[RunChoice]], TrainResult]  # train in a folder; a budget counts from a moment on


def refuse_sharing(asked: TrainRequest, processes: int) -> None:
    if asked.mono is not None and processes > 1:
        raise ConfigError(
            f"--mono trains several models one after the other, in one process, and {processes} were started; leave out --nproc or torchrun"
        )


@dataclass(frozen=True)
class Rounds:
    """Rounds know what was asked for, and how a run is led."""

    asked: TrainRequest
    folder: Path
    engine: ExchangeEngine
    watch: Watcher
    progress: Callable[[Progress], None]
    lead: Lead
    began: float
    told: list[RunChoice] = field(default_factory=list)

    def train(self) -> TrainResult:
        """The result of the last run, or of an earlier one that was stopped."""
        self._refuse_another_request()
        self._say("shares", *self._describe_shares())
        made: Path | None = None
        try:
            self._part_real_text()
            for number in range(self.last):
                run = self._place(number)
                if not (run / COUNTS).exists() and (ended := self._go_through_round(number, run, made)) is not None:
                    return ended
                made, counts = run, SyntheticCounts.load(run / COUNTS)
                self._say(f"synthetic {number + 1}", f"{counts.kept:,} pairs {'-'.join(counts.languages)}", str(counts))
        except Stopped as stopped:
            self._write_status(stopped.reason)
            told = f"{self.folder}: {stopped.reason} before its own training began; the same command goes on from there"
            values = {"state": stopped.reason, "folder": str(self.folder)}
            return TrainResult(stopped.reason, self.folder, EXIT_CODES[stopped.reason], None, [told], values)
        except LimelightError:
            self._write_status("failed")
            raise
        return self.lead(self._request(self.last, made), self.folder, time.monotonic(), self.told)

    def _go_through_round(self, number: int, run: Path, made: Path | None) -> TrainResult | None:
        """Train a model and let it translate. A result is returned only if that did not come to its end."""
        self._write_status("preparing")
        self._say(f"stage {number + 1}", f"{' to '.join(self._direction(number))}, in {run}", "its translator makes the synthetic pairs")
        result = self.lead(self._request(number, made), run, time.monotonic() if number else self.began, ())
        if result.state != "done" or self.asked.dry_run:
            self._write_status(result.state)
            return replace(result, folder=self.folder, lines=[str(self.told[0]), *result.lines])
        spent = sum(RunFacts.load(run).seconds.values())
        counts = SyntheticCounts(self._direction(number + 1), before=spent if number else max(spent, time.monotonic() - self.began))
        data = self._data(number + 1, None)
        lines = LineDrawing(counts.languages[1], data, self.asked.anyway).draw(self._find_lines(number + 1), counts, self.progress)
        translator = BackTranslator(run, data, self.asked.named_device, self.asked.threads)
        translator.make_pairs(lines, counts, self._share_time(TRANSLATING), self.progress)
        return None

    def _refuse_another_request(self) -> None:
        """What is made here depends on all that was asked for."""
        path, now = self.folder / SYNTHETIC_FOLDER / ASKED, json.loads(json.dumps(self.asked.fingerprint()))
        path.parent.mkdir(exist_ok=True)
        if path.exists() and (before := json.loads(path.read_bytes())) != now:
            raise ConfigError(
                f"{self.folder} holds a run that was asked for other things; go on with the same command, or give another folder with -o:",
                differences(before, now),
            )
        write_whole(path, json.dumps(now, ensure_ascii=False).encode())

    def _write_status(self, state: State) -> None:
        if not self.asked.dry_run:
            write_status(self.folder, state, 0, 0)

    def _say(self, name: str, value: str, why: str) -> None:
        self.told.append(RunChoice(name, value, why))
        self.watch(RunNotice(0, time.monotonic() - self.began, "chosen", str(self.told[-1])))

    def _describe_shares(self) -> tuple[str, str]:
        steps, budget = self.asked.steps, self.asked.budget_seconds
        before, last = " to ".join(self._direction(0)), " to ".join(self.real.languages)
        each = "" if self.mono.rounds == 1 else f", in each of {self.mono.rounds} rounds"
        if steps is not None:
            told = f"{self._share_steps(steps):,} steps {before}{each}, the rest of {steps:,} for {last}"
        elif budget is not None:
            model, translating = (time_taken(self._share_time(part) or 0.0) for part in (BEFORE, TRANSLATING))
            told = f"{model} {before} and {translating} translating{each}, the rest of {time_taken(budget)} for {last}"
        else:
            told = f"each model ends when it no longer improves, {before} before {last}{each}"
        return told, f"by {BEFORE} : {TRANSLATING} : {LAST}; a poor translator makes poor sources, and the last model sees the most text"

    @property
    def mono(self) -> MonoText:
        assert self.asked.mono is not None
        return self.asked.mono

    @property
    def real(self) -> PrepareSettings:
        assert self.asked.data is not None
        return self.asked.data

    @property
    def last(self) -> int:
        """The number of the last model, counted from 0; those with even numbers go the other way."""
        return 2 * self.mono.rounds - 1

    def _direction(self, number: int) -> Direction:
        return self.real.languages if number % 2 else self.real.languages[::-1]

    def _place(self, number: int) -> Path:
        return self.folder / SYNTHETIC_FOLDER / f"{number + 1}-{'-'.join(self._direction(number))}"

    @property
    def _text(self) -> Path:
        return self.folder / SYNTHETIC_FOLDER / TEXT

    def _part_real_text(self) -> None:
        """Clean the real text, split off its validation and test sets, which all models share, and write it turned round."""
        if self._text.exists():
            return
        place = self.folder / SYNTHETIC_FOLDER / REAL
        prepare(self.real, place, self.engine, self.progress, force=True, anyway=self.asked.anyway)
        prepared = PreparedCorpus.open(place)
        pairs = prepared.split("train")
        with whole_folder(self._text) as beside:
            samples = np.arange(pairs.rows, dtype=np.int64)
            corpora = pairs.corpora_of(samples)
            for number in range(len(self.real.corpora)):
                write_pairs(beside / f"{number}.parquet", *pairs.texts(samples[corpora == number])[::-1])
            for split in HELD_OUT:
                held_out = prepared.split(split)
                source, target = held_out.texts(np.arange(held_out.rows, dtype=np.int64))
                if held_out.rows:
                    write_pairs(split_off_at(beside, split), source, target)
                    write_pairs(beside / f"{split}.parquet", target, source)
            sources = pairs.texts(samples)[0].to_pylist()
            write_whole(beside / SOURCES, "".join(f"{text}\n" for text in sources).encode())
        shutil.rmtree(place)

    def _find_lines(self, number: int) -> list[str]:
        """Files with text in the target language of a model. For the other direction, the sources of the real text are some."""
        return self.mono.target if number % 2 else [*self.mono.source, str(self._text / SOURCES)]

    def _data(self, number: int, made: Path | None) -> PrepareSettings:
        """The text of a model. Before the last one no test set is scored: nobody would decide by it."""
        real, held_out = self.real, self.real.held_out
        corpora = list(real.corpora)
        if number % 2 == 0:
            corpora = [corpus.changed(paths=[str(self._text / f"{at}.parquet")], columns=("source", "target"), swapped=False, partial=False)
                       for at, corpus in enumerate(corpora)]  # fmt: skip
            valid = self._text / "valid.parquet"
            held_out = held_out.changed(test=(), test_pairs=0, valid=(str(valid),) if valid.exists() else ())
        elif self._text.exists():
            held_out = held_out.changed(**choose_held_out(self._text, real))
        if made is not None and (synthetic := SyntheticCounts.load(made / COUNTS).kept):
            corpora = self._weigh(corpora, made / PAIRS, synthetic)
        return real.changed(languages=self._direction(number), corpora=corpora, held_out=held_out)

    def _weigh(self, corpora: list[CorpusSettings], pairs: Path, synthetic: int) -> list[CorpusSettings]:
        """Synthetic pairs beside real ones, which are seen more often if they would be too small a part."""
        rows = [pq.read_metadata(self._text / f"{at}.parquet").num_rows for at in range(len(corpora))]
        seen = sum(corpus.weight * count for corpus, count in zip(corpora, rows, strict=True))
        often = 1.0 if self.mono.weight is not None else max(1.0, synthetic * (1 / MOST_SYNTHETIC - 1) / max(1.0, seen))
        more = [corpus.changed(weight=float(f"{min(1000.0, corpus.weight * often):.3g}")) for corpus in corpora]
        weight = 1.0 if self.mono.weight is None else self.mono.weight
        return [
            *more,
            CorpusSettings(name=SYNTHETIC, paths=[str(pairs)], columns=("source", "target"), weight=weight, tags=(SYNTHETIC,)),
        ]

    def _request(self, number: int, made: Path | None) -> TrainRequest:
        """An ordinary request. All synthetic sources have the tag, unless other tags want some without."""
        data, changes = self._data(number, made), dict(self.asked.changes)
        if data.tag_set.names == (SYNTHETIC,):
            changes["batch"] = {"untagged": 0.0, **changes.get("batch", {})}
        if number < self.last:
            changes.pop("probes", None)  # sentences of the source
            steps = None if self.asked.steps is None else self._share_steps(self.asked.steps)
            budget = self._share_time(BEFORE)
            return replace(self.asked, data=data, mono=None, changes=changes, steps=steps, budget_seconds=budget, export=True)
        steps, budget = self.asked.steps, self.asked.budget_seconds
        if budget is not None:
            spent = (SyntheticCounts.load(self._place(at) / COUNTS) for at in range(self.last))
            budget = max(1.0, budget - sum(each.before + each.seconds for each in spent))
        if steps is not None:
            steps = max(1, steps - self.last * self._share_steps(steps))
        return replace(self.asked, data=data, changes=changes, steps=steps, budget_seconds=budget)

    def _share_steps(self, steps: int) -> int:
        """Steps of a model before the last."""
        return max(1, steps * BEFORE // (BEFORE * self.last + LAST))

    def _share_time(self, part: int) -> float | None:
        budget = self.asked.budget_seconds
        return None if budget is None else budget * part / ((BEFORE + TRANSLATING) * self.last + LAST)
