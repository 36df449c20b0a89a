"""`limelight translate --document in.po out.po` translates whole documents. What became of each is told on standard error."""

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from limelight.cli.screen import Screen, clock, group_digits
from limelight.cli.translate.memory_first import MemoryFirst, open_memory
from limelight.cli.translate.output import MOST_WARNINGS, as_json, open_output, warn_of, write_all
from limelight.cli.translate.review import check_review, write_review
from limelight.errors import ConfigError, DataError
from limelight.files import write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limelight.documents.kinds import Kind
    from limelight.documents.translating import DocumentCounts, Translate, TranslatedDocument
    from limelight.documents.units import Remark
    from limelight.text.careful.glossary import Glossary
    from limelight.translator.translate import Translator
    from limelight.translator.translation import Translation


WISHES, LOADING = ("protect", "guards", "check"), ("device", "dtype", "threads", "engine")
# The other options that a document has.
KNOWN = (
    *("bundle", "texts", "document", "glossary", "quiet", "fuzzy_below", "column", "review", "memory", "jsonl", "beam"),
    *("tell_above", "target", "source", "tag", "yes"),
)


def document_command(bundle: Path, texts: "Sequence[str]", context: typer.Context) -> None:
    """What else was asked for is refused, since nothing would come of it."""
    from limelight.translator.translate import Translator

    asked = context.params
    wishes, loading = ({name: asked[name] for name in names} for names in (WISHES, LOADING))
    sources = {name: context.get_parameter_source(name) for name in asked}
    given = [name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"]
    if others := [f"--{name.replace('_', '-')}" for name in given if name not in {*KNOWN, *WISHES, *LOADING}]:
        raise ConfigError("these are for single lines, and not for documents; leave them out:", others)
    pairs = _pairs(texts, asked["review"])
    store = open_memory(asked)
    with Translator.load(bundle, **loading) as loaded:
        translator = loaded.towards(asked["target"], asked["source"], asked["tag"] or ())
        warn_of(translator.settings)
        terms, search = load_glossary(asked["glossary"], translator), translator.settings.search
        if asked["beam"] is not None:
            search = search.changed(beam=asked["beam"], nbest=1, groups=1)

        def translate(some: list[str], matches: "list[str | None] | None") -> "list[Translation]":
            wanted = {"glossary": terms, "matches": matches, "segment": True, "probabilities": asked["jsonl"]}
            return translator.translate(some, search, **wanted, **wishes)

        documents, failed = [], list[str]()
        for source, target in pairs:
            wanted = {"unsure_below": asked["fuzzy_below"], "column": asked["column"], "quiet": asked["quiet"]}
            recalling = MemoryFirst(translate, translator, store, asked["tell_above"])
            try:
                done = run_document(translator, source, target, translate=recalling.translate, **wanted)
            except DataError as error:  # that of one file is no reason to leave the others
                if len(pairs) == 1:
                    raise
                failed.append(str(error))
                continue
            if not asked["quiet"]:
                recalling.say(f"{source}: different ")
            documents.append((source, done))
            if asked["jsonl"]:
                _write_jsonl(source, done)
        if asked["review"] is not None:
            write_review(asked["review"], documents, translator.settings.languages)
    if failed:
        said = f"{len(failed)} of {len(pairs)} documents could not be translated, the others are written:"
        raise DataError("\n  - ".join([said, *failed]))


def _pairs(texts: "Sequence[str]", review: Path | None) -> list[tuple[Path, Path]]:
    """in.po out.po in.html out.html -> two pairs, of which no file is written twice, or over one that is read."""
    if not texts or len(texts) % 2:
        raise ConfigError(
            f"--document wants two files, the document and where its translation goes (in.po out.po), or several such pairs; "
            f"there are {len(texts)}"
        )
    paths = [Path(text) for text in texts]
    pairs = list(zip(paths[::2], paths[1::2], strict=True))
    for source, target in pairs:
        check_paths(source, target)
    if review is not None:
        check_review(review)
    written = [*(target for _, target in pairs), *([review] if review else [])]
    places = [path.resolve() for path in (*written, *{source.resolve() for source, _ in pairs})]
    if twice := [str(path) for path, times in Counter(places).items() if times > 1]:
        raise ConfigError("a file is written once, and never over one that is read; give others instead of:", twice)
    return pairs


def _write_jsonl(source: Path, done: "TranslatedDocument") -> None:
    """A line for each text that was translated; one that was cut at its tags has a line for each part."""
    lines = [
        as_json(
            cast("Translation", result),
            file=str(source),
            line=unit.unit.line,
            review=[why.code for why in unit.reasons],
        )
        for unit in done.units
        for result in unit.results
    ]
    with open_output(None) as file:
        write_all(file, "".join(lines).encode())


def load_glossary(path: Path | None, translator: "Translator") -> "Glossary | None":
    from limelight.text.careful.glossary import Glossary

    return None if path is None else Glossary.load(path, translator.settings.languages)


def run_document(
    translator: "Translator",
    source: Path,
    target: Path,
    *,
    translate: "Translate | None" = None,
    unsure_below: float | None = None,
    column: str | None = None,
    quiet: bool = False,
) -> "TranslatedDocument":
    """Translate one file into another, which appears when it is complete. `translate` is the translator's own unless given."""
    from limelight.documents.document import translate_document
    from limelight.documents.translating import UNSURE_BELOW

    kind = check_paths(source, target)
    data = _content(source)
    began = time.monotonic()
    with Screen(quiet=quiet) as screen:
        done = translate_document(
            data,
            kind,
            translator.settings.languages,
            translate or translator.translate,
            unsure_below=UNSURE_BELOW if unsure_below is None else unsure_below,
            told=lambda texts, total: screen.step("translate", texts, total),
            name=str(source),
            column=column,
        )
    try:
        write_whole(target.resolve(), done.data)
    except PermissionError as error:
        raise ConfigError(f"{target} cannot be written ({error.strerror}); give a file that you may write") from None
    _say_warnings(source, done.warnings)
    if not quiet:
        count = sum(bool(unit.reasons) for unit in done.units)
        said = summary(done.counts) + (f" · {group_digits(count)} to look at (--review)" if count else "")
        seconds = time.monotonic() - began
        typer.echo(f"{source} -> {target}: {said} · {f'{seconds:.1f} s' if seconds < 60 else clock(seconds)}", err=True)
    return done


def check_paths(source: Path, target: Path) -> "Kind":
    """What kind of document it is. To be asked before a model is loaded: every reason not to begin is known by then."""
    from limelight.documents.kinds import kind_of

    kind, other = kind_of(source), kind_of(target)
    if kind != other:
        raise ConfigError(f"{source} is a document of the kind {kind} and {target} of the kind {other}; both must be the same")
    if not source.is_file():
        raise DataError(f"{source} is {'a folder' if source.is_dir() else 'not there'}; give a file")
    if target.is_dir():
        raise ConfigError(f"{target} is a folder; give the name of a file in it")
    if not target.resolve().parent.is_dir():
        raise ConfigError(f"the folder of {target} does not exist; make it first")
    if target.exists() and target.samefile(source):
        raise ConfigError(f"{target} is the document itself, which is never overwritten; give another name")
    return kind


def summary(counts: "DocumentCounts") -> str:
    """118 of 120 texts translated (3 of them between their tags, one by one), 1 unchanged, 1 failed; 4 left alone"""
    said = f"{group_digits(counts.translated)} of {group_digits(counts.texts)} texts translated"
    if counts.apart:
        said += f" ({group_digits(counts.apart)} of them between their tags, one by one)"
    said += f", {group_digits(counts.unchanged)} unchanged" if counts.unchanged else ""
    said += f", {group_digits(counts.failed)} failed" if counts.failed else ""
    return said + (f"; {group_digits(counts.left)} left alone" if counts.left else "")


def _content(source: Path) -> bytes:
    """At most one byte more than is taken, so that a huge file is refused without being read."""
    from limelight.documents.document import LARGEST

    try:
        with source.open("rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise DataError(f"{source} cannot be read ({error.strerror}); check the name and its rights") from None


def _say_warnings(source: Path, warnings: "Sequence[Remark]") -> None:
    """First what has no translation. How one was made is not told: nobody need do anything about it."""
    from limelight.decoding.guards import HARMLESS
    from limelight.documents.translating import LEAVING

    warnings = sorted((each for each in warnings if each.code not in HARMLESS), key=lambda each: each.code not in LEAVING)
    for remark in warnings[:MOST_WARNINGS]:
        typer.echo(f"warning: {source}:{remark.line}: {remark.code}: {remark.message}", err=True)
    if len(warnings) > MOST_WARNINGS:
        counts = Counter(remark.code for remark in warnings).most_common()
        typer.echo(f"warnings: {source}: {', '.join(f'{group_digits(times)} {code}' for code, times in counts)}", err=True)
