"""`read_tbx` reads the terms of a TBX file (ISO 30042), which has concepts, in each some languages, in each some terms.

Both generations are read: termEntry, langSet, tig or ntig of 2008, and conceptEntry, langSec, termSec of 2019.
"""

from dataclasses import dataclass, field

from limelight.errors import DataError
from limelight.safe_xml import READ, XML_LANGUAGE, Attributes, parse_xml
from limelight.text.languages import base

ENTRIES, LANGUAGES, TERMS = ("termEntry", "conceptEntry"), ("langSet", "langSec"), ("tig", "ntig", "termSec")
UNWANTED = ("deprecated", "superseded", "forbidden", "obsolete")


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
