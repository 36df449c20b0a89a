"""Fetching from a hub and pushing to one, against a small hub on this machine: nothing of the library is replaced."""

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("huggingface_hub", reason="needs the hub's library; pip install limelight[hub]")
sys.path.insert(0, str(Path(__file__).parent))
from huggingface_hub import constants
from small_hub import SmallHub

from limelight.bundle import read
from limelight.errors import ConfigError, DataError, MissingExtraError, ModelFileError, StorageError
from limelight.interop.huggingface.export import export_folder
from limelight.interop.huggingface.hub import Kind, find_on_hub, push
from limelight.interop.huggingface.load import import_folder
from limelight.interop.offers import FACTS

pytestmark = pytest.mark.process

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
NAME = "people/opus-mt-en-de"


@pytest.fixture
def hub() -> Iterator[SmallHub]:
    made = SmallHub()
    yield made
    made.close()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "hf"
    export_folder(read(STORED), folder)
    return folder


@pytest.fixture(autouse=True)
def _at_home(hub: SmallHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library as with HF_ENDPOINT, which it reads when it is loaded."""
    monkeypatch.setattr(constants, "ENDPOINT", hub.address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "cache"))


def offered(hub: SmallHub, folder: Path) -> None:
    hub.repositories[NAME] = {path.name: path.read_bytes() for path in folder.iterdir()}
    hub.repositories[NAME] |= {
        "tf_model.h5": b"large",
        "pytorch_model.bin": b"not needed",
        "modeling_evil.py": b"raise",
    }


def fetch(name: str, kind: Kind = "model") -> Path:
    folder, offer = find_on_hub(name, kind)
    return folder if offer is None else offer.take()


def test_a_model_is_fetched_by_its_name_with_the_files_that_are_read_and_no_others(hub: SmallHub, exported: Path, tmp_path: Path) -> None:
    offered(hub, exported)
    folder = fetch(f"hf:{NAME}")
    assert import_folder(folder, tmp_path / "b").model_class == "PegasusForConditionalGeneration"
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (STORED / "model.safetensors").read_bytes()
    assert {path.name for path in folder.iterdir()} == {path.name for path in exported.iterdir()} | {FACTS}
    fetched = {asked.rsplit("/", 1)[1] for asked in hub.asked if "/resolve/" in asked}
    assert not fetched & {"tf_model.h5", "pytorch_model.bin", "modeling_evil.py"}


def test_an_offer_says_address_size_and_licence_before_a_file_is_fetched(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    hub.licenses[NAME] = "cc-by-4.0"
    folder, offer = find_on_hub(f"hf:{NAME}", "model")
    assert offer is not None and not folder.exists()
    assert offer.size == sum(path.stat().st_size for path in exported.iterdir())
    assert f"{hub.address}/{NAME}, " in offer.describe() and "licence: cc-by-4.0" in offer.describe()
    assert not any("/resolve/" in asked for asked in hub.asked)
    offer.take()
    told = json.loads((folder / FACTS).read_bytes())
    assert (told["name"], told["license"], told["address"]) == (f"hf:{NAME}", "cc-by-4.0", f"{hub.address}/{NAME}")


def test_a_bin_is_fetched_where_there_is_nothing_better(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    del hub.repositories[NAME]["model.safetensors"]
    assert (fetch(f"hf:{NAME}") / "pytorch_model.bin").read_bytes() == b"not needed"


@pytest.mark.parametrize("missing", [("config.json",), ("model.safetensors", "pytorch_model.bin")])
def test_a_repository_without_a_usable_model_is_not_offered(missing: tuple[str, ...], hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    for name in missing:
        del hub.repositories[NAME][name]
    with pytest.raises(ModelFileError, match=r"it needs config\.json and model\.safetensors or"):
        find_on_hub(f"hf:{NAME}", "model")


def test_a_place_that_cannot_be_written_is_told(hub: SmallHub, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(hub, exported)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(StorageError, match=r"cannot be kept in .*; name another place by LIMELIGHT_CACHE"):
        fetch(f"hf:{NAME}")


def test_what_was_fetched_is_used_without_asking_the_hub(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    first = fetch(f"hf:{NAME}")
    hub.close()
    assert find_on_hub(f"hf:{NAME}", "model") == (first, None)


def test_a_bundle_is_fetched_whole_and_verifies(hub: SmallHub) -> None:
    files = {path.relative_to(STORED).as_posix(): path.read_bytes() for path in STORED.rglob("*") if path.is_file()}
    hub.repositories[NAME] = {**files, ".gitattributes": b"*.safetensors filter=lfs", "notes.txt": b"not ours"}
    folder = fetch(f"hf:{NAME}", "bundle")
    assert read(folder).settings == read(STORED).settings
    assert not (folder / "notes.txt").exists()
    with pytest.raises(ModelFileError, match="is a bundle, which needs no import"):
        find_on_hub(f"hf:{NAME}", "model")


def test_a_model_that_is_no_bundle_is_to_be_imported_first(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    with pytest.raises(ModelFileError, match=f"limelight import hf:{NAME} -o"):
        find_on_hub(f"hf:{NAME}", "bundle")


CORPUS = {
    "README.md": b"# a card",
    "dataset_infos.json": b"{}",
    "de-en/train-00000-of-00001.jsonl": b'{"translation": {"de": "eins", "en": "one"}}\n',
    "de-en/test-00000-of-00001.jsonl": b'{"translation": {"de": "zwei", "en": "two"}}\n',
    "de-en/validation.jsonl": b'{"translation": {"de": "drei", "en": "three"}}\n',
    "de-fr/train.tsv": b"eins\tun\n",
    "valid/part-1.jsonl": b'{"translation": {"de": "vier", "en": "four"}}\n',
    "valid/valid.jsonl": b'{"translation": {"de": "acht", "en": "eight"}}\n',
    "dev-set/train.jsonl": b'{"translation": {"de": "neun", "en": "nine"}}\n',
    "dev-set/test.jsonl": b'{"translation": {"de": "zehn", "en": "ten"}}\n',
    "lines/train.de": b"eins\n",
    "lines/train.en": b"one\n",
}


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("hf:people/pairs", {"de-en/train-00000-of-00001.jsonl", "de-fr/train.tsv"}),
        ("hf:people/pairs/de-en", {"de-en/train-00000-of-00001.jsonl"}),
        ("hf:people/pairs/de-en/test*", {"de-en/test-00000-of-00001.jsonl"}),
        ("hf:people/pairs/valid", {"valid/part-1.jsonl", "valid/valid.jsonl"}),
        ("hf:people/pairs/dev-set", {"dev-set/train.jsonl"}),
        ("hf:people/pairs/lines/train.*", {"lines/train.de", "lines/train.en"}),
        ("hf:people/pairs/de-fr@main", {"de-fr/train.tsv"}),
    ],
)
def test_of_a_corpus_the_text_to_learn_from_is_fetched_or_what_is_named(name: str, files: set[str], hub: SmallHub) -> None:
    hub.repositories["datasets/people/pairs"] = CORPUS
    folder = fetch(name, "corpus")
    assert folder.name == "pairs"  # what the corpus is called
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == files | {FACTS}


def test_a_corpus_without_text_lists_what_it_has(hub: SmallHub) -> None:
    hub.repositories["datasets/people/pairs"] = CORPUS
    with pytest.raises(DataError, match=r"no parallel text in fr-is to learn from .* it has de-en, de-fr, dev-set, "):
        find_on_hub("hf:people/pairs/fr-is", "corpus")


def test_a_file_that_is_not_what_the_hub_listed_is_not_kept(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    for file in ("model.safetensors", "config.json"):
        hub.broken = {file: "changed"}
        with pytest.raises(ModelFileError, match=f"{file}: its checksum does not fit"):
            fetch(f"hf:{NAME}")
        assert not find_on_hub(f"hf:{NAME}", "model")[0].exists()
    hub.broken = {}
    fetch(f"hf:{NAME}")


def test_after_a_broken_connection_the_folder_is_absent_and_the_next_attempt_whole(hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    hub.broken = {"model.safetensors": "cut"}
    folder, offer = find_on_hub(f"hf:{NAME}", "model")
    assert offer is not None
    with contextlib.suppress(ModelFileError):  # the library may have tried again by itself
        offer.take()
        assert folder.is_dir()
    assert fetch(f"hf:{NAME}") == folder
    assert (folder / "model.safetensors").read_bytes() == (exported / "model.safetensors").read_bytes()


@pytest.mark.parametrize("path", ["../outside.json", "/etc/outside.json", "a/../../outside.json", ".git/config.json", "c:outside.json"])
def test_no_file_of_a_hub_lands_outside(path: str, hub: SmallHub) -> None:
    hub.repositories["datasets/people/pairs"] = {**CORPUS, path: b"{}"}
    folder = fetch("hf:people/pairs", "corpus")
    assert not any("outside" in each.name or ".git" in each.parts for each in folder.parents[4].rglob("*"))


def test_a_full_disk_is_told_before_a_byte_is_fetched(hub: SmallHub, exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(hub, exported)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000))
    with pytest.raises(StorageError, match=r"needs .* MB, and .* has 0.0 MB left; make room"):
        fetch(f"hf:{NAME}")
    assert not any("/resolve/" in asked for asked in hub.asked)
    folder, offer = find_on_hub(f"hf:{NAME}", "model")
    folder.mkdir(parents=True)  # by another process
    assert offer is not None and offer.take() == folder


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hf:people/no-such", "is not on the hub, or is private"),
        (f"hf:{NAME}@v9", "has no revision v9"),
    ],
)
def test_what_cannot_be_fetched_is_said_with_what_to_do(name: str, said: str, hub: SmallHub, exported: Path) -> None:
    offered(hub, exported)
    with pytest.raises(ModelFileError, match=said):
        fetch(name)


def test_without_a_hub_and_without_a_copy_it_says_so(hub: SmallHub) -> None:
    hub.close()
    with pytest.raises(ModelFileError, match=r"cannot be reached"):
        fetch(f"hf:{NAME}")


@pytest.mark.parametrize("name", ["hf:opus-mt-en-de", "hf:a/b/c", "hf:../x", "hf:a/..", "hf:https://hub/a/b", "hf:a/b\n"])
def test_a_name_that_is_none_asks_no_hub(name: str, hub: SmallHub) -> None:
    with pytest.raises(ConfigError, match="OWNER/NAME"):
        fetch(name)
    assert not hub.asked


def test_a_pushed_model_is_what_was_exported_and_private(hub: SmallHub, exported: Path) -> None:
    assert push(exported, NAME, token="none").endswith(NAME)
    assert hub.private[NAME] is True
    assert hub.repositories[NAME] == {path.name: path.read_bytes() for path in exported.iterdir()}
    push(exported, NAME, private=False, token="none")


def test_only_an_exported_model_is_pushed(hub: SmallHub) -> None:
    with pytest.raises(ModelFileError, match="make one with limelight export"):
        push(STORED.parent, NAME)
    assert not hub.asked


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'limelight\[hub\]'"):
        fetch(f"hf:{NAME}")
