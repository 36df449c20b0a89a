"""`limelight plan` forecasts what a run costs, before it is paid."""

import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from limelight.cli.completion import presets
from limelight.cli.fetching import Yes
from limelight.cli.prepare.prepare import EngineName, start_engine
from limelight.cli.screen import Screen
from limelight.cli.train.train import PrecisionName
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.cli.plan.lines import Beside, Line
    from limelight.cli.plan.request import PlanRequest
    from limelight.planning.cost.parallel import Precision
    from limelight.training.forecast.forecast import Forecast, ForecastRequest
    from limelight.training.forecast.text_size import EpochSize

EXAMPLES = (
    "limelight plan corpus.en corpus.de --budget 2h",
    'limelight plan corpus.en corpus.de --budget "8xH100 24h" --html plan.html',
    "limelight plan en-de/recipe.toml --calibrate",
    "limelight plan --preset 3b --pairs 100M --device 64xH100 --simulate",
)
CORES_ELSEWHERE = 8  # that prepare a text on a machine with accelerators: an assumption


def plan(
    inputs: Annotated[
        list[str] | None,
        typer.Argument(help="Corpora as for train; or a recipe.toml, a prepared corpus, a run; and section.key=value of the recipe."),
    ] = None,
    budget: Annotated[str | None, typer.Option("--budget", help="30m, 2h, '8xH100 24h': time, and devices if not here.")] = None,
    yes: Yes = False,
    preset: Annotated[str | None, typer.Option("--preset", autocompletion=presets, help="Size: toy, tiny, small ...; chosen.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="A device by name: H100, 8xA100-80, L4 ...; this machine.")] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, help="How many devices.")] = None,
    devices: Annotated[Path | None, typer.Option("--devices", help="Your devices and prices, as TOML over those that are known.")] = None,
    precision: Annotated[PrecisionName | None, typer.Option("--precision", help="masters: bfloat16 weights with float32 masters.")] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Measure this machine: real steps, half a minute.")] = False,
    simulate: Annotated[bool, typer.Option("--simulate", help="Play one of many devices with the real model.")] = False,
    pairs: Annotated[str | None, typer.Option("--pairs", help="As if the text had so many, 10M; without text, of usual length.")] = None,
    corpus_pairs: Annotated[str | None, typer.Option("--corpus-pairs", help="Also: what preparing so many pairs takes, 1B.")] = None,
    requests: Annotated[float | None, typer.Option("--requests", min=0.001, help="Also: servers for so many texts a second.")] = None,
    latency: Annotated[float | None, typer.Option("--latency", min=1, help="With --requests: milliseconds for 95 % of them.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Source language, such as en. Guessed from file names.")] = None,
    target: Annotated[str | None, typer.Option("--target", help="Target language, such as de.")] = None,
    vocab_size: Annotated[int | None, typer.Option("--vocab-size", help="Pieces in the vocabulary; suggested from the corpus.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=0, help="Processes that prepare the sample; one for each core.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="The plan as one page with pictures.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    both_directions: Annotated[bool, typer.Option("--both-directions", hidden=True, help="Of train.")] = False,
    of_training: Annotated[list[str] | None, typer.Option("--pair", "--from", "--mono", hidden=True, help="Of train.")] = None,
) -> None:  # fmt: skip
    """Say what a run would cost, and why: size, memory, speed, time, disk, money, what to expect. Nothing is trained or left behind.

    It is of one direction from nothing: `limelight train ... --dry-run` takes every option (--both-directions, --pair, --from, --mono).
    """
    from limelight.cli.plan.lines import lines
    from limelight.cli.plan.request import PlanOptions, how_many, parse_plan_request
    from limelight.training.forecast.forecast import forecast

    if both_directions or of_training:
        raise ConfigError("a plan is of one direction, from nothing; `limelight train ... --dry-run` takes every option and trains nothing")
    options = PlanOptions(
        budget=budget, preset=preset, device=device, devices=devices, count=count, precision=precision.value if precision else None,
        pairs=how_many("--pairs", pairs), corpus_pairs=how_many("--corpus-pairs", corpus_pairs), requests=requests, latency=latency,
        source=source, target=target, vocab_size=vocab_size, calibrate=calibrate,
    )  # fmt: skip
    asked = parse_plan_request(inputs or [], options)
    with Screen(plain=False, quiet=quiet or as_json) as screen:
        question, measured = _question(asked, workers, screen)
        found = forecast(question)
        beside = _beside(asked, found, measured, simulate)
    made = lines(found, beside)
    start = shlex.join(start_with(asked, found)) if asked.start else ""
    if html is not None:
        from limelight.cli.plan.page import write

        write(html, found, made, start)
    if as_json:
        values = {**found.values(), "said": [vars(line) for line in made], "start": start or None}
        sys.stdout.write(json.dumps(values) + "\n")
    else:
        _print(made, f"wrote {html}." if html is not None else "Nothing was written.", start)


def _print(made: "Sequence[Line]", written: str, start: str) -> None:
    from limelight.cli.plan.lines import wrap_lines

    columns = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
    ending = f"{written} Start with: {start}" if start else written
    sys.stdout.write("".join(f"{line}\n" for line in (*wrap_lines(made, columns), ending)))


def _question(asked: "PlanRequest", workers: int | None, screen: Screen) -> "tuple[ForecastRequest, str | None]":
    from limelight.training.forecast.forecast import ForecastRequest

    seen = _measure_text(asked, workers, screen)
    if asked.device is not None:
        from limelight.planning.time.devices import device as device_of

        if asked.options.calibrate:
            raise ConfigError("--calibrate measures this machine, and the plan is for another; leave out the device, or --calibrate")
        device, count = device_of(asked.device, asked.options.devices), asked.count or 1
        usual: Precision = "float32" if device.peak <= device.peak_float32 else "masters"  # as a run chooses there
        precision, cores = asked.precision or usual, CORES_ELSEWHERE
    else:
        from limelight.training.forecast.this_machine import this_machine

        here = this_machine(asked.precision, asked.options.devices)
        device, precision, cores = here.device, here.precision, here.cores
        if asked.options.calibrate and device.kind != "cpu":
            raise ConfigError(f"--calibrate measures steps on a CPU, and {device.title} is no CPU; leave it out: its figures are described")
        count = asked.count or here.count
    timing, measured = None, None
    if asked.options.calibrate:
        from limelight.training.forecast.this_machine import calibrate_timing

        screen.step("calibrate", 0, 1)
        timing, measured = calibrate_timing(precision)
        screen.step("calibrate", 1, 1)
    question = ForecastRequest(
        seen=seen, device=device, count=count, precision=precision, seconds=asked.seconds, name=asked.options.preset,
        recipe=asked.recipe, model=asked.model, steps=asked.steps, cores=cores, is_prepared=asked.prepared is not None, timing=timing,
    )  # fmt: skip
    return question, measured


def _measure_text(asked: "PlanRequest", workers: int | None, screen: Screen) -> "EpochSize":
    from limelight.training.forecast import text_size
    from limelight.training.forecast.text_sample import sample_text

    wished = asked.options.pairs
    if asked.prepared is not None:
        seen = text_size.measure_prepared(asked.prepared)
    elif asked.data is None:
        return text_size.typical(wished or text_size.PAIRS_OF_THE_PAPER)
    else:
        with (
            tempfile.TemporaryDirectory(prefix="limelight-") as work,
            closing(start_engine(EngineName.local, workers)) as engine,
        ):
            seen = sample_text(asked.data, engine, Path(work), screen.show)
    return seen if wished is None else seen.of(wished)


def _beside(asked: "PlanRequest", found: "Forecast", measured: str | None, simulate: bool) -> "Beside":
    from limelight.cli.plan.lines import Beside

    options, simulation, work, load = asked.options, None, None, None
    if simulate:
        from limelight.training.forecast.simulated_ranks import simulate_step

        simulation = simulate_step(found.chosen.config, found.chosen.parallel, found.question.precision, found.shape)
    if options.corpus_pairs is not None:
        from limelight.planning.corpus_work import corpus_work

        work = corpus_work(options.corpus_pairs, found.question.cores, bytes_of_pair=found.question.seen.bytes_of_pair)
    latency = None if options.latency is None else options.latency / 1000
    if options.requests is not None:
        from limelight.planning.serving_load import replicas

        load = replicas(found.chosen.config, options.requests, pieces=found.question.seen.means[0], latency=latency)
    return Beside(
        simulation=simulation, corpus=work, corpus_pairs=options.corpus_pairs or 0, serving=load, requests=options.requests or 0,
        latency=latency, measured=measured, free_disk=shutil.disk_usage(Path.cwd()).free if asked.device is None else None,
    )  # fmt: skip


def start_with(asked: "PlanRequest", found: "Forecast") -> list[str]:
    """The command that does what was planned: here, on one machine with several devices, or on each of many."""
    words = list(asked.start)
    preset = found.question.name or (None if asked.recipe or " " in found.chosen.name else found.chosen.name)
    if preset is not None:
        words += ["--preset", preset]
    if found.chosen.recompute and asked.recipe is None:
        words.append("machine.recompute=true")
    if asked.seconds is not None:
        words += ["--budget", format_budget(asked.seconds)]
    if asked.options.precision is not None:
        words += ["--precision", asked.options.precision]
    count, per_host = found.question.count, found.question.device.per_host
    if count > per_host:
        hosts = next(number for number in range(-(-count // per_host), count + 1) if count % number == 0)  # each has as many
        return ["torchrun", f"--nnodes={hosts}", f"--nproc-per-node={count // hosts}", "...", "-m", *words]
    return [*words, "--nproc", str(count)] if count > 1 else words


def format_budget(seconds: float) -> str:
    """format_budget(5400) -> "90m", as `--budget` reads it."""
    for unit, letter in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds % unit == 0:
            return f"{seconds / unit:g}{letter}"
    return f"{seconds:g}s"
