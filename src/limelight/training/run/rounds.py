"""Rounds of back-translation lead to a run with monolingual text. Each model but the first learns from pairs of the one before."""

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
from limelight.corpus.prepare import prepare
from limelight.errors import ConfigError
from limelight.files import whole_folder, write_whole
from limelight.text.languages import Direction
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.events import RunNotice, Watcher
from limelight.training.processes.stop_signals import Stopped
from limelight.training.recipe.monolingual import COUNTS, PAIRS, BackTranslator, MonoText, SyntheticCounts, draw_lines
from limelight.training.recipe.replay import choose_held_out, split_off_at, write_pairs
from limelight.training.recipe.request import TrainRequest, TrainResult, refuse_other
from limelight.training.run_folder import BUNDLE, REAL_TEXT, SYNTHETIC_FOLDER, RunChoice, RunFacts, State, read_status, write_status

# Parts of a budget, set by hand: of a model before the last, of its translating, and of the last. Models share steps likewise.
BEFORE, TRANSLATING, LAST = 35, 10, 55
MOST_SYNTHETIC: Final = 2 / 3  # of the pairs that are seen; real text is seen more often where there would be more
ASKED, REAL, SOURCES, TRAIN = "asked.json", "real", "source.txt", "train.parquet"
Lead = Callable[[TrainRequest, Path, float, Sequence[RunChoice]], TrainResult]  # train in a folder; a budget counts from a moment on


def refuse_sharing(asked: TrainRequest, processes: int) -> None:
    if asked.mono is not None and processes > 1:
        raise ConfigError(f"--mono trains one model after the other in one process, and {processes} were asked for; leave out --nproc")


def refuse_forgotten(asked: TrainRequest, folder: Path) -> None:
    """Before its last model begins, the folder of a run with monolingual text has no run of its own."""
    if asked.mono is None and (folder / SYNTHETIC_FOLDER / ASKED).exists() and not RunFacts.load(folder).asked:
        raise ConfigError(f"{folder} holds a run with --mono that is not done; give the same command again, or another folder with -o")


