"""The Hugging Face hub gives the files of a model that we read, and takes a folder that we exported.

Through huggingface_hub, which keeps what it fetched, goes on where a download was broken off, and knows how a person logged in. It is an
extra: pip install limelight[hub].
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from limelight.errors import ConfigError, MissingExtraError, ModelFileError
from limelight.interop.huggingface.load import CARD, CONFIG, GENERATION
from limelight.interop.published_pieces import FILES as PIECES
from limelight.interop.stored_weights import INDEX, PICKLED, PICKLED_INDEX, WHOLE

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
SMALL = (CONFIG, GENERATION, CARD, *PIECES)
SAFE = (WHOLE, INDEX, "model-*-of-*.safetensors")
PICKLES = (PICKLED, PICKLED_INDEX, "pytorch_model-*-of-*.bin")  # only where there is nothing better


def fetch(hub_id: str, revision: str | None = None, cache: Path | None = None) -> Path:
    """The folder where the model now lies. Offline, what was fetched before."""
    hub = _library()
    if not HUB_ID.fullmatch(hub_id):
        raise ConfigError(f"{hub_id[:99]} is no name on a hub; give OWNER/NAME, such as Helsinki-NLP/opus-mt-en-de, or a folder")

    def get(patterns: tuple[str, ...]) -> Path:
        with _explain(hub_id, revision):
            found = hub.snapshot_download(hub_id, revision=revision, cache_dir=cache, allow_patterns=list(patterns))
            return Path(found)

    folder = get((*SMALL, *SAFE))
    if not any((folder / name).exists() for name in (WHOLE, INDEX)):
        folder = get((*SMALL, *PICKLES))
    return folder


def push(folder: Path, hub_id: str, private: bool = True, token: str | None = None) -> str:
    """Make the repository if it is not there, and put the folder in, with its card. Returns its address. Private unless asked."""
    hub = _library()
    if not HUB_ID.fullmatch(hub_id):
        raise ConfigError(f"{hub_id[:99]} is no name on a hub; give OWNER/NAME")
    if not all((folder / name).is_file() for name in (CONFIG, WHOLE, CARD)):
        raise ModelFileError(f"{folder} is no model for the hub; make one with limelight export --to huggingface")
    with _explain(hub_id):
        api = hub.HfApi(token=token)
        address = api.create_repo(hub_id, private=private, exist_ok=True)
        api.upload_folder(repo_id=hub_id, folder_path=folder, commit_message="Export from Limelight")
        return str(address)


def _library() -> Any:
    try:
        return import_module("huggingface_hub")
    except ImportError:
        raise MissingExtraError("huggingface_hub", "the hub", "hub") from None


@contextmanager
def _explain(hub_id: str, revision: str | None = None) -> Iterator[None]:
    """What the library raises, as an error of ours that says what to do."""
    errors = import_module("huggingface_hub.errors")
    known = {
        "GatedRepoError": "asks you to accept its terms first: do so on its page, then log in with hf auth login",
        "RepositoryNotFoundError": "is not on the hub, or is private: check the name, or log in with hf auth login",
        "RevisionNotFoundError": f"has no revision {revision}; leave --revision out for the newest",
        "LocalEntryNotFoundError": "cannot be fetched, for the hub cannot be reached, and it was not fetched before; go online",
        "HFValidationError": "is no name on a hub; give OWNER/NAME",
        "HfHubHTTPError": "was refused by the hub",
    }
    try:
        yield
    except Exception as error:
        said = str(error).strip().split("\n")[0][:200]
        for name, explained in known.items():
            if isinstance(error, getattr(errors, name, ())):
                raise ModelFileError(f"{hub_id} {explained} ({said})") from None
        if isinstance(error, OSError) or type(error).__module__.split(".")[0] in ("httpx", "requests"):
            raise ModelFileError(f"{hub_id}: the hub cannot be reached ({said}); go online, or give a folder") from None
        raise
