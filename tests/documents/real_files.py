"""Real documents to try the round trip on: files as they are, and files made of real strings.

samples      the exchange files of LIMELIGHT_DATA/l10n/samples, as they are
po, xliff    one for each of some packages of LIMELIGHT_DATA/l10n/tm.en-de.jsonl.gz: its strings, with the translations taken out
srt          talks of LIMELIGHT_DATA/iwslt17-ted, whose doubled spaces are the ends of the subtitle lines they once were
html         pages that lie in the Python installation, and those that pydoc writes of its modules
txt          texts of the Python installation
"""

import gzip
import io
import itertools
import json
import pydoc
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

import polib

MODULES = (
    "argparse",
    "calendar",
    "difflib",
    "gettext",
    "json",
    "numbers",
    "platform",
    "queue",
    "shelve",
    "textwrap",
    "webbrowser",
)
LARGEST = 150_000
_INLINE = re.compile(r"(</?(?:b|i|u|tt|em|code|span|link|emph|small|big)(?: [^<>]*)?>|<br ?/?>|%[0-9]?[$]?[sd]|\{[0-9a-z]*\})")


class RealFile(NamedTuple):
    name: str
    kind: str
    data: bytes


def real_files(data: Path, packages: int = 14, talks: int = 10) -> list[RealFile]:
    """All of them. `data` is the folder that LIMELIGHT_DATA names."""
    return [*samples(data), *catalogues(data, packages), *subtitles(data, talks), *pages(), *texts()]


def samples(data: Path) -> Iterator[RealFile]:
    kinds = {".po": "po", ".xlf": "xliff", ".tmx": "tmx"}
    for path in sorted((data / "l10n" / "samples").iterdir()):
        if ".is." in path.name:  # its header says Icelandic: no translator into German takes it
            continue
        yield RealFile(path.name, kinds[path.suffix], path.read_bytes())


def catalogues(data: Path, packages: int) -> Iterator[RealFile]:
    """Of each package a .po, and an XLIFF of version 1.2 or 2.0, or a TMX, in turn."""
    others = itertools.cycle([("1.2.xlf", "xliff", _xliff_1), ("2.0.xlf", "xliff", _xliff_2), ("tmx", "tmx", _tmx)])
    for name, rows in itertools.islice(_packages(data), packages):
        yield RealFile(f"{name}.po", "po", _po(rows))
        suffix, kind, write = next(others)
        yield RealFile(f"{name}.{suffix}", kind, write([row["src"] for row in rows]))


def subtitles(data: Path, talks: int) -> Iterator[RealFile]:
    """Two subtitle lines in a cue, as they were shown; times by their lengths."""
    with gzip.open(data / "iwslt17-ted" / "dev2010.en.gz", "rb") as file:
        sentences = file.read().decode().split("\n")
    for number in range(talks):
        shown = [line for sentence in sentences[number * 80 : number * 80 + 40] for line in sentence.split("  ") if line.strip()]
        newline = ("\n", "\r\n")[number % 2]
        mark = "\ufeff" if number % 3 == 2 else ""
        yield RealFile(f"talk-{number}.srt", "srt", (mark + _srt(shown, newline)).encode())


def pages() -> Iterator[RealFile]:
    roots = [Path(sysconfig.get_path("stdlib")) / "idlelib", Path(sysconfig.get_path("stdlib")) / "test"]
    roots.append(Path(sysconfig.get_path("purelib")) / "matplotlib")
    for path in sorted(path for root in roots for path in root.rglob("*.html")):
        if 0 < path.stat().st_size <= LARGEST:
            yield RealFile(path.name, "html", path.read_bytes())
    for module in MODULES:
        yield RealFile(f"{module}.html", "html", _documentation(module))


def texts() -> Iterator[RealFile]:
    for path in sorted((Path(sysconfig.get_path("stdlib")) / "idlelib").glob("*.txt")):
        if path.stat().st_size <= LARGEST:
            yield RealFile(path.name, "txt", path.read_bytes())


