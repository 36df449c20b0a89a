"""A `Glossary` finds its terms in a text, and `is_met` says whether a translation uses them.

A file is TSV (source, tab, target, more targets after "|") or TBX. All that is wrong with it is said at once, with the lines.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Self

from limelight.errors import ConfigError, DataError
from limelight.safe_xml import READ, XML_LANGUAGE, Attributes, parse_xml
from limelight.text.careful.term_targets import LONGEST_TERM, TargetFinder
from limelight.text.careful.term_tree import TermTree
from limelight.text.languages import base

MOST_TERMS = 200_000
MOST_TARGETS = 20  # of one term
LARGEST_FILE = 64 << 20  # bytes
MOST_PROBLEMS = 20  # that are listed
ENTRIES, LANGUAGES, TERMS = ("termEntry", "conceptEntry"), ("langSet", "langSec"), ("tig", "ntig", "termSec")
UNWANTED = ("deprecated", "superseded", "forbidden", "obsolete")

_Row = tuple[str, str, list[str]]  # where it stands, source, targets


@dataclass(frozen=True)
class Term:
    """A term has translations, of which the first is preferred and any will do."""

    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Glossary:
    """A glossary has the terms by which a text is translated. Use `of` or `load`; a source that comes twice has the targets of both."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Mapping[str, str | Sequence[str]]) -> Self:
        """Glossary.of({"connector": "Konnektor", "file": ["Datei", "Akte"]})"""
        rows = [
            (f"term {at}", source, [targets] if isinstance(targets, str) else list(targets))
            for at, (source, targets) in enumerate(terms.items(), 1)
        ]
        merged, problems = _merge_rows(rows)
        if problems:
            raise ConfigError("this glossary cannot be used", _first(problems))
        return cls(merged)

    @classmethod
    def load(cls, path: Path, languages: tuple[str, str] | None = None) -> Self:
        """From a TSV or TBX file. `languages`: which two of a TBX file that has more."""
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error.strerror}); is it the right path?") from None
        if len(content) > LARGEST_FILE:
            raise DataError(f"{path}: more than {LARGEST_FILE >> 20} MB; a glossary has at most {MOST_TERMS:,} terms")
        content = content.removeprefix(b"\xef\xbb\xbf")
        problems = list[str]()
        if path.suffix.lower() in (".tbx", ".xml") or content.lstrip()[:1] == b"<":
            pairs = pairs_of(str(path), read_tbx(str(path), content), languages)
            rows = [(f"line {line}", source, targets) for line, source, targets in pairs]
        else:
            rows, problems = _tsv_rows(content)
        merged, more = _merge_rows(rows)
        if problems or more:
            listed = (f"  - {each}" for each in _first(problems + more))
            formats = "a glossary is TSV (source, a tab, target; more targets after |) or TBX"
            raise DataError("\n".join([f"{path}: this glossary cannot be used; {formats}", *listed]))
        return cls(merged)

    def find(self, text: str) -> list[Term]:
        """The terms of a text in the order in which they stand there, each once.

        Where two overlap, the longer one is taken; of "it" and "It" the one that is spelt so in the text.
        Whole words match, in any case unless the term is all capitals, and in the plural with -s: "IT" is not in "it", "URL" is in "URLs".
        """
        return [self.terms[number] for number in self._tree.find(text)]

    @cached_property
    def _tree(self) -> TermTree:
        return TermTree([term.source for term in self.terms])


def is_met(term: Term, translation: str) -> bool:
    """Does any of its targets occur? is_met(Term("connector", ("Konnektor",)), "die Cloud-Konnektoren")  ->  True"""
    return not unmet([term], translation)


def unmet(terms: Iterable[Term], translation: str) -> list[Term]:
    written = TargetFinder(translation)
    return [term for term in terms if not any(map(written.has, term.targets))]


def _tsv_rows(content: bytes) -> tuple[list[_Row], list[str]]:
    """(where, source, targets) of each line, and what is wrong with others."""
    rows, problems = list[_Row](), list[str]()
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            cells = [cell.strip() for cell in line.decode().split("\t")]
        except UnicodeDecodeError:
            problems.append(f"line {number}: not UTF-8")
            continue
        if cells == [""] or (number == 1 and [cell.lower() for cell in cells[:2]] == ["source", "target"]):
            continue
        if len(cells) < 2:
            problems.append(f"line {number}: no tab between source and target")
        else:
            rows.append((f"line {number}", cells[0], cells[1].split("|")))
    return rows, problems


