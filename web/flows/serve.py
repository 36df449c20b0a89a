"""The server that the flows run against: the bundle of the tests, and two of the same weights that say other languages.

These two let a browser swap languages and see a page from right to left; what they translate is as wrong as their label. A fourth, which
has learnt nothing, has three languages and two tags.
"""

import os
import shutil
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from limelight.bundle.bundle import amend
from limelight.store.store import open_store

BUNDLE = Path(__file__).parents[2] / "tests" / "bundles" / "format-1"
LABELS = {"de-en": ("de", "en"), "en-ar": ("en", "ar")}
MEMORY = [("seven two four nine", "sieben zwei vier neun, wie je"), ("seven two four nine one", "sieben zwei vier neun eins, wie je")]
DIRECTIONS = (("sv", "nl"), ("sv", "da"), ("nl", "sv"), ("da", "sv"))
sys.path.insert(0, str(BUNDLE.parents[1]))


def write_multi(folder: Path) -> None:
    from tagged_bundle import tags_of, write_tagged

    known = tags_of()
    formal, informal = known.names.values()
    target = dict(zip(("nl", "da", "sv"), known.target.values(), strict=True))
    tags = tags_of(target=target, names={"formal": formal, "informal": informal}, directions=DIRECTIONS)
    write_tagged(folder, languages=DIRECTIONS[0], tags=tags)


def main(port: str, *settings: str) -> None:
    folder = Path(tempfile.gettempdir()) / f"limelight-flows-{os.getuid()}-{port}"
    shutil.rmtree(folder, ignore_errors=True)  # of the last time: this process becomes the server and cannot clean up
    for name, languages in LABELS.items():
        shutil.copytree(BUNDLE, folder / name)
        amend(folder / name, languages=languages)
    write_multi(folder / "multi")
    places = [f"en-de={BUNDLE}", *(f"{name}={folder / name}" for name in (*LABELS, "multi"))]
    kept = ["--store", f"sqlite:///{folder}/kept.db"]
    with closing(open_store(kept[1])) as store:
        list(store.memory.add(("en", "de"), MEMORY, "numbers.tmx"))
    os.execv(
        sys.executable,
        [sys.executable, "-m", "limelight", "serve", *places, *settings, *kept, "--port", port, "--threads", "1"],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
