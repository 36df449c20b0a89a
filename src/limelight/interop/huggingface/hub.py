"""The Hugging Face hub gives models, bundles and parallel corpora by name, and takes a folder that we exported. See docs/interop.md."""

import errno
import glob
import hashlib
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

from limelight.bundle.layout import MANIFEST
from limelight.bundle.manifest import is_ours
from limelight.corpus.reading.finding import LINES, format_of
from limelight.errors import ConfigError, DataError, LimelightError, MissingExtraError, ModelFileError
from limelight.files import cache_folder, sha256_of
from limelight.interop.file_names import CARD, CONFIG, GENERATION, INDEX, PICKLED, PICKLED_INDEX, PIECES, WHOLE
from limelight.interop.offers import FACTS, PublishedOffer, Tell

Kind = Literal["bundle", "corpus", "model"]
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_NAME = re.compile(rf"hf:({HUB_ID.pattern})(?:/([\w.*/=+-]{{1,200}}?))?/?(?:@([\w./-]{{1,50}}))?", re.ASCII)
_INSIDE = re.compile(r"(?!/|.*(?:^|/)\.)[^\x00-\x1f\\:]{1,200}")  # no hidden file or folder, so none above either
_WORDS = "(?:dev|devtest|eval|test|val|valid|validation)"
_HELD_OUT = re.compile(rf"(?:^|[/_.-]){_WORDS}(?=[/_.-])", re.IGNORECASE)
_HELD_OUT_FOLDER = re.compile(rf"(?:.*/)?{_WORDS}(?:/.*)?", re.IGNORECASE)
_NO_PAIRS = re.compile(r"(?:.*/)?(?:dataset_infos?|dataset_dict|state|config)\.json")
SMALL = (CONFIG, GENERATION, CARD, *PIECES)
SAFE = (WHOLE, INDEX, "model-*-of-*.safetensors")
PICKLES = (PICKLED, PICKLED_INDEX, "pytorch_model-*-of-*.bin")  # only where there is nothing better


def find_on_hub(name: str, kind: Kind) -> tuple[Path, PublishedOffer | None]:
    """The folder, and the offer to be taken before it is there; None if it is. What is there is used without asking the hub."""
    if (asked := _NAME.fullmatch(name)) is None or (asked[2] and kind != "corpus"):
        raise ConfigError(f"{name[:99]} is no name on a hub; give hf:OWNER/NAME, such as hf:Helsinki-NLP/opus-mt-en-de, or a folder")
    hub_id, inside, revision = asked.groups()
    folder = cache_folder() / "hf" / kind / quote(name.removeprefix("hf:"), safe="") / hub_id.partition("/")[2]
    return folder, None if folder.is_dir() else _ask(name, kind, hub_id, inside or "", revision, folder)