def _merge_rows(rows: Sequence[_Row]) -> tuple[tuple[Term, ...], list[str]]:
    if len(rows) > MOST_TERMS:
        return (), [f"{len(rows):,} terms, of which {MOST_TERMS:,} can be used; leave out what no text has"]
    targets_of: dict[str, dict[str, None]] = {}
    problems = list[str]()
    for where, source, given in rows:
        source, targets = source.strip(), [target for each in given if (target := each.strip())]
        if not source or not targets:
            problems.append(f"{where}: the {'target' if source else 'source'} is empty")
        elif max(map(len, [source, *targets])) > LONGEST_TERM:
            problems.append(f"{where}: a term of more than {LONGEST_TERM} characters")
        elif any(unicodedata.category(sign) in ("Cc", "Cs") for sign in "".join([source, *targets])):
            problems.append(f"{where}: a control character in a term")
        else:
            targets_of.setdefault(source, {}).update(dict.fromkeys(targets))
            if len(targets_of[source]) > MOST_TARGETS:
                problems.append(f"{where}: more than {MOST_TARGETS} targets of one term")
    return tuple(Term(source, tuple(targets)) for source, targets in targets_of.items()), problems


def _first(problems: list[str]) -> list[str]:
    more = len(problems) - MOST_PROBLEMS
    return problems[:MOST_PROBLEMS] + ([f"and {more:,} more"] if more > 0 else [])


@dataclass(frozen=True)
class TermEntry:
    line: int
    terms: dict[str, list[str]]


def read_tbx(name: str, content: bytes) -> list[TermEntry]:
    """All concepts of a file. Terms that its status calls deprecated are left out."""
    collector = _Collector()
    for _ in parse_xml(name, (content[at : at + READ] for at in range(0, len(content), READ)), collector):
        pass
    return collector.entries


def pairs_of(name: str, entries: list[TermEntry], languages: tuple[str, str] | None) -> list[tuple[int, str, list[str]]]:
    """(line, source, targets) for each term of the source language whose concept has terms of the target language.

    Without languages a file of exactly two is read in the order in which they come.
    """
    codes = list(dict.fromkeys(code for entry in entries for code in entry.terms))
    if languages is None:
        if len({base(code) for code in codes}) != 2:
            raise DataError(f"{name}: has terms in {len(codes)} languages ({', '.join(codes[:9])}); say from which to which")
        first, second = dict.fromkeys(base(code) for code in codes)
        languages = first, second
    source, target = (base(code) for code in languages)
    pairs = []
    for entry in entries:
        targets = _of(entry, target)
        pairs += [(entry.line, term, targets) for term in _of(entry, source) if targets]
    if entries and not pairs:
        raise DataError(f"{name}: no concept has terms in {source} and in {target}; it has {', '.join(codes[:9])}")
    return pairs


def _of(entry: TermEntry, language: str) -> list[str]:
    return [term for code, terms in entry.terms.items() if base(code) == language for term in terms]


@dataclass
class _Collector:
    entries: list[TermEntry] = field(default_factory=list)
    entry: TermEntry | None = None
    language: str | None = None
    term: list[str] | None = None  # characters of the term, while inside of <term>
    status: list[str] | None = None  # and of its status
    words: str = ""
    said: str = ""

    def start(self, name: str, attributes: Attributes, line: int, _: int) -> None:
        if name in ENTRIES:
            self.entry = TermEntry(line, {})
        elif name in LANGUAGES:
            self.language = attributes.get(XML_LANGUAGE) or attributes.get("lang")
        elif name in TERMS:
            self.words = self.said = ""
        elif name == "term":
            self.term = []
        elif name == "termNote" and attributes.get("type") == "administrativeStatus":
            self.status = []

    def end(self, name: str, _: int) -> None:
        if name == "term" and self.term is not None:
            self.words, self.term = " ".join("".join(self.term).split()), None
        elif name == "termNote" and self.status is not None:
            self.said, self.status = "".join(self.status).strip().lower(), None
        elif name in TERMS and self.entry is not None and self.language and self.words:
            terms = self.entry.terms.setdefault(self.language, [])
            if not self.said.startswith(UNWANTED):
                terms.insert(0 if self.said.startswith("preferred") else len(terms), self.words)
        elif name in LANGUAGES:
            self.language = None
        elif name in ENTRIES and self.entry is not None:
            self.entries.append(self.entry)
            self.entry = None

    def text(self, text: str) -> None:
        for held in (self.term, self.status):
            if held is not None:
                held.append(text)
