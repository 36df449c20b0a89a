"""Puts three pages into the wheel and the sdist: that of the server, the lighting desk as one file, which exports are made from, and the
one that translates inside a browser.

All are built from web/ when they are not there, so they are not in git. A wheel that lacks them would install and start without complaint,
and its first user would find the gap. LIMELIGHT_NO_PAGE=1 makes a wheel for APIs alone.
"""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("src", "limelight", "serving", "page")
DESK = Path("src", "limelight", "inspection", "page")
LOCAL = Path("src", "limelight", "interop", "web", "page")
LOCAL_FILES = ("index.html", "prove.html", "worker.js", "ort.wasm", "sw.js", "manifest.webmanifest", "icon.svg", "LICENSES.txt")
PLACE = b'<script type="application/json" id="trace">null</script>'
WITHOUT = "LIMELIGHT_NO_PAGE"
HOW = f"run `make web` (Node.js 20.19 or newer) and try again, or set {WITHOUT}=1 for a server without a page"


class PageHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """`version` is "editable" for `pip install --editable`, which serves the page that is there, or says how to build it."""
        if version == "editable" or os.environ.get(WITHOUT):
            return
        root = Path(self.root)
        if not built(root):
            build(root / "web")
        if not built(root):
            raise SystemExit(f"the pages were built and yet are not whole in {PAGE}, {DESK} and {LOCAL}; {HOW}")
        build_data["artifacts"] += [f"/{folder.as_posix()}/" for folder in (PAGE, DESK, LOCAL)]


def built(root: Path) -> bool:
    there = all((root / LOCAL / name).is_file() for name in LOCAL_FILES)
    return there and complete(root / PAGE) and fillable(root / DESK / "desk.html")


def complete(page: Path) -> bool:
    """Is every file there that the page names?"""
    index = page / "index.html"
    if not index.is_file():
        return False
    named = [part.split('"')[0] for part in index.read_bytes().decode().split('"./')[1:]]
    return len(named) > 1 and all((page / name).is_file() for name in named)


def fillable(desk: Path) -> bool:
    """Is there one place for a trace, and a script to show it?"""
    page = desk.read_bytes() if desk.is_file() else b""
    return page.count(PLACE) == 1 and b'<script type="module">' in page


def build(web: Path) -> None:
    npm = shutil.which("npm")
    if npm is None or not (web / "package-lock.json").is_file():
        missing = "npm is not installed" if npm is None else "web/ is not here"
        raise SystemExit(f"the page of the server is not built, and {missing}; {HOW}")
    for command in (["ci"], ["run", "build"]):
        done = subprocess.run([npm, *command], cwd=web, env={**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"})
        if done.returncode:
            raise SystemExit(f"npm {' '.join(command)} failed in web/ with code {done.returncode}; {HOW}")
