# ruff: noqa: E501
"""Real files of the newer kinds of documents: unchanged they stay to the byte, changed they have the same structure for other readers.

    python benchmarks/documents_real.py [FOLDER]... [--most 10] [--office]

Folders are searched for files of each kind (/usr/share and the Python installation if none is given). Readers are markdown-it, json, PyYAML,
csv, lxml and zipfile; with --office LibreOffice makes a PDF of each office document, too. Prints a line for each kind; exits 1 on a fault.
"""

import argparse
import csv
import io
import json
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import lxml.etree
import yaml
from markdown_it import MarkdownIt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "documents"))
from stand_ins import each, reversed_words, unchanged, upper, without_tags

from limelight.documents.document import translate_document
from limelight.errors import ConfigError, LimelightError

LARGEST = 200_000  # bytes of a text; archives may have ten times that
SUFFIXES = {
    "md": (".md", ".markdown"), "json": (".json", ".arb"), "yaml": (".yaml", ".yml"), "xml": ("strings.xml",), "resx": (".resx",), "properties": (".properties",),
    "strings": (".strings",), "xcstrings": (".xcstrings",), "vtt": (".vtt",), "csv": (".csv",), "tsv": (".tsv",), "usfm": (".usfm", ".sfm"),
    "docx": (".docx",), "pptx": (".pptx",), "odt": (".odt",), "epub": (".epub",),
}  # fmt: skip
ARCHIVES = ("docx", "pptx", "odt", "epub")
MARKDOWN = MarkdownIt("commonmark").enable("table")


def find(kind: str, folders: list[Path], most: int) -> Iterator[Path]:
    def fits(path: Path) -> bool:
        try:
            return (
                path.name.endswith(SUFFIXES[kind])
                and path.is_file()
                and 0 < path.stat().st_size < LARGEST * (10 if kind in ARCHIVES else 1)
            )
        except OSError:
            return False

    yield from islice((path for folder in folders for path in sorted(folder.rglob("*")) if fits(path)), most)


def markdown_shape(data: bytes) -> list[Any]:
    found: list[Any] = []
    for token in MARKDOWN.parse(data.decode("utf-8-sig")):
        found.append((token.type, token.tag))
        inline = [(child.type, str(child.attrs.get("href", ""))) for child in token.children or []]
        found.append(sorted(one for one in inline if one[0] not in ("text", "text_special", "softbreak", "html_inline")))
    return found


def value_shape(value: Any) -> Any:
    """Keys, numbers and where texts are."""
    if isinstance(value, dict):
        return {key: value_shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [value_shape(one) for one in value]
    return "text" if isinstance(value, str) else value


def archive_shape(data: bytes) -> Any:
    """Members, and of those with XML how often each element stands there; runs may be joined and parted."""
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        assert opened.testzip() is None
        for name in opened.namelist():
            if name.endswith((".xml", ".rels", ".xhtml", ".opf", ".ncx")):
                lxml.etree.fromstring(opened.read(name), lxml.etree.XMLParser(huge_tree=True, resolve_entities=False))
        return [(info.filename, info.compress_type, info.date_time) for info in opened.infolist()]


SHAPES: dict[str, Callable[[bytes], Any]] = {
    "md": markdown_shape,
    "json": lambda data: value_shape(json.loads(data)),
    "yaml": lambda data: [value_shape(one) for one in yaml.safe_load_all(data.decode("utf-8-sig"))],
    "xml": lambda data: [element.attrib for element in lxml.etree.fromstring(data).iter("string", "item")],
    "resx": lambda data: [element.attrib for element in lxml.etree.fromstring(data).iter("data")],
    "csv": lambda data: [len(row) for row in csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""))],
    **dict.fromkeys(ARCHIVES, archive_shape),
}


def faults(path: Path, kind: str) -> list[str]:
    data, found = path.read_bytes(), []
    options: dict[str, Any] = {"column": "1"} if kind in ("csv", "tsv") else {}

    def translate(change: Callable[[str], str]) -> Any:
        return translate_document(data, kind, ("en", "de"), each(change), **options)  # type: ignore[arg-type]

    if translate(unchanged).data != data and kind != "xcstrings":
        found.append(f"{path}: other bytes although nothing changed")
    shape = SHAPES.get(kind, lambda data: None)
    try:
        before = shape(data)
    except Exception:
        return found  # others cannot read it as it is
    for change in (upper, reversed_words, without_tags):
        done = translate(change)
        try:
            same = shape(done.data) == before
        except Exception as error:
            same = False
            found.append(f"{path}: {change.__name__}: {type(error).__name__}")
        if not same:
            found.append(f"{path}: {change.__name__}: another structure")
    return found


def opened_by_office(path: Path, kind: str) -> list[str]:
    """LibreOffice makes a PDF of the translation."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"translated.{kind}"
        made.write_bytes(translate_document(path.read_bytes(), kind, ("en", "de"), each(reversed_words)).data)  # type: ignore[arg-type]
        subprocess.run(
            ["soffice", "--headless", "--convert-to", "pdf", "--outdir", folder, str(made)], capture_output=True, timeout=300, check=False
        )
        return [] if made.with_suffix(".pdf").is_file() else [f"{path}: LibreOffice does not open its translation"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--office", action="store_true")
    asked = parser.parse_args()
    folders = asked.folders or [Path("/usr/share"), Path(sysconfig.get_path("purelib"))]
    all_found = 0
    for kind in SUFFIXES:
        read, refused, found = 0, 0, list[str]()
        for path in find(kind, folders, asked.most):
            try:
                found += faults(path, kind)
                found += opened_by_office(path, kind) if asked.office and kind in ("docx", "odt", "pptx") else []
                read += 1
            except ConfigError:
                raise
            except LimelightError:
                refused += 1
        sys.stdout.write(
            f"{kind:<12} {read:>4} right, {refused} refused, {len(found)} faults\n" + "".join(f"    {fault}\n" for fault in found)
        )
        all_found += len(found)
    return bool(all_found)


if __name__ == "__main__":
    sys.exit(main())
