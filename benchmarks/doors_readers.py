"""Other people's programs that open documents: `READERS[kind](data)` is the structure that one sees, without the words.

commonmark.js, json, ruamel.yaml, xmllint and lxml, javaproperties, sfparse of GNUstep, webvtt-py, csv, usfm-js, LibreOffice, epubcheck.
What Debian does not have stands in the folder that DOORS_READERS names:

    apt-get install libxml2-utils gnustep-base-runtime libreoffice-writer libreoffice-impress epubcheck nodejs
    pip install --target $DOORS_READERS javaproperties webvtt-py ruamel.yaml
    cd $DOORS_READERS && npm install commonmark usfm-js
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lxml.etree

from documents_real import value_shape

FOLDER = os.environ.get("DOORS_READERS", "")
sys.path += [FOLDER] if FOLDER else []
PROFILE = tempfile.TemporaryDirectory()  # of LibreOffice, which would wait for another that runs with the same one
EPUBCHECK = "/usr/share/java/epubcheck.jar"
PATIENCE = 1800  # seconds for one document: a large book on a busy machine takes minutes
# What stands inside a block may change places with its words.
COMMONMARK = """
const {Parser} = require('commonmark'), seen = []
const walker = new Parser().parse(require('fs').readFileSync(0, 'utf8')).walker(); let event
const blocks = ['document', 'block_quote', 'list', 'item', 'paragraph', 'heading', 'code_block', 'html_block', 'thematic_break']
while ((event = walker.next())) { const {type, destination, level, literal, parent} = event.node
  const told = [type, destination, level, ['code', 'code_block'].includes(type) ? literal : null]
  if (!event.entering || ['text', 'softbreak', 'html_inline'].includes(type)) continue
  if (blocks.includes(type)) seen.push([told, []])
  else seen.at(-1)[1].push(JSON.stringify([parent.type, ...told])) }
console.log(JSON.stringify(seen.map(([block, inside]) => [block, inside.sort()])))"""
USFM = """
const {chapters} = require('usfm-js').toJSON(require('fs').readFileSync(0, 'utf8'))
console.log(JSON.stringify(Object.entries(chapters).map(([key, value]) => [key, Object.keys(value)])))"""


class UnreadableError(Exception):
    """A program does not open a document."""


def run(words: list[str], data: bytes = b"", cwd: str | None = None) -> bytes:
    try:
        done = subprocess.run(words, input=data, capture_output=True, timeout=PATIENCE, cwd=cwd, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnreadableError(f"{words[0]}: {type(error).__name__}") from None
    if done.returncode:
        raise UnreadableError(f"{words[0]}: {done.stderr.decode(errors='replace')[-200:]}")
    return done.stdout


def _guard(read: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Whatever a reader raises says that it cannot read the document."""

    def guarded(data: bytes) -> Any:
        try:
            return read(data)
        except UnreadableError:
            raise
        except Exception as error:
            raise UnreadableError(f"{type(error).__name__}: {str(error)[:200]}") from None

    return guarded


def _by_node(program: str) -> Callable[[bytes], Any]:
    return lambda data: json.loads(run(["node", "-e", program], data.removeprefix(b"\xef\xbb\xbf"), FOLDER or None))


def _yaml(data: bytes) -> Any:
    from ruamel.yaml import YAML

    return [value_shape(one) for one in YAML(typ="safe", pure=True).load_all(data.decode("utf-8-sig"))]


def _xml(*names: str) -> Callable[[bytes], Any]:
    def read(data: bytes) -> Any:
        run(["xmllint", "--noout", "-"], data)
        return [(one.tag, dict(one.attrib)) for one in lxml.etree.fromstring(data).iter(*names)]

    return read


def _properties(data: bytes) -> Any:
    import javaproperties

    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return list(javaproperties.loads(text))


def _strings(data: bytes) -> Any:
    with tempfile.NamedTemporaryFile(suffix=".strings") as file:
        file.write(data)
        file.flush()
        done = subprocess.run(["sfparse", file.name], capture_output=True, timeout=60, check=False)
    said = (done.stdout + done.stderr).decode(errors="replace")
    if (found := re.search(r"seems ok \((\d+) entries\)", said)) is None:
        raise UnreadableError(said[-200:])
    return int(found[1])


def _vtt(data: bytes) -> Any:
    import webvtt

    return [(cue.start, cue.end, cue.identifier) for cue in webvtt.from_string(data.decode("utf-8-sig"))]


def _csv(data: bytes) -> Any:
    return [len(row) for row in csv.reader(io.StringIO(data.decode("utf-8", "replace"), newline=""))]


def _office(kind: str, to: str) -> Callable[[bytes], Any]:
    """LibreOffice converts it: to text, of which the lines count, or to a PDF, of which the pages do."""

    def read(data: bytes) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"document.{kind}"
            file.write_bytes(data)
            run(
                ["soffice", f"-env:UserInstallation=file://{PROFILE.name}", "--headless", "--convert-to", to, "--outdir", folder, str(file)]
            )
            made = file.with_suffix(f".{to.partition(':')[0]}")
            if not made.is_file():
                raise UnreadableError("LibreOffice does not convert it")
            content = made.read_bytes()
        shown = content.count(b"\n") if to.startswith("txt") else len(re.findall(rb"/Type\s*/Page\b", content))
        with zipfile.ZipFile(io.BytesIO(data)) as opened:
            return opened.namelist(), opened.testzip(), shown

    return read


def _epub(data: bytes) -> Any:
    """What epubcheck holds against it, by number; the members and the tags of each page."""
    with tempfile.NamedTemporaryFile(suffix=".epub") as file:
        file.write(data)
        file.flush()
        words = ["java", "-Xmx512m", "-jar", EPUBCHECK, file.name, "--json", "-"]
        told = subprocess.run(words, capture_output=True, timeout=PATIENCE, check=False).stdout
    try:
        messages = json.loads(told[told.index(b"{") :])["messages"]
    except (ValueError, KeyError):
        raise UnreadableError("epubcheck says nothing") from None
    with zipfile.ZipFile(io.BytesIO(data)) as opened:
        pages = {
            name: sorted(str(one.tag) for one in lxml.etree.fromstring(opened.read(name), lxml.etree.XMLParser(recover=True)).iter())
            for name in opened.namelist()
            if name.endswith(("html", ".opf", ".ncx"))
        }
    held = [one for one in messages if one["severity"] in ("WARNING", "ERROR", "FATAL")]
    return sorted((one["ID"], one["message"], len(one["locations"]) + one["additionalLocations"]) for one in held), pages


READERS: dict[str, Callable[[bytes], Any]] = {
    kind: _guard(read)
    for kind, read in {
        "md": _by_node(COMMONMARK),
        "json": lambda data: value_shape(json.loads(data)),
        "yaml": _yaml,
        "xml": _xml("string", "item"),
        "resx": _xml("data", "resheader"),
        "properties": _properties,
        "strings": _strings,
        "xcstrings": json.loads,
        "vtt": _vtt,
        "csv": _csv,
        "usfm": _by_node(USFM),
        "docx": _office("docx", "txt:Text"),
        "odt": _office("odt", "txt:Text"),
        "pptx": _office("pptx", "pdf"),
        "epub": _epub,
    }.items()
}
