"""A bundle at an address is fetched once, verified before it is used, and kept on this machine for every process.

Each start asks for the manifest, and fetches what it does not have. When the address cannot be reached the last one that was fetched is
used, with a warning: a server must be able to start again while its storage is away.
"""

import hashlib
import logging
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from limelight.addresses.folders import ObjectEntry, fetch_files, find_cache, lock, name_copy, publish
from limelight.addresses.object_store import ObjectStore
from limelight.addresses.snapshots import Snapshots
from limelight.bundle.bundle import read
from limelight.bundle.layout import GLOSSARY, MANIFEST
from limelight.bundle.manifest import read_manifest, verify
from limelight.errors import ModelFileError, StorageError
from limelight.files import whole_folder, write_whole

IN_RUN: Final = "bundle/"
NEWEST: Final = "newest"
MOST_KEPT: Final = 3  # versions of one address: a server may still read the one before

logger = logging.getLogger(__name__)


def fetch_bundle(address: str, store: ObjectStore | None = None) -> Path:
    """The folder of this machine that holds what the address holds."""
    store = store or ObjectStore(address)
    place = find_cache("bundles", store.address)
    with lock(place):
        try:
            folder = _fetch(store, place)
        except (StorageError, ModelFileError) as error:  # away, or somebody writes another version there at this moment
            try:
                folder = place / (place / NEWEST).read_bytes().decode() / name_copy(address)
                verify(folder)
            except (FileNotFoundError, ModelFileError):
                raise error from None
            logger.warning("%s; the last version that was fetched is used: %s", error, folder)
            return folder
        write_whole(place / NEWEST, folder.parent.name.encode())
        versions = sorted((path for path in place.iterdir() if path.is_dir()), key=lambda path: path.stat().st_mtime)
        for old in versions[:-MOST_KEPT]:
            if old != folder.parent:
                shutil.rmtree(old, ignore_errors=True)
        return folder


def publish_bundle(folder: Path, address: str, force: bool = False) -> None:
    """The bundle of a folder, or of a run, verified. `force` replaces what is there."""
    folder = read(folder).folder
    publish(ObjectStore(address), folder, list(verify(folder)), force)


def _fetch(store: ObjectStore, place: Path) -> Path:
    prefix = "" if (manifest := store.get(MANIFEST)) else IN_RUN
    manifest = manifest or store.get(prefix + MANIFEST)
    files = {} if manifest else _pick_bundle(Snapshots(store).newest().files)
    if not manifest and not files:
        raise ModelFileError(f"{store.address} is no bundle: neither it nor {IN_RUN} in it has a {MANIFEST}, and no run wrote one there")
    version = hashlib.sha256(manifest or repr(sorted((name, file.sha256) for name, file in files.items())).encode()).hexdigest()[:16]
    folder = place / version / name_copy(store.address)
    with suppress(ModelFileError):  # a disk forgot some of it; it is fetched again
        if folder.exists():
            verify(folder)
            return folder
    with whole_folder(folder) as beside:
        if (glossary := folder / GLOSSARY).is_file():  # a person's own, which no manifest names
            shutil.copyfile(glossary, beside / GLOSSARY)
        try:
            if manifest:
                (beside / MANIFEST).write_bytes(manifest)
                entries = read_manifest(beside).files
                files = {each.path: ObjectEntry(prefix + each.path, each.bytes, each.sha256) for each in entries}
                fetch_files(store, files, beside)
            else:
                Snapshots(store).fetch(_pick_bundle, beside)
            verify(beside)
        except ModelFileError as error:
            raise ModelFileError(str(error).replace(str(beside), store.address)) from None
    return folder


def _pick_bundle(files: dict[str, ObjectEntry]) -> dict[str, ObjectEntry]:
    return {name.removeprefix(IN_RUN): file for name, file in files.items() if name.startswith(IN_RUN)}
