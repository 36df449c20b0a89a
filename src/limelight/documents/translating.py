"""The texts of a document through the translator: each once, whole, and where that would harm the document, run by run."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from limelight.decoding.guards import Notice
from limelight.documents.encodings import Document
from limelight.documents.splices import Splice
from limelight.documents.units import Plain, Remark, Unit
from limelight.errors import DataError

CHUNK = 512  # texts given at once: enough for full batches, few enough to tell how far it is
LONGEST = 100_000  # characters of one text; a longer one is left as it is, and said


class Result(Protocol):
    """What is needed of a `Translation`."""

    @property
    def text(self) -> str: ...

    @property
    def warnings(self) -> Sequence[Notice]: ...


Translate = Callable[[list[str]], Sequence[Result]]
Told = Callable[[int, int], None]  # texts done, and all that are known of


@dataclass
class Outcome:
    """Splices, counts by what became of each text, and what to know about them."""

    splices: list[Splice] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    remarks: list[Remark] = field(default_factory=list)


class Translating:
    def __init__(self, document: Document, translate: Translate, told: Told | None) -> None:
        self.document, self.translate = document, translate
        self.told = told or (lambda done, total: None)
        self.known: dict[str, Result] = {}
        self.outcome = Outcome()
        self.groups: dict[int, list[tuple[Unit, list[Splice], Sequence[Notice]]]] = {}
        self.incomplete: set[int | None] = set()

    def run(self, units: Sequence[Unit]) -> Outcome:
        short = [unit for unit in units if self._is_short(unit)]
        self._ask(unit.text for unit in short if unit.text)
        broken = [unit for unit in short if not unit.text or not self._whole(unit)]
        self._ask(run for unit in broken for run in unit.runs)
        for unit in broken:
            self._apart(unit)
        for group, members in self.groups.items():
            for unit, splices, notices in members:
                if group in self.incomplete:
                    self._left(unit, "forms", "another plural form of it could not be translated, so all are left")
                else:
                    self._put(unit, splices, notices)
        return self.outcome

    def _is_short(self, unit: Unit) -> bool:
        size = max(map(len, (unit.text, *unit.runs)), default=0)
        if size > LONGEST:
            self._left(
                unit, "too_long", f"a text of {size:,} characters is left as it is; at most {LONGEST:,} are translated"
            )
        return size <= LONGEST

    def _ask(self, texts: Iterable[str]) -> None:
        """Translate what is not known yet; interfaces say the same again and again."""
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        total = len(self.known) + len(new)
        for start in range(0, len(new), CHUNK):
            chunk = new[start : start + CHUNK]
            results = self.translate(chunk)
            if len(results) != len(chunk):
                raise DataError(
                    f"the translator gave {len(results)} translations of {len(chunk)} texts; give one for each"
                )
            self.known.update(zip(chunk, results, strict=True))
            self.told(len(self.known), total)

    def _whole(self, unit: Unit) -> bool:
        """Whether the unit is dealt with: a translation that would harm the document is not."""
        result = self.known[unit.text]
        text = result.text.strip()
        if not text:
            self._left(unit, "empty", "its translation is empty, so it is left as it is")
            return True
        splices = unit.whole(text)
        if splices is None:
            return False
        self._take(unit, splices, result.warnings)
        return True

    def _apart(self, unit: Unit) -> None:
        results = [self.known[run] for run in unit.runs]
        texts = [_fitted(run, result.text.strip()) or run for result, run in zip(results, unit.runs, strict=True)]
        if not texts:
            self._left(unit, "structure", "its translation would have harmed the document, so it is left as it is")
            return
        why = "its tags came back in other places" if unit.text else "its tags do not pair"
        said = Notice("apart", f"{why}, so the {len(texts)} texts between them were translated one by one")
        self._take(unit, unit.apart(texts), [said, *(notice for result in results for notice in result.warnings)])
        self.outcome.counts["apart"] += 1

    def _take(self, unit: Unit, splices: list[Splice], notices: Sequence[Notice]) -> None:
        written = "".join(part for splice in splices for part in splice.parts if isinstance(part, str))
        if self.document.lacks(written):
            encoding = self.document.encoding
            self._left(
                unit, "encoding", f"its translation cannot be written in {encoding}; convert the document to UTF-8"
            )
        elif (group := _group(unit)) is not None:
            self.groups.setdefault(group, []).append((unit, splices, notices))
        else:
            self._put(unit, splices, notices)

    def _put(self, unit: Unit, splices: list[Splice], notices: Sequence[Notice]) -> None:
        self.outcome.splices += splices
        self.outcome.counts["translated" if splices else "unchanged"] += 1
        self.outcome.remarks += [Remark(unit.line, notice.code, notice.message) for notice in notices]

    def _left(self, unit: Unit, code: str, message: str) -> None:
        self.incomplete.add(_group(unit))
        self.outcome.counts["failed"] += 1
        self.outcome.remarks.append(Remark(unit.line, code, message))


def _group(unit: Unit) -> int | None:
    return unit.group if isinstance(unit, Plain) else None


def _fitted(run: str, translation: str) -> str:
    """A part of a sentence, and models like to end it with a full stop: "young girl" -> "junges Mädchen." loses the stop again."""
    if run[-1:].isalnum() and translation.endswith((".", "\u3002")) and not translation.endswith(".."):
        return translation[:-1]
    return translation
