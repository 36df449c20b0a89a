"""`limelight export` writes a translator for CTranslate2, Hugging Face, ONNX or a web page, and checks that it is the same."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.cli.completion import exports
from limelight.cli.fetching import Yes
from limelight.errors import ConfigError, MissingExtraError

EXAMPLES = (
    "limelight export en-de",
    "limelight export en-de --quantize int8 --probe news.en",
    "limelight export en-de --to huggingface -o en-de-hf",
    "limelight export en-de --to web -o en-de-web",
    "limelight export en-de --to web --single-file -o en-de.html",
)


def export(
    bundle: Annotated[Path, typer.Argument(help="Folder of a bundle, or of a run.")],
    to: Annotated[str, typer.Option("--to", autocompletion=exports, help="ctranslate2, huggingface, onnx or web.")] = "ctranslate2",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write; for ctranslate2 inside the bundle.")] = None,
    quantize: Annotated[str | None, typer.Option("--quantize", help="ctranslate2: float32, bfloat16, int8; web: uint8, float32.")] = None,
    probe: Annotated[Path | None, typer.Option("--probe", help="Lines of the source to compare with; the run's validation set.")] = None,
    push: Annotated[str | None, typer.Option("--push", help="huggingface: put the folder on the hub as OWNER/NAME, private.")] = None,
    public: Annotated[bool, typer.Option("--public", help="With --push: for everybody.")] = False,
    single_file: Annotated[bool, typer.Option("--single-file", help="web: one HTML file, which opens from a disk.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    yes: Yes = False,
) -> None:  # fmt: skip
    """Write a translator for CTranslate2 (the fast engine of translate and serve), Hugging Face, ONNX or a web page, and compare both."""
    ways = {"ctranslate2": _ctranslate2, "huggingface": _huggingface, "onnx": _onnx, "web": _web}
    if to not in ways:
        raise ConfigError(f"there is no export to {to!r}; there are {', '.join(ways)}")
    asked = ExportOptions(output, quantize, probe, push, public, single_file)
    _check(to, asked)
    facts, lines = ways[to](bundle, asked)
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n" if as_json else "\n".join(lines) + "\n")


@dataclass(frozen=True)
class ExportOptions:
    output: Path | None
    quantize: str | None
    probe: Path | None
    push: str | None
    public: bool
    single_file: bool = False


ExportOutput = tuple[dict[str, Any], list[str]]  # for programs, and for people


def _check(to: str, asked: ExportOptions) -> None:
    own: dict[str, tuple[tuple[str, ...], Any]] = {
        "--quantize": (("ctranslate2", "web"), asked.quantize),
        "--probe": (("ctranslate2", "web"), asked.probe),
        "--push": (("huggingface",), asked.push),
        "--public": (("huggingface",), asked.public or None),
        "--single-file": (("web",), asked.single_file or None),
    }
    if wrong := [
        f"{name}: only for --to {' or '.join(ways)}" for name, (ways, value) in own.items() if value is not None and to not in ways
    ]:
        raise ConfigError(f"{'; '.join(wrong)}; leave it out")
    if asked.public and asked.push is None:
        raise ConfigError("--public says who may see what is pushed; say where with --push OWNER/NAME")
    if to != "ctranslate2" and asked.output is None:
        written = "one new file; say which with -o FILE.html" if asked.single_file else "a new folder; say which with -o FOLDER"
        raise ConfigError(f"--to {to} writes {written}")


def _ctranslate2(folder: Path, asked: ExportOptions) -> ExportOutput:
    from limelight.bundle import read
    from limelight.evaluation.inputs import read_parallel
    from limelight.interop.ctranslate2.export import export as write
    from limelight.runtime import keep_freed_memory

    keep_freed_memory()
    bundle = read(folder)
    texts = None if asked.probe is None else read_parallel([str(asked.probe)])[0]
    _announce_comparison()
    made = write(bundle, asked.quantize or "float32", texts, asked.output)
    where = asked.output or bundle.folder / "ctranslate2"
    heads = ", ".join(f"cross.{layer}.{head}" for layer, head in made.alignment)  # as the desk and --gate name them
    lines = [
        f"wrote {where}: {made.bytes / 1e6:.1f} MB, {made.quantize}, CTranslate2 {made.version}",
        f"compared with our own on {made.sentences} sentences ({made.probe}): {made.same:.1%} the same, chrF {made.chrf:.1f}, "
        f"scores within {made.score_apart:.1e}",
        *([] if made.int8 is None else [f"with --dtype int8: {made.int8.same:.1%} the same, chrF {made.int8.chrf:.1f}"]),
        f"alignment from {heads} ({made.alignment_from})",
    ]
    if asked.output is None:
        lines.append(f"limelight translate {folder} uses it from now on; --engine torch does not")
    return {"folder": str(where), **made.model_dump(mode="json")}, lines


def _announce_comparison() -> None:
    typer.echo("what is exported translates some hundred sentences, and is compared with torch: a minute or several", err=True)


def _huggingface(folder: Path, asked: ExportOptions) -> ExportOutput:
    from limelight.bundle import read
    from limelight.interop.huggingface.export import export_folder

    assert asked.output is not None
    made = export_folder(read(folder), asked.output)
    facts = {"folder": str(made.folder), "model": made.model_class, "tokenizer": made.tokenizer_class}
    lines = [
        f"wrote {asked.output}: {made.model_class} with {made.tokenizer_class}, for AutoModelForSeq2SeqLM and AutoTokenizer",
        *(f"notice: {notice}" for notice in made.notices),
    ]
    if asked.push is not None:
        from limelight.interop.huggingface.hub import push

        facts["address"] = push(made.folder, asked.push, private=not asked.public)
        lines.append(f"pushed to {facts['address']}, {'for everybody' if asked.public else 'private'}")
    return {**facts, "notices": list(made.notices)}, lines


def _onnx(folder: Path, asked: ExportOptions) -> ExportOutput:
    from limelight.bundle import read

    try:
        from limelight.interop.onnx.export import export_onnx
    except ImportError as error:
        raise MissingExtraError(error.name, "--to onnx", "onnx") from None
    assert asked.output is not None
    _announce_comparison()
    made = export_onnx(read(folder), asked.output)
    facts = {"folder": str(made.folder), "files": made.files, **vars(made.parity)}
    return facts, [
        f"wrote {made.folder}: {sum(made.files.values()) / 1e6:.1f} MB in {len(made.files)} files",
        f"compared with torch in {made.parity.steps} steps: log-probabilities within {made.parity.worst:.1e}, "
        f"the same next piece in {made.parity.agreed}",
    ]


def _web(folder: Path, asked: ExportOptions) -> ExportOutput:
    from limelight.bundle import read
    from limelight.evaluation.inputs import read_parallel

    try:
        from limelight.interop.parity import NONSENSE
        from limelight.interop.web.export import export_web
    except ImportError as error:
        raise MissingExtraError(error.name, "--to web", "onnx") from None
    assert asked.output is not None
    texts = None if asked.probe is None else read_parallel([str(asked.probe)])[0]
    _announce_comparison()
    made = export_web(read(folder), asked.output, asked.quantize, asked.single_file, texts)
    facts = {"path": str(made.path), "files": made.files, "browser": made.browser}
    lines = [f"wrote {made.path}: {sum(made.files.values()) / 1e6:.1f} MB in {len(made.files)} files"]
    lines += [
        f"compared with torch in {each.engine} on {each.sentences} sentences ({each.probe}), {each.numbers}: {each.same:.1%} the same, "
        f"chrF {each.chrf:.1f}, scores within {each.score_apart:.1e}"
        for each in made.parity
    ]
    if any(each.probe == NONSENSE and each.numbers != "float32" for each in made.parity):
        lines.append("notice: uint8 was only measured, since no model is sure of what is made up; give --probe to have it judged")
    if made.browser is None:
        lines.append("notice: not compared in a browser, since no Chromium or Firefox starts; its graphs were compared with torch")
    return facts | {"parity": [each.model_dump(mode="json") for each in made.parity]}, lines
