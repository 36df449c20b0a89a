"""A `UnitTranslator` translates each text of a document once, whole or, where that would do harm, run by run."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from limelight.decoding.guards import Notice
from limelight.documents.encodings import Document
from limelight.documents.review import UNSURE_BELOW, find_reasons
from limelight.documents.splices import Splice
from limelight.documents.units import DocumentUnit, Plain, Remark, TranslatedUnit, UnitTranslation, replace_controls
from limelight.errors import DataError

CHUNK = 512  # texts given at once: enough for full batches, few enough to tell how far it is
LONGEST = 100_000  # characters of one text; a longer one is left as it is, and said


Translate = Callable[[list[str]], Sequence[UnitTranslation]]
Told = Callable[[int, int], None]  # texts done, and all that are known of


@dataclass
class DocumentOutcome:
    """The outcome has every text, counts by what became of each, and what to know about them."""

    units: list[TranslatedUnit] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    remarks: list[Remark] = field(default_factory=list)


class UnitTranslator:
    def __init__(
        self, document: Document, translate: Translate, told: Told | None, unsure_below: float = UNSURE_BELOW
    ) -> None:
        self.document, self.translate, self.unsure_below = document, translate, unsure_below
        self.told = told or (lambda done, total: None)
        self.known: dict[str, UnitTranslation] = {}
        self.outcome = DocumentOutcome()
        self.groups: dict[int, list[tuple[TranslatedUnit, Sequence[Notice]]]] = {}
        self.incomplete: set[int | None] = set()

    def run(self, units: Sequence[DocumentUnit]) -> DocumentOutcome:
        short = [unit for unit in units if self._is_short(unit)]
        self._ask(unit.text for unit in short if unit.text)
        broken = [unit for unit in short if not unit.text or not self._whole(unit)]
        self._ask(run for unit in broken for run in unit.runs)
        for unit in broken:
            self._apart(unit)
        for group, members in self.groups.items():
            for done, notices in members:
                if group in self.incomplete:
                    why = "another plural form of it could not be translated, so all are left"
                    self._leave(done.unit, "forms", why, done.results)
                else:
                    self._put(done, notices)
        return self.outcome

    def _is_short(self, unit: DocumentUnit) -> bool:
        size = max(map(len, (unit.text, *unit.runs)), default=0)
        if size > LONGEST:
            self._leave(
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

    def _whole(self, unit: DocumentUnit) -> bool:
        """Whether the unit is dealt with: a translation that would harm the document is not."""
        self.document.check_time()
        result = self.known[unit.text]
        text = _read(result)
        if not text:
            self._leave(unit, "empty", "its translation is empty, so it is left as it is", [result])
            return True
        splices = unit.whole(text)
        if splices is None:
            return False
        self._take(unit, splices, text, [result])
        return True

    def _apart(self, unit: DocumentUnit) -> None:
        results = [self.known[run] for run in unit.runs]
        texts = [_trim_stop(run, _read(result)) or run for result, run in zip(results, unit.runs, strict=True)]
        if not texts:
            self._leave(unit, "structure", "its translation would have harmed the document, so it is left as it is")
            return
        why = "its tags came back in other places" if unit.text else "its tags do not pair"
        said = Notice("apart", f"{why}, so the {len(texts)} texts between them were translated one by one")
        self._take(unit, unit.apart(texts), " ".join(texts), results, said)
        self.outcome.counts["apart"] += 1

    def _take(
        self, unit: DocumentUnit, splices: list[Splice], text: str, results: Sequence[UnitTranslation], *said: Notice
    ) -> None:
        written = "".join(part for splice in splices for part in splice.parts if isinstance(part, str))
        if self.document.lacks(written):
            encoding = self.document.encoding
            why = f"its translation cannot be written in {encoding}; convert the document to UTF-8"
            self._leave(unit, "encoding", why, results)
            return
        notices = [*said, *(notice for result in results for notice in result.warnings)]
        reasons = find_reasons(results, notices, self.unsure_below)
        sure = min(result.confidence for result in results)
        done = TranslatedUnit(unit, text, sure, reasons, tuple(splices), tuple(results))
        if (group := _group(unit)) is None:
            self._put(done, notices)
        else:
            self.groups.setdefault(group, []).append((done, notices))

    def _put(self, done: TranslatedUnit, notices: Sequence[Notice]) -> None:
        self.outcome.units.append(done)
        self.outcome.counts["translated" if done.splices else "unchanged"] += 1
        self.outcome.remarks += [Remark(done.unit.line, notice.code, notice.message) for notice in notices]

    def _leave(self, unit: DocumentUnit, code: str, message: str, results: Sequence[UnitTranslation] = ()) -> None:
        self.incomplete.add(_group(unit))
        self.outcome.units.append(TranslatedUnit(unit, "", None, (Notice(code, message),), (), tuple(results)))
        self.outcome.counts["failed"] += 1
        self.outcome.remarks.append(Remark(unit.line, code, message))


def _group(unit: DocumentUnit) -> int | None:
    return unit.group if isinstance(unit, Plain) else None


def _read(result: UnitTranslation) -> str:
    """The translation without blanks around it, and nothing where controls are all there is: no format can hold those."""
    return result.text.strip() if replace_controls(result.text).strip() else ""


def _trim_stop(run: str, translation: str) -> str:
    """A part of a sentence, and models like to end it with a full stop: "young girl" -> "junges Mädchen." loses the stop again."""
    if run[-1:].isalnum() and translation.endswith((".", "\u3002")) and not translation.endswith(".."):
        return translation[:-1]
    return translation
