"""What `limelight train` shows while it trains: the live screen, the plain line, and no command to the terminal in anyone's text."""

import io
import itertools
import math
import os
import pty
import re
import select
import sys
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

import warm_process
from limelight.cli.train import live_state
from limelight.cli.train.live_screen import TrainScreen, hours
from limelight.cli.train.live_state import WARM_UP, History, LiveState, harmless
from limelight.cli.train.live_view import picture
from limelight.corpus.exchange.engine import Progress
from limelight.training.events import Event, RunNotice, Sample, StepReport, ValidReport

NOW = datetime(2026, 11, 14, 21, 17, 4)
CONTROL = r"[\x00-\x09\x0b-\x1f\x7f-\x9f]"
ANSI = r"\x1b\[[0-9;?]*[a-zA-Z]"


def step(number: int, **more: Any) -> StepReport:
    usual: dict[str, Any] = {
        "step": number, "steps": 12_000, "epoch": number / 1000, "loss": 3.412, "nll": 3.0, "learning_rate": 6.1e-4,
        "gradient_norm": 0.82, "source_pieces": 2000, "target_pieces": 2109, "padding": 0.06, "seconds": 0.7, "waited": 0.0,
        "elapsed": number * 0.7, "left": 11_640.0, "memory": int(2.3 * 2**30),
    }  # fmt: skip
    return StepReport(**{**usual, **more})


def valid(number: int, chrf: float, best: bool, *samples: Sample) -> ValidReport:
    return ValidReport(number, number * 0.7, 40.1, 3.61, 12.6, chrf, best, samples)


def sample(translation: str = "Zwei Männer", source: str = "Two men", reference: str = "Zwei Männer.") -> Sample:
    return Sample(source, reference, translation, 0.78)


def notice(kind: Any, text: str, number: int = 0) -> RunNotice:
    return RunNotice(number, 1.0, kind, text)


class Shown:
    """A screen on a made terminal, with a clock that is set by hand."""

    def __init__(self, width: int = 100, height: int = 40, terminal: bool = True, **more: Any) -> None:
        self.file, self.time = io.StringIO(), 0.0
        console = Console(file=self.file, force_terminal=terminal, width=width, height=height, highlight=False, color_system=None)
        self.screen = TrainScreen(name="en-de", console=console, tick=lambda: self.time, now=lambda: NOW, **more)

    def after(self, seconds: float, *events: Event) -> str:
        """What is written anew."""
        self.time += seconds
        before = len(self.file.getvalue())
        for event in events:
            self.screen.watch(event)
        return self.file.getvalue()[before:]


def rows(*events: Event, width: int = 100, height: int = 40, busy: str = "") -> list[str]:
    seen = LiveState()
    for event in events:
        seen.add(event)
    return [row.plain for row in picture(seen, "en-de", busy, NOW, width, height)]


def a_long_run() -> list[Event]:
    events: list[Event] = []
    for number in range(1, 3451):
        events.append(step(number, loss=3 + 5 * math.exp(-number / 800)))
        if number % 300 == 0:
            samples = [sample(f"Versuch {number} " + "lang " * 40, f"Satz {i} " + "日本語" * 40) for i in range(5)]
            events.append(valid(number, 30 + number / 100, number == 300, *samples))
    events += [notice("saved", "checkpoint " + "x" * 200, 3450), notice("replanned", "fewer steps", 3450)]
    return events


# The numbers.


def test_the_speed_leaves_out_the_first_steps_and_is_smooth() -> None:
    seen = LiveState()
    for number in range(1, WARM_UP + 1):
        seen.add(step(number, seconds=50.0))
        assert seen.speed.value is None
    for number in range(20):
        seen.add(step(number, seconds=1.0))
    assert seen.speed.value == pytest.approx(4109)
    seen.add(step(1, seconds=2.0))
    assert 0.9 * 4109 < (seen.speed.value or 0) < 4109


