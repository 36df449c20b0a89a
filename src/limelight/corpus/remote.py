"""A prepared corpus at an address is fetched whole and verified: the order of an epoch goes through all of its shards at random."""

from pathlib import Path

from limelight.addresses.folders import ObjectEntry, fetch_files
from limelight.addresses.object_store import ObjectStore
from limelight.corpus.manifest import NAME, CorpusManifest
from limelight.corpus.work_folder import REPORT
from limelight.files import whole_folder


def fetch_prepared(store: ObjectStore, folder: Path) -> None:
    """What the address holds, unless the folder has it. Without a manifest there, the folder stays: `prepare` may go on in it."""
    manifest = store.get(NAME)
    if manifest is None or ((folder / NAME).is_file() and (folder / NAME).read_bytes() == manifest):
        return
    with whole_folder(folder) as beside:
        (beside / NAME).write_bytes(manifest)
        files = CorpusManifest.load(beside).files
        fetch_files(store, {each.path: ObjectEntry(each.path, each.bytes, each.sha256) for each in files}, beside)


def list_prepared(folder: Path) -> list[str]:
    """The files of a prepared corpus beside its manifest."""
    dropped = [f"dropped/{path.name}" for path in sorted((folder / "dropped").glob("*.jsonl"))]
    files = [entry.path for entry in CorpusManifest.load(folder).files]
    return [*files, *dropped, *([REPORT] if (folder / REPORT).exists() else [])]
