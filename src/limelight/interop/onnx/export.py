"""A bundle is exported as ONNX, for programs without torch: two graphs, the pieces, and a config.json.

    en-de-onnx/
      encoder.onnx  decoder.onnx     what goes in and out: see onnx.graphs
      pieces.model                   SentencePiece, and vocabulary.json, as they are in the bundle
      config.json                    inputs and outputs by name and shape, special ids, what was measured

    export_onnx(read(Path("en-de")), Path("en-de-onnx"))

The folder appears only once ONNX Runtime gives the log-probabilities of the model.
"""

import json
import secrets
import shutil
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from limelight.bundle.bundle import Bundle
from limelight.bundle.layout import (
    CONFIG,
    SHARED,
    SOURCE,
    SOURCE_VOCABULARY,
    TARGET,
    TARGET_VOCABULARY,
    VOCABULARY,
)
from limelight.errors import ModelFileError
from limelight.files import force_to_disk, put_folder
from limelight.interop.onnx.graphs import DECODER, ENCODER, OPSET, decoder_ports, encoder_ports, write_graphs
from limelight.interop.onnx.parity import OnnxParity, prove

FORMAT = 1
PIECES = (SHARED, SOURCE, TARGET, VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY)


@dataclass(frozen=True)
class OnnxExport:
    """An ONNX export says what was written, in bytes, and how close it comes to the model."""

    folder: Path
    files: dict[str, int]
    parity: OnnxParity


def export_onnx(bundle: Bundle, folder: Path, force: bool = False) -> OnnxExport:
    """In float32. `force` replaces an earlier export to ONNX, and nothing else."""
    folder = folder.resolve()
    if folder.exists() and not force:
        raise ModelFileError(f"{folder} exists already; give another name, or force=True to replace an ONNX export")
    if folder.exists() and not all((folder / name).is_file() for name in (ENCODER, DECODER, CONFIG)):
        raise ModelFileError(f"{folder} is no ONNX export and will not be replaced; give another name")
    beside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    beside.mkdir(parents=True)
    try:
        model = bundle.load_model(torch.float32, "cpu")
        write_graphs(model, beside)
        parity = prove(model, beside)
        for path in _pieces(bundle):
            shutil.copyfile(path, beside / path.name)
        text = json.dumps(config_of(bundle, beside, parity), indent=1, ensure_ascii=False, allow_nan=False)
        (beside / CONFIG).write_bytes(text.encode() + b"\n")
        files = {path.name: path.stat().st_size for path in sorted(beside.iterdir())}
        for path in (*beside.iterdir(), beside):
            force_to_disk(path)
        put_folder(beside, folder)
        return OnnxExport(folder, files, parity)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def config_of(bundle: Bundle, folder: Path, parity: OnnxParity) -> dict[str, Any]:
    """All that a program needs to know beside the graphs and the pieces in the folder."""
    settings, model = bundle.settings, bundle.settings.model
    special = {"pad": model.pad_token, "start": model.start_token, "end": model.end_token}
    special["unknown"] = unknown = bundle.target_tokenizer.unknown
    refused = {model.pad_token, model.start_token, *settings.search.suppress}
    refused |= set() if settings.search.allow_unknown else {unknown}
    return {
        "format": FORMAT,
        "made_by": f"limelight {version('limelight')}, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}",
        "languages": settings.languages,
        "normalization": settings.normalization,
        "pieces": _sides(folder, SHARED, SOURCE, TARGET),
        "vocabulary": _sides(folder, VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY),
        "special": special,
        "source_begin": settings.source_begin,
        "target_begin": settings.target_begin,
        "never": sorted(refused - {model.end_token}),
        "max_length": model.max_length,
        "opset": OPSET,
        "encoder": _describe_graph(ENCODER, *encoder_ports(model)),
        "decoder": _describe_graph(DECODER, *decoder_ports(model)),
        "parity": asdict(parity),
    }


def _pieces(bundle: Bundle) -> list[Path]:
    return [bundle.folder / name for name in PIECES if (bundle.folder / name).is_file()]


def _sides(folder: Path, both: str, source: str, target: str) -> dict[str, str] | None:
    """Which file serves which side; None when there is none."""
    if (folder / both).is_file():
        return {"source": both, "target": both}
    return {"source": source, "target": target} if (folder / source).is_file() else None


def _describe_graph(name: str, inputs: list[Any], outputs: list[Any]) -> dict[str, Any]:
    return {"file": name, "inputs": [asdict(port) for port in inputs], "outputs": [asdict(port) for port in outputs]}
