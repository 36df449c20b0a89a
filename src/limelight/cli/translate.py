"""`limelight translate`: texts or lines in, their translations out, line by line and in order."""

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from limelight.cli.translate_lines import Chunk, Lines
from limelight.cli.translate_output import Account, as_json, as_lines
from limelight.errors import ConfigError, DataError
from limelight.files import whole_file

if TYPE_CHECKING:
    from limelight.decoding.config import SearchSettings
    from limelight.translator.translate import Translator
    from limelight.translator.translation import Translation

BROKEN_PIPE = 141  # 128 + SIGPIPE: how a shell sees a program that wrote to a reader that had left
MBR_TOP_P = (
    0.9  # of the samples of --mbr, unless asked otherwise: whole tails of improbable pieces cost more than they add
)
EXAMPLES = """Examples:

limelight translate en-de "A cat sits on the mat."

limelight translate en-de < news.en > news.de

limelight translate en-de --input news.en --nbest 3 --align --scores --jsonl | jq .text
"""


def translate(
    bundle: Annotated[Path, typer.Argument(help="Folder of a bundle, or of a run.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; without any, lines of standard input.")] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="File of lines to translate.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; it appears when it is complete.")] = None,
    nbest: Annotated[int | None, typer.Option("--nbest", min=1, help="Translations of each line, best first.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="A column with the score.")] = False,
    align: Annotated[bool, typer.Option("--align", help="A column with word alignments: source-target, from 0.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="A JSON object for each line, with all there is to know.")] = False,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Hypotheses kept; 1 is greedy and fastest.")] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", min=0, help="Above 0 prefers longer translations.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw translations instead of searching the best.")] = False,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Draw among the k most probable pieces.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Draw among the fewest pieces with probability p.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Below 1 sharpens, above 1 flattens.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The same seed draws the same.")] = None,
    mbr: Annotated[int | None, typer.Option("--mbr", min=2, help="Draw so many, take the one most like the others.")] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", help="Every translation begins with this.")] = None,
    phrase: Annotated[list[str] | None, typer.Option("--phrase", help="Every translation contains this. Repeatable.")] = None,
    guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Look for loops, copies, odd lengths; search loops again.")] = True,
    batch_pieces: Annotated[int | None, typer.Option("--batch-pieces", min=1, help="Source pieces translated at once.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32 or bfloat16.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No speed on standard error.")] = False,
) -> None:  # fmt: skip
    """Translate texts, or lines in a pipe: one line out for each line in, in order. Speed and warnings go to standard error."""
    chunks, total = _chunks(texts, input)  # lines are read while the model is loaded
    from limelight.runtime import keep_freed_memory
    from limelight.translator.translate import Translator

    keep_freed_memory()
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    account = Account(quiet, total)
    try:
        with Translator.load(bundle, device, dtype, threads) as translator, _opened(output) as file:
            search = _search(
                translator.settings.search, nbest, beam, length_penalty, sample or mbr is not None, drawing, mbr
            )
            wishes = Wishes(search, prefix, tuple(phrase or ()), align, guards)
            if batch_pieces is not None:
                translator.batch_pieces = batch_pieces
            for chunk in chunks:
                account.tell()
                began = time.monotonic()
                done = _translated(translator, chunk, wishes)
                lines = (as_json(one) if jsonl else as_lines(one, search.nbest, scores, align) for one in done)
                file.write("".join(lines).encode())
                file.flush()
                account.add(chunk.first, done, time.monotonic() - began, chunk.bytes)
        account.close()
    except BrokenPipeError:
        _silence()
        raise typer.Exit(BROKEN_PIPE) from None


@dataclass(frozen=True)
class Wishes:
    """What is asked of every text."""

    search: "SearchSettings"
    prefix: str | None
    phrases: tuple[str, ...]
    align: bool
    guards: bool


def _translated(translator: "Translator", chunk: Chunk, wishes: Wishes) -> list["Translation"]:
    from limelight.translator.translation import InvalidScoresError

    count = len(chunk.texts)
    try:
        return translator.translate(
            chunk.texts,
            wishes.search,
            prefixes=None if wishes.prefix is None else [wishes.prefix] * count,
            phrases=[wishes.phrases] * count if wishes.phrases else None,
            align=wishes.align,
            guards=wishes.guards,
        )
    except InvalidScoresError as error:
        raise InvalidScoresError([chunk.first + at for at in error.positions], "lines, counted from 1") from None


def _chunks(texts: list[str] | None, input: Path | None) -> tuple[Iterator[Chunk], int | None]:
    """What to translate, and its size in bytes if there is one to tell: 0 when nobody needs to be told how far it is."""
    given = [] if texts in (None, ["-"]) else list(texts or ())
    if given and input is not None:
        raise ConfigError("texts and --input cannot be translated together; give one of them")
    if given:
        return iter([Chunk(1, given, 0)]), 0
    if input is None or str(input) == "-":
        descriptor = sys.stdin.fileno()
        if sys.stdin.isatty():
            sys.stderr.write("type a line and Enter; Ctrl-D ends\n")
            return Lines(descriptor).chunks(), 0
    else:
        try:
            descriptor = os.open(input, os.O_RDONLY)
        except OSError as error:
            raise DataError(f"{input} cannot be read ({error.strerror}); check the name") from None
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{input or 'standard input'} is a folder; give a file of lines")
    return Lines(descriptor).chunks(), found.st_size if stat.S_ISREG(found.st_mode) else None


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """Standard output, or a file that appears when it is complete. A device or a pipe is written to as it is."""
    if output is None or str(output) == "-":
        yield sys.stdout.buffer
    elif output.exists() and not output.is_file():
        with output.open("wb") as file:
            yield file
    else:
        if not output.resolve().parent.is_dir():
            raise ConfigError(f"the folder of {output} does not exist; make it first")
        with whole_file(output.resolve()) as beside, beside.open("wb") as file:
            yield file


def _search(
    default: "SearchSettings",
    nbest: int | None,
    beam: int | None,
    length_penalty: float | None,
    draw: bool,
    drawing: dict[str, Any],
    mbr: int | None,
) -> "SearchSettings":
    """The bundle's search with what was asked for on top. A beam is made wide enough for the translations wanted."""
    from limelight.decoding.config import Sampling

    values: dict[str, Any] = {"nbest": nbest, "beam": beam, "length_penalty": length_penalty, "mbr_samples": mbr}
    how = {key: value for key, value in drawing.items() if value is not None}
    if mbr is not None and not how.keys() - {"seed"}:
        how["top_p"] = MBR_TOP_P
    if draw or how:
        values["sampling"] = default.sampling.changed(**how) if default.sampling else Sampling(**how)
    elif nbest is not None and beam is None and nbest > default.beam:
        values["beam"] = nbest
    return default.changed(**{key: value for key, value in values.items() if value is not None})


def _silence() -> None:
    """Whoever read has left. What is still in the buffers must not be tried again, with an error, when the interpreter ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
