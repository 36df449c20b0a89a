"""The live view draws a run as lines for a terminal of any size. Each line is one row: what is too wide is cut, what is too high is left
out.

Text of users becomes `Text`, never markup, so that "[bold]" in a sentence stays "[bold]".
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from rich.text import Text

from limelight.cli.screen import clock, group_digits
from limelight.cli.train.live_state import FOREVER, LiveState, harmless, perplexity
from limelight.training.events import Sample, StepReport

VALIDS, FEWEST_VALIDS = 8, 3
SAMPLES = 3
EARLIER = 3  # translations of the first sample at validations before
SPARKS = 12
GAP = "   "
HIGHLIGHTED = {"skipped": "yellow", "replanned": "yellow", "stopped": "bold"}
WORTH_SAYING = 0.05  # share of the time spent waiting for data


def picture(seen: LiveState, name: str, busy: str, now: datetime, width: int, height: int) -> list[Text]:
    rows = [_header(name, width)]
    if seen.step is not None:
        rows += _progress(seen.step, now, width)
        rows += _flow(_numbers(seen), width)
    last = [Text(f" {each.kind} at step {each.step}: {harmless(each.text)}", HIGHLIGHTED.get(each.kind, "dim")) for each in seen.notices]
    if busy:
        last.append(Text(f" {harmless(busy)}", "cyan"))
    room = height - len(rows) - len(last)
    samples = _samples(seen, width)
    if seen.valids and room >= 2:
        most = max(FEWEST_VALIDS, min(VALIDS, room - 1 - len(samples)))  # on a low terminal samples make room
        rows += _validations(seen, min(most, room - 1), width)
        room = height - len(rows) - len(last)
        rows += samples[: max(0, room)] if room >= 3 else []
    rows = [*rows, *last][: max(1, height)]
    for row in rows:
        row.no_wrap = True
        row.truncate(width, overflow="ellipsis")
    return rows


def _header(name: str, width: int) -> Text:
    left, right = Text(f" {harmless(name)}", "bold"), Text("Ctrl-C saves and stops", "dim")
    room = width - left.cell_len - right.cell_len
    return Text.assemble(left, " " * room, right) if room >= 2 else left


def _progress(report: StepReport, now: datetime, width: int) -> list[Text]:
    step = Text(f"step {group_digits(report.step)} / {group_digits(report.steps)}", "bold")
    percent = 100 * report.step / max(report.steps, 1)
    fields = [Text(f"{percent:.1f} %"), Text(f"epoch {report.epoch:.1f}"), Text(f"elapsed {clock(report.elapsed)}")]
    if report.left < FOREVER:
        fields.append(Text(f"left {clock(report.left)} (ends {_at(now, report.left)})"))
    taken = sum(part.cell_len + len(GAP) for part in (step, *fields))
    bar = min(40, max(10, width - taken - len(GAP)))
    return _flow([step, _bar(min(1.0, percent / 100), bar), *fields], width)


def _at(now: datetime, seconds: float) -> str:
    """When that will be: 02:31, or Mon 02:31 when it is not today."""
    end = now + timedelta(seconds=seconds)
    if end.date() == now.date():
        return f"{end:%H:%M}"
    return f"{end:%a %H:%M}" if end - now < timedelta(days=6) else f"{end:%Y-%m-%d}"


def _bar(share: float, width: int) -> Text:
    """━━━━╸━━━━━: halves of a cell are seen, too."""
    halves = int(share * width * 2)
    done = "━" * (halves // 2) + "╸" * (halves % 2)
    return Text.assemble((done, "green"), ("━" * (width - len(done)), "bright_black"))


def _numbers(seen: LiveState) -> list[Text]:
    report = seen.step
    assert report is not None
    fields = []
    if seen.loss.value is not None and seen.nll.value is not None:
        fields.append(Text.assemble(f"loss {seen.loss.value:.3f} ", (seen.losses.draw(SPARKS), "cyan")))
        fields.append(Text(f"ppl {short(perplexity(seen.nll.value))}"))
    fields.append(Text.assemble(f"lr {report.learning_rate:.1e} ", (seen.rates.draw(SPARKS // 2), "cyan")))
    if seen.gradient.value is not None:
        fields.append(Text(f"|grad| {seen.gradient.value:.2f}"))
    speed = seen.speed.value
    fields.append(Text("measuring the speed", "dim") if speed is None else Text(f"{group_digits(round(speed))} source + target pieces/s"))
    fields.append(Text(f"pad {100 * (seen.padding.value or 0.0):.0f} %"))
    fields.append(Text(f"memory {report.memory / 2**30:.1f} GB"))
    if (seen.waiting.value or 0.0) > WORTH_SAYING:
        fields.append(Text(f"waits for data {100 * (seen.waiting.value or 0.0):.0f} %", "yellow"))
    if seen.skipped:
        fields.append(Text(f"skipped {group_digits(seen.skipped)}", "yellow"))
    return fields


def _flow(fields: Sequence[Text], width: int) -> list[Text]:
    """Fields side by side, and on the next row when the width is used up; a field is never parted."""
    rows: list[Text] = []
    for each in fields:
        each.rstrip()
        if rows and rows[-1].cell_len + len(GAP) + each.cell_len <= width:
            rows[-1] = Text.assemble(rows[-1], GAP, each)
        else:
            rows.append(Text.assemble(" ", each))
    return rows


def _validations(seen: LiveState, most: int, width: int) -> list[Text]:
    rows = [Text(f" valid {'step':>8} {'loss':>7} {'ppl':>7} {'BLEU':>6} {'chrF':>6}", "bold")]
    for valid in seen.last_valids(most):
        ppl = short(perplexity(valid.nll))
        row = f" {valid.step:>14} {valid.nll:>7.3f} {ppl:>7} {valid.bleu:>6.1f} {valid.chrf:>6.1f}"
        rows.append(Text.assemble(row, ("  ★ best" if valid is seen.best else "", "green")))
    ways = seen.valids[-1].directions if seen.valids else ()
    return rows + _flow([Text(f"{each.direction} {each.bleu:.1f} / {each.chrf:.1f}", "dim") for each in ways], width)


def _samples(seen: LiveState, width: int) -> list[Text]:
    if not seen.valids or not seen.valids[-1].samples:
        return []
    valid = seen.valids[-1]
    rows = [Text(f" samples at step {valid.step}, and how sure it was", "bold")]
    for number, sample in enumerate(valid.samples[:SAMPLES]):
        rows += _sample(sample, width)
        if number == 0 and (before := seen.find_earlier(sample.source, valid.step)):
            rows.append(_earlier(before[-EARLIER:], width))
    return rows


def _sample(sample: Sample, width: int) -> list[Text]:
    """Three rows; the confidence at the right end of the third, whatever the translation is wide."""
    translation = Text(f"  output {harmless(sample.translation)}", "green", no_wrap=True)
    translation.truncate(max(1, width - 6), overflow="ellipsis", pad=True)
    return [
        Text(f"  source {harmless(sample.source)}"),
        Text(f"  wanted {harmless(sample.reference)}"),
        Text.assemble(translation, (f"  {sample.confidence:.2f}", "cyan")),
    ]


def _earlier(before: Sequence[tuple[int, str]], width: int) -> Text:
    """@1000: Die Männer sind …   @2000: Zwei Männer …, each in its part of the row."""
    parts = [Text(f"@{step}: {harmless(text)}", "dim", no_wrap=True) for step, text in before]
    for part in parts:
        part.truncate(max(1, (width - 9) // len(parts) - len(GAP)), overflow="ellipsis")
    return Text.assemble(" " * 9, Text(GAP).join(parts))


def short(number: float) -> str:
    """Three figures that matter, as wide as seven: 2.41, 30.3, 137, 8e+06."""
    if number >= 1e5:
        return f"{number:.0e}"
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"
