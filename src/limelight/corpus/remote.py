"""A prepared corpus at an address is a folder of objects: a run fetches all but its shards of training, `prepare` the whole of it."""

import shutil
from contextlib import suppress
from pathlib import Path

from limelight.addresses.folders import ObjectEntry, fetch_files
from limelight.addresses.object_store import RUN_SECONDS, ObjectStore, is_address
from limelight.corpus.feeding.shard_cache import ADDRESS
from limelight.corpus.manifest import NAME, CorpusManifest
from limelight.corpus.work_folder import REPORT
from limelight.errors import ConfigError
from limelight.files import link_file, whole_folder


def find_prepared(place: str) -> CorpusManifest | None:
    """The manifest of a folder or of an address; None where there is no prepared corpus, or where it may not be read."""
    if not is_address(place):
        return CorpusManifest.load(Path(place)) if (Path(place) / NAME).is_file() else None
    with suppress(ConfigError):  # who may read a file may not always ask for another; and a pattern is no address
        content = ObjectStore(place).get(NAME)
        return None if content is None else CorpusManifest.decode(content, f"{place}/{NAME}")
    return None


def place_prepared(place: str, folder: Path) -> CorpusManifest:
    """A prepared corpus for a run: of a folder all files; of an address all but the shards of training, and where those are."""
    if is_address(place):
        fetch_prepared(ObjectStore(place, patience=RUN_SECONDS), folder, training=False)
    elif not (folder / NAME).is_file() or (folder / NAME).read_bytes() != (Path(place) / NAME).read_bytes():
        with whole_folder(folder) as beside:
            shutil.copytree(place, beside, copy_function=link_file, ignore=shutil.ignore_patterns(".*"), dirs_exist_ok=True)
    return CorpusManifest.load(folder)


def fetch_prepared(store: ObjectStore, folder: Path, training: bool = True) -> None:
    """What the address holds, unless the folder has it. Without a manifest there, the folder stays: `prepare` may go on in it."""
    manifest = store.get(NAME)
    if manifest is None or ((folder / NAME).is_file() and (folder / NAME).read_bytes() == manifest):
        return
    with whole_folder(folder) as beside:
        (beside / NAME).write_bytes(manifest)
        found = CorpusManifest.load(beside)
        files = found.files if training else found.without_training
        fetch_files(store, {each.path: ObjectEntry(each.path, each.bytes, each.sha256) for each in files}, beside)
        if not training:
            (beside / ADDRESS).write_bytes(store.address.encode())
            if report := store.get(REPORT):
                (beside / REPORT).write_bytes(report)


def list_prepared(folder: Path) -> list[str]:
    """The files of a prepared corpus beside its manifest."""
    dropped = [f"dropped/{path.name}" for path in sorted((folder / "dropped").glob("*.jsonl"))]
    files = [entry.path for entry in CorpusManifest.load(folder).files]
    return [*files, *dropped, *([REPORT] if (folder / REPORT).exists() else [])]