def _packages(data: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Packages of some size, with the distinct strings of their first catalogue."""
    with gzip.open(data / "l10n" / "tm.en-de.jsonl.gz", "rb") as file:
        rows = (json.loads(line) for line in io.BufferedReader(file))  # type: ignore[type-var]
        for name, group in itertools.groupby(rows, key=lambda row: row["pkg"]):
            distinct = {(row["src"], row.get("ctx")): row for row in group if row["src"].strip()}
            if 40 <= len(distinct) <= 90:
                yield name, list(distinct.values())


def _po(rows: list[dict[str, Any]]) -> bytes:
    """As polib writes it: wrapped, with contexts; every seventh is kept, every eleventh fuzzy, every fifth plural."""
    catalogue = polib.POFile(wrapwidth=78)
    catalogue.metadata = {
        "Project-Id-Version": "1",
        "Content-Type": "text/plain; charset=UTF-8",
        "Content-Transfer-Encoding": "8bit",
        "Plural-Forms": "nplurals=2; plural=(n != 1);",
    }
    for number, row in enumerate(rows):
        entry = polib.POEntry(msgid=row["src"], msgctxt=row.get("ctx"), occurrences=[("src/main.c", str(number))])
        if number % 7 == 0:
            entry.msgstr = row["tgt"]
        elif number % 11 == 0:
            entry.msgstr, entry.flags = row["tgt"], ["fuzzy"]
        elif number % 5 == 0:
            entry.msgid_plural, entry.msgstr_plural = row["src"] + "s", {0: "", 1: ""}
        catalogue.append(entry)
    return f"{catalogue}\n".encode()


def _srt(shown: list[str], newline: str) -> str:
    lines, clock = [], 0
    for number, start in enumerate(range(0, len(shown), 2), start=1):
        cue = [line.strip() for line in shown[start : start + 2]]
        until = clock + 60 * sum(map(len, cue))
        lines += [str(number), f"{_time(clock)} --> {_time(until)}", *cue, ""]
        clock = until + 40
    return newline.join(lines)


def _time(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02},{rest:03}"


def _inlined(text: str, pair: str, single: str) -> str:
    """The native codes of a string as inline elements: <b>x</b> %s -> <g id="1">x</g> <x id="2"/>."""
    pieces = _INLINE.split(text)
    open_: list[tuple[str, int]] = []
    written: list[str] = []
    for number, piece in enumerate(pieces):
        name = piece.strip("</>").split(" ")[0]
        if number % 2 == 0:
            written.append(escape(piece))
        elif piece.startswith("</") and open_ and open_[-1][0] == name:
            open_.pop()
            written.append(f"</{pair}>")
        elif piece.startswith("<") and not piece.endswith("/>") and f"</{name}>" in pieces[number + 1 :: 2]:
            open_.append((name, len(written)))
            written.append(f'<{pair} id="{number}">')
        else:
            written.append(f'<{single} id="{number}"/>')
    for _, at in open_:  # never closed, or closed elsewhere
        written[at] = re.sub(r"<\w+ (id=\"\d+\")>", rf"<{single} \1/>", written[at])
    return "".join(written)


def _xliff_1(sources: list[str]) -> bytes:
    units = []
    for number, source in enumerate(sources):
        targets = (
            "",
            "\n        <target/>",
            '\n        <target state="new"></target>',
            f"\n        <target>{number} x</target>",
        )
        text = _inlined(source, "g", "x")
        units.append(
            f'      <trans-unit id="{number}" xml:space="preserve">\n        <source>{text}</source>{targets[number % 4]}\n'
            f"        <note>{escape(source[:9])}</note>\n      </trans-unit>\n"
        )
    head = '<file original="a.c" source-language="en" target-language="de" datatype="plaintext"><body>\n'
    space = "urn:oasis:names:tc:xliff:document:1.2"
    return f'<?xml version="1.0"?>\n<xliff version="1.2" xmlns="{space}">{head}{"".join(units)}</body></file></xliff>\n'.encode()


def _xliff_2(sources: list[str]) -> bytes:
    units = []
    for number, source in enumerate(sources):
        text = _inlined(source, "pc", "ph")
        target = ("", "<target></target>", "<target/>")[number % 3]
        units.append(
            f'  <unit id="{number}" name={quoteattr(source[:20])}>\r\n    <segment>\r\n      <source>{text}</source>{target}\r\n'
            f"    </segment>\r\n  </unit>\r\n"
        )
    space = "urn:oasis:names:tc:xliff:document:2.0"
    head = f'<xliff xmlns="{space}" version="2.0" srcLang="en-US" trgLang="de-DE">\r\n<file id="f1">\r\n'
    return f"{head}{''.join(units)}</file>\r\n</xliff>\r\n".encode()


def _tmx(sources: list[str]) -> bytes:
    units = "".join(
        f'<tu tuid="{number}">\n  <tuv xml:lang="EN-US">\n    <seg>{_inlined(source, "hi", "ph")}</seg>\n  </tuv>\n</tu>\n'
        for number, source in enumerate(sources)
    )
    header = '<header creationtool="x" segtype="sentence" o-tmf="x" adminlang="en" srclang="en" datatype="plaintext"/>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">{header}<body>\n{units}</body></tmx>\n'.encode()


def _documentation(module: str) -> bytes:
    """The page that `pydoc -w` writes."""
    __import__(module)
    writer = pydoc.HTMLDoc()
    return writer.page(pydoc.describe(sys.modules[module]), writer.document(sys.modules[module], module)).encode()