def test_a_skipped_step_is_counted_and_spoils_no_number() -> None:
    seen = LiveState()
    seen.add(step(1, loss=3.0))
    seen.add(step(2, loss=math.nan, nll=math.inf, gradient_norm=math.nan, skipped="not a number"))
    seen.add(step(3, loss=1e9, skipped="out of proportion"))
    seen.add(step(4, gradient_norm=math.inf))
    assert (seen.skipped, seen.loss.value, seen.gradient.value) == (2, 3.0, pytest.approx(0.82))


def test_the_loss_is_smooth_and_starts_at_the_first() -> None:
    seen = LiveState()
    seen.add(step(1, loss=8.0))
    assert seen.loss.value == 8.0
    seen.add(step(2, loss=4.0))
    assert 5.9 < (seen.loss.value or 0) < 6.1


def test_a_history_keeps_its_shape_however_long_it_is() -> None:
    history = History()
    for number in range(10_000):
        history.add(number)
        assert len(history.points) < live_state.LONGEST_HISTORY
    assert history.points == sorted(history.points) and history.points[0] < 300 and history.points[-1] > 9_500
    assert history.draw(8) == "▁▂▃▄▅▆▇█"


def test_a_history_draws_what_it_has() -> None:
    history = History()
    assert history.draw(8) == ""
    for value in (1.0, 1.0, 1.0):
        history.add(value)
    assert history.draw(8) == "▁▁▁"
    history.add(2.0)
    assert history.draw(8) == "▁▁▁█"


def test_the_best_validation_is_the_last_that_was_marked_and_stays_in_sight() -> None:
    seen = LiveState()
    for number in range(1, 21):
        seen.add(valid(number, 30.0, number in (1, 3)))
    assert seen.best is not None and seen.best.step == 3
    assert [each.step for each in seen.last_valids(4)] == [3, 18, 19, 20]
    assert [each.step for each in seen.last_valids(1)] == [20]


@pytest.mark.parametrize("text", ["a\x1b[2Jb", "a\r\nb", "a\x9b2Jb", "a\u2028b", "a\u202eb", "a\ud800b", "a\x07b", "a\x7fb"])
def test_text_that_commands_a_terminal_becomes_harmless(text: str) -> None:
    assert harmless(text)[0] == "a" and harmless(text)[-1] == "b"
    assert not re.search(CONTROL + "|[\u2028\u202e\ud800]|\n", harmless(text))


def test_harmless_text_stays_as_it_is() -> None:
    text = "Größe 日本語 نیم‌فاصله 👩‍🔬 [bold] :smile:"
    assert harmless(text) == text


# The screen.


def test_the_screen_says_where_the_run_is_and_when_it_ends() -> None:
    shown = "\n".join(rows(*(step(i) for i in range(3430, 3451))))
    for part in ("en-de", "Ctrl-C saves and stops", "step 3 450 / 12 000", "28.8 %", "epoch 3.5", "elapsed 40:15"):
        assert part in shown
    assert "left 3:14:00 (ends Sun 00:31)" in shown, "not today"
    for part in (
        "loss 3.412 ▁▁",
        "ppl 20.1",
        "lr 6.1e-04",
        "|grad| 0.82",
        "5 870 source + target pieces/s",
        "pad 6 %",
        "memory 2.3 GB",
    ):
        assert part in shown
    assert "skipped" not in shown and "waits for data" not in shown


def test_the_end_is_told_by_the_hour_today_and_not_at_all_when_nobody_knows() -> None:
    assert "(ends 21:27)" in "\n".join(rows(step(1, left=600.0)))
    assert "ends" not in "\n".join(rows(step(1, left=math.inf)))
    assert "ends" not in "\n".join(rows(step(1, left=1e300)))


def test_the_bar_grows_with_the_steps() -> None:
    def filled(number: int, steps: int) -> float:
        shown = picture_of(step(number, steps=steps))
        (bar,) = [row for row in shown if "━" in row.plain]
        done = [span for span in bar.spans if span.style == "green"]
        return sum(span.end - span.start for span in done) / bar.plain.count("━")

    def picture_of(event: Event) -> list[Any]:
        seen = LiveState()
        seen.add(event)
        return picture(seen, "en-de", "", NOW, 140, 40)

    assert filled(1, 1000) == 0 and filled(1000, 1000) == 1
    assert filled(500, 1000) == pytest.approx(0.5, abs=0.05)