def _ask(name: str, kind: Kind, hub_id: str, inside: str, revision: str | None, folder: Path) -> PublishedOffer:
    hub = _library()
    api = hub.HfApi()
    with _explain(hub_id, revision):
        info = (api.dataset_info if kind == "corpus" else api.model_info)(hub_id, revision=revision, files_metadata=True)
    there = {each.rfilename: each for each in info.siblings or () if _INSIDE.fullmatch(each.rfilename)}
    files = [there[each] for each in _choose(hub_id, kind, inside, list(there))]
    size = sum(each.size or 0 for each in files)
    told = [tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")]
    address = f"{api.endpoint}/{'datasets/' * (kind == 'corpus')}{hub_id}"

    def get(part: Path, _: Tell) -> None:  # the library shows how far it is
        where: dict[str, Any] = {"repo_type": "dataset" if kind == "corpus" else "model", "revision": info.sha, "local_dir": part}
        with _explain(hub_id, revision):
            hub.snapshot_download(hub_id, **where, allow_patterns=[glob.escape(each.rfilename) for each in files])
        shutil.rmtree(part / ".cache", ignore_errors=True)  # the library's notes
        _check(hub_id, part, files)

    names = {each.rfilename for each in files}
    return PublishedOffer(name, address, size, size, ", ".join(told) or "none is told", folder, get, names)


def _choose(hub_id: str, kind: Kind, inside: str, names: Sequence[str]) -> list[str]:
    if kind == "bundle":
        if MANIFEST not in names:
            raise ModelFileError(f"{hub_id} on the hub is no bundle; import the model first: limelight import hf:{hub_id} -o FOLDER")
        return [each for each in names if each == MANIFEST or is_ours(each)]
    if kind == "model":
        if MANIFEST in names:
            raise ModelFileError(f"{hub_id} on the hub is a bundle, which needs no import: limelight translate hf:{hub_id}")
        weights = SAFE if {WHOLE, INDEX} & {*names} else PICKLES
        found = [each for each in names if any(fnmatchcase(each, pattern) for pattern in (*SMALL, *weights))]
        if CONFIG not in found or not any(each.endswith((".safetensors", ".bin")) for each in found):
            raise ModelFileError(f"{hub_id} on the hub is no model that can be imported: it needs {CONFIG} and {WHOLE} or {PICKLED}")
        return found
    exact = [each for each in names if inside and fnmatchcase(each, inside)]
    known = [each for each in names if format_of(each) != LINES and not _NO_PAIRS.fullmatch(each)]
    within = [each for each in known if not inside or each.startswith(f"{inside}/")]
    every = _HELD_OUT_FOLDER.fullmatch(inside)  # a folder that was asked for by that name
    if found := exact or [each for each in within if every or not _HELD_OUT.search(each[len(inside) :])]:
        return found
    folders = sorted({str(PurePosixPath(each).parent) for each in known} - {"."})
    raise DataError(
        f"{hub_id} on the hub has no parallel text{f' in {inside}' * bool(inside)} to learn from (Parquet, JSONL, TSV, TMX ...); "
        f"it has {', '.join([*folders, *known][:12]) or 'no such file'}: name a folder or files, such as hf:{hub_id}/de-en or .../test*"
    )


def _check(hub_id: str, folder: Path, files: Sequence[Any]) -> None:
    """All files are here, as the hub listed them, and no others."""
    problems = []
    for each in files:
        path = folder / each.rfilename
        if not path.is_file() or (each.size is not None and path.stat().st_size != each.size):
            problems.append(f"{each.rfilename}: is not whole")
            continue
        told, found = (each.lfs.sha256, sha256_of(path)) if each.lfs else (each.blob_id, _blob_id(path))
        if told and told != found:
            problems.append(f"{each.rfilename}: its checksum does not fit")
    if problems:
        shutil.rmtree(folder)
        raise ModelFileError("\n".join([f"{hub_id} did not come as the hub told; try again:", *(f"  - {each}" for each in problems)]))
    wanted = {folder / each.rfilename for each in files} | {folder / FACTS}
    for stray in [path for path in folder.rglob("*") if path.is_file() and path not in wanted]:  # of an earlier attempt
        stray.unlink()


def _blob_id(path: Path) -> str:
    content = path.read_bytes()  # the large ones have a SHA-256
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


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
        "RevisionNotFoundError": f"has no revision {revision}; leave it out for the newest",
        "LocalEntryNotFoundError": "cannot be fetched, for the hub cannot be reached, and it was not fetched before; go online",
        "HFValidationError": "is no name on a hub; give OWNER/NAME",
        "HfHubHTTPError": "was refused by the hub",
    }
    try:
        yield
    except LimelightError:
        raise
    except Exception as error:
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS):  # of this machine
            raise
        said = str(error).strip().split("\n")[0][:200]
        for name, explained in known.items():
            if isinstance(error, getattr(errors, name, ())):
                raise ModelFileError(f"{hub_id} {explained} ({said})") from None
        if isinstance(error, OSError) or type(error).__module__.split(".")[0] in ("httpx", "httpx2", "requests"):
            raise ModelFileError(f"{hub_id}: the hub cannot be reached ({said}); go online, or give a folder") from None
        raise
