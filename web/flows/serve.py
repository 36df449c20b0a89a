"""The server that the flows run against: the bundle of the tests, and two of the same weights that say other languages.

These two let a browser swap languages and see a page from right to left; what they translate is as wrong as their label.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from limelight.bundle.bundle import amend

BUNDLE = Path(__file__).parents[2] / "tests" / "bundles" / "format-1"
LABELS = {"de-en": ("de", "en"), "en-ar": ("en", "ar")}


def main(port: str, *settings: str) -> None:
    folder = Path(tempfile.gettempdir()) / f"limelight-flows-{os.getuid()}-{port}"
    shutil.rmtree(folder, ignore_errors=True)  # of the last time: this process becomes the server and cannot clean up
    for name, languages in LABELS.items():
        shutil.copytree(BUNDLE, folder / name)
        amend(folder / name, languages=languages)
    places = [f"en-de={BUNDLE}", *(f"{name}={folder / name}" for name in LABELS)]
    os.execv(
        sys.executable,
        [sys.executable, "-m", "limelight", "serve", *places, *settings, "--port", port, "--threads", "1"],
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
