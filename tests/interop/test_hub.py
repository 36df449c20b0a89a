"""Fetching from a hub and pushing to one, against a small hub on this machine: nothing of the library is replaced."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="needs the hub's library; pip install limelight[hub]")
sys.path.insert(0, str(Path(__file__).parent))
from huggingface_hub import constants
from small_hub import SmallHub

from limelight.bundle import read
from limelight.errors import ConfigError, MissingExtraError, ModelFileError
from limelight.interop.huggingface.export import export_folder
from limelight.interop.huggingface.hub import fetch, push
from limelight.interop.huggingface.load import import_folder

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


def offered(hub: SmallHub, folder: Path) -> None:
    hub.repositories[NAME] = {path.name: path.read_bytes() for path in folder.iterdir()}
    hub.repositories[NAME] |= {
        "tf_model.h5": b"large",
        "pytorch_model.bin": b"not needed",
        "modeling_evil.py": b"raise",
    }


def test_a_model_is_fetched_by_its_name_with_the_files_that_are_read_and_no_others(hub: SmallHub, exported: Path, tmp_path: Path) -> None:
    offered(hub, exported)
    folder = fetch(NAME, cache=tmp_path / "cache")
    assert import_folder(folder, tmp_path / "b", name=NAME).model_class == "PegasusForConditionalGeneration"
    assert (tmp_path / "b" / "model.safetensors").read_bytes() == (STORED / "model.safetensors").read_bytes()
    assert {path.name for path in folder.iterdir()} == {path.name for path in exported.iterdir()}
    fetched = {asked.rsplit("/", 1)[1] for asked in hub.asked if "/resolve/" in asked}
    assert not fetched & {"tf_model.h5", "pytorch_model.bin", "modeling_evil.py"}


def test_a_bin_is_fetched_where_there_is_nothing_better(hub: SmallHub, exported: Path, tmp_path: Path) -> None:
    offered(hub, exported)
    del hub.repositories[NAME]["model.safetensors"]
    folder = fetch(NAME, cache=tmp_path / "cache")
    assert (folder / "pytorch_model.bin").read_bytes() == b"not needed"


def test_what_was_fetched_is_there_when_the_hub_is_not(hub: SmallHub, exported: Path, tmp_path: Path) -> None:
    offered(hub, exported)
    first = fetch(NAME, cache=tmp_path / "cache")
    hub.close()
    assert fetch(NAME, cache=tmp_path / "cache") == first


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("people/no-such", None, "is not on the hub, or is private"),
        (NAME, "v9", "has no revision v9"),
    ],
)
def test_what_cannot_be_fetched_is_said_with_what_to_do(
    name: str, revision: str | None, said: str, hub: SmallHub, exported: Path, tmp_path: Path
) -> None:
    offered(hub, exported)
    with pytest.raises(ModelFileError, match=said):
        fetch(name, revision, tmp_path / "cache")


def test_without_a_hub_and_without_a_copy_it_says_so(hub: SmallHub, tmp_path: Path) -> None:
    hub.close()
    with pytest.raises(ModelFileError, match=r"cannot be reached"):
        fetch(NAME, cache=tmp_path / "cache")


@pytest.mark.parametrize("name", ["opus-mt-en-de", "a/b/c", "../x", "a/..", "https://hub/a/b", "a/b\n"])
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
        fetch(NAME)
