"""Model files of somebody else, damaged or made to do harm: refused by an error of ours, or a model that is what it says."""

import importlib.util
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

if importlib.util.find_spec("transformers") is None:
    pytest.skip("makes its models with transformers; pip install limelight[compare]", allow_module_level=True)
sys.path.insert(0, str(Path(__file__).parent))
from mutants import ENGINES, MARIAN, mutants
from published_models import change_json, marian, write_json
from safetensors.torch import load_file, save_file

from limelight.bundle import read, relist
from limelight.cli.main import main
from limelight.decoding.steps import Specials
from limelight.errors import ModelFileError
from limelight.interop.ctranslate2.export import save
from limelight.interop.ctranslate2.file import KINDS, read_model
from limelight.interop.ctranslate2.load import import_model
from limelight.interop.huggingface.load import import_folder
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

ROOT = Path(__file__).parents[2]
PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(chr(0x100 + n) for n in range(60))]
# More where they are asked for, since a thousand take a quarter of an hour: LIMELIGHT_MUTANTS=1000, as `make claim-interop FULL=1` has it.
MANY = [
    pytest.param(int(count), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])
    for count in os.environ.get("LIMELIGHT_MUTANTS", "").split()
]
MEMORY, SECONDS = (
    256,
    10,
)  # megabytes that all mutants of a file may need beside the first import; of computing for one of them


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "model"
    marian(folder)
    return folder


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine")
    config = ModelConfig.preset("toy", len(PIECES), encoder_layers=1, decoder_layers=1)
    save(config, Transformer(config).state_dict(), (PIECES, PIECES), Specials(), [(0, 0)], folder)
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(published, tmp_path / "model"))


@pytest.fixture
def engine_folder(engine: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(engine, tmp_path / "model"))


def refused(folder: Path) -> str:
    """By whichever reader is for the folder. Nothing is written."""
    with pytest.raises(ModelFileError) as caught:
        if (folder / "model.bin").exists():
            import_model(folder, folder.with_name("out"), ("en", "de"))
        else:
            import_folder(folder, folder.with_name("out"), ("en", "de"))
    assert not folder.with_name("out").exists()
    return str(caught.value)


# ---- in a bundle the manifest refuses every change


