"""An export to ONNX computes what the model computes, or is refused; the folder is all that a program without torch needs.

torch.onnx takes about ten seconds for the smallest model, so what needs a real export is marked `reference`.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed; pip install 'limelight[onnx]'")
pytest.importorskip("onnxscript", reason="ONNX Script is not installed; pip install 'limelight[onnx]'")
import onnx
import onnxruntime
from onnx import numpy_helper

import limelight.interop.onnx.export
from limelight.bundle import BundleSettings, read, write
from limelight.decoding.config import SearchSettings
from limelight.errors import ModelFileError
from limelight.interop.onnx.export import config_of, export_onnx
from limelight.interop.onnx.graphs import (
    DecoderGraph,
    EncoderGraph,
    OnnxError,
    decoder_ports,
    encoder_ports,
    in_stages,
    write_graphs,
)
from limelight.interop.onnx.parity import BOUND, OnnxParity, prove
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.vocabulary import Vocabulary

sys.path.insert(0, str(Path(__file__).parents[1] / "bundles"))
from make_numbers import draw_pairs, translate

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "bundles" / "format-1"
EXAMPLE = Path(__file__).with_name("onnx_greedy.py")
DOCS = ROOT / "docs" / "interop.md"

# Every position, norm, activation, tie and grouping that a config knows is in one of these.
VARIANTS: dict[str, dict[str, Any]] = {
    "paper": {},
    "marian": {"activation": "silu", "position_layout": "halves", "output_bias": True, "start_token": 0},
    "m2m100": {"norm_order": "pre", "position_layout": "tensor2tensor", "position_offset": 2, "start_token": 3},
    "learned": {
        "positions": "learned",
        "position_offset": 1,
        "activation": "gelu",
        "tie": "decoder",
        "source_vocab_size": 29,
        "scale_embeddings": False,
    },
    "modern": {
        "norm_order": "pre",
        "norm": "rms",
        "activation": "swiglu",
        "positions": "rotary",
        "bias": False,
        "num_kv_heads": 3,
        "tie": "none",
    },
    "rotary halves": {
        "norm": "rms",
        "activation": "geglu",
        "positions": "rotary",
        "position_layout": "halves",
        "position_offset": 3,
        "num_kv_heads": 1,
        "tie": "decoder",
    },
    "deep encoder": {
        "norm_order": "pre",
        "activation": "reglu",
        "encoder_layers": 2,
        "output_bias": True,
        "tie": "none",
    },
}


def make(**changes: Any) -> Transformer:
    """A random model, its biases and norms included."""
    sizes = {"vocab_size": 37, "encoder_layers": 1, "decoder_layers": 1, "d_model": 24, "d_ff": 20, "num_heads": 6}
    torch.manual_seed(5)
    model = Transformer(ModelConfig(**{**sizes, "max_length": 40, **changes})).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.1)
    return model


@pytest.fixture(scope="module")
def export(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[bytes]:
    """The stored bundle, exported by another process, so that all that it says is seen. Its last argument is the folder."""
    folder = tmp_path_factory.mktemp("onnx") / "numbers-onnx"
    code = (
        "import json, sys\nfrom dataclasses import asdict\nfrom pathlib import Path\nfrom limelight.bundle import read\n"
        "from limelight.interop.onnx.export import config_of, export_onnx\n"
        "report = export_onnx(read(Path(sys.argv[1])), Path(sys.argv[2]))\n"
        "sys.stdout.write(json.dumps({'files': report.files, 'parity': asdict(report.parity)}))"
    )
    command = [sys.executable, "-W", "default", "-c", code, str(STORED), str(folder)]
    return subprocess.run(command, capture_output=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def folder(export: subprocess.CompletedProcess[bytes]) -> Path:
    return Path(export.args[-1])


@pytest.fixture
def copied(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copied"))


def change(path: Path, most: float) -> None:
    """One weight of a graph by up to so much."""
    graph = onnx.load(path)
    weight = next(w for w in graph.graph.initializer if "target_embedding" in w.name)
    values = numpy_helper.to_array(weight)
    drift = np.linspace(0, most, values.size, dtype=np.float32).reshape(values.shape)
    weight.CopyFrom(numpy_helper.from_array(values + drift, weight.name))
    onnx.save(graph, path)


def copy_graphs(folder: Path, beside: Path) -> None:
    """Stands in for the exporter, which takes ten seconds, where what it gives is known."""
    for name in ("encoder.onnx", "decoder.onnx"):
        shutil.copy(folder / name, beside / name)


@pytest.mark.long
@pytest.mark.reference
def test_an_export_says_nothing_but_its_report(export, folder):
    assert export.stderr == b""
    report = json.loads(export.stdout)
    assert report["files"] == {path.name: path.stat().st_size for path in folder.iterdir()}
    assert set(report["files"]) == {"encoder.onnx", "decoder.onnx", "pieces.model", "config.json"}
    assert 0 < report["parity"]["worst"] < BOUND
    assert report["parity"]["steps"] == report["parity"]["agreed"] > 100


@pytest.mark.reference
def test_nothing_is_left_beside_the_folder(folder):
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


@pytest.mark.reference
def test_the_config_tells_what_goes_in_and_out(folder):
    config = json.loads((folder / "config.json").read_bytes())
    bundle = read(STORED)
    for side in ("encoder", "decoder"):
        session = onnxruntime.InferenceSession(folder / config[side]["file"], providers=["CPUExecutionProvider"])
        for kind, found in (("inputs", session.get_inputs()), ("outputs", session.get_outputs())):
            told = [(port["name"], port["shape"], port["dtype"]) for port in config[side][kind]]
            dtypes = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(bool)": "bool"}
            assert told == [(port.name, port.shape, dtypes[port.type]) for port in found]
    assert config["special"] == {"pad": 0, "unknown": 1, "start": 2, "end": 3}
    assert config["never"] == sorted({0, 1, 2} | bundle.target_tokenizer.controls() - {3})
    assert config["normalization"] == list(bundle.settings.normalization)
    assert (folder / config["pieces"]["source"]).read_bytes() == bundle.source_tokenizer.model


@pytest.mark.reference
def test_the_graphs_are_valid_onnx_and_do_not_tell_where_they_were_made(folder):
    for name in ("encoder.onnx", "decoder.onnx"):
        onnx.checker.check_model(onnx.load(folder / name), full_check=True)
        assert b"limelight" not in (folder / name).read_bytes()


@pytest.mark.reference
def test_the_example_of_the_docs_translates_as_the_model_does(folder):
    bundle = read(STORED)
    texts = [source for source, _ in draw_pairs(20, Random(7), held_out=True)]
    done = subprocess.run([sys.executable, EXAMPLE, folder, *texts], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    expected = translate(bundle.load_model(), bundle.target_tokenizer, texts)
    assert done.stdout.decode().split("\n")[:-1] == expected


def test_the_example_needs_neither_torch_nor_limelight():
    assert "torch" not in EXAMPLE.read_text("utf-8") and "limelight" not in EXAMPLE.read_text("utf-8")


def test_the_docs_show_the_example_that_runs():
    text = DOCS.read_text("utf-8") if DOCS.is_file() else ""
    if "onnx" not in text.lower():
        pytest.skip("docs/interop.md has no section about ONNX yet")
    assert EXAMPLE.read_text("utf-8").strip() in text


@pytest.mark.reference
@pytest.mark.parametrize("name", ["encoder.onnx", "decoder.onnx"])
def test_a_changed_weight_is_refused(copied, name):
    change(copied / name, 0.01)
    with pytest.raises(OnnxError, match=r"differ by up to \d\.\d\de[-+]\d\d, the bound is 1e-04"):
        prove(read(STORED).load_model(), copied)


@pytest.mark.reference
def test_scores_that_are_no_numbers_are_refused(copied):
    graph = onnx.load(copied / "decoder.onnx")
    for weight in graph.graph.initializer:
        if "embedding" in weight.name:
            weight.CopyFrom(numpy_helper.from_array(np.full(weight.dims, np.nan, np.float32), weight.name))
    onnx.save(graph, copied / "decoder.onnx")
    with pytest.raises(OnnxError, match="differ by up to nan"):
        prove(read(STORED).load_model(), copied)


@pytest.mark.reference
def test_graphs_that_cannot_be_run_are_refused(copied):
    shutil.copy(copied / "encoder.onnx", copied / "decoder.onnx")
    with pytest.raises(OnnxError, match="cannot run the graphs"):
        prove(read(STORED).load_model(), copied)


@pytest.mark.reference
def test_an_export_that_does_not_pass_leaves_no_folder(copied, tmp_path, monkeypatch):
    change(copied / "decoder.onnx", 0.01)
    monkeypatch.setattr(limelight.interop.onnx.export, "write_graphs", lambda _, beside: copy_graphs(copied, beside))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OnnxError, match="do not compute what the model computes"):
        export_onnx(read(STORED), tmp_path / "new")
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.reference
def test_only_an_earlier_export_is_replaced_and_only_when_asked(folder, copied, tmp_path, monkeypatch):
    monkeypatch.setattr(limelight.interop.onnx.export, "write_graphs", lambda _, beside: copy_graphs(folder, beside))
    (tmp_path / "notes").mkdir()
    (copied / "old").write_bytes(b"")
    with pytest.raises(ModelFileError, match="is no ONNX export and will not be replaced"):
        export_onnx(read(STORED), tmp_path / "notes", force=True)
    with pytest.raises(ModelFileError, match="exists already"):
        export_onnx(read(STORED), copied)
    assert (copied / "old").is_file()
    report = export_onnx(read(STORED), copied, force=True)
    assert report.folder == copied and set(report.files) == {path.name for path in folder.iterdir()}
    assert {path.name for path in copied.iterdir()} == set(report.files)


def test_a_model_without_room_for_lengths_to_vary_is_refused(tmp_path):
    with pytest.raises(OnnxError, match="max_length=3 is too short for ONNX; it needs 4 or more"):
        write_graphs(make(max_length=3), tmp_path)


def test_the_config_tells_of_ids_that_are_not_those_of_sentencepiece(tmp_path):
    """As of a published model of many languages: another order of pieces, the padding at the end, a language before every text."""
    stored = read(STORED)
    pieces = tuple(reversed(stored.target_tokenizer.vocabulary))
    last = len(pieces) - 1
    vocabulary = Vocabulary(pieces=pieces, pad=last, unknown=last - 1, start=last - 2, end=last - 3)
    ids = {"vocab_size": last + 1, "pad_token": last, "end_token": last - 3, "start_token": last - 3}
    model = make(**ids)
    settings = BundleSettings(
        languages=("en", "de"),
        model=model.config,
        source_begin=(7,),
        target_begin=(8, 9),
        search=SearchSettings(allow_unknown=True, suppress=(5,)),
    )
    write(tmp_path / "bundle", settings, model.state_dict(), stored.target_tokenizer.model, vocabulary=vocabulary)
    config = config_of(read(tmp_path / "bundle"), tmp_path / "bundle", OnnxParity(worst=1e-6, steps=3, agreed=3))
    assert config["vocabulary"] == {"source": "vocabulary.json", "target": "vocabulary.json"}
    assert config["special"] == {"pad": last, "unknown": last - 1, "start": last - 3, "end": last - 3}
    assert config["never"] == sorted({5, last} | read(tmp_path / "bundle").target_tokenizer.controls() - {last - 3})
    assert (list(config["source_begin"]), list(config["target_begin"])) == ([7], [8, 9])


@pytest.mark.parametrize("name", VARIANTS)
@torch.inference_mode()
def test_what_is_traced_computes_what_the_model_computes(name):
    model = make(**VARIANTS[name])
    source = torch.tensor([[9, 8, 7, 3], [5, 3, 0, 0], [28, 3, 0, 0]])
    token, state = torch.tensor([model.config.start_token] * 3), model.start(source)
    with in_stages(model):
        *memory, visible = EncoderGraph(model)(source)
        past = [torch.zeros(3, model.config.kv_heads, 0, model.config.d_head)] * 2
    for _ in range(5):
        expected, state = model.step(token, state)
        with in_stages(model):
            log_probs, *past = DecoderGraph(model)(token, visible, memory, past)
        torch.testing.assert_close(log_probs, expected, rtol=0, atol=1e-5)
        token = expected.argmax(dim=-1)
    assert not any(light.attention.looks for light in model.spotlights())
    for ports, tensors in (
        (encoder_ports(model.config)[1], [*memory, visible]),
        (decoder_ports(model.config)[1], [log_probs, *past]),
    ):
        assert [len(port.shape) for port in ports] == [tensor.dim() for tensor in tensors]


@pytest.mark.reference
@pytest.mark.parametrize("name", VARIANTS if os.environ.get("LIMELIGHT_LINES") else list(VARIANTS)[:2])  # all in the claim
def test_every_kind_of_model_computes_the_same_in_onnx_runtime(name, tmp_path):
    model = make(**VARIANTS[name])
    write_graphs(model, tmp_path)
    parity = prove(model, tmp_path)
    assert parity.worst < 1e-5
    assert parity.agreed == parity.steps > 200