@dataclass(frozen=True)
class Rounds:
    asked: TrainRequest
    mono: MonoText
    real: PrepareSettings
    folder: Path
    engine: ExchangeEngine
    watch: Watcher
    progress: Callable[[Progress], None]
    lead: Lead
    began: float
    told: list[RunChoice] = field(default_factory=list)

    def train(self) -> TrainResult:
        self._look_at_lines()
        self._refuse_another_request()
        self._say("shares", *self._describe_shares())
        state: State | None = "failed"
        try:
            self._part_real_text()
            for number in range(self.last):
                run = self._place(number)
                if not (run / COUNTS).exists() and (ended := self._go_through_round(number, run)) is not None:
                    state = ended.state
                    return replace(ended, lines=[str(self.told[0]), *ended.lines])
                counts = SyntheticCounts.load(run)
                self._say(f"synthetic {number + 1}", f"{counts.kept:,} pairs {'-'.join(counts.languages)}", str(counts))
                if counts.warning is not None:
                    taught = "its pairs teach noise" if counts.kept else "no pair of it was kept"
                    more = "give more time, in another folder (-o), or leave out --mono"
                    self._say(f"doubt {number + 1}", counts.warning, f"{taught}: {more}; see {run}")
            state = None  # the last run has its own, and may be done
        except Stopped as stopped:
            state = stopped.reason
            raise
        finally:
            if state and not self.asked.dry_run:
                write_status(self.folder, state, 0, 0)
        return self.lead(self._request(self.last), self.folder, time.monotonic(), self.told)

    def _go_through_round(self, number: int, run: Path) -> TrainResult | None:
        """Train a model and let it translate. A result is returned only if that did not come to its end."""
        if not self.asked.dry_run:
            write_status(self.folder, "preparing", 0, 0)
        self._say(f"stage {number + 1}", f"{' to '.join(self._direction(number))}, in {run}", "its translator makes the synthetic pairs")
        result = self.lead(self._request(number), run, time.monotonic() if number else self.began, ())
        if result.state != "done" or self.asked.dry_run:
            return result
        spent = sum(RunFacts.load(run).seconds.values())
        counts = SyntheticCounts(self._direction(number + 1), before=spent if number else max(spent, time.monotonic() - self.began))
        pairs = self.real.changed(languages=counts.languages)
        paths = [*self.mono.source, str(self._text / SOURCES)] if number % 2 else self.mono.target
        drawn = time.monotonic()
        lines = draw_lines(paths, pairs, self.asked.anyway, counts)
        counts.before += time.monotonic() - drawn
        translator = BackTranslator(run, pairs, self.asked.named_device, self.asked.threads)
        translator.make_pairs(lines, counts, self._share_time(TRANSLATING), self.progress)
        return None

    def _look_at_lines(self) -> None:
        """The beginning of each file: what is empty, or in another language, is told before hours of training."""
        for number, paths in enumerate((self.mono.target, self.mono.source)):
            languages = self._direction(number + 1)
            if paths and not (self._place(number) / COUNTS).exists():
                draw_lines(paths, self.real.changed(languages=languages), self.asked.anyway, SyntheticCounts(languages), batches=1)

    def _refuse_another_request(self) -> None:
        path, now = self.folder / SYNTHETIC_FOLDER / ASKED, json.loads(json.dumps(self.asked.fingerprint()))
        if not path.exists() and RunFacts.load(self.folder).asked:
            raise ConfigError(f"{self.folder} holds a run without --mono; give another folder with -o")
        if not path.exists():
            shutil.rmtree(self._text, ignore_errors=True)  # of a dry run, which may have been asked for other things
        refuse_other(f"{self.folder} was asked for other things", json.loads(path.read_bytes()) if path.exists() else now, now)
        if not self.asked.dry_run:
            path.parent.mkdir(exist_ok=True)
            write_whole(path, json.dumps(now).encode())

    def _say(self, name: str, value: str, why: str) -> None:
        self.told.append(RunChoice(name, value, why))
        self.watch(RunNotice(0, time.monotonic() - self.began, "chosen", str(self.told[-1])))

    def _describe_shares(self) -> tuple[str, str]:
        other, own = (" to ".join(self._direction(number)) for number in (0, 1))
        steps, whole = self.asked.steps, (BEFORE + TRANSLATING) * self.last + LAST
        times = f", {self.last} times in turn" if self.last > 1 else ""
        if steps is not None:
            told = f"{self._share_steps(steps):,} steps {other}{times}, the rest of {steps:,} {own}"
        elif self.asked.budget_seconds is None:
            told = f"{other}{times}, then {own}, each until it no longer improves"
        else:
            told = f"{BEFORE / whole:.0%} of the time {other}, {TRANSLATING / whole:.0%} translating{times}, the rest {own}"
        return told, "a poor translator makes poor sources, and the last model sees the most text"

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
        return self.folder / REAL_TEXT

    def _part_real_text(self) -> None:
        """Clean the real text, split off its validation and test sets, which all models share, and write it turned round."""
        place = self.folder / SYNTHETIC_FOLDER / REAL
        if self._text.exists():
            shutil.rmtree(place, ignore_errors=True)  # of who was killed before it was gone
            return
        prepare(self.real, place, self.engine, self.progress, force=True, anyway=self.asked.anyway)
        prepared = PreparedCorpus.open(place)
        with whole_folder(self._text) as beside:
            for split in prepared.manifest.splits:
                pairs = prepared.split(split)
                source, target = pairs.texts(np.arange(pairs.rows, dtype=np.int64))
                if split == "train":
                    write_whole(beside / SOURCES, "".join(f"{text}\n" for text in source.to_pylist()).encode())
                elif pairs.rows:
                    write_pairs(split_off_at(beside, split), source, target)
                write_pairs(beside / f"{split}.parquet", target, source)
        shutil.rmtree(place)

    def _data(self, number: int) -> PrepareSettings:
        """The text of a model. Those before the last have no test set, and its pairs are not in their text."""
        held_out = self.real.held_out.changed(**choose_held_out(self._text, self.real))
        corpora = list(self.real.corpora)
        if number == self.last and any((self._text / f"{split}.parquet").exists() for split in ("valid", "test")):
            held_out = held_out.changed(leaks="drop")  # what was split off is still in these corpora
        if number < self.last:
            sides = ("target", "source") if number % 2 else ("source", "target")
            corpora = [CorpusSettings(name=REAL, paths=[str(self._text / TRAIN)], columns=sides)]
            held_out = held_out.changed(test=(), test_pairs=0)
        if number % 2 == 0:
            held_out = held_out.changed(valid=(str(self._text / "valid.parquet"),))
        if number and (kept := SyntheticCounts.load(self._place(number - 1)).kept):
            real, weight = pq.read_metadata(self._text / TRAIN).num_rows, self.mono.weight
            often = 1.0 if weight is not None else max(1.0, (1 / MOST_SYNTHETIC - 1) * kept / max(1, real))
            corpora = [corpus.changed(weight=float(f"{min(1000.0, corpus.weight * often):.3g}")) for corpus in corpora]
            path, columns = str(self._place(number - 1) / PAIRS), ("source", "target")
            corpora.append(CorpusSettings(name=SYNTHETIC, paths=[path], columns=columns, weight=weight or 1.0, tags=(SYNTHETIC,)))
        return self.real.changed(languages=self._direction(number), corpora=corpora, held_out=held_out)

    def _request(self, number: int) -> TrainRequest:
        """An ordinary request. All synthetic sources have the tag, unless other tags want some without. The real text was judged before."""
        data, changes = self._data(number), dict(self.asked.changes)
        if data.tag_set.names == (SYNTHETIC,):
            changes["batch"] = {"untagged": 0.0, **changes.get("batch", {})}
        asked = replace(self.asked, data=data, changes=changes, anyway=True)
        if number:  # it begins with the weights of the model before, which knows both languages, though the other way round
            asked = replace(asked, bundle=self._place(number - 1) / BUNDLE, new_pieces=True, preset=None)
        steps, budget = self.asked.steps, self.asked.budget_seconds
        if number < self.last:
            changes.pop("probes", None)  # sentences of the source
            return replace(asked, mono=None, steps=steps and self._share_steps(steps), budget_seconds=self._share_time(BEFORE), export=True)
        if budget is not None:
            spent = (SyntheticCounts.load(self._place(at)) for at in range(number))
            budget = max(1.0, budget - sum(each.before + each.seconds for each in spent))
        if steps is not None:  # those that were taken: more may be asked for when these models are done
            share = self._share_steps(steps)
            steps = max(1, steps - sum(read_status(self._place(at)).get("steps", share) for at in range(number)))
        return replace(asked, steps=steps, budget_seconds=budget)

    def _share_steps(self, steps: int) -> int:
        return max(1, steps * BEFORE // (BEFORE * self.last + LAST))

    def _share_time(self, part: int) -> float | None:
        return self.asked.budget_seconds and self.asked.budget_seconds * part / ((BEFORE + TRANSLATING) * self.last + LAST)
