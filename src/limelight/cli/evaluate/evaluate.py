"""`limelight evaluate` measures how good a translation is, how sure that is, and where it is weak."""

import json
import re
import sys
import time
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from limelight.cli.evaluate.lines import EvaluationReport, as_json, describe
from limelight.cli.fetching import Yes
from limelight.cli.screen import Screen, group_digits
from limelight.errors import ConfigError, DataError
from limelight.files import write_whole

if TYPE_CHECKING:
    from limelight.evaluation.confidence.calibration import ConfidenceCheck
    from limelight.evaluation.config import EvaluateSettings, InferenceOptions, Speed
    from limelight.evaluation.evaluate import Evaluation
    from limelight.evaluation.inputs import EvaluationInputs, System
    from limelight.evaluation.metrics.comet import CometSettings
    from limelight.evaluation.metrics.metrics import MetricCounts
    from limelight.evaluation.translating import TranslatedSet

EXAMPLES = (
    "limelight evaluate en-de test.en test.de",
    "limelight evaluate output.de reference.de --source test.en --compare other-output.de",
    "limelight evaluate en-de prepared --metrics bleu,chrf --json",
)


PATIENCE = 4.0  # seconds after which a slow metric is explained


class SplitName(StrEnum):
    test = "test"
    valid = "valid"


