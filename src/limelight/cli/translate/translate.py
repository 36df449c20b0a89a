"""`limelight translate` translates texts or lines, and writes the translations line by line and in order."""

import math
import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from limelight.cli.fetching import Yes
from limelight.cli.translate.document import document_command, load_glossary
from limelight.cli.translate.output import (
    TranslateProgress,
    aim,
    as_json,
    as_lines,
    end_with_reader,
    open_output,
    warn_of,
    write_all,
)
from limelight.cli.translate.text_lines import Chunk, LineReader
from limelight.errors import ConfigError, DataError

if TYPE_CHECKING:
    from limelight.decoding.config import SearchSettings
    from limelight.translator.translate import Translator

# Of the samples of --mbr, unless asked otherwise: whole tails of improbable pieces cost more than they add.
MBR_TOP_P = 0.9
EXAMPLES = """Examples:

limelight translate en-de "A cat sits on the mat."

limelight translate en-de < news.en > news.de

limelight translate en-de --input news.en --nbest 3 --align --scores --jsonl | jq .text

limelight translate multi --to fr --tag formal < news.en > news.fr

limelight translate en-de --glossary terms.tsv --document manual.html manual.de.html
"""


@end_with_reader()
def translate(
    context: typer.Context, bundle: Annotated[Path, typer.Argument(help="Folder of a bundle, or of a run.")],
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT]...", help="Texts; without any, lines of standard input.")] = None,
    target: Annotated[str | None, typer.Option("--to", help="Language to translate into, of a model that has several.")] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language of the texts, of a model that has several.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="What the model is told beside, such as formal. Repeatable.")] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help="File of lines to translate.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File to write; it appears when it is complete.")] = None,
    nbest: Annotated[int | None, typer.Option("--nbest", min=1, help="Translations of each line, best first.")] = None,
    scores: Annotated[bool, typer.Option("--scores", help="A column with the score.")] = False,
    align: Annotated[bool, typer.Option("--align", help="A column with word alignments: source-target, from 0.")] = False,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="A JSON object for each line, with all there is to know.")] = False,
    beam: Annotated[int | None, typer.Option("--beam", min=1, help="Hypotheses kept; 1 is greedy and fastest.")] = None,
    length_penalty: Annotated[float | None, typer.Option("--length-penalty", min=0, help="Above 0 prefers longer translations.")] = None,
    coverage_penalty: Annotated[float | None, typer.Option("--coverage-penalty", min=0, help="Against source pieces left out.")] = None,
    min_length: Annotated[int | None, typer.Option("--min-length", min=0, help="Fewest pieces of a translation.")] = None,
    max_length: Annotated[int | None, typer.Option("--max-length", min=1, help="Most pieces, the end included.")] = None,
    no_repeat: Annotated[int | None, typer.Option("--no-repeat", min=0, help="No so many pieces occur twice; 0: they may.")] = None,
    diverse: Annotated[int | None, typer.Option("--diverse", min=1, help="Groups of the beam that avoid each other.")] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw translations instead of searching the best.")] = False,
    top_k: Annotated[int | None, typer.Option("--top-k", min=1, help="Draw among the k most probable pieces.")] = None,
    top_p: Annotated[float | None, typer.Option("--top-p", help="Draw among the fewest pieces with probability p.")] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", help="Below 1 sharpens, above 1 flattens.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="The same seed draws the same.")] = None,
    mbr: Annotated[int | None, typer.Option("--mbr", min=2, help="Draw so many, take the one most like the others.")] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", help="Every translation begins with this.")] = None,
    phrase: Annotated[list[str] | None, typer.Option("--phrase", help="Every translation contains this. Repeatable.")] = None,
    glossary: Annotated[Path | None, typer.Option("--glossary", help="Terms and how to translate them: TSV or TBX.")] = None,
    protect: Annotated[bool, typer.Option("--protect/--no-protect", help="Keep placeholders, tags, addresses, numbers.")] = True,
    segment: Annotated[bool | None, typer.Option("--segment/--no-segment", help="Sentence by sentence; else where it is long.")] = None,
    document: Annotated[bool, typer.Option("--document", help="Two files, such as in.po out.po, or more pairs: structure kept.")] = False,
    column: Annotated[str | None, typer.Option("--column", help="Tables: source=target, by names or numbers; or one, in place.")] = None,
    fuzzy_below: Annotated[float | None, typer.Option("--fuzzy-below", min=0, max=1, help="Documents: mark what is below it; 0.6.")] = None,
    review: Annotated[Path | None, typer.Option("--review", help="Documents: what to look at, worst first; .html or .tsv.")] = None,
    memory: Annotated[str | None, typer.Option("--memory", help="Documents: a store whose memory has the same texts; it is used.")] = None,
    guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Find failures; search again what failed or lost something.")] = True,
    check: Annotated[bool, typer.Option("--check", help="Warn of words left out and made up: a pass for each word.")] = False,
    batch_pieces: Annotated[int | None, typer.Option("--batch-pieces", min=1, help="Source pieces translated at once.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="torch or ctranslate2; the second if it was exported for it.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    yes: Yes = False,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32 or bfloat16; ctranslate2 also int8.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No speed on standard error.")] = False,
) -> None:  # fmt: skip
    """Translate texts, or lines in a pipe: one line out for each line in, in order. Speed and warnings go to standard error."""
    given = [] if texts in (None, ["-"]) else list(texts or ())
    if document:
        document_command(bundle, given, context)
        return
    _check_lines(bundle, given, for_documents=any(asked is not None for asked in (column, fuzzy_below, review, memory)))
    chunks, total = _chunks(given, input)  # lines are read while the model is loaded
    _translate_chunks(chunks, TranslateProgress(quiet or bool(given), total), _apart(segment, given), context.params)


def _translate_chunks(chunks: Iterator[Chunk], account: TranslateProgress, segment: bool | None, asked: dict[str, Any]) -> None:
    """`asked`: all options, by name."""
    from limelight.runtime import keep_freed_memory
    from limelight.translator.translate import Translator

    keep_freed_memory()
    drawing = {name: asked[name] for name in ("temperature", "top_k", "top_p", "seed")}
    wanted = {name: asked[name] for name in ("nbest", "beam", "length_penalty", "coverage_penalty", "min_length", "max_length")}
    wanted |= {"groups": asked["diverse"], "no_repeat_ngram": asked["no_repeat"], "mbr_samples": asked["mbr"]}
    loading = {name: asked[name] for name in ("device", "dtype", "threads", "engine")}
    with open_output(asked["output"]) as file, Translator.load(asked["bundle"], **loading) as loaded:
        translator = aim(loaded, asked["target"], asked["source"], asked["tag"])
        warn_of(translator, asked["quiet"])
        translator.batch_pieces = asked["batch_pieces"] or translator.batch_pieces
        wishes = {
            "search": _search(translator.settings.search, _drop_unset(wanted), asked["sample"], _drop_unset(drawing)),
            "probabilities": asked["jsonl"],
            "glossary": load_glossary(asked["glossary"], translator),
            "segment": segment,
            **{name: asked[name] for name in ("align", "guards", "protect", "check")},
        }
        _pass(translator, chunks, (asked["prefix"], asked["phrase"] or ()), wishes, asked["scores"], file, account)


def _pass(
    translator: "Translator", chunks: Iterator[Chunk], forced: tuple[str | None, Sequence[str]], wishes: dict[str, Any],
    scores: bool, file: BinaryIO, account: TranslateProgress,
) -> None:  # fmt: skip
    """Translate and write each chunk as it comes. `forced`: how every translation begins, and what it contains."""
    from limelight.translator.translation import InvalidScoresError

    prefix, phrases = forced
    for chunk in chunks:
        account.tell()
        began, count = time.monotonic(), len(chunk.texts)
        prefixes = None if prefix is None else [prefix] * count
        contained = [tuple(phrases)] * count if phrases else None
        try:
            done = translator.translate(chunk.texts, prefixes=prefixes, phrases=contained, **wishes)
        except InvalidScoresError as error:
            raise InvalidScoresError([chunk.first + at for at in error.positions], "lines, counted from 1") from None
        nbest, align, jsonl = wishes["search"].nbest, wishes["align"], wishes["probabilities"]
        lines = (as_json(one) if jsonl else as_lines(one, nbest, scores, align) for one in done)
        write_all(file, "".join(lines).encode())
        account.add(chunk.first, done, time.monotonic() - began, chunk.bytes)
    account.close()


def _check_lines(bundle: Path, texts: Sequence[str], for_documents: bool) -> None:
    """Options of documents are refused. Whoever names a file seldom wants its name translated, and gets a hint."""
    if for_documents:
        raise ConfigError("--column, --fuzzy-below and --review are for documents; add --document, or leave them out")
    for text in texts:
        try:
            named = Path(text).is_file()
        except (OSError, ValueError):  # a sentence is no name that a system takes
            continue
        if named:
            verb, name = f"limelight translate {shlex.quote(str(bundle))}", shlex.quote(text)
            typer.echo(
                f"hint: {text} is a file, and its name is translated here; what is in it, line by line: {verb} < {name}; "
                f"as a document: {verb} --document {name} OUTPUT",
                err=True,
            )


def _chunks(given: list[str], input: Path | None) -> tuple[Iterator[Chunk], int | None]:
    """What to translate, and its size in bytes if there is one to tell: 0 when nobody needs to be told how far it is."""
    if given and input is not None:
        raise ConfigError("texts and --input cannot be translated together; give one of them")
    if given:
        return iter([Chunk(1, given, 0)]), 0
    if input is None or str(input) == "-":
        if sys.stdin is None:  # how Python says that it was closed, as with <&-
            raise DataError("standard input is closed; give texts, a pipe or --input FILE")
        descriptor = sys.stdin.fileno()
        if sys.stdin.isatty():
            typer.echo("type a line and Enter; Ctrl-D ends", err=True)
            return LineReader(descriptor).chunks(), 0
    else:
        try:
            descriptor = os.open(input, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except OSError as error:
            raise DataError(f"{input} cannot be read ({error.strerror}); check the name") from None
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{input or 'standard input'} is a folder; give a file of lines")
    return LineReader(descriptor).chunks(), found.st_size if stat.S_ISREG(found.st_mode) else None


def _apart(segment: bool | None, given: Sequence[str]) -> bool | None:
    """Sentence by sentence? What is given as an argument may be a paragraph; a line of a file is a sentence unless it is too long."""
    return True if segment is None and given else segment


def _drop_unset(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _search(default: "SearchSettings", wanted: dict[str, Any], sample: bool, drawing: dict[str, Any]) -> "SearchSettings":
    """The bundle's search with what was asked for on top. What was not asked for gives way to what was.

    A beam is made wide enough for the translations wanted, and for equal groups; the bundle's groups and n-best shrink to the beam.
    """
    from limelight.decoding.config import Sampling

    values = dict(wanted)
    if "no_repeat_ngram" in wanted:
        values["no_repeat_ngram"] = wanted["no_repeat_ngram"] or None
    draw = sample or "mbr_samples" in wanted
    if drawing and not draw and default.sampling is None:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in drawing)
        raise ConfigError(f"{names}: only for drawing, and a beam draws nothing; add --sample, or leave it out")
    if "mbr_samples" in wanted and not drawing.keys() - {"seed"}:
        drawing = {**drawing, "top_p": MBR_TOP_P}
    if draw or default.sampling is not None:
        if wanted.get("groups", 1) > 1:
            raise ConfigError("--diverse is for a beam, and --sample and --mbr draw; leave out one of them")
        values = {"coverage_penalty": 0.0, **values, "groups": 1}
        values["sampling"] = (default.sampling or Sampling()).changed(**drawing)
    else:
        values.update(_fitting(values, default))
    return default.changed(**values)


def _fitting(values: dict[str, Any], default: "SearchSettings") -> dict[str, int]:
    """nbest=6 of a bundle with beam=4, groups=4 -> beam=8, nbest=6, groups=4"""
    beam, nbest, groups = (values.get(key, getattr(default, key)) for key in ("beam", "nbest", "groups"))
    if "beam" not in values:
        beam = max(beam, nbest)
    if "groups" not in values:
        groups = min(groups, beam)
    beam = groups * math.ceil(beam / groups)
    if "nbest" not in values:
        nbest = min(nbest, beam)
    return {"beam": beam, "nbest": nbest, "groups": groups}