def test_trouble_is_on_the_screen() -> None:
    events = [
        *(step(i, waited=0.2) for i in range(20)),
        step(21, waited=0.2, skipped="not a number"),
        notice("skipped", "not a number", 21),
    ]
    shown = "\n".join(rows(*events))
    assert "skipped 1" in shown and "waits for data 29 %" in shown and "skipped at step 21: not a number" in shown


def test_validations_have_a_row_each_and_the_best_has_a_star() -> None:
    shown = rows(step(3000), valid(1000, 18.4, True), valid(2000, 29.7, True), valid(3000, 28.0, False))
    table = [row for row in shown if re.match(r" +\d000 ", row)]
    assert [re.findall(r"\d\d\.\d$|\d\d\.\d(?=  ★)", row) for row in table] == [["18.4"], ["29.7"], ["28.0"]]
    assert ["★" in row for row in table] == [False, True, False]
    assert any("BLEU" in row and "chrF" in row for row in shown)


def test_samples_are_those_of_the_last_validation_with_what_was_said_before() -> None:
    earlier = [valid(number, 20.0, True, sample(f"Versuch {number}"), sample("x", "Other")) for number in (1000, 2000)]
    shown = "\n".join(rows(step(3000), *earlier, valid(3000, 30.0, True, sample("Zwei Männer da"), sample("y", "Other"))))
    assert "samples at step 3000" in shown
    assert re.search(
        r"source Two men\n  wanted Zwei Männer\.\n  output Zwei Männer da +0\.78\n +@1000: Versuch 1000   @2000: Versuch 2000\n",
        shown,
    )
    assert shown.count("@1000") == 1 and "source Other" in shown


def test_no_text_of_others_is_taken_for_markup_or_for_a_command() -> None:
    evil = "[bold red]x[/] \x1b[2J\x1b]0;title\x07 :smile: \n next"
    shown = Shown()
    with shown.screen:
        shown.after(0, notice("chosen", f"data: {evil}"), step(1), valid(1, 1.0, True, sample(evil, evil, evil)))
        shown.after(1, notice("note", evil), step(2))
    sent = shown.file.getvalue()
    assert "\x1b[2J" not in sent and "\x1b]" not in sent and "\x07" not in sent and "\n next" not in sent
    last = sent[sent.rindex("Ctrl-C") :]
    assert last.count("[bold red]x[/]  [2J ]0;title  :smile:") == 4


@pytest.mark.slow
@pytest.mark.parametrize("width", [10, 39, 60, 79, 80, 100, 200])
@pytest.mark.parametrize("height", [1, 2, 5, 10, 23, 60])
def test_the_picture_fits_every_terminal(width: int, height: int) -> None:
    shown = rows(*a_long_run(), width=width, height=height, busy="score 40 %")
    assert 1 <= len(shown) <= height
    assert all(cell_len(row) <= width for row in shown)


def test_a_terminal_of_24_rows_shows_validations_samples_and_notices() -> None:
    for width in (70, 100):
        shown = "\n".join(rows(*a_long_run(), width=width, height=23))
        for part in (
            "step 3 450",
            "left",
            "pieces/s",
            " 3300 ",
            "★",
            "output Versuch 3300",
            "@3000",
            "replanned at step 3450",
        ):
            assert part in shown, (width, part)


def test_a_low_terminal_shows_three_validations_before_it_shows_all_samples() -> None:
    shown = rows(*a_long_run(), height=14)
    assert sum(bool(re.match(r" +\d+ +\d\.\d{3} ", row)) for row in shown) == 3
    assert any(row.startswith("  source") for row in shown)


def test_the_screen_is_drawn_at_most_four_times_a_second() -> None:
    shown = Shown()
    with shown.screen:
        shown.after(0, step(1))
        for number in range(2, 402):
            shown.after(0.01, step(number))
        drawn = shown.file.getvalue().count("Ctrl-C saves")
    assert 14 <= drawn <= 17


