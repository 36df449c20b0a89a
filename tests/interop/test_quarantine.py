"""What C++ reads is tried in a process of its own first: whatever happens there, we get an answer and go on."""

import io
import pickle
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from limelight.bundle import read
from limelight.errors import DataError, ModelFileError
from limelight.interop import quarantine
from limelight.interop.ctranslate2.export import save
from limelight.interop.ctranslate2.load import import_model
from limelight.interop.huggingface.export import export_folder
from limelight.interop.huggingface.load import import_folder
from limelight.interop.quarantine import pieces_problem, tensors_problem
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator.loading import specials

pytestmark = pytest.mark.process

STORED = Path(__file__).parents[1] / "bundles" / "format-1"

TEXTS = ["the cat sits on the mat", "a dog looks at the cat", "Ärger über größere Straßen"] * 20


@pytest.fixture(scope="module")
def model() -> bytes:
    return learn(TEXTS, PieceSettings(size=64, placeholders=0, tags=0, byte_fallback=False, character_coverage=1.0))


def varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + varint(number >> 7) if number > 127 else bytes([number])


def with_a_group(model: bytes, size: int) -> bytes:
    """A group, which SentencePiece passes over, with bytes that never end a number for those who count groups as anything else."""
    inner = varint(300 << 3 | 2) + varint(size) + b"\xff" * size
    return model + varint(250 << 3 | 3) + inner + varint(250 << 3 | 4)


def test_a_model_that_can_be_read_has_no_problem(model: bytes) -> None:
    assert pieces_problem(model) is None


@pytest.mark.parametrize("damage", [lambda m: b"", lambda m: m[:-7], lambda m: b"\xff" * 500], ids=["empty", "cut", "other"])
def test_a_model_that_cannot_be_read_is_told_of(damage: Callable[[bytes], bytes], model: bytes) -> None:
    problem = pieces_problem(damage(model))
    assert problem is not None and problem.startswith("cannot be read")


def test_a_number_without_end_is_refused_at_once(model: bytes) -> None:
    """Time once grew with the square of its length: 160 kB took 2 seconds, 3 MB a quarter of an hour."""
    begin = time.process_time()
    with pytest.raises(DataError):
        Tokenizer(with_a_group(model, 1_000_000))
    assert time.process_time() - begin < 1


def instead_of_python(does: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = folder / "python"
    script.write_bytes(f"#!/bin/sh\n{does}\n".encode())
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("kill -SEGV $$", "crash (SIGSEGV)"),
        ("kill -ABRT $$", "crash (SIGABRT)"),
        ("kill -XCPU $$", "more than 5 seconds of computing"),
        ("exit 255", "crash (exit code 255)"),
        ("echo nonsense", "crash (exit code 0)"),
        ("echo '{}'", "crash (exit code 0)"),
        ("exec sleep 60", "more than 1 seconds to be read"),
    ],
)
def test_however_the_process_ends_there_is_an_answer(does: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instead_of_python(does, tmp_path, monkeypatch)
    monkeypatch.setattr(quarantine, "WAITING", 1.0)
    problem = pieces_problem(b"x" * 1_000_000)  # more than a pipe holds, which nobody reads
    assert problem is not None and words in problem


def of_hugging_face(folder: Path) -> str:
    export_folder(read(STORED), folder)
    return "source.spm"


def of_old_hugging_face(folder: Path) -> str:
    export_folder(read(STORED), folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    return "pytorch_model.bin"


def of_ctranslate2(folder: Path) -> str:
    found = read(STORED)
    pieces = (found.source_tokenizer.vocabulary, found.target_tokenizer.vocabulary)
    folder.mkdir()
    save(found.settings.model, found.weights(), pieces, specials(found), [(0, 0)], folder)
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(found.source_tokenizer.model)
    return "source.spm"


@pytest.mark.parametrize("published", [of_hugging_face, of_old_hugging_face, of_ctranslate2])
def test_an_import_tries_what_it_will_read(published: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What would crash us has crashed another process before."""
    folder = tmp_path / "model"
    name = published(folder)
    instead_of_python("kill -SEGV $$", tmp_path, monkeypatch)
    with pytest.raises(ModelFileError, match=rf"{name}.* crash \(SIGSEGV\)"):
        if published is of_ctranslate2:
            import_model(folder, tmp_path / "out", ("en", "de"))
        else:
            import_folder(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


BOUNDED = """
import signal, socket, sys
from pathlib import Path
from limelight.interop import quarantine
quarantine.COMPUTING = 1
quarantine._give_up(1_000_000, 0.0)
what = sys.argv[1]
if what == "memory": print(len(bytearray(300_000_000)))
if what == "little": print(len(bytearray(100_000_000)))
if what == "file": Path("/etc/hostname").read_bytes()
if what == "network": socket.create_connection(("127.0.0.1", 9))
if what == "time":
    while True: pass
"""


@pytest.mark.parametrize(
    ("what", "end"),
    [
        ("memory", "MemoryError"),
        ("file", "Too many open files"),
        ("network", "Too many open files"),
        ("time", None),
        ("little", ""),
    ],
)
def test_what_is_given_up_is_gone(what: str, end: str | None) -> None:
    done = subprocess.run([sys.executable, "-c", BOUNDED, what], capture_output=True, timeout=60)
    if end is None:
        assert done.returncode == -signal.SIGXCPU
    elif end:
        assert done.returncode == 1 and end in done.stderr.decode()
    else:
        assert done.returncode == 0 and done.stdout == b"100000000\n"


def test_a_module_of_the_folder_one_stands_in_is_not_loaded(model: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sentencepiece", "limelight", "json"):
        (tmp_path / f"{name}.py").write_bytes(b"raise SystemExit(9)\n")
    monkeypatch.chdir(tmp_path)
    assert pieces_problem(model) is None


def test_a_file_of_torch_with_more_than_tensors_is_told_of(tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(3, 4, dtype=torch.bfloat16)}, tmp_path / "good.bin")
    assert tensors_problem(tmp_path / "good.bin") is None
    (tmp_path / "bad.bin").write_bytes(pickle.dumps({"weight": Path("x")}))
    problem = tensors_problem(tmp_path / "bad.bin")
    assert problem is not None and "UnpicklingError" in problem


@pytest.mark.slow
def test_a_file_of_torch_that_unpacks_to_a_thousand_times_its_size_is_refused(tmp_path: Path) -> None:
    """torch writes its zip without compression and reads one with."""
    saved = io.BytesIO()
    torch.save({"weight": torch.zeros(75_000_000)}, saved)
    with zipfile.ZipFile(saved) as stored, zipfile.ZipFile(tmp_path / "a.bin", "w", zipfile.ZIP_DEFLATED) as packed:
        for name in stored.namelist():
            packed.writestr(name, stored.read(name))
    assert (tmp_path / "a.bin").stat().st_size < 400_000
    problem = tensors_problem(tmp_path / "a.bin")
    assert problem is not None and "memory" in problem
