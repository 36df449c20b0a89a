"""A `WorkFolder` is where `prepare` builds, so that the old folder stays untouched until all of the new is there.

OUTPUT/.work/ADDRESS/         chunks, outcomes: what an interrupted run goes on from
OUTPUT/.work/ADDRESS/build/   the new folder; its manifest is written last, then everything moves up, the manifest last again
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from limelight.corpus.manifest import HELD_OUT, NAME, CorpusManifest
from limelight.corpus.tokenizers import VOCABULARIES
from limelight.errors import ConfigError, DataError
from limelight.files import link_file

REPORT = "report.html"
OURS = ("shards", "dropped", "pieces.model", "source.model", "target.model", *VOCABULARIES, REPORT)


@dataclass(frozen=True)
class WorkFolder:
    folder: Path
    address: str

    @property
    def root(self) -> Path:
        return self.folder / ".work" / self.address[:16]

    @property
    def build(self) -> Path:
        return self.root / "build"

    def begin(self) -> None:
        """An unfinished run with the same address is continued; leftovers of any other go."""
        for leftover in (self.folder / ".work").glob("*"):
            if leftover != self.root:
                shutil.rmtree(leftover)
        for made in (self.build / "shards", self.build / "dropped", *(self.root / split for split in HELD_OUT)):
            made.mkdir(parents=True, exist_ok=True)

    def take_text(self, before: CorpusManifest) -> None:
        """Shards of text and dropped pairs that are there already, as second names of the same files."""
        texts = [shard.text.path for shards in before.splits.values() for shard in shards]
        dropped = [f"dropped/{path.name}" for path in (self.folder / "dropped").glob("*.jsonl")]
        for name in (*texts, *dropped):
            (self.build / name).unlink(missing_ok=True)
            link_file(self.folder / name, self.build / name)

    def publish(self, manifest: CorpusManifest) -> None:
        """Moves the build up. Done again after a stop in the middle, it goes on."""
        expected = {"shards", REPORT, *(entry.path for entry in manifest.cutting)}
        expected |= {"dropped"} if manifest.settings.get("keep_dropped") else set()
        (self.folder / NAME).unlink(missing_ok=True)
        for name in OURS:
            new, old = self.build / name, self.folder / name
            if name not in expected or new.exists():
                if old.is_dir():
                    shutil.rmtree(old)
                old.unlink(missing_ok=True)
            if name in expected and new.exists():
                new.replace(old)
        (self.build / NAME).replace(self.folder / NAME)
        shutil.rmtree(self.folder / ".work")

    def discard(self) -> None:
        """Nothing stays of a run whose input was refused: another input has another address."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in (self.folder / ".work", self.folder):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()


def load_prepared(folder: Path) -> CorpusManifest | None:
    """What the folder holds, if every file of it is there in its size. The hashes are checked when training opens it."""
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"{folder} is a file; give a folder with -o")
    if not (folder / NAME).exists():
        return None
    manifest = CorpusManifest.load(folder)
    paths = [(folder / entry.path, entry) for entry in manifest.files]
    wrong = [entry.path for path, entry in paths if not path.is_file() or path.stat().st_size != entry.bytes]
    if wrong:
        raise DataError(f"{folder} is damaged: {', '.join(wrong)} is missing or has another size; delete the folder and prepare it again")
    return manifest