def test_a_slow_terminal_is_drawn_to_less_often() -> None:
    shown = Shown()
    slow = shown.screen.console.print

    def print_slowly(*given: Any, **more: Any) -> None:
        slow(*given, **more)
        shown.time += 0.1

    shown.screen.console.print = print_slowly  # type: ignore[method-assign]
    with shown.screen:
        for number in range(1, 2001):
            shown.after(0.05, step(number))
        assert shown.file.getvalue().count("Ctrl-C saves") < 20


def test_watching_costs_less_than_a_hundredth_of_a_step() -> None:
    """A step of the smallest model takes 20 ms. Drawing is bounded by its share of the time; the rest is measured here."""
    screen = TrainScreen(console=Console(file=io.StringIO(), force_terminal=True, width=100, height=40))
    events = a_long_run()
    with screen:
        began = time.perf_counter()
        for event in events:
            screen.watch(event)
        assert (time.perf_counter() - began) / len(events) < 0.01 * 0.02


def test_what_was_chosen_is_printed_and_stays_above_the_screen() -> None:
    shown = Shown(width=60)
    with shown.screen:
        sent = shown.after(0, notice("chosen", f"model: small: 3+3 layers ({'a long reason ' * 5}that ends)"))
        assert re.match(r" model +small: 3\+3 layers", sent) and "ends)" in sent and "Ctrl-C" not in sent
        assert all(line.startswith(" ") for line in sent.strip("\n").split("\n"))
        assert "small" not in shown.after(1, step(1))


def test_the_last_picture_stays_when_the_run_ends() -> None:
    shown = Shown()
    with shown.screen:
        shown.after(0, step(1))
        assert "step 2 " not in shown.after(0.01, step(2))
        shown.after(0.01, step(12_000))
    assert "step 12 000 / 12 000" in shown.file.getvalue()
    assert shown.file.getvalue().endswith("\x1b[?25h"), "the cursor comes back"


def test_preparing_has_bars_and_scoring_a_row_of_the_screen(capsys: pytest.CaptureFixture[str]) -> None:
    shown = Shown()
    with shown.screen:
        shown.screen.progress(Progress("read", 1, 1, 29_000))
        shown.after(0, step(1))
        shown.time += 1
        shown.screen.progress(Progress("score", 400, 1000))
        assert "score 40 %" in shown.file.getvalue()
    told = capsys.readouterr().err
    assert "read: 100 %" in told and "29 000 pairs" in told


# The plain line.


def test_the_plain_line_is_as_documented() -> None:
    shown = Shown(terminal=False)
    for number in range(3430, 3450):
        shown.after(1, step(number))
    line = shown.after(40, step(3450))
    assert line == (
        "2026-11-14T21:17:04 step=3450/12000 pct=28.8 loss=3.412 lr=6.1e-04 grad=0.82 pieces_s=5870 pad=0.06 mem_gb=2.3 left=3:14:00\n"
    )


def test_the_first_lines_come_soon_and_the_others_twice_a_minute() -> None:
    shown = Shown(terminal=False)
    said = [number for number in range(1000) if shown.after(0.5 if number else 0, step(number))]
    assert [number / 2 for number in said][:8] == [0, 1, 2, 4, 8, 16, 32, 62]
    assert {b - a for a, b in itertools.pairwise(said[6:])} == {60}


def test_the_last_step_has_a_line_and_the_first_has_no_speed() -> None:
    shown = Shown(terminal=False)
    first = shown.after(0, step(1))
    assert "step=1/12000" in first and "pieces_s" not in first
    assert shown.after(0.1, step(2)) == ""
    assert "step=12000/12000 pct=100.0" in shown.after(0.1, step(12_000))


def test_validations_and_notices_have_lines_of_their_own_and_no_text_of_the_corpus() -> None:
    shown = Shown(terminal=False)
    line = shown.after(0, valid(3000, 34.9, True, sample("canary", "canary", "canary")))
    assert line == "2026-11-14T21:17:04 valid step=3000 loss=3.610 ppl=37.0 bleu=12.60 chrf=34.90 best=yes seconds=40.1\n"
    short = replace(valid(3000, 99.0, True, sample("a", "b", "b")), bleu=0.0)
    assert "bleu=- chrf=99.00" in shown.after(0, short)  # no text has the four words in a row that BLEU counts
    assert shown.after(0, notice("skipped", "a loss\nof \x1b[2Jnan", 812)).endswith(" skipped step=812 a loss of  [2Jnan\n")
    assert shown.after(0, notice("chosen", "model: small (why)")).endswith(" chosen model: small (why)\n")


