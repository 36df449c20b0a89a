"""`limelight translate` translates texts or lines, and writes the translations line by line and in order."""

import os
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.cli.fetching import Yes
from limelight.cli.translate.chunk_translator import ChunkTranslator, load_translator
from limelight.cli.translate.document import document_command
from limelight.cli.translate.memory_first import open_memory
from limelight.cli.translate.output import TranslateProgress, end_with_reader, open_output, warn_of, write_all
from limelight.cli.translate.text_lines import Chunk, LineReader
from limelight.errors import ConfigError, DataError, MissingExtraError

EXAMPLES = (
    'limelight translate en-de "A cat sits on the mat."',
    "limelight translate en-de < news.en > news.de",
    "limelight translate en-de --input news.en --nbest 3 --align --scores --jsonl | jq .text",
    "limelight translate multi --to fr --tag formal < news.en > news.fr",
    "limelight translate en-de --input news.en --output news.de --cluster ray",
    "limelight translate en-de --glossary terms.tsv --document manual.html manual.de.html",
)


class ClusterName(StrEnum):
    ray = "ray"


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
    memory: Annotated[str | None, typer.Option("--memory", help="A store whose memory is used for the same texts.")] = None,
    tell_above: Annotated[float | None, typer.Option(min=0, max=1, help="With --memory: tell the model what is so similar.")] = None,
    guards: Annotated[bool, typer.Option("--guards/--no-guards", help="Find failures; search again what failed or lost something.")] = True,
    check: Annotated[bool, typer.Option("--check", help="Warn of words left out and made up: a pass for each word.")] = False,
    batch_pieces: Annotated[int | None, typer.Option("--batch-pieces", min=1, help="Source pieces translated at once.")] = None,
    engine: Annotated[str | None, typer.Option("--engine", help="torch or ctranslate2; the second if it was exported for it.")] = None,
    cluster: Annotated[ClusterName | None, typer.Option("--cluster", help="ray: on its nodes, to --output; the same goes on.")] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Cores to use; all that this process may; 1 on a node.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="cpu, cuda, mps ...; the accelerator if there is one.")] = None,
    yes: Yes = False,
    dtype: Annotated[str | None, typer.Option("--dtype", help="float32 or bfloat16; ctranslate2 also int8.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings on standard error, no speed and no counts.")] = False,
) -> None:  # fmt: skip
    """Translate texts, or lines in a pipe: one line out for each line in, in order. Speed and warnings go to standard error."""
    given = [] if texts in (None, ["-"]) else list(texts or ())
    if document:
        document_command(bundle, given, context)
        return
    _check_lines(bundle, given, for_documents=any(asked is not None for asked in (column, fuzzy_below, review)))
    if input is not None and output is not None and output.is_file() and input.is_file() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input, which would be gone; name another file")
    chunks, total = _chunks(given, input)  # lines are read while the model is loaded
    # What is given as an argument may be a paragraph; a line of a file is a sentence unless it is too long.
    asked = context.params | {"segment": True if segment is None and given else segment}
    account = TranslateProgress(quiet or bool(given), total)
    (_translate_chunks if cluster is None else _translate_on_cluster)(chunks, account, asked)


def _translate_chunks(chunks: Iterator[Chunk], account: TranslateProgress, asked: dict[str, Any]) -> None:
    """Translate and write each chunk as it comes. `asked`: all options, by name."""
    store = open_memory(asked)
    with open_output(asked["output"]) as file, load_translator(asked) as loaded:
        by_chunk = ChunkTranslator.of(loaded, asked, store)
        warn_of(by_chunk.translator.settings)
        for chunk in chunks:
            account.tell()
            began = time.monotonic()
            done, lines = by_chunk.translate(chunk)
            write_all(file, lines)
            account.add(chunk.first, done, time.monotonic() - began, chunk.bytes)
        account.close()
        if not account.quiet:
            by_chunk.memory.say("")


def _translate_on_cluster(chunks: Iterator[Chunk], account: TranslateProgress, asked: dict[str, Any]) -> None:
    open_memory(asked)  # refused: nodes have none
    try:
        from limelight.cli.translate.cluster import translate_on_cluster
    except ModuleNotFoundError:
        raise MissingExtraError("ray", "--cluster ray", "cluster") from None
    translate_on_cluster(chunks, account, asked)


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


def _hint_at_document(path: Path) -> None:
    from limelight.documents.kinds import kind_of

    with suppress(ConfigError):  # no document that we know
        if kind_of(path) != "txt":
            typer.echo(f"hint: {path} is translated line by line, its syntax too; as a document: --document {path} OUTPUT", err=True)


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
        _hint_at_document(input)
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise DataError(f"{input or 'standard input'} is a folder; give a file of lines")
    return LineReader(descriptor).chunks(), found.st_size if stat.S_ISREG(found.st_mode) else None
