"""A bundle comes back as it was written, or is refused with the name of every file that is not."""

import errno
import json
import logging
import os
import resource
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import limelight.bundle
from limelight.bundle import Bundle, BundleSettings, Score, read, relist, write
from limelight.bundle.card import VERDICT
from limelight.bundle.manifest import seal
from limelight.bundle.strict_json import LARGEST, parse
from limelight.bundle.weights import load_weights
from limelight.decoding.config import SearchSettings
from limelight.errors import ModelFileError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tokenizer import END, PieceSettings, Tokenizer, learn

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "bundles"))
from make_numbers import draw_pairs, translate
from make_numbers import main as make_numbers

from bundle_damage import damages, flips, make_another

STORED = Path(__file__).parent / "bundles" / "format-1"
PIECES = (STORED / "pieces.model").read_bytes()
MODEL = ModelConfig(
    vocab_size=Tokenizer(PIECES).size,
    encoder_layers=1,
    decoder_layers=2,
    d_model=6,
    d_ff=10,
    num_heads=3,
    max_length=40,
    dropout=0.0,
)
SCORE = Score(test_set="set", metric="BLEU", value=12.345, signature="nrefs:1|tok:13a", lines=9000)


def settings(**values: Any) -> BundleSettings:
    return BundleSettings(**{"languages": ("en", "de"), "model": MODEL, **values})


