"""A page of two models for the flows of the page that translates by itself, and the first of them as a single file.

python flows/local_page.py FOLDER SINGLE.html

The second is the bundle of the tests under other languages: what it translates is as wrong as its label. Nothing is compared here: that
is what the flows do.
"""

import json
import shutil
import sys
from pathlib import Path

import limelight.interop.web.export as web
from limelight.bundle.bundle import read

BUNDLE = Path(__file__).parents[2] / "tests" / "bundles" / "format-1"
OTHERS = {"languages": ["nl", "sv"], "directions": [["nl", "sv"]]}


def main(folder: Path, single: Path) -> None:
    web.find_browser = lambda: None
    web.export_web(read(BUNDLE), folder, quantize="uint8")
    listed = json.loads((folder / "models.json").read_bytes())
    made = listed["models"][0]
    single.write_bytes(web._one_file(folder, made))
    add_second(folder, listed, made)


def add_second(folder: Path, listed: dict, made: dict) -> None:
    """As a second export would, without its half a minute."""
    place = Path(shutil.copytree(folder / "models" / made["id"], folder / "models" / "second"))
    config = json.loads((place / "config.json").read_bytes()) | OTHERS
    (place / "config.json").write_text(json.dumps(config), "utf-8")
    second = {**made, "id": "second", "directions": OTHERS["directions"], "files": web._describe(place, list(made["files"]))}
    listed["models"].append(second)
    (folder / "models.json").write_text(json.dumps(listed), "utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
