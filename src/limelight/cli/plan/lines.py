"""A forecast becomes about ten lines, each with a value and its reason.

Memory   1.9 GB of 8.0 GB: program 0.5 GB, activations 0.4 GB, ... (a batch of the longest sentences, 60 + 64 pieces)
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight.cli.plan.units import duration, money, percent, round_figure, seconds, short, size

if TYPE_CHECKING:
    from limelight.planning.corpus_work import CorpusWork
    from limelight.planning.serving_load import ServingLoad
    from limelight.training.forecast.forecast import Forecast
    from limelight.training.forecast.simulated_ranks import Simulation

THIS_MACHINE = "this machine"  # as `planning.time.devices` calls it
INDENT = 9
PARTS_NAMED = 3


@dataclass(frozen=True)
class Line:
    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name:<{INDENT}}{self.value}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class Beside:
    """`Beside` holds what was asked for beside a run: a simulation, a corpus, serving."""

    simulation: "Simulation | None" = None
    corpus: "CorpusWork | None" = None
    corpus_pairs: float = 0.0
    serving: "ServingLoad | None" = None
    requests: float = 0.0
    latency: float | None = None
    measured: str | None = None  # how the speed was
    free_disk: float | None = None


def lines(outlook: "Forecast", beside: Beside) -> list[Line]:
    made = [
        model(outlook),
        text(outlook),
        batch(outlook),
        sharing(outlook),
        memory(outlook),
        speed(outlook, beside),
        time(outlook),
    ]
    made += [disk(outlook, beside), cost(outlook), expect(outlook), instead(outlook)]
    made += [format_simulation(beside), corpus(beside), serving(beside)]
    return [line for line in made if line is not None]


def model(o: "Forecast") -> Line:
    config, total = o.chosen.config, sum(o.parameters.values())
    parts = ", ".join(f"{name} {percent(count / total, 0)}" for name, count in o.parameters.items())
    shape = f"{config.encoder_layers}+{config.decoder_layers} layers, {config.d_model} wide, {config.num_heads} heads"
    said = "" if o.chosen.name[0].isdigit() and "x" in o.chosen.name else f"{o.chosen.name}: "
    return Line(
        "Model", f"{said}{shape}, {config.vocab_size:,} pieces; {short(total)} parameters: {parts}", reason(o, "size")
    )


def text(o: "Forecast") -> Line:
    seen = o.question.seen
    value = f"{seen.pairs:,.0f} pairs, {short(seen.source)} + {short(seen.target)} pieces an epoch"
    if seen.typical:
        return Line(
            "Text",
            value,
            "no text was given: sentences of usual length are assumed; name the files to have them counted",
        )
    if seen.sampled is None:
        return Line("Text", value, "as it was prepared")
    about = "" if seen.counted else "; the end of the files is told by their bytes"
    return Line(
        "Text",
        value,
        f"{seen.sampled:,} of {seen.read:,} pairs prepared as a sample; {percent(seen.dropped)} dropped{about}",
    )


def batch(o: "Forecast") -> Line:
    chosen = o.chosen
    passes = f", in {chosen.accumulate} passes" if chosen.accumulate > 1 else ""
    again = ", blocks computed twice to save memory" if chosen.recompute else ""
    numbers = {"masters": "bfloat16 with float32 masters", "autocast": "bfloat16 products", "float32": "float32"}
    value = f"{chosen.pieces:,.0f} target pieces a step{passes}{again}, {numbers[o.question.precision]}"
    return Line("Batch", value, reason(o, "batch"))


def sharing(o: "Forecast") -> Line | None:
    if o.question.count == 1:
        return None
    hosts = -(-o.question.count // o.question.device.per_host)
    where = f"{o.question.count:,} x {o.question.device.name}" + (f" in {hosts:,} machines" if hosts > 1 else "")
    return Line("Devices", f"{where}, {o.chosen.parallel.described}", reason(o, "devices"))


def memory(o: "Forecast") -> Line:
    device = o.question.device
    largest = sorted(o.peak.parts.items(), key=lambda part: -part[1])[:PARTS_NAMED]
    named = ", ".join(f"{name} {size(value)}" for name, value in largest)
    whose = "each " if o.question.count > 1 else ""
    value = f"{size(o.peak.total)} of the {size(device.memory)} of {whose}{device.name}: {named}"
    where = (
        "a batch of the longest sentences, " + " + ".join(str(length) for length in o.question.seen.longest) + " pieces"
    )
    if o.fits:
        return Line("Memory", value, where)
    return Line("Memory", value, f"DOES NOT FIT, at {where}; take a smaller model, a larger device or more of them")


def speed(o: "Forecast", beside: Beside) -> Line:
    value = f"{round_figure(o.rate)} target pieces/s, {seconds(o.chosen.step.worst)} a step"
    if beside.measured:
        return Line("Speed", value, beside.measured)
    device = o.question.device
    if device.name == THIS_MACHINE:
        return Line("Speed", value, f"{device.source}; --calibrate measures it in half a minute")
    lost = 1 - o.chosen.step.efficiency[0]
    sent = f"; {percent(lost, 0)} of it sending" if lost >= 0.005 else ""
    assumed = f"{percent(device.achieved, 0)} of the data sheet's peak is assumed, less for narrow models"
    return Line("Speed", value, f"nothing was measured: {assumed}{sent}")


def time(o: "Forecast") -> Line:
    chosen, budget = o.chosen, o.question.seconds
    value = (
        f"{duration(o.seconds)}: {duration(o.preparing)} to prepare, "
        if o.preparing >= 1
        else f"{duration(o.seconds)}: "
    )
    value += f"{chosen.steps:,} steps in {duration(chosen.seconds)}, {chosen.epochs:.3g} times the text, {duration(o.scoring)} to score"
    if o.seconds > 1.02 * (budget or o.seconds):
        return Line("Time", value, f"LONGER than the {duration(budget or 0)} asked for")
    if passes := reason(o, "passes"):
        return Line("Time", value, passes)
    if o.question.steps or o.question.recipe:
        return Line("Time", value, "so many steps were asked for" if o.question.steps else "as the recipe says")
    if budget is not None:
        return Line("Time", value, "as many steps as the budget holds")
    return Line("Time", value, "until it has nothing more to learn; it ends earlier when it no longer improves")


def disk(o: "Forecast", beside: Beside) -> Line:
    total = sum(o.disk.values())
    named = ", ".join(f"{name} {size(value)}" for name, value in sorted(o.disk.items(), key=lambda part: -part[1]))
    free = beside.free_disk
    if free is None:
        return Line("Disk", f"{size(total)}: {named}", "one checkpoint more than is kept, while it is written")
    room = (
        f"{size(free)} are free here"
        if total < 0.9 * free
        else f"ONLY {size(free)} are free here: make room, or -o on another disk"
    )
    return Line("Disk", f"{size(total)}: {named}", room)


def cost(o: "Forecast") -> Line:
    device, count = o.question.device, o.question.count
    if o.cost is None:
        return Line("Cost", "not known", f"{device.name} has no price; --device H100 says what rented ones would cost")
    rate = f"{count:,} x {device.name} at {device.price:g} USD an hour while they train"
    return Line("Cost", money(o.cost), f"{rate}; a list price, so put yours into a file for --devices")


def expect(o: "Forecast") -> Line:
    found = o.chosen.expected
    value = f"validation loss {found.loss:.2f}, {found.low:.2f} to {found.high:.2f} nats a target piece"
    if o.at_half_speed is not None:
        value += f"; {o.at_half_speed:.2f} at half the speed, which is assumed"
    if o.shortfall is not None:
        return Line("Expect", o.shortfall.value, "; ".join([o.shortfall.why, *found.notes[:1]]))
    if found.bleu is not None:
        value += f", BLEU {found.bleu[0]:.0f} to {found.bleu[1]:.0f}"
    if found.in_range or len(found.notes) < 3:
        return Line("Expect", value, "; ".join(found.notes) or "within what was measured")
    return Line("Expect", value, f"{found.notes[0]}; {len(found.notes) - 1} more reasons for doubt: --json")


def instead(o: "Forecast") -> Line | None:
    """What would be chosen where another size was asked for, else the next best that fits: what it would lose or win."""
    others = sorted((each for each in o.others if each.fits), key=lambda each: each.name != o.advised)
    if not others or o.question.recipe is not None:
        return None
    other = others[0]
    apart = other.expected.loss - o.chosen.expected.loss
    value = f"{other.name}: loss {other.expected.loss:.2f} ({apart:+.2f}) in {duration(other.seconds)}"
    if other.cost is not None:
        value += f", {money(other.cost)}"
    limits = "; ".join(each.partition(": ")[2] for each in other.why if each.startswith("size:"))
    if other.name == o.advised:
        return Line("Instead", value, f"what would be chosen: {limits}")
    how = f"; --preset {other.name}" if " " not in other.name else ""
    return Line("Instead", value, limits or f"the next best by expected loss{how}")


def format_simulation(beside: Beside) -> Line | None:
    found = beside.simulation
    if found is None:
        return None
    if not found.differing:
        counts = [row for row in found.rows if row.counted]
        held = [
            f"{size(row.counted)} of {row.what.removeprefix('bytes of ')}"
            for row in counts
            if " of " in row.what and "bytes" in row.what
        ]
        calls = sum(row.counted for row in counts if row.what.startswith("calls"))
        sent = sum(row.counted for row in counts if row.what.startswith("bytes in"))
        value = f"rank 0 of {found.ranks:,} holds {', '.join(held)}; {calls:,.0f} collectives a pass, of {size(sent)}"
        return Line(
            "Played", value, f"the real model, without storage; all {len(found.rows)} counts equal their formulas"
        )
    rows = "; ".join(f"{row.what}: {row.counted:,.0f}, not {row.planned:,.0f}" for row in found.differing)
    return Line("Played", f"rank 0 of {found.ranks:,} DIFFERS from the plan: {rows}", "please report this")


def corpus(beside: Beside) -> Line | None:
    work = beside.corpus
    if work is None:
        return None
    nodes = f"{work.nodes:,} machines of {work.cores} cores" if work.nodes > 1 else f"{work.cores} cores"
    value = f"{beside.corpus_pairs:,.0f} pairs prepared in {duration(work.seconds)} by {nodes} ({work.engine})"
    value += f", {size(work.written)} on disk, {size(work.memory)} of memory"
    return Line("Corpus", value, "; ".join(work.notes) or "measured on two cores")


def serving(beside: Beside) -> Line | None:
    load = beside.serving
    if load is None:
        return None
    asked = f"{beside.requests:g} texts a second" + (
        f" within {1000 * beside.latency:,.0f} ms" if beside.latency else ""
    )
    if not load.possible:
        return Line("Serving", f"{asked}: NOT possible", "; ".join(load.notes))
    value = f"{asked}: {load.replicas:,} servers of {load.cores} core, one of them to spare, {size(load.memory)} each"
    value += f"; 95 % within {load.latency:.2f} s"
    return Line("Serving", value, "; ".join(load.notes) or "measured on one core")


def reason(o: "Forecast", what: str) -> str:
    """Return a part of `Option.why`: "batch: small, so that there are more steps"."""
    return "; ".join(each.partition(": ")[2] for each in o.chosen.why if each.startswith(f"{what}:"))


def wrap_lines(made: Sequence[Line], columns: int | None) -> list[str]:
    """Wrap to `columns`; None is a pipe, with a line each."""
    if columns is None:
        return [str(line) for line in made]
    fill = textwrap.TextWrapper(
        max(40, columns), subsequent_indent=" " * INDENT, break_long_words=False, break_on_hyphens=False
    )
    return [part for line in made for part in fill.wrap(str(line))]
