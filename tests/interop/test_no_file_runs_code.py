"""A file that is opened never runs code: a payload in fourteen places is refused or lies there, and leaves no mark.

The payload makes a folder. Where it is a pickle, Python's own reader runs it, which the controls show.
"""

import io
import json
import pickle
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))
from small_runs import DONE, SHORT, STOPPED, Signal, Small, make_corpus, story

from limelight.bundle import read, relist
from limelight.cli.main import main
from limelight.interop.ctranslate2.export import save
from limelight.interop.huggingface.export import export_folder
from limelight.training.checkpoints import checkpoint
from limelight.training.checkpoints.folder import MANIFEST, digest_file, manifest_of
from limelight.training.run_folder import CHECKPOINTS
from limelight.translator.loading import specials

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
REFUSED, INERT = 66, 0


class Payload:
    """Whoever unpickles it makes the folder."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.mark,)


def code(mark: Path) -> str:
    return f"__import__('os').mkdir({str(mark)!r})"


def limelight(*arguments: object) -> int:
    """The exit code of the command, in this process, which spares it loading torch."""
    before = sys.argv
    sys.argv = ["limelight", *map(str, arguments)]
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv = before
    return 0


# ---- places in a model of somebody else: each plants, opens as a person would, and says whether that must be refused


def _imported(folder: Path) -> int:
    return limelight("import", folder, "-o", folder.with_name("out"), "--source", "en", "--target", "de", "--quiet")


def _pickled_weights(folder: Path) -> Path:
    (folder / "model.safetensors").unlink()
    return folder / "pytorch_model.bin"


def in_the_zip_of_torch(folder: Path, mark: Path) -> tuple[int, int]:
    torch.save({"model.shared.weight": torch.ones(2), "more": Payload(mark)}, _pickled_weights(folder))
    return _imported(folder), REFUSED


def in_the_tar_of_old_torch(folder: Path, mark: Path) -> tuple[int, int]:
    content = pickle.dumps(Payload(mark), protocol=2)
    with tarfile.open(_pickled_weights(folder), "w") as archive:
        for name in ("sys_info", "pickle", "storages", "tensors"):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return _imported(folder), REFUSED


def in_an_array_of_numpy(folder: Path, mark: Path) -> tuple[int, int]:
    """As Marian itself keeps its weights: model.npz. Nothing here reads one, wherever it lies and whatever it is called."""
    array = np.array([Payload(mark)], dtype=object)
    weights = (folder / "model.safetensors").read_bytes()
    for name in ("model.npz", "model.safetensors", "source.spm", "target.spm"):
        with (folder / name).open("wb") as file:
            np.savez(file, array) if name.endswith("z") else np.save(file, array, allow_pickle=True)
    first = _imported(folder)
    (folder / "model.safetensors").write_bytes(weights)
    assert {first, _imported(folder / "model.npz"), limelight("translate", folder / "model.npz", "x")} == {REFUSED}
    return _imported(folder), REFUSED


def in_yaml(folder: Path, mark: Path) -> tuple[int, int]:
    """The card has YAML at its head, of which we read one line; Marian's own settings and vocabularies are YAML too."""
    call = f"!!python/object/apply:os.mkdir [{str(mark)!r}]"
    (folder / "README.md").write_bytes(f"---\nlicense: {call}\nlanguage: {call}\n---\n".encode())
    for name in ("decoder.yml", "vocab.yml", "config.yaml"):
        (folder / name).write_bytes(f"a: {call}\n".encode())
    (folder / "recipe.toml").write_bytes(f"a: {call}\n".encode())
    assert limelight("train", folder / "recipe.toml", "-o", folder.with_name("run")) == 2
    return _imported(folder), INERT


def in_a_config(folder: Path, mark: Path) -> tuple[int, int]:
    _plant_module(folder, mark)
    harm = {"_target_": "evil.run", "auto_map": {"AutoModelForSeq2SeqLM": "evil.Model"}, "py/reduce": [code(mark)]}
    _add(folder / "config.json", **harm, trust_remote_code=True, custom_pipelines={"x": {"impl": "evil.run"}})
    _add(folder / "generation_config.json", **harm, custom_generate="evil.py")
    bundle = Path(shutil.copytree(STORED, folder.with_name("bundle")))
    _add(bundle / "config.json", **harm)
    relist(bundle)
    assert limelight("translate", bundle, "one") == REFUSED
    return _imported(folder), INERT


def in_a_class_of_a_tokenizer(folder: Path, mark: Path) -> tuple[int, int]:
    _plant_module(folder, mark)
    _add(folder / "tokenizer_config.json", tokenizer_class="evil.Cut", auto_map={"AutoTokenizer": ["evil.Cut", None]})
    return _imported(folder), REFUSED


