"""`limelight export`: a translator for the engines and libraries that people have already."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from limelight.errors import ConfigError

EXAMPLES = """Examples:

limelight export en-de

limelight export en-de --quantize int8 --probe news.en

limelight export en-de --to huggingface -o en-de-hf
"""


def export(
    bundle: Annotated[Path, typer.Argument(help="Folder of a bundle, or of a run.")],
    to: Annotated[str, typer.Option("--to", help="ctranslate2, huggingface or onnx.")] = "ctranslate2",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder to write; for ctranslate2 inside the bundle.")] = None,
    quantize: Annotated[str | None, typer.Option("--quantize", help="ctranslate2: float32, bfloat16, int8, int8_bfloat16 ...")] = None,
    probe: Annotated[Path | None, typer.Option("--probe", help="Lines of the source to compare with; the run's validation set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
) -> None:  # fmt: skip
    """Write a translator for CTranslate2 (the fast engine of translate and serve), Hugging Face or ONNX, and prove that it is the same."""
    ways: dict[str, Callable[..., tuple[dict[str, Any], list[str]]]] = {
        "ctranslate2": _ctranslate2,
        "huggingface": _huggingface,
        "onnx": _onnx,
    }
    if to not in ways:
        raise ConfigError(f"there is no export to {to!r}; there are {', '.join(ways)}")
    if to != "ctranslate2":
        given = {"--quantize": quantize, "--probe": probe}
        if wrong := [name for name, value in given.items() if value is not None]:
            raise ConfigError(f"{' and '.join(wrong)}: only for --to ctranslate2; leave it out")
        if output is None:
            raise ConfigError(f"--to {to} writes a new folder; say which with -o FOLDER")
    facts, lines = ways[to](bundle, output, quantize or "float32", probe)
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n" if as_json else "\n".join(lines) + "\n")


def _ctranslate2(
    folder: Path, output: Path | None, quantize: str, probe: Path | None
) -> tuple[dict[str, Any], list[str]]:
    from limelight.bundle import read
    from limelight.evaluation.reading import read_parallel
    from limelight.interop.ctranslate2 import export as write
    from limelight.runtime import keep_freed_memory

    keep_freed_memory()
    bundle = read(folder)
    texts = None if probe is None else read_parallel([str(probe)])[0]
    made = write(bundle, quantize, texts, output)
    where = output or bundle.folder / "ctranslate2"
    heads = ", ".join(f"layer {layer + 1} head {head + 1}" for layer, head in made.alignment)
    lines = [
        f"wrote {where}: {made.bytes / 1e6:.1f} MB, {quantize}, CTranslate2 {made.version}",
        f"compared with our own on {made.sentences} sentences ({made.probe}): {made.same:.1%} the same, chrF {made.chrf:.1f}, "
        f"scores within {made.score_apart:.1e}",
        f"alignment from {heads} ({made.alignment_from})",
    ]
    if output is None:
        lines.append(f"limelight translate {folder} uses it from now on; --engine torch does not")
    return {"folder": str(where), **made.model_dump(mode="json")}, lines


def _huggingface(
    folder: Path, output: Path | None, quantize: str, probe: Path | None
) -> tuple[dict[str, Any], list[str]]:
    raise ConfigError("--to huggingface is not there yet")


def _onnx(folder: Path, output: Path | None, quantize: str, probe: Path | None) -> tuple[dict[str, Any], list[str]]:
    from limelight.bundle import read

    try:
        from limelight.interop.onnx import export_onnx
    except ImportError as error:
        raise ConfigError(f"--to onnx needs more packages ({error.name}); pip install 'limelight[onnx]'") from None
    assert output is not None
    made = export_onnx(read(folder), output)
    facts = {"folder": str(made.folder), "files": made.files, **vars(made.parity)}
    return facts, [
        f"wrote {made.folder}: {sum(made.files.values()) / 1e6:.1f} MB in {len(made.files)} files",
        f"compared with torch in {made.parity.steps} steps: log-probabilities within {made.parity.worst:.1e}, "
        f"the same next piece in {made.parity.agreed}",
    ]