def weights(config: ModelConfig = MODEL, dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    torch.manual_seed(3)
    return Transformer(config).to(dtype).state_dict()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the stored bundle, to be damaged."""
    return Path(shutil.copytree(STORED, tmp_path / "bundle-copy"))


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ModelFileError) as caught:
        call()
    assert caught.value.exit_code == 66
    return str(caught.value)


def named(message: str) -> set[str]:
    """The files that a refusal lists."""
    return {line[4:].partition(":")[0] for line in message.split("\n") if line.startswith("  - ")}


# --- the stored bundle


@pytest.mark.slow
def test_the_stored_bundle_loads_and_translates() -> None:
    bundle = read(STORED)
    model = bundle.load_model()
    said = translate(model, bundle.source_tokenizer, ["three seven one", "five ⟦0⟧ nine", "zero"])
    assert said == ["drei sieben eins", "fünf ⟦0⟧ neun", "null"]
    sources, references = zip(*draw_pairs(300, Random(99), held_out=True), strict=True)
    right = sum(a == b for a, b in zip(translate(model, bundle.source_tokenizer, [*sources]), references, strict=True))
    assert right >= 0.99 * len(references)


def test_the_stored_bundle_carries_what_it_was_accepted_with() -> None:
    found = read(STORED).settings
    assert found.languages == ("en", "de")
    assert found.normalization == ("nfc", "invisible", "spaces")
    assert found.alignment == ((1, 1),)
    exact, bleu, chrf = found.scores
    assert (exact.metric, bleu.metric, chrf.metric) == ("exact match", "BLEU", "chrF2")
    assert exact.value >= 99 and "tok:13a" in bleu.signature and exact.lines == 1000


def test_the_stored_bundle_is_small() -> None:
    assert sum(path.stat().st_size for path in STORED.iterdir()) < 400_000


# --- there and back


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_what_was_written_is_read(tmp_path: Path, dtype: torch.dtype) -> None:
    given = settings(
        normalization=("spaces", "quotes"),
        search=SearchSettings(beam=7, suppress=(5, 6)),
        alignment=((1, 2), (0, 0)),
        scores=(SCORE,),
        trained_on={"corpus": "Größe", "pairs": 12, "loss": 1.5},
    )
    written = weights(dtype=dtype)
    write(tmp_path / "en-de", given, written, PIECES)
    bundle = read(tmp_path / "en-de")
    assert bundle.settings == given
    assert bundle.source_tokenizer is bundle.target_tokenizer
    assert bundle.target_tokenizer.model == PIECES
    found = bundle.weights()
    assert found.keys() == written.keys()
    assert all(found[name].dtype == dtype and torch.equal(found[name], written[name]) for name in written)


def test_sides_with_their_own_pieces_keep_them(tmp_path: Path) -> None:
    source = learn(["one two three four five", "six seven"] * 5, PieceSettings(size=300, placeholders=0, tags=0))
    size = Tokenizer(source).size
    config = MODEL.changed(source_vocab_size=size, tie="decoder")
    write(tmp_path / "b", settings(model=config), weights(config), (source, PIECES))
    bundle = read(tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "b").glob("*.model")) == ["source.model", "target.model"]
    assert (bundle.source_tokenizer.size, bundle.target_tokenizer.size) == (size, MODEL.vocab_size)
    assert (bundle.source_tokenizer.model, bundle.target_tokenizer.model) == (source, PIECES)


def test_equal_pieces_of_both_sides_are_stored_once(tmp_path: Path) -> None:
    write(tmp_path / "b", settings(), weights(), (PIECES, PIECES))
    assert [path.name for path in (tmp_path / "b").glob("*.model")] == ["pieces.model"]


def test_the_same_translator_is_written_in_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / name, settings(), weights(), PIECES)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_weights_that_share_memory_or_lie_crosswise_are_written(tmp_path: Path) -> None:
    config = MODEL.changed(tie="none")
    given = weights(config)
    given["output.weight"] = given["source_embedding.weight"] = given["target_embedding.weight"]
    crosswise = next(name for name, w in given.items() if w.ndim == 2)
    given[crosswise] = given[crosswise].T.contiguous().T
    write(tmp_path / "b", settings(model=config), given, PIECES)
    found = read(tmp_path / "b").weights()
    assert all(torch.equal(found[name], given[name]) for name in given)


def test_everyone_may_read_what_was_written(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write(tmp_path / "b", settings(), weights(), PIECES)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "b").iterdir()} == {0o644}


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_loaded_model_equals_one_that_was_built_and_filled(tmp_path: Path, positions: str, dtype: torch.dtype) -> None:
    config = MODEL.changed(positions=positions, position_offset=2, output_bias=True)
    write(tmp_path / "b", settings(model=config), weights(config), PIECES)
    before = torch.get_rng_state()
    loaded = read(tmp_path / "b").load_model(dtype)
    assert torch.equal(before, torch.get_rng_state())  # no weight was drawn
    built = Transformer(config)
    built.load_state_dict(weights(config))
    built.to(dtype).eval()
    source, target = torch.tensor([[9, 8, 7, END, 0], [5, 6, 7, 8, END]]), torch.tensor([[2, 50, 60], [2, 70, 80]])
    assert torch.equal(loaded(source, target), built(source, target))
    assert not loaded.training
    assert {x.dtype for x in (*loaded.parameters(), *loaded.buffers())} == {dtype}


def test_a_run_is_accepted_where_its_bundle_is(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_bytes(b"")
    shutil.copytree(STORED, tmp_path / "run" / "bundle")
    assert read(tmp_path / "run").folder == tmp_path / "run" / "bundle"


def test_the_card_says_first_what_the_translator_is_good_for(tmp_path: Path) -> None:
    write(tmp_path / "b", settings(trained_on={"steps": 6, VERDICT: "NOT USABLE: it says nothing"}), weights(), PIECES)
    card = (tmp_path / "b" / "README.md").read_text(encoding="utf-8")
    assert card.index("**NOT USABLE: it says nothing**") < card.index("A Transformer that translates")
    assert card.count("NOT USABLE") == 1 and "- steps: 6" in card


def test_the_card_has_the_metadata_of_the_hub(tmp_path: Path) -> None:
    write(tmp_path / "b", settings(languages=("no", "de"), scores=(SCORE,)), weights(), PIECES, license="cc-by-4.0")
    card = (tmp_path / "b" / "README.md").read_bytes().decode()
    _, metadata, text = card.split("---\n", 2)
    assert metadata.split("\n")[:5] == [
        "language:",
        '- "no"',
        '- "de"',
        'license: "cc-by-4.0"',
        "library_name: limelight",
    ]
    assert "pipeline_tag: translation\ntags:\n- translation\n" in metadata
    assert "- BLEU 12.35 on set (9,000 lines), signature `nrefs:1|tok:13a`\n" in text
    assert 'limelight translate FOLDER "..."' in text
    assert f"parameters: {sum(w.numel() for w in weights().values()):,} in float32" in text


def test_public_names_are_there() -> None:
    assert all(getattr(limelight.bundle, name).__name__ == name for name in limelight.bundle.__all__)
    with pytest.raises(AttributeError, match="it offers"):
        _ = limelight.bundle.reed


# --- writing: whole or absent


def test_what_stands_there_is_not_replaced_unless_forced(tmp_path: Path) -> None:
    write(tmp_path / "b", settings(), weights(), PIECES)
    again = settings(languages=("en", "fr"))
    assert "exists already" in refusal(lambda: write(tmp_path / "b", again, weights(), PIECES))
    assert read(tmp_path / "b").settings == settings()
    write(tmp_path / "b", again, weights(), PIECES, force=True)
    assert read(tmp_path / "b").settings == again
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_glossary_outlives_the_bundle_beside_it_where_the_languages_stay(tmp_path: Path) -> None:
    write(tmp_path / "b", settings(), weights(), PIECES)
    (tmp_path / "b" / "glossary.tsv").write_bytes(b"dog\tHund\n")
    write(tmp_path / "b", settings(), weights(), PIECES, force=True)
    assert (tmp_path / "b" / "glossary.tsv").read_bytes() == b"dog\tHund\n"
    write(tmp_path / "b", settings(languages=("en", "fr")), weights(), PIECES, force=True)
    assert not (tmp_path / "b" / "glossary.tsv").exists()


def test_force_replaces_nothing_but_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "manifest.json").write_bytes(b"of something else")
    call = lambda: write(tmp_path / "home", settings(), weights(), PIECES, force=True)  # noqa: E731
    assert "is no bundle" in refusal(call)
    assert (tmp_path / "home" / "manifest.json").read_bytes() == b"of something else"


def test_a_link_to_a_bundle_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path / "b-2", settings(), weights(), PIECES)
    (tmp_path / "b").symlink_to("b-2")
    write(tmp_path / "b", settings(languages=("en", "fr")), weights(), PIECES, force=True)
    assert (tmp_path / "b").is_symlink() and read(tmp_path / "b-2").settings.languages == ("en", "fr")


@pytest.mark.parametrize("calls", range(1, 10))
def test_a_write_that_fails_leaves_all_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    """The disk is full at the nth call that forces something to it, or the rename fails."""
    write(tmp_path / "b", settings(), weights(), PIECES)
    left, sync, rename = [calls], os.fsync, Path.rename

    def fails(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise OSError(28, "No space left on device")
            return real(*arguments)

        return call

    monkeypatch.setattr(os, "fsync", fails(sync))
    monkeypatch.setattr(Path, "rename", fails(rename))
    with pytest.raises(OSError, match="No space"):
        write(tmp_path / "b", settings(languages=("en", "fr")), weights(), PIECES, force=True)
    assert read(tmp_path / "b").settings == settings()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_every_file_is_on_the_disk_before_the_folder_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forced, seen, sync, rename = set[int](), list[bool](), os.fsync, Path.rename

    def note(number: int) -> None:
        forced.add(os.fstat(number).st_ino)
        sync(number)

    def check(path: Path, target: Path) -> Path:
        seen.append({p.stat().st_ino for p in (path, *path.iterdir())} <= forced)
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(Path, "rename", check)
    write(tmp_path / "b", settings(), weights(), PIECES)
    assert seen == [True] and tmp_path.stat().st_ino in forced


def with_changed(name: str, change: Callable[[Tensor], Tensor]) -> dict[str, Tensor]:
    return {key: change(w) if key == name else w for key, w in weights().items()}


def poisoned(w: Tensor, value: float) -> Tensor:
    w = w.clone()
    w.view(-1)[-1] = value
    return w


NORM = "decoder.blocks.1.feed_forward.up.weight"


@pytest.mark.parametrize(
    ("given", "file", "words"),
    [
        ({"weights": with_changed(NORM, lambda w: poisoned(w, torch.nan))}, "model.safetensors", f"{NORM} has values"),
        ({"weights": with_changed(NORM, lambda w: poisoned(w, -torch.inf))}, "model.safetensors", f"{NORM} has values"),
        ({"weights": with_changed(NORM, lambda w: w.T)}, "model.safetensors", f"{NORM} has shape (6, 10)"),
        ({"weights": with_changed(NORM, lambda w: w.double())}, "model.safetensors", f"{NORM} has numbers of format"),
        ({"weights": with_changed(NORM, lambda w: w.to(torch.int32))}, "model.safetensors", "int32"),
        ({"settings": settings(model=MODEL.changed(tie="none"))}, "model.safetensors", "output.weight is missing"),
        ({"settings": settings(model=MODEL.changed(end_token=4))}, "pieces.model", "end_token=4"),
        ({"settings": settings(model=MODEL.changed(pad_token=1))}, "pieces.model", "pad_token=1"),
        ({"settings": settings(model=MODEL.changed(start_token=1))}, "pieces.model", "start_token=1"),
        ({"settings": settings(format=2)}, "config.json", "format 2"),
        ({"settings": settings(scores=(SCORE,) * 10_000)}, "config.json", "more than 1,000,000 bytes"),
        ({"pieces": b"no pieces"}, "pieces.model", "not a SentencePiece model"),
        ({"pieces": (PIECES, PIECES[:-1])}, "target.model", "not a SentencePiece model"),
    ],
)
def test_nothing_is_written_that_could_not_be_read(tmp_path: Path, given: Any, file: str, words: str) -> None:
    given = {"settings": settings(), "weights": weights(), "pieces": PIECES, **given}
    message = refusal(lambda: write(tmp_path / "b", **given))
    assert message.startswith(f"{tmp_path / 'b'} was not written:\n")
    assert named(message) == {file} and words in message
    assert not list(tmp_path.iterdir())


def test_marian_and_m2m100_may_start_with_padding_or_end(tmp_path: Path) -> None:
    for start in (0, 3):
        config = MODEL.changed(start_token=start)
        write(tmp_path / str(start), settings(model=config), weights(config), PIECES)
        assert read(tmp_path / str(start)).settings.model.start_token == start


def test_one_matrix_cannot_serve_two_vocabularies(tmp_path: Path) -> None:
    other = learn(["eins zwei drei vier"] * 9 + ["abc def"], PieceSettings(size=345, placeholders=60, tags=9))
    config = MODEL.changed(vocab_size=Tokenizer(other).size)
    message = refusal(lambda: write(tmp_path / "b", settings(model=config), weights(config), (PIECES, other)))
    assert "tie=all" in message


# --- reading: what is no bundle


def test_a_folder_that_is_no_bundle_is_told_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "prepared" / "shards").mkdir(parents=True)
    (tmp_path / "prepared" / "manifest.json").write_bytes(b"{}")
    (tmp_path / "run" / "bundle").mkdir(parents=True)
    for name, words in {
        "absent": "does not exist",
        "file": "is a file",
        "empty": "has a manifest.json",
        "run": "has a manifest.json",
        "prepared": "is a prepared corpus",
    }.items():
        message = refusal(lambda name=name: read(tmp_path / name))
        assert words in message and "limelight train or limelight import" in message and str(tmp_path / name) in message


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything, so that it must be someone else for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no users to be")
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "manifest.json", ""])
@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_what_cannot_be_read_is_named(name: str, mode: int) -> None:
    with tempfile.TemporaryDirectory() as place:  # not tmp_path, which nobody else may enter
        Path(place).chmod(0o755)
        locked = Path(shutil.copytree(STORED, Path(place) / "b")) / name
        locked.chmod(mode)
        try:
            with as_nobody():
                if name and mode:
                    assert read(Path(place) / "b").weights()
                else:
                    message = refusal(lambda: read(Path(place) / "b"))
                    assert "Permission denied" in message and locked.name in message
        finally:
            locked.chmod(0o755)


# --- reading: a manifest of ill will


def reseal(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """A manifest with a sound checksum that says something else."""
    value = json.loads((folder / "manifest.json").read_bytes())
    del value["checksum"]
    change(value)
    (folder / "manifest.json").write_bytes(seal(value))


def test_a_manifest_is_as_we_write_it(folder: Path) -> None:
    before = (folder / "manifest.json").read_bytes()
    reseal(folder, lambda value: None)
    assert (folder / "manifest.json").read_bytes() == before
    relist(folder)
    assert (folder / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../outside", "..", "", ".hidden", "a\\b", "a//b", "a\n", "a\0b"])
def test_a_path_that_could_leave_the_folder_is_refused(folder: Path, path: str) -> None:
    (folder.parent / "outside").write_bytes(b"")
    entry = {"path": path, "bytes": 0, "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    reseal(folder, lambda value: value["files"].append(entry))
    message = refusal(lambda: read(folder))
    assert named(message) == {"manifest.json"} and "no name of a file" in message


def test_a_link_out_of_the_folder_is_refused(folder: Path) -> None:
    for name in ("config.json", "manifest.json"):
        (folder / name).rename(folder.parent / name)
        (folder / name).symlink_to(folder.parent / name)
        message = refusal(lambda: read(folder))
        assert named(message) == {name} and "leads out" in message


def test_a_link_within_the_folder_is_followed(folder: Path) -> None:
    (folder / "config.json").rename(folder / "config-2.json")
    (folder / "config.json").symlink_to("config-2.json")
    assert read(folder).settings == read(STORED).settings


def test_what_is_no_regular_file_is_refused_and_never_waited_for(folder: Path) -> None:
    for name in ("config.json", "manifest.json"):
        (folder / name).unlink()
        os.mkfifo(folder / name)
        assert "not a regular file" in refusal(lambda: read(folder))
        (folder / name).unlink()
        (folder / name).symlink_to(name)  # a link to itself
        assert named(refusal(lambda: read(folder))) == {name}
        (folder / name).unlink()
        (folder / name).mkdir()
        assert named(refusal(lambda: read(folder))) == {name}


def set_entry(index: int, **values: Any) -> Callable[[dict[str, Any]], None]:
    return lambda value: value["files"][index].update(values)


@pytest.mark.parametrize(
    ("change", "file", "words"),
    [
        (set_entry(2, bytes=10**18), "model.safetensors", "but was written with 1,000,000,000,000,000,000"),
        (set_entry(2, bytes=-1), "manifest.json", "files.2.bytes"),
        (set_entry(2, bytes="many"), "manifest.json", "files.2.bytes"),
        (set_entry(1, sha256=""), "config.json", "is damaged"),
        (set_entry(1, sha256=None), "manifest.json", "files.1.sha256"),
        (set_entry(1, more=1), "manifest.json", "no such key"),
        (lambda value: value.update(format=2), "manifest.json", "format 2"),
        (lambda value: value.update(format=10**4000), "manifest.json", "format 1000"),
        (lambda value: value.update(format=0), "manifest.json", "format 0"),
        (lambda value: value.update(format=True), "manifest.json", "format True"),
        (lambda value: value.update(self=1), "manifest.json", ""),
        (lambda value: value.update(files={}), "manifest.json", "files"),
        (lambda value: value.pop("files"), "manifest.json", "files"),
        (lambda value: value.update(files=json.loads("[" * 400 + "]" * 400)), "manifest.json", "files"),
        (lambda value: value["files"].append(value["files"][0]), "manifest.json", "'README.md' 2 times"),
    ],
)
def test_a_manifest_that_cannot_be_true_is_refused(folder: Path, change: Callable[[dict[str, Any]], None], file: str, words: str) -> None:
    reseal(folder, change)
    message = refusal(lambda: read(folder))
    assert named(message) == {file} and words in message and len(message) < 2000


def test_a_newer_format_says_what_to_do(folder: Path) -> None:
    reseal(folder, lambda value: value.update(format=2))
    message = refusal(lambda: read(folder))
    assert "this limelight reads format 1" in message and "pip install --upgrade limelight" in message


@pytest.mark.parametrize("index", [1, 2, 3])
def test_a_file_that_is_read_must_be_listed(folder: Path, index: int) -> None:
    gone = json.loads((folder / "manifest.json").read_bytes())["files"][index]["path"]
    reseal(folder, lambda value: value["files"].pop(index))
    message = refusal(lambda: read(folder))
    assert named(message) == {"manifest.json", gone}
    (folder / gone).unlink()
    assert named(refusal(lambda: read(folder))) == {"manifest.json"}


@pytest.mark.parametrize("name", ["source.model", "target.model", "ctranslate2/model.bin", "ctranslate2/int8/config.json"])
def test_a_file_that_might_be_read_and_is_not_listed_is_refused(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"unverified")
    message = refusal(lambda: read(folder))
    assert named(message) == {name} and "not listed" in message


def test_other_files_are_ignored_and_the_log_says_which(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "notes.txt").write_bytes(b"mine")
    (folder / ".gitattributes").write_bytes(b"")
    with caplog.at_level(logging.INFO):
        read(folder)
    assert ".gitattributes, notes.txt" in caplog.text


def test_an_export_is_listed_and_verified(folder: Path) -> None:
    (folder / "ctranslate2").mkdir()
    (folder / "ctranslate2" / "model.bin").write_bytes(b"exported")
    (folder / "notes.txt").write_bytes(b"mine")
    relist(folder)
    read(folder)
    assert b"ctranslate2/model.bin" in (folder / "manifest.json").read_bytes()
    assert b"notes.txt" not in (folder / "manifest.json").read_bytes()
    (folder / "ctranslate2" / "model.bin").write_bytes(b"Exported")
    assert named(refusal(lambda: read(folder))) == {"ctranslate2/model.bin"}


def test_every_damaged_file_is_listed_at_once(folder: Path) -> None:
    (folder / "README.md").write_bytes(b"")
    (folder / "model.safetensors").unlink()
    (folder / "source.model").write_bytes(b"")
    assert named(refusal(lambda: read(folder))) == {"README.md", "model.safetensors", "source.model"}


# --- reading: files that are as they were written, by someone who wrote them wrong


def replace(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    relist(folder)


def changed_config(**values: Any) -> bytes:
    return json.dumps({**json.loads((STORED / "config.json").read_bytes()), **values}).encode()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "damaged"),
        (b"[]", "no JSON object"),
        (b"\xff", "utf-8"),
        ("\ufeff{}".encode(), "BOM"),
        (b'{"format": 1, "format": 1}', "twice"),
        (b'{"format": NaN}', "NaN is no number"),
        (b'{"format": -Infinity}', "-Infinity is no number"),
        (b'{"format": ' + b"1" * 5000 + b"}", "damaged"),
        (b'{"a": "\\ud800"}', "surrogates"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b" " * LARGEST + b"{}", "more than 1,000,000 bytes"),
        (b"{}", "format None"),
        (changed_config(format=2), "format 2"),
        (changed_config(format="1"), "format 1, which was never written"),
        (changed_config(search={"beam": "wide"}), "search.beam"),
        (changed_config(searches={}), "did you mean `search`?"),
        (changed_config(self=1), "self"),
        (changed_config(languages=["en"]), "languages"),
        (changed_config(languages="x" * 5000), "languages"),
        (changed_config(languages=["en", ""]), "languages.1"),
        (changed_config(languages=["en", "de\n"]), "languages.1"),
        (changed_config(normalization=["nfd"]), "normalization.0"),
        (changed_config(alignment=[[2, 0]]), "layer 2, head 0"),
        (changed_config(alignment=[[0, -1]]), "layer 0, head -1"),
        (changed_config(search={"suppress": [345]}), "search.suppress has id 345"),
        (changed_config(model={"vocab_size": 345, "d_model": 30}), "does not split"),
        (changed_config(trained_on=json.loads("[" * 400 + "]" * 400)), "trained_on"),
        (changed_config(trained_on={"x": "a\nb"}), "trained_on"),
        (changed_config(made_by="x" * 501), "made_by"),
        (changed_config(scores=[{"test_set": "a"}]), "scores.0.signature"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused(folder: Path, content: bytes, words: str) -> None:
    replace(folder, "config.json", content)
    message = refusal(lambda: read(folder))
    assert named(message) == {"config.json"} and words in message and len(message) < 3000


def test_a_number_beyond_all_bounds_is_no_score(folder: Path) -> None:
    score = b'{"test_set": "a", "metric": "b", "value": 1e999, "signature": "s", "lines": 1}'
    content = changed_config(scores=[]).replace(b'"scores": []', b'"scores": [' + score + b"]")
    assert score in content
    replace(folder, "config.json", content)
    assert "scores.0.value" in refusal(lambda: read(folder))


def test_a_config_is_checked_to_the_end(folder: Path) -> None:
    replace(folder, "config.json", changed_config(languages=["en"], scores=7, search={"beam": 0}))
    message = refusal(lambda: read(folder))
    assert all(key in message for key in ("languages", "scores", "search.beam"))


@pytest.mark.parametrize("more", [-1, 1])
def test_a_vocabulary_of_another_size_is_refused(folder: Path, more: int) -> None:
    model = {**json.loads((folder / "config.json").read_bytes())["model"], "vocab_size": 345 + more}
    replace(folder, "config.json", changed_config(model=model))
    message = refusal(lambda: read(folder))
    assert named(message) == {"pieces.model"} and f"345 pieces, but the model of config.json has {345 + more}" in message


def test_a_source_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    config = MODEL.changed(source_vocab_size=346, tie="decoder")
    message = refusal(lambda: write(tmp_path / "b", settings(model=config), weights(config), PIECES))
    assert "345 pieces, but the model of config.json has 346" in message


def test_pieces_that_are_none_are_refused(folder: Path) -> None:
    random = Random(5)
    for content in (b"", b"nonsense", PIECES[:-1], *(random.randbytes(200) for _ in range(50))):
        replace(folder, "pieces.model", content)
        assert named(refusal(lambda: read(folder))) == {"pieces.model"}
    replace(folder, "pieces.model", PIECES.replace(b"<0x16>", b"<\xb0x16>"))  # SentencePiece's own message is no UTF-8
    assert named(refusal(lambda: read(folder))) == {"pieces.model"}


def header(text: bytes, data: bytes = b"") -> bytes:
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x01",
        (2**63).to_bytes(8, "little"),
        (10**7).to_bytes(8, "little") + b"{}",
        header(b"no json"),
        header(b"[]"),
        header(b"{" * 500),
        header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 400]}}', b"\0" * 4),
        header(b'{"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}}'),
        header(b'{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}', b"\0" * 4),
        header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}', b"\0" * 4),
        b"\x80\x04\x95" + b"cos\nsystem\n(S'true'\ntR.",
    ],
)
def test_nonsense_instead_of_weights_is_refused(folder: Path, content: bytes) -> None:
    replace(folder, "model.safetensors", content)
    bundle = read(folder)
    assert named(refusal(bundle.weights)) == named(refusal(bundle.load_model)) == {"model.safetensors"}


def test_every_wrong_weight_is_named_at_once(folder: Path) -> None:
    found = load_weights(folder, read(folder).settings.model)
    missing, misshapen, foreign = "encoder.blocks.0.feed_forward.up.weight", "target_embedding.weight", "optimizer.step"
    del found[missing]
    found[misshapen] = found[misshapen][:-1].clone()
    found["decoder.norm.weight"] = found["decoder.norm.weight"].double()
    save_file({**found, foreign: torch.zeros(1)}, folder / "model.safetensors")
    relist(folder)
    message = refusal(read(folder).weights)
    assert f"{missing} is missing" in message
    assert f"{misshapen} has shape (344, 32), but the model has (345, 32)" in message
    assert f"{foreign} is no weight of this model" in message
    assert "decoder.norm.weight has numbers of format F64" in message


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_no_numbers_are_refused_by_name(folder: Path, value: float) -> None:
    found = load_weights(folder, read(folder).settings.model)
    names = ["decoder.norm.weight", "target_embedding.weight"]
    save_file({k: poisoned(w, value) if k in names else w for k, w in found.items()}, folder / "model.safetensors")
    relist(folder)
    message = refusal(read(folder).weights)
    assert [name for name in found if name in message] == [name for name in found if name in names]


def test_weights_that_change_after_they_were_verified_are_refused(folder: Path) -> None:
    bundle: Bundle = read(folder)
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    assert "changed after it was verified" in refusal(bundle.weights)
    (folder / "model.safetensors").write_bytes(content)
    assert "changed after it was verified" in refusal(bundle.weights)
    assert read(folder).weights()


def test_weights_stay_when_their_file_is_overwritten(folder: Path) -> None:
    found = read(folder).weights()
    before = {name: w.clone() for name, w in found.items()}
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(100)
    assert all(torch.equal(found[name], before[name]) for name in before)


@pytest.mark.parametrize("content", [b'{"a": 1, "a": 1}', b'{"a": Infinity}', b"7", b'{"a": "\\udc00"}', b"{", b"\xc3"])
def test_json_that_python_would_take_is_not_always_json(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(content)


# --- damage (AT-03)


@pytest.mark.slow
def test_a_damaged_bundle_is_never_used_and_every_message_names_the_file(tmp_path: Path) -> None:
    another = make_another(STORED, tmp_path / "another")
    assert read(another).weights() and read(STORED).weights()  # both are sound before
    refused = 0
    for damage in damages(STORED, another, tmp_path / "damaged"):
        found = named(refusal(lambda damage=damage: read(damage.folder)))
        assert damage.files <= found, damage.what
        if "flipped" in damage.what or "cut" in damage.what:
            assert damage.files == found, damage.what  # and nothing else is blamed
        refused += 1
    assert refused == 280


@pytest.mark.slow
def test_without_verification_most_damage_would_go_unnoticed(tmp_path: Path) -> None:
    """The control: it is the manifest that finds the flips, not the parsers."""
    config, results = read(STORED).settings.model, []
    for damage in flips(STORED, tmp_path / "damaged", Random(0), ["model.safetensors"]):
        try:
            load_weights(damage.folder, config)
            results.append(True)
        except ModelFileError:
            results.append(False)
    assert len(results) == 120 and sum(results) >= 0.9 * len(results)


# --- when asked


@pytest.mark.slow
def test_files_are_verified_at_200_megabytes_a_second(folder: Path) -> None:
    (folder / "ctranslate2").mkdir()
    (folder / "ctranslate2" / "model.bin").write_bytes(Random(0).randbytes(200_000_000))
    relist(folder)
    seconds = []
    for _ in range(3):  # the quickest: another program may have the cores
        start = time.perf_counter()
        read(folder)
        seconds.append(time.perf_counter() - start)
    assert 200 / min(seconds) >= 200


@pytest.mark.long
def test_the_stored_bundle_can_be_made_again(tmp_path: Path) -> None:
    make_numbers(tmp_path / "again")
    exact = read(tmp_path / "again").settings.scores[0]
    assert exact.metric == "exact match" and exact.value >= 99


def test_a_disk_without_room_is_an_error_of_the_disk_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    """So that a command ends with 74, and a run whose best translator does not fit goes on."""
    found = read(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))  # room for all but the weights
    try:
        with pytest.raises(OSError, match="File too large") as full:
            write(tmp_path / "full", found.settings, found.weights(), (found.folder / "pieces.model").read_bytes())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.value.errno == errno.EFBIG and str(full.value.filename).endswith("model.safetensors")
    assert list(tmp_path.glob(".*")) == [] and not (tmp_path / "full").exists()


def test_positions_that_would_take_minutes_to_compute_are_refused(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    config["model"]["max_length"] = 10**7
    (folder / "config.json").write_bytes(json.dumps(config).encode())
    relist(folder)
    assert "model.max_length" in refusal(lambda: read(folder))