def in_a_vocabulary(folder: Path, mark: Path) -> tuple[int, int]:
    good = json.loads((folder / "vocab.json").read_bytes())
    (folder / "vocab.json").write_bytes(pickle.dumps({**good, "x": Payload(mark)}))
    first = _imported(folder)
    last = max(good, key=good.__getitem__)
    number = good.pop(last)
    (folder / "vocab.json").write_bytes(json.dumps({**good, code(mark): number}).encode())
    assert _imported(folder) in (REFUSED, INERT)  # a piece that is spelt like code is a piece
    return first, REFUSED


def in_a_member_of_an_archive(folder: Path, mark: Path) -> tuple[int, int]:
    _plant_module(folder, mark)
    content, archive = pickle.dumps(Payload(mark)), folder.with_name("model.zip")
    with zipfile.ZipFile(archive, "w") as file:
        for path in folder.iterdir():
            file.write(path, path.name)
        for name in ("pytorch_model.bin", "__main__.py", "../evil.py", "setup.py"):
            file.writestr(name, content if name.endswith(".bin") else code(mark))
    assert limelight("translate", archive, "one") == REFUSED
    return _imported(archive), REFUSED


def in_the_metadata_of_safetensors(folder: Path, mark: Path) -> tuple[int, int]:
    path = folder / "model.safetensors"
    with safe_open(path, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    save_file(weights, path, {"format": code(mark), "__reduce__": pickle.dumps(Payload(mark), 0).decode("latin-1")})
    return _imported(folder), INERT


def in_the_config_of_the_engine(folder: Path, mark: Path) -> tuple[int, int]:
    """Imported alone, and inside a bundle whose manifest lists it: then it was made by whoever made the bundle."""
    bundle = Path(shutil.copytree(STORED, folder.with_name("bundle")))
    found = read(bundle)
    pieces = (found.source_tokenizer.vocabulary, found.target_tokenizer.vocabulary)
    engine = bundle / "ctranslate2"
    engine.mkdir()
    save(found.settings.model, found.weights(), pieces, specials(found), [(0, 0)], engine)
    _plant_module(engine, mark)
    _add(engine / "config.json", _target_="evil.run", auto_map={"a": "evil.Model"}, bos_token=code(mark))
    assert limelight("translate", bundle, "one") == REFUSED  # not what the manifest lists
    relist(bundle)
    assert limelight("translate", bundle, "one", "--quiet") == INERT
    return _imported(engine), REFUSED  # without a SentencePiece model


IN_MODELS: dict[str, list[Callable[[Path, Path], tuple[int, int]]]] = {
    ".pt": [in_the_zip_of_torch, in_the_tar_of_old_torch],
    ".npy, .npz": [in_an_array_of_numpy],
    "YAML": [in_yaml],
    "auto_map, _target_": [in_a_config],
    "tokenizer config": [in_a_class_of_a_tokenizer],
    "vocabulary": [in_a_vocabulary],
    "archive member": [in_a_member_of_an_archive],
    "__metadata__": [in_the_metadata_of_safetensors],
    "CT2 config.json": [in_the_config_of_the_engine],
}
IN_RUNS = (".metadata", "BYTE_IO item", "optimizer sidecar", "RNG sidecar", "loader state")


def _plant_module(folder: Path, mark: Path) -> None:
    for name in ("evil.py", "sentencepiece.py", "modeling_marian.py", "sitecustomize.py"):
        (folder / name).write_bytes(f"{code(mark)}\n".encode())


def _add(path: Path, **more: Any) -> None:
    path.write_bytes(json.dumps({**json.loads(path.read_bytes()), **more}, ensure_ascii=False).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    export_folder(read(STORED), tmp_path / "model")
    return tmp_path / "model"


def test_there_are_fourteen_places() -> None:
    assert len(IN_MODELS) + len(IN_RUNS) == 14


@pytest.mark.process
@pytest.mark.parametrize("place", [place for several in IN_MODELS.values() for place in several], ids=lambda p: p.__name__)
def test_code_in_a_model_is_refused_or_lies_there(
    place: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)  # where somebody may stand who has a look first: nothing is loaded from there
    mark = tmp_path / "mark"
    found, expected = place(folder, mark)
    assert found == expected, capfd.readouterr().err
    assert not mark.exists() and "evil" not in sys.modules
    assert not list(tmp_path.rglob(".*.part"))


def test_the_pickles_that_were_planted_are_real(tmp_path: Path) -> None:
    """Control: whoever reads them as they are usually read finds the mark."""
    marks = [tmp_path / name for name in "abcd"]
    torch.save({"more": Payload(marks[0])}, tmp_path / "pytorch_model.bin")
    torch.load(tmp_path / "pytorch_model.bin", weights_only=False)
    np.save(tmp_path / "a.npy", np.array([Payload(marks[1])], dtype=object), allow_pickle=True)
    np.load(tmp_path / "a.npy", allow_pickle=True)
    pickle.loads(pickle.dumps(Payload(marks[2])))
    eval(code(marks[3]))
    assert all(mark.is_dir() for mark in marks)


# ---- places in a run


STOCK = """
import os, pickle, shutil, sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
import torch
import torch.distributed.checkpoint as dcp

class Payload:
    def __init__(self, mark): self.mark = mark
    def __reduce__(self): return os.mkdir, (self.mark,)

folder, mark = Path(sys.argv[1]), sys.argv[2]
for name, state in (("item", {"w": torch.ones(2), "item": Payload(mark)}), ("metadata", {"w": torch.ones(2)})):
    dcp.save(state, checkpoint_id=folder / name, no_dist=True)
(folder / "metadata" / ".metadata").write_bytes(pickle.dumps(Payload(mark)))
for name, state in (("item", {"w": torch.zeros(2), "item": 0}), ("metadata", {"w": torch.zeros(2)})):
    try:
        dcp.load(state, checkpoint_id=folder / name, no_dist=True)
    except BaseException:
        pass  # the damage is done
    if os.path.isdir(mark):
        print(name, "ran")
        os.rmdir(mark)
"""


@pytest.fixture(scope="module")
def stock(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Checkpoints of torch.distributed.checkpoint with a payload, the mark that it makes, and what torch's own reader made of them."""
    folder = tmp_path_factory.mktemp("stock")
    mark = folder / "mark"
    done = subprocess.run([sys.executable, "-c", STOCK, str(folder), str(mark)], capture_output=True, check=True, timeout=120)
    return folder, mark, done.stdout.decode()


@pytest.mark.long
def test_the_reader_of_torch_runs_what_was_planted(stock: tuple[Path, Path, str]) -> None:
    """Control: the day this fails, the two places below show nothing any more."""
    assert stock[2].split("\n")[:2] == ["item ran", "metadata ran"]


def plant_in_run(where: Path, stock: tuple[Path, Path, str]) -> Path:
    """All that other trainers keep in a checkpoint, each with the payload."""
    folder, mark, _ = stock
    (where / ".metadata").write_bytes((folder / "metadata" / ".metadata").read_bytes())
    for shard in (folder / "item").glob("*.distcp"):
        (where / shard.name).write_bytes(shard.read_bytes())
    for name in ("optimizer.pt", "optimizer.bin", "rng_state.pth", "loader.pkl", "training_args.bin"):
        torch.save({"state": Payload(mark)}, where / name)
    return mark


def test_a_run_that_goes_on_neither_reads_nor_runs_what_others_would(stock: tuple[Path, Path, str], tmp_path: Path) -> None:
    """Beside its checkpoints, where nobody looks; and inside of one, which is then refused."""
    corpus = make_corpus(tmp_path / "corpus")
    run = Small(corpus, tmp_path / "run", SHORT)
    assert run.live(Signal(after_step=5)) == STOPPED
    plant_in_run(run.run, stock)
    plant_in_run(run.run / CHECKPOINTS, stock)
    assert run.live() == DONE
    steps = [told[1] for told in story(run.run) if told[0] == "step"]
    assert steps == list(range(1, SHORT["schedule"]["steps"] + 1))  # it went on, and did not begin again
    mark = plant_in_run(run.saved.folder, stock)
    found = checkpoint.latest(run.run / CHECKPOINTS)
    assert ".metadata: does not belong there" in found.refused[0]
    assert not mark.exists()


@pytest.mark.parametrize("name", [checkpoint.STATE, checkpoint.TENSORS])
def test_a_pickle_in_place_of_a_file_of_a_checkpoint_is_refused(name: str, tmp_path: Path) -> None:
    """With a manifest that fits, as whoever plants it would write: the state of the loader, the optimizer and the random numbers."""
    mark = tmp_path / "mark"
    saved = checkpoint.save(tmp_path / "c", 3, {"w": torch.ones(2)}, {"loader": {"epoch": 0}}, keep=1)
    (saved / name).write_bytes(pickle.dumps({"loader": Payload(mark)}))
    files = {path.name: digest_file(path) for path in saved.iterdir() if path.name != MANIFEST}
    (saved / MANIFEST).write_bytes(manifest_of(3, files))
    found = checkpoint.latest(tmp_path / "c")
    if name == checkpoint.STATE:
        assert found.checkpoint is None and "state.json: cannot be read" in found.refused[0]
    else:
        assert found.checkpoint is not None
        with pytest.raises(OSError):
            found.checkpoint.tensors()
    assert not mark.exists()
