"""The output of `limelight translate` has one line, n lines or a JSON object for each text. Warnings and speed go to standard error."""

import errno
import json
import select
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import typer

from limelight.cli.screen import clock, drop_output, group_digits
from limelight.errors import ConfigError
from limelight.files import whole_file

if TYPE_CHECKING:
    from limelight.bundle import BundleSettings
    from limelight.translator.translation import Alternative, Translation

LineWarning = tuple[int, str, str]  # the number of the line, from 1; code; message
BROKEN_PIPE = 141  # 128 + SIGPIPE: how a shell sees a program that wrote to a reader that had left
SAID_EVERY = 5.0  # seconds between lines about the speed
NOT_OF_THE_NAME = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # but of the disk
MOST_WARNINGS = 20  # printed one by one; all are counted
# Everything that some program takes for the end of a line, and the tab, which parts columns.
BREAKS = "\t\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"
_TO_SPACES = str.maketrans(dict.fromkeys(BREAKS, " "))
_TO_ESCAPES = str.maketrans({char: f"\\u{ord(char):04x}" for char in "\x85\u2028\u2029"})  # JSON escapes the others itself


def warn_of(settings: "BundleSettings") -> None:
    """Say it before the first translation, if training found that nobody should use the translator, or did not teach it this."""
    from limelight.bundle.card import find_warning

    if not settings.is_trained:
        source, target = settings.languages
        typer.echo(
            f"warning: the model was taught {source} and {target}, but not from {source} to {target}; look at what it writes", err=True
        )
    if settings.tags is not None and settings.languages in settings.tags.inherited:
        way = " to ".join(settings.languages)
        typer.echo(f"warning: {way} was taught to the translator before this one, and not since; look at what it writes", err=True)
    if (verdict := find_warning(settings)) is not None:
        typer.echo(f"warning: this translator was judged when it was trained: {verdict}", err=True)


