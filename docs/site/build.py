"""Builds the documentation.

python docs/site/build.py              into dist/docs; open dist/docs/index.html, no server is needed
python docs/site/build.py -o FOLDER    into FOLDER/docs

The first page has a translator in it where `make web-demo` has made one (site/try, or --demo FOLDER); else it goes without.
In this order: pages of docs/ with code, figures and equations filled in; the reference, from the code; HTML; every link looked at.
It ends with 1, and a list, if a link leads nowhere or something would come from another host.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath

import figures
import reference_cli
import reference_http
import reference_python
import reference_recipe
from fill import emptied
from links import problems
from pages import DOCS, OTHERS, Site
from sources import ROOT

HERE = Path(__file__).parent
ASSETS = ["iframe-worker.js", "lamp.svg", "limelight.css"]
AS_THEY_ARE = {".svg", ".png", ".ipynb"}
DEMO = ROOT / "site" / "try"
TRY = "<!-- try -->"
FRAME = """<figure class="try">
<iframe src="try/index.html#twenty-one" title="A translator of number words" loading="lazy" onload="
const page = this.contentDocument?.querySelector('.page');
if (page) new ResizeObserver(() => (this.style.height = page.offsetHeight + 'px')).observe(page)"></iframe>
<figcaption>A translator of number words, inside this page: fetch it, write a number in English words, and dim its heads one by one.
It is a Limelight model of a few minutes' training, and nothing you write leaves your device. From a disk browsers do not let it be read:
<code>python -m http.server -d dist/docs</code> serves these pages to you.</figcaption>
</figure>"""
REFERENCE = {
    "cli": reference_cli.page,
    "recipe": reference_recipe.page,
    "python": reference_python.page,
    "http": reference_http.page,
}


def build(output: Path, demo: Path = DEMO) -> list[str]:
    """Returns what is wrong with the links of the site, which is in `output`/docs."""
    source = output / "docs-source"
    shutil.rmtree(source, ignore_errors=True)
    gather(source)
    is_there = (demo / "models.json").is_file()
    first = source / "index.md"
    first.write_text(first.read_text("utf-8").replace(TRY, FRAME if is_there else ""), "utf-8")
    (output / "zensical.toml").write_bytes((ROOT / "zensical.toml").read_bytes())
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "-f", "zensical.toml"]
    done = subprocess.run(command, cwd=output, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    if done.returncode:
        return [line for line in (done.stdout + done.stderr).split("\n") if line.strip()]
    if is_there:
        shutil.copytree(demo, output / "docs" / "try")
    return problems(output / "docs")


def gather(source: Path) -> None:
    """All that the site is built of."""
    site = Site(source, figures.figure)
    for path in sorted(DOCS.rglob("*.md")):
        if not path.is_relative_to(HERE):
            origin = PurePosixPath(path.relative_to(ROOT).as_posix())
            site.write(str(origin.relative_to("docs")), emptied(path.read_text("utf-8")), origin)
    for origin, page in OTHERS.items():
        if page != "index.md":
            site.write(page, (ROOT / origin).read_text("utf-8"), PurePosixPath(origin))
    for name, page in REFERENCE.items():
        site.write(f"reference/{name}.md", page(), PurePosixPath(f"docs/reference/{name}.md"))
    site.write_sources()
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in AS_THEY_ARE and path.parent.name != "figures" and not path.is_relative_to(HERE):
            _copy(path, source / path.relative_to(DOCS))
    for name in ASSETS:
        _copy(HERE / name, source / "assets" / name)


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--demo", type=Path, default=DEMO)
    asked = parser.parse_args()
    output = asked.output
    output.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    found = build(output, asked.demo)
    for problem in found:
        sys.stderr.write(f"{problem}\n")
    pages = len(list((output / "docs").rglob("*.html")))
    sys.stdout.write(f"{pages} pages in {output / 'docs'}, after {time.perf_counter() - began:.0f} s; {len(found)} problems\n")
    if not (asked.demo / "models.json").is_file():
        sys.stdout.write(f"no translator on the first page: {asked.demo} has none; run make web-demo\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