def test_a_log_has_no_control_characters() -> None:
    for given in ({"terminal": False}, {"terminal": True, "plain": True}):
        shown = Shown(**given)
        with shown.screen:
            for event in a_long_run():
                shown.after(1, event)
        assert shown.file.getvalue() and not re.search(CONTROL, shown.file.getvalue())


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for terminal in (True, False):
        shown = Shown(terminal=terminal, quiet=True)
        with shown.screen:
            shown.screen.progress(Progress("read", 1, 1))
            for event in a_long_run():
                shown.after(1, event)
        assert shown.file.getvalue() == ""
    assert capsys.readouterr().err == ""


def test_a_terminal_without_commands_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not TrainScreen(console=Console(file=io.StringIO(), force_terminal=True)).fancy
    monkeypatch.setenv("TERM", "xterm")
    assert TrainScreen(console=Console(file=io.StringIO(), force_terminal=True)).fancy
    old = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", newline="\n")
    assert not TrainScreen(console=Console(file=old, force_terminal=True)).fancy, "it cannot write the bar"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_run_outlives_its_terminal(terminal: bool) -> None:
    class Closed(io.StringIO):
        closes = False

        def write(self, text: str) -> int:
            if self.closes:
                raise OSError(5, "Input/output error")
            return super().write(text)

    file = Closed()
    screen = TrainScreen(console=Console(file=file, force_terminal=terminal, width=100, height=40))
    errors, output = sys.stderr, sys.stdout
    with screen:
        screen.watch(step(1))
        file.closes = True
        for event in (notice("saved", "x"), valid(2, 1.0, True), step(12_000), notice("chosen", "a: b")):
            screen.watch(event)
        screen.progress(Progress("score", 1, 2))
    assert (sys.stderr, sys.stdout) == (errors, output)


def test_hours_are_always_there() -> None:
    assert [hours(seconds) for seconds in (0, 75, 3675, 360_000, -3)] == [
        "0:00:00",
        "0:01:15",
        "1:01:15",
        "100:00:00",
        "0:00:00",
    ]


# On a real terminal.

SCRIPT = """
import sys, time
sys.path.insert(0, sys.argv[1])
from test_train_screen import a_long_run, notice
from limelight.cli.train.live_screen import TrainScreen
from limelight.corpus.exchange.engine import Progress
with TrainScreen(name="en-de") as screen:
    for done in range(3):
        screen.progress(Progress("read", done, 2, 100 * done))
    screen.watch(notice("chosen", "model: small (fits)"))
    for event in a_long_run():
        screen.watch(event)
sys.stdout.write("the result\\n")
"""


@pytest.mark.process
def test_a_real_terminal_shows_bars_choices_the_screen_and_the_result() -> None:
    ours, theirs = pty.openpty()
    settings = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
    for name in ("NO_COLOR", "FORCE_COLOR", "CI"):
        settings.pop(name, None)
    line = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)]
    process = warm_process.Popen(line, stdin=theirs, stdout=theirs, stderr=theirs, env=settings)
    os.close(theirs)
    sent, until = b"", time.monotonic() + 60
    while time.monotonic() < until:
        if select.select([ours], [], [], 0.5)[0]:
            try:
                block = os.read(ours, 65_536)
            except OSError:  # how Linux says that the other side is closed
                break
            sent += block
        elif process.poll() is not None:
            break
    os.close(ours)
    assert process.wait() == 0, sent.decode()
    text = re.sub(ANSI, "", sent.decode())
    order = [text.index(part) for part in ("200 pairs", "small (fits)", "Ctrl-C saves", "step 3 450 / 12 000", "the result")]
    assert order == sorted(order)
    assert text.rstrip().endswith("the result")