def evaluate(
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            help="A translator and its test set (source and reference, or a prepared corpus), or translations and their reference. "
            "Files of lines, also .gz, .zst."
        ),
    ] = None,
    reference: Annotated[list[str] | None, typer.Option("--reference", help="A further reference; may be repeated.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="The source of translations that exist.")] = None,
    compare: Annotated[str | None, typer.Option("--compare", help="Another translator or its output, on the same test set.")] = None,
    metrics: Annotated[str, typer.Option("--metrics", help="Of bleu, chrf, chrf++, ter; with commas.")] = "bleu,chrf,ter",
    worst: Annotated[int, typer.Option("--worst", min=0, help="How many of the worst sentences to show.")] = 5,
    save: Annotated[Path | None, typer.Option("--save", help="Write the translations to this file.")] = None,
    yes: Yes = False,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Hypotheses kept while translating.")] = None,
    batch_pieces: Annotated[int | None, typer.Option("--batch-pieces", min=1, help="Source pieces translated at once.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to translate with; all that this process may.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32 or bfloat16.")] = None,
    split: Annotated[SplitName, typer.Option("--split", help="Which split of a prepared corpus.")] = SplitName.test,
    target_language: Annotated[str | None, typer.Option("--to", help="Target language; how BLEU finds words.")] = None,
    source_language: Annotated[str | None, typer.Option("--from", help="Source language, of a translator that has several.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="What the translator is told, such as formal. Repeatable.")] = None,
    tokenize: Annotated[str | None, typer.Option("--tokenize", help="13a, intl, char, none, zh, ja-mecab, ko-mecab.")] = None,
    lowercase: Annotated[bool, typer.Option("--lowercase", help="Ignore case in BLEU and chrF.")] = False,
    resamples: Annotated[int, typer.Option("--resamples", min=0, help="For the confidence intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the resampling.")] = 12345,
    comet: Annotated[Path | None, typer.Option("--comet", help="Python of an environment with unbabel-comet: COMET too.")] = None,
    comet_model: Annotated[str | None, typer.Option("--comet-model", help="Its model, by name or file.")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Fit the confidence to this set, and keep it in the bundle.")] = False,
    json_wanted: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No bars and colours, also on a terminal.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
) -> None:  # fmt: skip
    """Score translations: BLEU, chrF, TER with intervals and signatures, by length, the worst sentences, and against another system."""
    from limelight.evaluation.config import InferenceOptions
    from limelight.evaluation.inputs import read_inputs

    aimed = target_language, source_language, tuple(tag) if tag else None
    running = InferenceOptions(beam, batch_pieces, device, dtype, threads, *aimed)
    settings = _settings(metrics, tokenize, lowercase, resamples, seed, worst)
    judge = _comet(comet, comet_model)
    inputs = read_inputs(targets or [], reference or [], source, compare, split.value, (source_language, target_language))
    _refuse_unused(inputs, save, running, calibrate, split)
    named = [*(targets or []), *(reference or []), *filter(None, (source, compare))]
    if save is not None and save.is_file() and any(Path(each).is_file() and save.samefile(each) for each in named):
        raise ConfigError(f"--save {save} is one of the files that are read, which would be gone; name another")
    with Screen(plain, quiet or json_wanted) as screen:
        run = _Run(inputs, settings, judge, target_language or inputs.language, screen, running, calibrate)
        report = run.report(save)
    sys.stdout.write(json.dumps(as_json(report)) + "\n" if json_wanted else "\n".join(describe(report)) + "\n")


@dataclass
class _Run:
    inputs: "EvaluationInputs"
    settings: "EvaluateSettings"
    judge: "CometSettings | None"
    language: str | None
    screen: Screen
    running: "InferenceOptions"
    calibrate: bool = False

    def report(self, save: Path | None) -> EvaluationReport:
        from limelight.evaluation.metrics.compare import compare

        texts, translated = self.texts_of(self.inputs.system, "translate")
        if save is not None:
            write_whole(save, "".join(f"{' '.join(text.split(chr(10)))}\n" for text in texts).encode())
        if self.inputs.other is None:
            evaluation, believed = self.score_texts(texts, ""), self.check_confidence(translated)
            return EvaluationReport(self.inputs, self.settings, evaluation, translated, save, self.language, believed, self.calibrate)
        # Before anything is scored: only the other translator may know the language, which decides what a word is, for both.
        other_texts, other_translated = self.texts_of(self.inputs.other, "translate 2")
        evaluation = self.score_texts(texts, "")
        other = self.score_texts(other_texts, " 2")
        names = (self.inputs.system.name, self.inputs.other.name)
        self.screen.step("compare", 0, 1)
        differences = compare(names, evaluation.counts, other.counts, self.settings)
        self.screen.step("compare", 1, 1)
        believed = self.check_confidence(translated)
        found = EvaluationReport(self.inputs, self.settings, evaluation, translated, save, self.language, believed, self.calibrate)
        return replace(found, other=other, other_translated=other_translated, differences=differences)

    def check_confidence(self, made: "TranslatedSet | None") -> "ConfidenceCheck | None":
        """How far the translator's confidence can be believed on this set, after it was fitted to it if that is wanted."""
        from limelight.bundle.bundle import amend
        from limelight.evaluation.confidence.calibration import TOO_FEW, check, collect, fit_calibration

        if made is None:
            return None
        claims = collect(made.claimed, self.inputs.references[0])
        calibration = made.calibration
        if self.calibrate:
            assert self.inputs.system.folder is not None  # refused otherwise
            if (calibration := fit_calibration(claims)) is None:
                raise DataError(f"--calibrate: {TOO_FEW}; give a larger set")
            amend(self.inputs.system.folder, confidence=calibration)
        return None if calibration is None else check(claims, calibration)

    def texts_of(self, system: "System", step: str) -> "tuple[list[str], TranslatedSet | None]":
        if system.folder is None:
            assert system.texts is not None
            return system.texts, None
        from limelight.evaluation.translating import translate_set
        from limelight.runtime import keep_freed_memory

        keep_freed_memory()

        def watch(speed: "Speed", total: int) -> None:
            note = f"{speed.sentences_per_second:.1f} sentences/s, {group_digits(round(speed.pieces_per_second))} source + target pieces/s"
            self.screen.step(step, speed.sentences, total, note)

        given = self.inputs
        assert given.source is not None
        self.screen.step(step, 0, len(given.source))
        made = translate_set(system.folder, given.source, given.paths, self.running, watch, self.calibrate, given.direction)
        self.language = self.language or made.languages[1]
        return made.texts, made

    def score_texts(self, texts: list[str], mark: str) -> "Evaluation":
        from limelight.evaluation.evaluate import evaluate as score

        began: dict[str, float] = {}

        def watch(title: str, done: int, total: int) -> None:
            passed = time.monotonic() - began.setdefault(title, time.monotonic())
            slow = passed > PATIENCE and done < total
            self.screen.step(title + mark, done, total, f"--metrics without {title.lower()} is faster" if slow else "")

        judged = self.run_comet(texts, mark)
        inputs = self.inputs
        return score(texts, inputs.references, inputs.source, self.language, self.settings, watch, judged)

    def run_comet(self, texts: list[str], mark: str) -> "list[MetricCounts]":
        if self.judge is None:
            return []
        from limelight.evaluation.metrics.comet import comet

        began = time.monotonic()
        self.screen.step("COMET" + mark, 0, 1, f"in {self.judge.python}; minutes without a GPU")
        counts = comet(texts, self.inputs.references, self.inputs.source, self.judge, self.settings)
        self.screen.step("COMET" + mark, 1, 1, f"{time.monotonic() - began:.0f} s")
        return [counts]


def _settings(
    metrics: str, tokenize: str | None, lowercase: bool, resamples: int, seed: int, worst: int
) -> "EvaluateSettings":  # fmt: skip
    from limelight.evaluation.config import EvaluateSettings

    values: dict[str, Any] = {
        "metrics": tuple(name.strip().lower() for name in metrics.split(",") if name.strip()),
        "tokenize": tokenize,
        "lowercase": lowercase,
        "resamples": resamples or None,
        "seed": seed,
        "worst": worst,
    }
    try:
        return EvaluateSettings(**values)
    except ConfigError as error:
        # Whoever typed `--metrics bleu,blue` knows nothing of a key metrics.1; each key here is an option of the same name.
        named = [re.sub(r"^(\w++)[.\d]*+: ", r"--\1: ", problem) for problem in error.problems]
        raise ConfigError("these options cannot be used:", named) from None


def _comet(python: Path | None, model: str | None) -> "CometSettings | None":
    if python is None:
        if model is not None:
            raise ConfigError("--comet-model names a model of COMET, and --comet is missing: the Python that runs it")
        return None
    from limelight.evaluation.metrics.comet import CometSettings

    return CometSettings(python=python) if model is None else CometSettings(python=python, model=model)


def _refuse_unused(inputs: "EvaluationInputs", save: Path | None, running: "InferenceOptions", calibrate: bool, split: SplitName) -> None:
    """An option without effect is a misunderstanding, and a file that cannot be written is better known before the work."""
    translators = [system for system in (inputs.system, inputs.other) if system and system.folder]
    problems = []
    if split is not SplitName.test and inputs.direction is None:
        problems.append("--split is for a prepared corpus, and files are named here")
    if save is not None and not inputs.system.folder:
        problems.append("--save writes translations that are made here, and these exist")
    elif save is not None and not save.absolute().parent.is_dir():
        problems.append(f"--save {save}: there is no folder {save.parent}; make it first")
    elif save is not None and save.is_dir():
        problems.append(f"--save {save} is a folder; name a file, such as {save / 'translations.txt'}")
    for name, value in asdict(replace(running, target=None)).items():  # --to is for BLEU too
        if value is not None and not translators:
            called = {"source": "from", "tags": "tag"}.get(name, name.replace("_", "-"))
            problems.append(f"--{called} is for translating, and nothing is translated here")
    if calibrate and not inputs.system.folder:
        problems.append("--calibrate is for the confidence of a translator, and these translations exist")
    elif calibrate and running.beam is not None:
        problems.append("--calibrate is for the bundle's own search; leave out --beam")
    if problems:
        raise ConfigError("these options cannot be used:", problems)
