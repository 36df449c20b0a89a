"""`FoundUnits` are the texts that were found in a document. Their translations are spliced in, each once for all places of its text:

texts()         what is to be translated
runs(known)     what else: the texts between the tags, where the translation of the whole would do harm
splice(known)   the document with all that is known in its place
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from limelight.decoding.guards import HARMLESS, Notice
from limelight.documents.encodings import Document
from limelight.documents.splices import Splice, apply_splices
from limelight.documents.units import (
    DocumentUnit,
    ExtractionResult,
    Remark,
    TranslatedUnit,
    UnitTranslation,
    are_recalled,
    has_words,
)
from limelight.errors import DataError

CHUNK = 512  # texts given at once: enough for full batches, few enough to tell how far it is
LONGEST = 100_000  # characters of one text; a longer one is left as it is, and said
# Below it more than four words in ten are expected to be others than a translator would have used (docs/confidence.md).
UNSURE_BELOW = 0.6
LEAVING = frozenset(("empty", "encoding", "forms", "malformed", "not_given", "structure", "too_long", "wordless"))  # a text as it is

Translate = Callable[[list[str]], Sequence[UnitTranslation]]
Told = Callable[[int, int], None]  # texts done, and all that are known of
Known = Mapping[str, UnitTranslation]


@dataclass(frozen=True)
class DocumentCounts:
    """The counts add up: texts = translated + unchanged + failed. `left` are others, that have a translation or must not get one."""

    texts: int
    translated: int
    unchanged: int  # came back as they were
    failed: int  # left as they were, each with a warning
    apart: int  # of the translated ones: between their tags, one by one
    left: int


@dataclass(frozen=True)
class TranslatedDocument:
    data: bytes
    counts: DocumentCounts
    warnings: tuple[Remark, ...]
    units: tuple[TranslatedUnit, ...]  # every text that was found, in order


@dataclass(frozen=True)
class GivenText:
    """A given text is the translation of a segment that comes from outside: a person's, or a machine's that nobody has looked at."""

    text: str
    confidence: float = 1.0
    reviewed: bool = True
    warnings: tuple[Notice, ...] = ()
    protected: bool = True


class FoundUnits:
    def __init__(self, document: Document, found: ExtractionResult, unsure_below: float = UNSURE_BELOW) -> None:
        self.document, self.found, self.unsure_below = document, found, unsure_below
        self.done: list[TranslatedUnit] = []
        self.short = [unit for unit in found.units if self._is_short(unit)]
        self.broken: list[DocumentUnit] = []
        self._places = {id(unit): at for at, unit in enumerate(found.units)}

    def texts(self) -> list[str]:
        return [unit.text for unit in self.short if unit.text]

    def list_sources(self) -> list[str]:
        """What will be asked for at least, each as often as it occurs; of a text without whole only what is between its tags."""
        return [source for unit in self.found.units for source in ((unit.text,) if unit.text else unit.runs)]

    def runs(self, known: Known) -> list[str]:
        """To be asked when all texts are known: each is put in its place, whole, unless that would harm the document."""
        self.broken = [unit for unit in self.short if not unit.text or not self._whole(unit, known[unit.text])]
        return [run for unit in self.broken for run in unit.runs]

    def splice(self, known: Known) -> TranslatedDocument:
        """To be asked when all runs are known, too."""
        for unit in self.broken:
            self._apart(unit, [known[run] for run in unit.runs])
        incomplete = {done.unit.group for done in self.done if done.confidence is None} - {None}
        why = "another plural form of it could not be translated, so all are left"
        done = [
            each if each.confidence is None or each.unit.group not in incomplete
            else _leave(each.unit, "forms", why, each.results)
            for each in sorted(self.done, key=lambda each: self._places[id(each.unit)])
        ]  # fmt: skip
        data = self.document.data
        if any(each.splices for each in done):
            data = self.document.encode(apply_splices(self.document.text, self.found.finish(done)))
        kinds = Counter("failed" if one.confidence is None else "translated" if one.splices else "unchanged" for one in done)
        apart = sum(any(notice.code == "apart" for notice in each.notices) for each in done)
        counts = DocumentCounts(len(done), kinds["translated"], kinds["unchanged"], kinds["failed"], apart, self.found.left)
        remarks = [Remark(each.unit.line, *notice) for each in done for notice in each.notices]
        warnings = sorted((*self.found.remarks, *remarks), key=lambda remark: remark.line)
        return TranslatedDocument(data, counts, tuple(warnings), tuple(done))

    def translate(self, translate: Translate, told: Told | None = None) -> TranslatedDocument:
        """All of it, by a translator that is waited for. `told` hears how many texts are done, and of how many."""
        known: dict[str, UnitTranslation] = {}

        def ask(texts: Iterable[str]) -> None:
            new = [text for text in dict.fromkeys(texts) if text not in known]
            total = len(known) + len(new)
            for start in range(0, len(new), CHUNK):
                chunk = new[start : start + CHUNK]
                results = translate(chunk)
                if len(results) != len(chunk):
                    said = f"the translator gave {len(results)} translations of {len(chunk)} texts; give one for each"
                    raise DataError(said)
                known.update(zip(chunk, results, strict=True))
                if told is not None:
                    told(len(known), total)

        ask(self.texts())
        ask(self.runs(known))
        return self.splice(known)

    def take_given(self, given: Mapping[str, GivenText], first: int = 0) -> int:
        """Put given texts in their places, instead of `texts` and `runs`: by the name of their segment (`documents.segments`).

        What is not given, or would do harm, is left as it is, with a warning. The texts are numbered from `first` on; the next is returned.
        """
        for unit in self.short:
            number = first + self._places[id(unit)]
            whole, runs = given.get(str(number)), [given.get(f"{number}.{at}") for at in range(len(unit.runs))]
            if whole is None and runs and None not in runs:
                self._apart(unit, [run for run in runs if run is not None])
            elif whole is None:
                self.done.append(_leave(unit, "not_given", "no translation of it was given, so it is left as it is"))
            elif not unit.text or not self._whole(unit, whole):
                self._apart(unit, [])
        return first + len(self.found.units)

    def _is_short(self, unit: DocumentUnit) -> bool:
        size = max(map(len, (unit.text, *unit.runs)), default=0)
        if size > LONGEST:
            why = f"a text of {size:,} characters is left as it is; at most {LONGEST:,} are translated"
            self.done.append(_leave(unit, "too_long", why))
        return size <= LONGEST

    def _whole(self, unit: DocumentUnit, result: UnitTranslation) -> bool:
        """Whether the unit is dealt with: a translation that would harm the document is not."""
        self.document.check_time()
        text = _read(result)
        if not (has_words(unit.text) or isinstance(result, GivenText) or are_recalled([result])):
            why = "it has no letters, which no model has learnt, so it is left for a person or a memory"
            self.done.append(_leave(unit, "wordless", why))
            return True
        if not text:
            self.done.append(_leave(unit, "empty", "its translation is empty, so it is left as it is", [result]))
            return True
        splices = unit.whole(text)
        if splices is not None:
            self._take(unit, splices, text, [result])
        return splices is not None

    def _apart(self, unit: DocumentUnit, results: Sequence[UnitTranslation]) -> None:
        texts = [read_run(run, result) for result, run in zip(results, unit.runs, strict=False)]
        if not texts:
            why = "its translation would have harmed the document, so it is left as it is"
            self.done.append(_leave(unit, "structure", why))
            return
        why = "its tags came back in other places" if unit.text else "its tags do not pair"
        said = Notice("apart", f"{why}, so the {len(texts)} texts between them were translated one by one")
        self._take(unit, unit.apart(texts), " ".join(texts), results, said)

    def _take(self, unit: DocumentUnit, splices: list[Splice], text: str, results: Sequence[UnitTranslation], *said: Notice) -> None:
        written = "".join(part for splice in splices for part in splice.parts if isinstance(part, str))
        if self.document.lacks(written):
            why = f"its translation cannot be written in {self.document.encoding}; convert the document to UTF-8"
            self.done.append(_leave(unit, "encoding", why, results))
            return
        notices = (*said, *(notice for result in results for notice in result.warnings))
        reviewed = all(isinstance(result, GivenText) and result.reviewed for result in results)
        reasons = () if reviewed else find_reasons(results, notices, self.unsure_below)
        sure = min(result.confidence for result in results)
        self.done.append(TranslatedUnit(unit, text, sure, notices, reasons, tuple(splices), tuple(results), reviewed))


def find_reasons(results: Sequence[UnitTranslation], notices: Sequence[Notice], unsure_below: float) -> tuple[Notice, ...]:
    """Why somebody should look at a text that these results were written for; nothing where all is well."""
    reasons = [notice for notice in dict.fromkeys(notices) if notice.code not in HARMLESS]
    if not all(result.protected for result in results) and all(notice.code != "unprotected" for notice in reasons):
        reasons.append(Notice("unprotected", "something that must not be translated was lost"))
    confidence = min(result.confidence for result in results)
    if confidence < unsure_below or (unsure_below == 1 and not are_recalled(results)):
        reasons.append(Notice("unsure", f"its confidence is {confidence:.2f}, which is below {unsure_below:g}"))
    return tuple(reasons)


def _leave(unit: DocumentUnit, code: str, message: str, results: Sequence[UnitTranslation] = ()) -> TranslatedUnit:
    said = (Notice(code, message),)
    return TranslatedUnit(unit, "", None, said, said, results=tuple(results))


def read_run(run: str, result: UnitTranslation) -> str:
    """What is written for a text between tags: what a person wrote stays as it is."""
    return (_read(result) if isinstance(result, GivenText) else _trim_stop(run, _read(result))) or run


def _read(result: UnitTranslation) -> str:
    """The translation without blanks around it, and nothing where nobody would see anything: controls, marks without a width."""
    return result.text.strip() if any(char.isprintable() and char != " " for char in result.text) else ""


def _trim_stop(run: str, translation: str) -> str:
    """A part of a sentence, and models like to end it with a full stop: "young girl" -> "junges Mädchen." loses the stop again."""
    if run[-1:].isalnum() and translation.endswith((".", "\u3002")) and not translation.endswith(".."):
        return translation[:-1]
    return translation
