"""Catalogues of real and of wicked strings, and what gettext's own checker says of their translations. Shared by a test and the claim."""

import gzip
import json
import re
import subprocess
from collections.abc import Iterable, Iterator
from itertools import chain, permutations
from pathlib import Path

HEADER = (
    'msgid ""\nmsgstr ""\n"Project-Id-Version: x\\n"\n"Language: de\\n"\n"MIME-Version: 1.0\\n"\n'
    '"Content-Type: text/plain; charset=UTF-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)
CONVERSION = re.compile(r"%(?:\d\$)?[-+#0']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:ll|[lhzq])?[diouxXeEfgGcsp](?!\w)")
_CONVERSIONS = ["%s", "%d", "%i", "%u", "%lu", "%lld", "%zu", "%x", "%X", "%o", "%e", "%.2f", "%g", "%c", "%p", "%-10s", "%'d", "%03d",
                "%*d", "%.*s", "%+d", "%#x", "% d", "%5.1f", "%hhd", "%m", "%%"]  # fmt: skip
_WICKED = [
    ("c-format", text)
    for text in (
        *(f"the file {one} was not found" for one in _CONVERSIONS),
        *(f"open {a} and close {b} in {c}" for a, b, c in permutations(("%s", "%d", "%.2f"))),
        *(f"{a}{b} files" for a, b in permutations(("%s", "%d", "%lu", "%%"), 2)),
        "$5%s off", "10%s more", "from 0%d:0%d on", "%d%% of %s", "100%% of %d files", "%%%d words", "%d%%%s word", "%%s is no %s",
        "50% of the %s files", "about 50% done", "100%", "%2$s of %1$d", "%1$s, %1$s and %2$d", "%s: %m in %d", "\n%s ends here\n",
        "  %s begins\n", "%'d / %'d - %s left", "Cannot mount %s on %d", "%s %s %s %s %s %d %d %d %s %s %s %s %d %d %d %d %s %s %d",
        "<b>%s</b> and <i>%d</i> of <b>%s</b>", "%s\nand %d\nand %s lines", "%ux%u pixels", "%s%s%s%s words", "plain words", "%d words,%s",
    )
]  # fmt: skip
_WICKED += [
    ("python-format", text)
    for text in ("%(name)s has %(n)d files", "%s has %d files", "10%(name)s more", "%(a)s%(b)s words", "%(a)s %% of %(b)d", "50% off %s")
]  # fmt: skip
_WICKED += [
    ("python-brace-format", text)
    for text in ("{} of {:>10} files", "{0} of {1} files", "{name!r:>10} has {n:,} files", "{{literal}} {name} words",
                 "{a[0]} and {b.c} words", "{!r} and {} words")
]  # fmt: skip
_WICKED += [
    ("java-format", text)
    for text in ("{0} can''t open {1}", "{0,number,#.##} of {1} files", "can't open {0}", "the '{'{0}'}' words", "{1} before {0}")
]  # fmt: skip
_WICKED += [("qt-format", text) for text in ("%1 of %2 files", "%n files in %1", "%L1 of %L2 words", "0%1:0%2 words", "%1%2 words")]
_WICKED += [("java-printf-format", text) for text in ("%s of %d files", "%2$s of %1$d files", "%,d words%n")]
_WICKED += [("objc-format", text) for text in ("%@ of %d files", "%1$@ of %2$@ files", "%@%@ words")]
_WICKED += [("ruby-format", text) for text in ("%{name} has %<n>d files", "%<a>s%<b>s words", "%s of %d files")]
_WICKED += [("php-format", text) for text in ("%s of %d files", "%1$s of %2$d files", "%'*10s words")]
_WICKED += [("perl-brace-format", text) for text in ("{name} has {n} files",)]
_WICKED += [("sh-format", text) for text in ("$name has ${n} files",)]
_PLURALS = [
    ("c-format", "one file", "%d files"),
    ("c-format", "%d file", "%d files"),
    ("c-format", "a file of %s", "%d files of %s"),
    ("c-format", "%d file in %s\n", "%d files in %s\n"),
    ("python-format", "one file of %(name)s", "%(n)d files of %(name)s"),
    ("python-brace-format", "one file", "{n} files"),
    ("python-format", "one file", "%d files"),
    ("lua-format", "one file", "%d files"),
    ("ruby-format", "one file", "%d files"),
]


def wicked() -> Iterator[str]:
    """Every conversion, digits before them, two side by side, percentages, quotes, all orders, edges, and plural forms."""
    for flag, text in _WICKED:
        yield _entry(flag, text)
    for flag, one, many in _PLURALS:
        yield f'#, {flag}\nmsgctxt "{flag}"\nmsgid {_quoted(one)}\nmsgid_plural {_quoted(many)}\nmsgstr[0] ""\nmsgstr[1] ""\n\n'


def real(data: Path) -> Iterator[str]:
    """Entries of the software strings of LIMELIGHT_DATA that a program fills in, with the flag that says how: first those for tests, then
    those of the translation memory."""
    tests = (line for name in ("test", "dev") for line in _lines(data / f"l10n/{name}.en-de.en.gz"))
    memory = (json.loads(line)["src"] for line in _lines(data / "l10n/tm.en-de.jsonl.gz"))
    known = set[str]()
    for text in chain(tests, (text for text in memory if len(text) < 200)):
        if text in known:
            continue
        known.add(text)
        if re.search(r"%\(\w+\)[a-z]", text):
            yield _entry("python-format", text)
        elif re.search(r"%L?[1-9](?![\d$])", text):
            yield _entry("qt-format", text)
        elif CONVERSION.search(text):
            yield _entry("c-format", text)
        elif re.search(r"\{\w*\}", text):
            yield _entry("python-brace-format", text)


def _lines(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.removesuffix("\n")


def catalogue(entries: Iterable[str]) -> bytes:
    return (HEADER + "".join(entries)).encode()


def complaints(catalogue: bytes, folder: Path) -> list[str]:
    """What `msgfmt -c` holds against it, guesses (fuzzy) included."""
    path = folder / "judged.po"
    path.write_bytes(catalogue)
    command = ["msgfmt", "-c", "--use-fuzzy", "-o", "/dev/null", path]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return [line for line in said.stderr.splitlines() if "header field" not in line]


def _entry(flag: str, text: str) -> str:
    return f'#, {flag}\nmsgctxt "{flag}"\nmsgid {_quoted(text)}\nmsgstr ""\n\n'


def _quoted(text: str) -> str:
    for plain, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(plain, escaped)
    return f'"{text}"'
