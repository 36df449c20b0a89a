"""`translate_document` returns a document with its text translated and all else as it was:
It has two phases, which others may take one by one: `find_units` finds the texts, and what it returns splices their translations in.
"""

from collections.abc import Callable
from functools import partial

from limelight.documents.archives.archive import ARCHIVES, find_archive
from limelight.documents.encodings import Document, decode
from limelight.documents.formats.html import find_html
from limelight.documents.formats.markdown import find_markdown
from limelight.documents.formats.po import find_po
from limelight.documents.formats.srt import find_srt
from limelight.documents.formats.tmx import find_tmx
from limelight.documents.formats.txt import find_txt
from limelight.documents.formats.usfm import find_usfm
from limelight.documents.formats.xliff import find_xliff
from limelight.documents.formats.xml_texts import ANDROID, RESX, find_xml_texts
from limelight.documents.kinds import KINDS, Kind
from limelight.documents.tables.columns import find_columns
from limelight.documents.tables.json_texts import find_json
from limelight.documents.tables.key_values import find_properties, find_strings
from limelight.documents.tables.xcstrings import find_xcstrings
from limelight.documents.tables.yaml_texts import find_yaml
from limelight.documents.translating import UNSURE_BELOW, FoundUnits, Told, Translate, TranslatedDocument
from limelight.documents.units import ExtractionResult
from limelight.errors import ConfigError, DataError

LARGEST = 32 << 20  # bytes; a document is held in memory, several times over

_FINDERS: dict[Kind, Callable[[Document, tuple[str, str], bool], ExtractionResult]] = {
    "txt": find_txt, "html": find_html, "srt": find_srt, "po": find_po, "xliff": find_xliff, "tmx": find_tmx, "md": find_markdown,
    "json": find_json, "yaml": find_yaml, "xml": partial(find_xml_texts, ANDROID), "resx": partial(find_xml_texts, RESX),
    "properties": find_properties, "strings": find_strings, "xcstrings": find_xcstrings, "vtt": find_srt, "usfm": find_usfm,
    "csv": partial(find_columns, ",;\t"), "tsv": partial(find_columns, "\t"),
}  # fmt: skip


def find_units(
    data: bytes,
    kind: Kind,
    languages: tuple[str, str],
    *,
    again: bool = False,
    unsure_below: float = UNSURE_BELOW,
    name: str = "the document",
    is_over: Callable[[], bool] = lambda: False,
    column: str | None = None,
) -> FoundUnits:
    """Find what is to be translated. `again`: also what has a translation that is marked as a guess (fuzzy, needs-...).

    `unsure_below`: a translation with less confidence is marked as one to look at, in formats that have a word for it.
    `name` is for errors. `is_over`, once it says yes, ends it by a DeadlineError. `column`: of a table, see `find_columns`.
    """
    if kind not in KINDS:
        raise ConfigError(f"there are no documents of the kind {kind!r}; there are {', '.join(KINDS)}")
    if len(data) > LARGEST:
        raise DataError(f"{name} has {len(data):,} bytes; at most {LARGEST:,} are taken at once: part it")
    if not 0 <= unsure_below <= 1:
        raise ConfigError(f"a confidence is between 0 and 1, and {unsure_below:g} is not; 1 marks every translation")
    if column is not None and kind not in ("csv", "tsv"):
        raise ConfigError(f"a column is for tables (csv, tsv), and {name} is none; leave it out")
    if kind in ARCHIVES:
        return find_archive(data, kind, languages, again, unsure_below, name, is_over, LARGEST)
    document = decode(name, data, kind, is_over)
    finder: Callable[..., ExtractionResult] = _FINDERS[kind]
    finder = finder if column is None else partial(finder, column=column)
    return FoundUnits(document, finder(document, languages, again), unsure_below)


def translate_document(
    data: bytes,
    kind: Kind,
    languages: tuple[str, str],
    translate: Translate,
    *,
    again: bool = False,
    unsure_below: float = UNSURE_BELOW,
    told: Told | None = None,
    name: str = "the document",
    is_over: Callable[[], bool] = lambda: False,
    column: str | None = None,
) -> TranslatedDocument:
    """Translate what is to be translated. `told` hears how many texts are done, and of how many; for all else see `find_units`."""
    found = find_units(data, kind, languages, again=again, unsure_below=unsure_below, name=name, is_over=is_over, column=column)
    return found.translate(translate, told)
