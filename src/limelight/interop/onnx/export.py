"""A bundle is exported as ONNX, for programs without torch: two graphs, the pieces, and a config.json. See docs/interop.md."""

import json
import shutil
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnxruntime
import torch

from limelight.bundle.bundle import Bundle
from limelight.bundle.layout import CONFIG, PIECES, VOCABULARIES, pick_files
from limelight.errors import ModelFileError
from limelight.files import whole_folder
from limelight.interop.onnx.graphs import DECODER, ENCODER, OPSET, decoder_ports, encoder_ports, write_graphs
from limelight.interop.onnx.parity import OnnxParity, prove

FORMAT = 1


@dataclass(frozen=True)
class OnnxExport:
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
    with whole_folder(folder) as beside:
        model = bundle.load_model(torch.float32, "cpu")
        write_graphs(model, beside)
        parity = prove(model, beside)
        for name in (*PIECES, *VOCABULARIES):
            if (bundle.folder / name).is_file():
                shutil.copyfile(bundle.folder / name, beside / name)
        text = json.dumps(config_of(bundle, beside, parity), indent=1, ensure_ascii=False, allow_nan=False)
        (beside / CONFIG).write_bytes(text.encode() + b"\n")
        files = {path.name: path.stat().st_size for path in sorted(beside.iterdir())}
    return OnnxExport(folder, files, parity)


def config_of(bundle: Bundle, folder: Path, parity: OnnxParity) -> dict[str, Any]:
    """All that a program needs to know beside the graphs and the pieces in the folder."""
    settings, model, target = bundle.settings.aim(), bundle.settings.model, bundle.target_tokenizer
    special = {"pad": model.pad_token, "start": model.start_token, "end": model.end_token}
    special["unknown"] = unknown = target.unknown
    refused = {model.pad_token, model.start_token, *settings.search.suppress, *target.controls()}
    refused |= set() if settings.search.allow_unknown else {unknown}
    return {
        "format": FORMAT,
        "made_by": f"limelight {version('limelight')}, torch {torch.__version__}, onnxruntime {onnxruntime.__version__}",
        "languages": settings.languages,
        "normalization": settings.normalization,
        "pieces": _sides(folder, PIECES),
        "vocabulary": _sides(folder, VOCABULARIES),
        "special": special,
        "source_begin": settings.source_begin,
        "source_ends": settings.source_ends,
        "target_begin": settings.target_begin,
        **({} if settings.tags is None else {"tags": settings.tags.model_dump(mode="json")}),
        "never": sorted(refused - {model.end_token}),
        "max_length": model.max_length,
        "opset": OPSET,
        "encoder": _describe_graph(ENCODER, *encoder_ports(model)),
        "decoder": _describe_graph(DECODER, *decoder_ports(model)),
        "parity": asdict(parity),
    }


def _sides(folder: Path, names: tuple[str, str, str]) -> dict[str, str] | None:
    """Which file serves which side; None when there is none."""
    there = {path.name for path in folder.iterdir()}
    source, target = pick_files(names, there)
    return {"source": source, "target": target} if source in there else None


def _describe_graph(name: str, inputs: list[Any], outputs: list[Any]) -> dict[str, Any]:
    return {"file": name, "inputs": [asdict(port) for port in inputs], "outputs": [asdict(port) for port in outputs]}
