"""A forecast becomes about ten lines, each with a value and its reason."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight.reporting.units import duration, money, percent, round_figure, seconds, short, size

if TYPE_CHECKING:
    from limelight.planning.corpus_work import CorpusWork
    from limelight.planning.serving_load import ServingLoad
    from limelight.training.forecast.forecast import Forecast
    from limelight.training.forecast.simulated_ranks import Simulation

THIS_MACHINE = "this machine"  # as `planning.time.devices` calls it
INDENT = 9
PARTS_NAMED = 3
NUMBERS = {"masters": "bfloat16 with float32 masters", "autocast": "bfloat16 products", "float32": "float32"}


@dataclass(frozen=True)
class Line:
    name: str
    value: str
    why: str

    def __str__(self) -> str:
        return f"{self.name:<{INDENT}}{self.value}" + (f" ({self.why})" if self.why else "")


@dataclass(frozen=True)
class Beside:
    simulation: "Simulation | None" = None
    corpus: "CorpusWork | None" = None
    corpus_pairs: float = 0.0
    serving: "ServingLoad | None" = None
    requests: float = 0.0
    latency: float | None = None
    measured: str | None = None  # how the speed was
    free_disk: float | None = None


def lines(outlook: "Forecast", beside: Beside) -> list[Line]:
    of = PlanLines(outlook, beside)
    made = [of.model(), of.text(), of.batch(), of.rate(), of.devices(), of.memory(), of.speed(), of.time(), of.disk(), of.cost()]
    made += [of.expect(), of.instead(), of.simulation(), of.corpus(), of.serving()]
    return [line for line in made if line is not None]


class PlanLines:
    def __init__(self, outlook: "Forecast", beside: Beside) -> None:
        self.outlook, self.beside = outlook, beside
        self.chosen, self.question, self.device = outlook.chosen, outlook.question, outlook.question.device

    def model(self) -> Line:
        config, counts = self.chosen.config, self.outlook.parameters
        total = sum(counts.values())
        parts = ", ".join(f"{name} {percent(count / total, 0)}" for name, count in counts.items())
        shape = f"{config.encoder_layers}+{config.decoder_layers} layers, {config.d_model} wide, {config.num_heads} heads"
        said = "" if self.chosen.name[0].isdigit() and "x" in self.chosen.name else f"{self.chosen.name}: "
        value = f"{said}{shape}, {config.vocab_size:,} pieces; {short(total)} parameters: {parts}"
        return Line("Model", value, self.chosen.explain("size"))

    def text(self) -> Line:
        seen = self.question.seen
        value = f"{seen.pairs:,.0f} pairs, {short(seen.source)} + {short(seen.target)} pieces an epoch"
        if seen.typical:
            why = "no text was given: sentences of usual length are assumed; name the files to have them counted"
        elif seen.sampled is None:
            why = "as it was prepared"
        else:
            about = "" if seen.counted else "; the end of the files is told by their bytes"
            why = f"{seen.sampled:,} of {seen.read:,} pairs prepared as a sample; {percent(seen.dropped)} left out, also as empty{about}"
        return Line("Text", value, why)

    def batch(self) -> Line:
        chosen = self.chosen
        passes = f", in {chosen.accumulate} passes" if chosen.accumulate > 1 else ""
        again = ", blocks computed twice to save memory" if chosen.recompute else ""
        value = f"{chosen.pieces:,.0f} target pieces a step{passes}{again}, {NUMBERS[self.question.precision]}"
        return Line("Batch", value, chosen.explain("batch"))

    def rate(self) -> Line | None:
        from limelight.planning.sizing_rules import explain_high_rate

        rate = self.chosen.learning_rate
        warning = explain_high_rate(self.chosen.config, rate, self.chosen.muon)
        return Line("Rate", f"{rate:g}", warning) if warning else None

    def devices(self) -> Line | None:
        count = self.question.count
        if count == 1:
            return None
        hosts = -(-count // self.device.per_host)
        where = f"{count:,} x {self.device.name}" + (f" in {hosts:,} machines" if hosts > 1 else "")
        return Line("Devices", f"{where}, {self.chosen.parallel.described}", self.chosen.explain("devices"))

    def memory(self) -> Line:
        peak, device = self.outlook.peak, self.device
        largest = sorted(peak.parts.items(), key=lambda part: -part[1])[:PARTS_NAMED]
        named = ", ".join(f"{name} {size(value)}" for name, value in largest)
        whose = "each " if self.question.count > 1 else ""
        value = f"{size(peak.total)} of the {size(device.memory)} of {whose}{device.name}: {named}"
        lengths = " + ".join(map(str, self.question.seen.longest))
        where = f"a batch of the longest sentences, {lengths} pieces"
        if not self.outlook.fits:
            where = f"DOES NOT FIT, at {where}; take a smaller model, a larger device or more of them"
        return Line("Memory", value, where)

    def speed(self) -> Line:
        device, step = self.device, self.chosen.step
        value = f"{round_figure(self.outlook.rate)} target pieces/s, {seconds(step.worst)} a step"
        if self.beside.measured:
            return Line("Speed", value, self.beside.measured)
        if device.name == THIS_MACHINE:
            return Line("Speed", value, f"{device.source}; --calibrate measures it in half a minute")
        lost = 1 - step.efficiency[0]
        sent = f"; {percent(lost, 0)} of it sending" if lost >= 0.005 else ""
        assumed = f"{percent(device.achieved, 0)} of the data sheet's peak is assumed, less for narrow models"
        return Line("Speed", value, f"nothing was measured: {assumed}{sent}")

    def time(self) -> Line:
        outlook, chosen, budget = self.outlook, self.chosen, self.question.seconds
        prepared = f"{duration(outlook.preparing)} to prepare, " if outlook.preparing >= 1 else ""
        value = f"{duration(outlook.seconds)}: {prepared}{chosen.steps:,} steps in {duration(chosen.seconds)}, "
        value += f"{chosen.epochs:.3g} times the text, {duration(outlook.scoring)} to score"
        if budget is not None and outlook.seconds > 1.02 * budget:
            why = f"LONGER than the {duration(budget)} asked for"
        elif passes := chosen.explain("passes"):
            why = passes
        elif self.question.steps:
            why = "so many steps were asked for"
        elif self.question.recipe:
            why = "as the recipe says"
        elif budget is not None:
            why = "as many steps as the budget holds"
        else:
            why = "until it has nothing more to learn; it ends earlier when it no longer improves"
        return Line("Time", value, why)

    def disk(self) -> Line:
        parts, free = self.outlook.disk, self.beside.free_disk
        total = sum(parts.values())
        named = ", ".join(f"{name} {size(value)}" for name, value in sorted(parts.items(), key=lambda part: -part[1]))
        if free is None:
            why = "one checkpoint more than is kept, while it is written"
        elif total < 0.9 * free:
            why = f"{size(free)} are free here"
        else:
            why = f"ONLY {size(free)} are free here: make room, or -o on another disk"
        return Line("Disk", f"{size(total)}: {named}", why)

    def cost(self) -> Line:
        device, cost = self.device, self.chosen.cost
        if cost is None:
            why = f"{device.name} has no price; --device H100 says what rented ones would cost"
            return Line("Cost", "not known", why)
        rate = f"{self.question.count:,} x {device.name} at {device.price:g} USD an hour while they train"
        return Line("Cost", money(cost), f"{rate}; a list price, so put yours into a file for --devices")

    def expect(self) -> Line:
        found, shortfall, at_half_speed = self.chosen.expected, self.outlook.shortfall, self.outlook.at_half_speed
        if shortfall is not None:
            return Line("Expect", shortfall.value, "; ".join([shortfall.why, *found.notes[:1]]))
        value = f"validation loss {found.loss:.2f}, {found.low:.2f} to {found.high:.2f} nats a target piece"
        if at_half_speed is not None:
            value += f"; {at_half_speed:.2f} at half the speed, which is assumed"
        if found.bleu is not None:
            value += f", BLEU {found.bleu[0]:.0f} to {found.bleu[1]:.0f}"
        why = "; ".join(found.notes) or "within what was measured"
        if not found.in_range and len(found.notes) >= 3:
            why = f"{found.notes[0]}; {len(found.notes) - 1} more reasons for doubt: --json"
        return Line("Expect", value, why)

    def instead(self) -> Line | None:
        """What would be chosen where another size was asked for, else the next best that fits: what it would lose or win."""
        outlook = self.outlook
        others = sorted((each for each in outlook.others if each.fits), key=lambda each: each.name != outlook.advised)
        if not others or self.question.recipe is not None:
            return None
        other = others[0]
        apart = other.expected.loss - self.chosen.expected.loss
        value = f"{other.name}: loss {other.expected.loss:.2f} ({apart:+.2f}) in {duration(other.seconds)}"
        value += f", {money(other.cost)}" if other.cost is not None else ""
        limits = other.explain("size")
        if other.name == outlook.advised:
            return Line("Instead", value, f"what would be chosen: {limits}")
        how = f"; --preset {other.name}" if " " not in other.name else ""
        return Line("Instead", value, limits or f"the next best by expected loss{how}")

    def simulation(self) -> Line | None:
        found = self.beside.simulation
        if found is None:
            return None
        if found.differing:
            rows = "; ".join(f"{row.what}: {row.counted:,.0f}, not {row.planned:,.0f}" for row in found.differing)
            return Line("Played", f"rank 0 of {found.ranks:,} DIFFERS from the plan: {rows}", "please report this")
        counts = {row.what: row.counted for row in found.rows if row.counted}
        of = "bytes of "
        held = ", ".join(f"{size(n)} of {what.removeprefix(of)}" for what, n in counts.items() if what.startswith(of))
        calls = sum(n for what, n in counts.items() if what.startswith("calls"))
        sent = sum(n for what, n in counts.items() if what.startswith("bytes in"))
        value = f"rank 0 of {found.ranks:,} holds {held}; {calls:,.0f} collectives a pass, of {size(sent)}"
        return Line("Played", value, f"the real model, without storage; all {len(found.rows)} counts equal their formulas")

    def corpus(self) -> Line | None:
        work = self.beside.corpus
        if work is None:
            return None
        value = f"{self.beside.corpus_pairs:,.0f} pairs prepared in {duration(work.seconds)} by {work.cores} cores (local)"
        value += f", {size(work.written)} on disk, {size(work.memory)} of memory"
        return Line("Corpus", value, "; ".join(work.notes) or "measured on two cores")

    def serving(self) -> Line | None:
        load, latency = self.beside.serving, self.beside.latency
        if load is None:
            return None
        asked = f"{self.beside.requests:g} texts a second" + (f" within {1000 * latency:,.0f} ms" if latency else "")
        if not load.possible:
            return Line("Serving", f"{asked}: NOT possible", "; ".join(load.notes))
        value = f"{asked}: {load.replicas:,} servers of 1 core, one of them to spare, {size(load.memory)} each"
        value += f"; 95 % within {load.latency:.2f} s"
        return Line("Serving", value, "; ".join(load.notes) or "measured on one core")


def wrap_lines(made: Sequence[Line], columns: int | None) -> list[str]:
    """Wrap to `columns`; None is a pipe, with a line each."""
    if columns is None:
        return [str(line) for line in made]
    fill = textwrap.TextWrapper(max(40, columns), subsequent_indent=" " * INDENT, break_long_words=False, break_on_hyphens=False)
    return [part for line in made for part in fill.wrap(str(line))]
