"""Terms that have to be translated as they say, and whether they were.

    glossary = Glossary.of({"connector": ["Konnektor", "Verbinder"]})
    glossary.found("Two connectors")          -> [Term("connector", ("Konnektor", "Verbinder"))]
    met(term, "Zwei Konnektorinstanzen")      -> True

A file is TSV (source, tab, target, more targets after "|") or TBX. All that is wrong with it is said at once, with the lines.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Self

from limelight.errors import ConfigError, DataError
from limelight.text.tbx import pairs_of, read_tbx

MOST_TERMS = 200_000
MOST_TARGETS = 20  # of one term
LONGEST_TERM = 200  # characters
LARGEST_FILE = 64 << 20  # bytes
MOST_PROBLEMS = 20  # that are listed

# A word, or one sign of a script that puts no spaces between words; any other sign stands for itself.
_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = re.compile(rf"[{_SPACELESS}]|[^\W{_SPACELESS}]+|[^\w\s]")
# By length: "Ja" is not in "Jahr"; "Typ" is in "Typen" and "Regeltyp", not in "typisch"; longer words may be anywhere in a word.
_SHORT, _LONG = 2, 4
_ACCENTS = re.compile("[\u0300-\u036f]")
_CASE_ENDINGS = "аеийоуыьюя"  # of Slavic nouns; without it the plural of many would be another word
_BETWEEN = r"[\s\u2010\u2011-]+"  # "Cloud Connector" is Cloud-Connector

_Row = tuple[str, str, list[str]]  # where it stands, source, targets


@dataclass(frozen=True)
class Term:
    """A term and its translations, of which the first is preferred and any will do."""

    source: str
    targets: tuple[str, ...]


@dataclass(frozen=True)
class Glossary:
    """Terms by which a text is translated. Use `of` or `load`; a source that comes twice has the targets of both."""

    terms: tuple[Term, ...]

    @classmethod
    def of(cls, terms: Mapping[str, str | Sequence[str]]) -> Self:
        """Glossary.of({"connector": "Konnektor", "file": ["Datei", "Akte"]})"""
        rows = [
            (f"term {at}", source, [targets] if isinstance(targets, str) else list(targets))
            for at, (source, targets) in enumerate(terms.items(), 1)
        ]
        merged, problems = _merged(rows)
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
        if path.suffix.lower() in (".tbx", ".xml") or content.lstrip()[:1] == b"<":
            pairs = pairs_of(str(path), read_tbx(str(path), content), languages)
            rows = [(f"line {line}", source, targets) for line, source, targets in pairs]
            problems: list[str] = []
        else:
            rows, problems = _tsv_rows(content)
        merged, more = _merged(rows)
        problems += more
        if problems:
            raise DataError(
                "\n".join([f"{path}: this glossary cannot be used", *(f"  - {each}" for each in _first(problems))])
            )
        return cls(merged)

    def found(self, text: str) -> list[Term]:
        """The terms of a text in the order in which they stand there, each once.

        Where two overlap, the longer one is taken; of "it" and "It" the one that is spelt so in the text.
        Whole words match, in any case unless the term is all capitals, and in the plural with -s: "IT" is not in "it", "URL" is in "URLs".
        """
        tokens = _tokens(text)
        folded = [token.casefold() for token in tokens]
        matches = [match for at in range(len(tokens)) for match in self._matches(tokens, folded, at)]
        taken, chosen = set[int](), list[tuple[int, Term]]()
        for at, length, term in sorted(matches, key=lambda match: _rank(match, tokens)):
            if taken.isdisjoint(range(at, at + length)):
                taken.update(range(at, at + length))
                chosen.append((at, term))
        return list(dict.fromkeys(term for _, term in sorted(chosen, key=lambda each: each[0])))

    def _matches(self, tokens: list[str], folded: list[str], at: int) -> Iterator[tuple[int, int, Term]]:
        """All terms that begin with this word."""
        node: _Node | None = self._tree
        for end in range(at, len(tokens)):
            if node is None:
                return
            for ending in (node.after[form] for form in _singulars(folded[end]) if form in node.after):
                for term in ending.terms:
                    if _same_case(term.source, tokens[at : end + 1]):
                        yield at, end + 1 - at, term
            node = node.after.get(folded[end])

    @cached_property
    def _tree(self) -> "_Node":
        root = _Node()
        for term in self.terms:
            node = root
            for token in _tokens(term.source):
                node = node.after.setdefault(token.casefold(), _Node())
            node.terms.append(term)
        return root


def met(term: Term, translation: str) -> bool:
    """Does any of its targets occur, in any case, from a word's beginning on or inside a compound, with any ending?

    met(Term("connector", ("Konnektor",)), "die Cloud-Konnektoren")  ->  True
    Short targets are held more strictly: two letters are a word of their own, three may have an ending.
    """
    text = _folded(translation)
    return any(_pattern(target).search(text) for target in term.targets)


@dataclass(slots=True)
class _Node:
    """A place in the tree of terms, one step a word: what may come next, and the terms that end here."""

    after: dict[str, "_Node"] = field(default_factory=dict)
    terms: list[Term] = field(default_factory=list)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFC", text))


def _singulars(word: str) -> Iterator[str]:
    """What the word may be the plural of, and itself."""
    yield word
    if len(word) > 3 and word.endswith("s"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]
        if word.endswith("ies"):
            yield word[:-3] + "y"


def _rank(match: tuple[int, int, Term], tokens: list[str]) -> tuple[int, bool, int]:
    """Longest first, then as spelt, then from left to right."""
    at, length, term = match
    return -length, tokens[at : at + length] != _tokens(term.source), at


def _same_case(source: str, tokens: list[str]) -> bool:
    """A term in capitals is a name: "IT", "US". Its plural has a small s."""
    if not source.isupper():
        return True
    *first, last = _tokens(source)
    return tokens[:-1] == first and tokens[-1] in (last, f"{last}s")


def _folded(text: str) -> str:
    """Without case and the accents of European scripts: "Bäume" has the letters of "Baum"."""
    return _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))


@lru_cache(maxsize=4096)
def _pattern(target: str) -> re.Pattern[str]:
    """What counts as this target. Words before the last may have another ending: "neue Datei" is in "der neuen Dateien"."""
    *first, last = _folded(target).split()
    if re.search(f"[{_SPACELESS}]", last):
        return re.compile(_BETWEEN.join(map(re.escape, [*first, last])))
    stems = [re.escape(word[:-2] if len(word) > 4 else word) + r"\w{0,4}" for word in first]
    begin = "" if len([*first, last][0]) >= _LONG else r"(?<!\w)"
    end = r"(?!\w)" if len(last) <= _SHORT else r"\w{0,3}(?!\w)" if len(last) < _LONG else ""
    if len(last) == _LONG - 1 and not first:
        begin = r"(?:(?<!\w)|(?<=\w{5}))"
    if len(last) > _LONG and last[-1] in _CASE_ENDINGS:
        last = last[:-1]
    return re.compile(begin + _BETWEEN.join([*stems, re.escape(last) + end]))


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


def _merged(rows: Sequence[_Row]) -> tuple[tuple[Term, ...], list[str]]:
    """One term for each source, and every problem."""
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