@contextmanager
def open_output(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete. A device or a pipe is written to as it is."""
    if output is None or str(output) == "-":
        if sys.stdout is None:  # how Python says that it was closed, as with >&-
            raise ConfigError("standard output is closed; leave it open, or give --output FILE")
        yield sys.stdout.buffer
        return
    try:
        with ExitStack() as opening:
            if output.is_dir():
                raise ConfigError(f"{output} is a folder; give the name of a file in it")
            path = output
            if output.is_file() or not output.exists():
                if not output.resolve().parent.is_dir():
                    raise ConfigError(f"the folder of {output} does not exist; make it first")
                path = opening.enter_context(whole_file(output.resolve()))
            file = opening.enter_context(path.open("wb"))
            opened = opening.pop_all()
    except OSError as error:
        if error.errno in NOT_OF_THE_NAME:  # every verb says the same
            raise
        raise ConfigError(f"{output} cannot be written ({error.strerror}); give a file that you may write") from None
    with opened:
        yield file


def write_all(file: BinaryIO, data: bytes) -> None:
    """Write all bytes now. With PYTHONUNBUFFERED=1 standard output has no buffer, and one write takes what fits on the disk and no more."""
    rest = memoryview(data)
    while rest:
        written = file.write(rest)
        if written is None:  # it does not block, and is full
            select.select([], [file], [])
        rest = rest[written or 0 :]
    file.flush()


@contextmanager
def end_with_reader() -> Iterator[None]:
    """When the reader closes the pipe, stop without a message."""
    try:
        yield
    except BrokenPipeError:
        drop_output()
        raise typer.Exit(BROKEN_PIPE) from None


def to_one_line(text: str) -> str:
    """Whatever some program takes for the end of a line or of a column is a space."""
    return text.translate(_TO_SPACES)


def as_json(translation: "Translation", **place: object) -> str:
    """One line, whoever splits it. `place` stands first: the file and the line of a document."""
    fields = {**place, **translation.as_dict()}
    return json.dumps(fields, ensure_ascii=False, allow_nan=False).translate(_TO_ESCAPES) + "\n"


def as_lines(translation: "Translation", nbest: int, scores: bool, align: bool) -> str:
    """Exactly `nbest` lines: where fewer translations were found the last ones are empty, so that groups can be counted off."""
    found = [translation, *translation.alternatives]
    if translation.finish == "empty_input":
        found = []
    columns = [_columns(one, scores, align) for one in found[:nbest]]
    columns += [[""] * (1 + scores + align)] * (nbest - len(columns))
    return "".join("\t".join(each) + "\n" for each in columns)


def _columns(one: "Alternative", scores: bool, align: bool) -> list[str]:
    columns = [to_one_line(one.text)]
    if scores:
        columns.append(f"{one.score:.4f}")
    if align:
        columns.append("" if one.alignment is None else one.alignment.pharaoh)
    return columns


class TranslateProgress:
    """The progress is told on standard error. Time is that of translating: not of loading, and not of waiting for someone to type."""

    def __init__(self, quiet: bool, total_bytes: int | None) -> None:
        self.quiet, self.total_bytes = quiet, total_bytes
        self.lines = self.pieces = self.done_bytes = 0
        self.busy = 0.0
        self.warned: Counter[str] = Counter()
        self._said = time.monotonic()

    def add(self, first: int, translations: Sequence["Translation"], seconds: float, done_bytes: int) -> None:
        self.lines += len(translations)
        self.pieces += count_pieces(translations)
        self.busy += seconds
        self.done_bytes = done_bytes
        self.warn(list_warnings(first, translations))

    def tell(self) -> None:
        """How fast it goes and how long it will, every few seconds. To be asked when more is to be done: the end has its own line."""
        now = time.monotonic()
        if self.quiet or now - self._said < SAID_EVERY or not self.lines or self.total_bytes == 0:
            return
        self._said = now
        left = ""
        if self.total_bytes and self.done_bytes:
            left = f" · about {clock(self.busy * (self.total_bytes - self.done_bytes) / self.done_bytes)} left"
        say(f"{self.speed()}{left}\n")

    def close(self) -> None:
        more = sum(self.warned.values()) - MOST_WARNINGS
        if more > 0:
            counts = ", ".join(f"{group_digits(times)} {code}" for code, times in self.warned.most_common())
            say(f"warnings: {counts}\n")
        if not self.quiet:
            say(f"{self.speed()}\n")

    def speed(self) -> str:
        """1 000 lines · 3.2 s · 312 lines/s · 9 800 source+target pieces/s"""
        seconds = max(self.busy, 1e-9)
        per_second = self.lines / seconds
        rate = group_digits(round(per_second)) if per_second >= 10 else f"{per_second:.1f}"
        time_taken = f"{self.busy:.2f} s" if self.busy < 1 else f"{self.busy:.1f} s" if self.busy < 60 else clock(self.busy)
        lines = "1 line" if self.lines == 1 else f"{group_digits(self.lines)} lines"
        return f"{lines} · {time_taken} · {rate} lines/s · {group_digits(round(self.pieces / seconds))} source+target pieces/s"

    def warn(self, warnings: Iterable[LineWarning]) -> None:
        for number, code, message in warnings:
            self.warned[code] += 1
            if sum(self.warned.values()) <= MOST_WARNINGS:
                say(f"warning: line {number}: {code}: {message}\n")
            elif sum(self.warned.values()) == MOST_WARNINGS + 1:
                say("warning: there are more; they are counted at the end\n")


def count_pieces(translations: Sequence["Translation"]) -> int:
    return sum(each.source_pieces + len(each.pieces) for each in translations)


def list_warnings(first: int, translations: Sequence["Translation"]) -> list[LineWarning]:
    numbered = enumerate(translations, start=first)
    return [(number, notice.code, notice.message) for number, translation in numbered for notice in translation.warnings]


def say(text: str) -> None:
    if sys.stderr is not None:  # closed, as with 2>&-: nobody wants to know
        sys.stderr.write(text)
        sys.stderr.flush()