@pytest.mark.slow
@pytest.mark.parametrize("count", [40, *MANY])
def test_every_changed_file_of_a_bundle_is_refused_by_name(count: int, engine: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    import_model(engine, bundle, ("en", "de"))
    shutil.copytree(engine, bundle / "ctranslate2")
    relist(bundle)
    read(bundle)
    pieces = next(bundle.glob("*.model")).name
    for name in ("model.safetensors", "ctranslate2/model.bin", pieces, "config.json", "vocabulary.json"):
        content = (bundle / name).read_bytes()
        for mutant in mutants(Path(name).name, content, count, seed=0):
            (bundle / name).write_bytes(mutant)
            with pytest.raises(ModelFileError, match=f"{re.escape(name)}: (is damaged|has .* bytes)"):
                read(bundle)
        (bundle / name).write_bytes(content)
    read(bundle)


# ---- a folder of somebody else has no manifest


@pytest.mark.process
@pytest.mark.parametrize("count", [25, *MANY])
@pytest.mark.parametrize(("kind", "names"), [("published", MARIAN), ("engine", ENGINES)])
def test_no_change_does_more_than_be_refused(count: int, kind: str, names: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    """Or gives a model with finite weights and as many pieces as rows. In a process of its own: a crash would be seen."""
    command = [sys.executable, str(Path(__file__).with_name("mutants.py")), str(request.getfixturevalue(kind))]
    done = subprocess.run([*command, str(count), "1", *names], stdout=subprocess.PIPE, check=True)
    for name, found in json.loads(done.stdout).items():
        assert set(found["outcomes"]) <= {"refused", "imported"}, (name, found)
        assert sum(found["outcomes"].values()) == count and found["outcomes"]["refused"] > 0
        assert found["megabytes"] < MEMORY and found["seconds"] < SECONDS, (name, found)


@pytest.mark.process
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(value: float, folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.encoder.layers.1.fc1.weight"][2, 3] = value
    save_file(weights, folder / "model.safetensors")
    assert "fc1.weight has values that are infinite or no numbers" in refused(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_of_the_engine_that_are_no_numbers_are_refused(value: float, engine_folder: Path) -> None:
    name = "encoder/layer_0/ffn/linear_0/weight"
    weights = read_model(engine_folder / "model.bin").variables[name].clone()
    weights[2, 3] = value
    rewrite(engine_folder / "model.bin", {name: (tuple(weights.shape), 0, weights.numpy().tobytes())})
    assert "infinite or no numbers" in refused(engine_folder)


@pytest.mark.process
@pytest.mark.parametrize("more", [-1, 1])
def test_a_vocabulary_that_is_not_of_the_size_of_the_embedding_is_refused(more: int, folder: Path) -> None:
    size = json.loads((folder / "config.json").read_bytes())["vocab_size"]
    change_json(folder / "config.json", vocab_size=size + more, decoder_vocab_size=size + more)
    assert re.search(rf"\({size}, 24\), but config.json makes it \({size + more}, 24\)|pad_token={size - 1}", refused(folder))


@pytest.mark.parametrize("pieces", [PIECES[:-1], [*PIECES, "a"], [*PIECES[:-1], PIECES[-2]]], ids=["short", "long", "twice"])
def test_a_vocabulary_of_the_engine_that_does_not_fit_is_refused(pieces: list[str], engine_folder: Path) -> None:
    write_json(engine_folder / "shared_vocabulary.json", pieces)
    assert re.search(r"64 embeddings for 6[35] pieces|occurs twice", refused(engine_folder))


# ---- files that were made, not damaged


def rewrite(path: Path, changes: dict[str, tuple[tuple[int, ...], int, bytes]]) -> None:
    """model.bin with other variables: shape, kind of numbers, bytes."""
    model = read_model(path)
    variables = {n: (tuple(t.shape), KINDS.index(t.dtype), t.numpy().tobytes()) for n, t in model.variables.items()}

    def text(name: str) -> bytes:
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    made = struct.pack("<I", model.version) + text(model.spec) + struct.pack("<I", model.revision)
    made += struct.pack("<I", len(variables | changes))
    for name, (shape, kind, data) in (variables | changes).items():
        made += text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape) + struct.pack("<BI", kind, len(data)) + data
    path.write_bytes(made + struct.pack("<I", 0))


TABLE, LAYER = "encoder/position_encodings/encodings", "encoder/layer_0"


@pytest.mark.parametrize(
    "changes",
    [
        {TABLE: ((2_000_000, 0), 0, b"")},  # no byte in the file, a gigabyte where its rows are counted
        {TABLE: ((2, 3, 4), 0, bytes(96))},
        {TABLE: ((), 0, bytes(4))},
        {"more": ((2**32 - 1,) * 9 + (0,), 0, b"")},
        {"more": ((1,) * 255, 0, bytes(4))},
        {"encoder/embeddings_0/weight": ((64, 0), 0, b"")},
        {"encoder/num_heads": ((), 0, struct.pack("<f", float("inf")))},
        {"encoder/num_heads": ((), 0, struct.pack("<f", float("nan")))},
        {"encoder/num_heads": ((), 3, struct.pack("<i", -3))},
        {"encoder/num_heads": ((), 3, struct.pack("<i", 2**31 - 1))},
        {f"{LAYER}/ffn/linear_0/weight": ((), 0, bytes(4))},
        {f"{LAYER}/ffn/linear_0/weight_scale": ((3,), 0, bytes(12))},
        {f"{LAYER}/ffn/linear_0/weight_scale": ((), 0, bytes(4))},
        {
            f"{LAYER}/self_attention/rotary_dim": ((1,), 3, bytes(4)),
            f"{LAYER}/self_attention/rotary_interleave": ((2,), 1, b"\1\1"),
        },
    ],
    ids=lambda changes: " ".join(f"{name} {shape}"[:60] for name, (shape, _, _) in changes.items()),
)
def test_variables_of_the_engine_that_belong_to_no_model_are_refused(changes: Any, engine_folder: Path) -> None:
    rewrite(engine_folder / "model.bin", changes)
    begin = time.process_time()
    refused(engine_folder)
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("shared_vocabulary.json", b"[" * 200_000),
        ("shared_vocabulary.json", json.dumps([*PIECES[:-1], "\ud800"]).encode()),
        ("shared_vocabulary.json", json.dumps([*PIECES[:-1], ""]).encode()),
        ("shared_vocabulary.json", json.dumps([*PIECES[:4], *(f"<{n}>" for n in range(60))]).encode()),
        ("config.json", b'{"unk_token": ["<unk>"]}'),
        ("config.json", b'{"eos_token": {}}'),
        ("config.json", b'{"decoder_start_token": []}'),
        ("config.json", b'{"layer_norm_epsilon": "x"}'),
        ("config.json", b'{"layer_norm_epsilon": 1e999}'),
        ("config.json", b"{" * 100_000),
    ],
    ids=lambda value: str(value)[-40:],
)
def test_a_vocabulary_or_config_of_the_engine_that_is_none_is_refused(name: str, content: bytes, engine_folder: Path) -> None:
    (engine_folder / name).write_bytes(content)
    refused(engine_folder)


def test_the_unknown_piece_of_the_engine_may_have_another_name(engine_folder: Path) -> None:
    change_json(engine_folder / "config.json", unk_token="<rare>")
    write_json(engine_folder / "shared_vocabulary.json", ["<pad>", "<rare>", *PIECES[2:]])
    import_model(engine_folder, engine_folder.with_name("out"), ("en", "de"))
    assert read(engine_folder.with_name("out")).target_tokenizer.unknown == 1


@pytest.mark.parametrize("name", ["model.bin", "shared_vocabulary.json", "config.json"])
def test_a_folder_in_place_of_a_file_of_the_engine_is_refused(name: str, engine_folder: Path) -> None:
    (engine_folder / name).unlink()
    (engine_folder / name).mkdir()
    if name == "config.json":  # an old model has none
        import_model(engine_folder, engine_folder.with_name("out"), ("en", "de"))
    else:
        refused(engine_folder)


# ---- archives: none is opened, so that none can write elsewhere or grow


def _tar(entries: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as archive:  # type: ignore[call-overload]
        for entry, content in entries:
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def _zip(entries: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return made.getvalue()


def _entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = kind, link
    return entry


ARCHIVES: dict[str, Callable[[], bytes]] = {
    "plain.zip": lambda: _zip([("config.json", b"{}"), ("model.safetensors", b"x")]),
    "up.zip": lambda: _zip([("../escaped", b"x"), ("a/../../escaped", b"x")]),
    "absolute.zip": lambda: _zip([("/tmp/limelight-escaped", b"x")]),
    "bomb.zip": lambda: _zip([("model.safetensors", bytes(20_000_000))], zipfile.ZIP_DEFLATED),
    "nested.zip": lambda: _zip([("inner.zip", _zip([("model.safetensors", bytes(1_000_000))], zipfile.ZIP_DEFLATED))]),
    "cut.zip": lambda: _zip([("config.json", b"{}" * 1000)])[:-30],
    "plain.tar": lambda: _tar([(_entry("config.json"), b"{}")]),
    "up.tar": lambda: _tar([(_entry("../escaped"), b"x")]),
    "absolute.tar": lambda: _tar([(_entry("/tmp/limelight-escaped"), b"x")]),
    "link.tar": lambda: _tar([(_entry("a", tarfile.SYMTYPE, ".."), b""), (_entry("a/escaped"), b"x")]),
    "device.tar": lambda: _tar([(_entry("a", tarfile.FIFOTYPE), b""), (_entry("b", tarfile.LNKTYPE, "/etc/passwd"), b"")]),
    "bomb.tar.gz": lambda: _tar([(_entry("model.safetensors"), bytes(20_000_000))], "w:gz"),
}


@pytest.fixture
def archives(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert not Path("/tmp/limelight-escaped").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_no_model_and_nothing_of_it_is_unpacked(
    name: str, archives: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(ARCHIVES) == 12
    (archives / "in").mkdir()
    path = archives / "in" / name
    path.write_bytes(ARCHIVES[name]())
    for line in (
        ["import", path, "-o", archives / "out", "--source", "en", "--target", "de"],
        ["translate", path, "one"],
    ):
        monkeypatch.setattr(sys, "argv", ["limelight", *map(str, line)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 66
        assert f"{path} is a file; give the folder" in capsys.readouterr().err
    assert sorted(archives.rglob("*")) == [archives / "in", path]


@pytest.mark.process
@pytest.mark.parametrize("name", ["plain.zip", "bomb.zip", "up.tar", "bomb.tar.gz"])
@pytest.mark.parametrize("place", ["model.safetensors", "source.spm", "vocab.json", "config.json"])
def test_an_archive_in_place_of_a_file_is_refused(name: str, place: str, folder: Path) -> None:
    (folder / place).write_bytes(ARCHIVES[name]())
    assert place in refused(folder)


# ---- the libraries that read files of others


def test_no_version_is_allowed_that_is_known_to_be_unsafe() -> None:
    """torch 2.6 for weights_only; sentencepiece 0.2.1 and ctranslate2 4.8.1 for overflows on load; starlette for multipart."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_bytes().decode())["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *extras["serve"], *extras["train"]]
    floors = dict(one.split(">=") for one in listed)
    for name, least in (
        ("torch", "2.6"),
        ("sentencepiece", "0.2.1"),
        ("ctranslate2", "4.8.1"),
        ("starlette", "0.47.2"),
    ):
        assert tuple(map(int, floors[name].split("."))) >= tuple(map(int, least.split("."))), name
    assert torch.__version__ >= floors["torch"]
