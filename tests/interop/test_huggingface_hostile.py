"""A folder of somebody else is not to be trusted: it can be refused, and nothing else."""

import json
import pickle
import shutil
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="makes its models with transformers; pip install limelight[compare]")
sys.path.insert(0, str(Path(__file__).parent))
from published_models import change_json, marian, write_json

from limelight.errors import ModelFileError
from limelight.interop.huggingface.load import import_folder

pytestmark = pytest.mark.process

WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published") / "m"
    marian(folder)
    return folder


@pytest.fixture
def folder(published: Path, tmp_path: Path) -> Path:
    return shutil.copytree(published, tmp_path / "m")


def refused(folder: Path) -> str:
    with pytest.raises(ModelFileError) as caught:
        import_folder(folder, folder.with_name("b"), ("en", "de"))
    assert not folder.with_name("b").exists()
    return str(caught.value)


class Payload:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("form", ["plain", "zip", "inside"])
def test_a_pickle_in_a_bin_is_refused_and_does_not_run(form: str, folder: Path, tmp_path: Path) -> None:
    (folder / WEIGHTS).unlink()
    payload, file = Payload(tmp_path / "mark"), folder / "pytorch_model.bin"
    if form == "plain":
        file.write_bytes(pickle.dumps({"model.shared.weight": payload}))
    elif form == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("archive/data.pkl", pickle.dumps(payload))
            archive.writestr("archive/version", "3\n")
    else:
        torch.save({"model.shared.weight": torch.ones(2), "more": payload}, file)
    said = refused(folder)
    assert "nothing of it was run" in said
    assert not (tmp_path / "mark").exists()
    if form == "plain":  # the mark is real: whoever unpickles the file finds it
        pickle.loads(file.read_bytes())
        assert (tmp_path / "mark").exists()


@pytest.mark.parametrize(
    "name",
    ["../other.safetensors", "/etc/passwd", "a/b.safetensors", "..", ".hidden.safetensors", "x.bin", "x\n.safetensors"],
)
def test_an_index_cannot_name_a_file_elsewhere(name: str, folder: Path) -> None:
    (folder / WEIGHTS).rename(folder.parent / "other.safetensors")
    write_json(folder / "model.safetensors.index.json", {"weight_map": {"model.shared.weight": name}})
    assert "which is no .safetensors file of this folder" in refused(folder)


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {"a": 3}}, {"weight_map": {}}])
def test_an_index_without_a_map_is_refused(index: dict[str, Any], folder: Path) -> None:
    (folder / WEIGHTS).unlink()
    write_json(folder / "model.safetensors.index.json", index)
    assert "has no weight_map" in refused(folder)


def test_auto_map_is_told_of_and_not_looked_at(folder: Path, tmp_path: Path) -> None:
    change_json(folder / "config.json", auto_map={"AutoModelForSeq2SeqLM": "evil.Model"}, trust_remote_code=True)
    change_json(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["evil.Cut", None]})
    mark = tmp_path / "mark"
    (folder / "evil.py").write_bytes(f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n".encode())
    result = import_folder(folder, tmp_path / "b", ("en", "de"))
    assert any("auto_map" in notice for notice in result.notices)
    assert not mark.exists() and "evil" not in sys.modules


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:100],
        lambda content: b"",
        lambda content: struct.pack("<Q", 2**62) + content[8:],
        lambda content: content[:8] + b"x" + content[9:],
        lambda content: content[:-4],
        lambda content: struct.pack("<Q", 300) + b"{" * 300,
    ],
)
def test_damaged_weights_are_refused(damage: Any, folder: Path) -> None:
    file = folder / WEIGHTS
    file.write_bytes(damage(file.read_bytes()))
    assert "model.safetensors" in refused(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "vocab.json", "generation_config.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
        b'{"a": "\\ud800"}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
def test_json_that_is_none_is_refused(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)
    assert name in refused(folder)


@pytest.mark.parametrize("name", ["source.spm", "target.spm"])
@pytest.mark.parametrize("content", [b"", b"\x0a\xff\xff\xff\xff\x0f", b"\x00" * 500])
def test_damaged_pieces_are_refused(name: str, content: bytes, folder: Path) -> None:
    (folder / name).write_bytes(content)
    assert name in refused(folder)


@pytest.mark.parametrize(
    "numbers",
    [
        {"</s>": 0, "<unk>": 1, "<pad>": 2**40},
        {"</s>": 0, "<unk>": 1, "<pad>": 10**100},
        {"</s>": 0, "<unk>": 0, "<pad>": 2},
        {"</s>": 0, "<unk>": 1},
        {"</s>": -1, "<unk>": 1, "<pad>": 2},
        {"</s>": "0", "<unk>": 1, "<pad>": 2},
        {"</s>": True, "<unk>": 2, "<pad>": 3},
        {},
    ],
)
def test_a_vocabulary_that_is_none_is_refused(numbers: dict[str, Any], folder: Path) -> None:
    write_json(folder / "vocab.json", numbers)
    assert "vocab.json" in refused(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 10**7, "d_model": 10**6},
        {"encoder_layers": 1000, "decoder_layers": 1000},
        {"encoder_ffn_dim": 4_000_000, "decoder_ffn_dim": 4_000_000},
        {"d_model": 1e308},
        {"dropout": 10**400},
        {"tokenizer_class": "x" * 10_000, "pad_token_id": 10**30},
    ],
)
def test_a_config_with_huge_numbers_costs_nothing_and_is_refused(changes: dict[str, Any], folder: Path) -> None:
    change_json(folder / "config.json", **changes)
    assert len(refused(folder)) < 2_000_000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_beams", "x"),
        ("num_beams", 10**9),
        ("max_length", {}),
        ("max_length", -5),
        ("max_length", "9" * 5000),
        ("min_length", 10**9),
        ("length_penalty", [1]),
        ("length_penalty", -1.0),
        ("bad_words_ids", 3),
        ("bad_words_ids", [[10**9], "x", [[0]]]),
        ("no_repeat_ngram_size", 10**6),
    ],
)
def test_a_search_that_makes_no_sense_is_left_out(key: str, value: Any, folder: Path, tmp_path: Path) -> None:
    change_json(folder / "generation_config.json", **{key: value})
    settings = import_folder(folder, tmp_path / "b", ("en", "de")).settings
    assert 1 <= settings.search.beam <= 4096 and settings.search.max_length < 64


def test_names_of_weights_that_are_long_are_cut_in_the_error(folder: Path) -> None:
    content = (folder / WEIGHTS).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    header["x" * 100_000] = header.pop("final_logits_bias")
    written = json.dumps(header).encode()
    (folder / WEIGHTS).write_bytes(struct.pack("<Q", len(written)) + written + content[8 + size :])
    assert len(refused(folder)) < 1000
