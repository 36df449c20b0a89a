"""`decode` turns the bytes of a document into text that becomes the same bytes again where it is unchanged. Byte order mark, encoding and
line ends stay.

utf-8-sig, utf-16   said by a byte order mark, which stays
what the file says  the XML declaration, <meta charset>, the header of a catalogue
utf-8               if it is none of these and fits
windows-1252        pages and subtitles that fit nothing else: what browsers and players take
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from limelight.corpus.reading.po import keeps_ascii
from limelight.errors import DataError, DeadlineError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is the beginning of this one
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_HEAD = 16 << 10  # bytes that are searched for a declaration; catalogues begin with a licence
_XML = re.compile(rb"""\A\s*+<\?xml[^<>]*?\sencoding\s*+=\s*+["']([A-Za-z0-9._:-]{1,40})""")
_META = re.compile(rb"""(?i)<meta[^<>]*?charset\s*+=\s*+["']?\s*+([A-Za-z0-9._:-]{1,40})""")
_CATALOGUE = re.compile(rb"(?i)content-type:[^\n]{0,80}?charset=([A-Za-z0-9._:-]{1,40})")
_MARKED = ("html", "xliff", "tmx", "xml", "resx")  # they have &#8222; for what their encoding lacks
_DECLARED = {**dict.fromkeys(_MARKED, (_XML,)), "html": (_META, _XML), "po": (_CATALOGUE,)}
_GUESSED = {"html", "srt", "txt", "csv", "tsv", "usfm"}  # where nothing is said and UTF-8 does not fit, these are Windows' as a rule


@dataclass(frozen=True)
class Document:
    name: str  # for errors
    data: bytes
    text: str
    encoding: str
    mark: bytes
    references: bool  # what the encoding lacks can be written as &#8222;
    is_over: Callable[[], bool] = field(default=lambda: False, compare=False)  # nobody waits for it any more

    def check_time(self) -> None:
        """Called for every few lines of it: reading a large one takes many seconds."""
        if self.is_over():
            raise DeadlineError(f"{self.name} was not done in time; give it more time, or part it")

    def encode(self, text: str) -> bytes:
        return self.mark + text.encode(self.encoding, "xmlcharrefreplace" if self.references else "strict")

    def lacks(self, text: str) -> bool:
        if self.references:
            return False
        try:
            text.encode(self.encoding)
        except UnicodeEncodeError:
            return True
        return False


def find_mark(data: bytes) -> tuple[bytes, str]:
    """The byte order mark and what it says; nothing where there is none."""
    return next(((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", ""))


def decode(name: str, data: bytes, kind: str, is_over: Callable[[], bool] = lambda: False) -> Document:
    """The text of a document of that kind. A text that would not become the same bytes again is refused."""
    mark, encoding = find_mark(data)
    if not encoding and b"\0" in data:
        said = "holds zero bytes, so it is no text, or UTF-16 without a byte order mark"
        raise DataError(f"{name} {said}; convert it to UTF-8")
    encoding = encoding or _find_declared(name, data, kind) or _guess(data, kind)
    try:
        text = data[len(mark) :].decode(encoding)
        same = mark + text.encode(encoding) == data
    except UnicodeError as error:
        at = f" (byte {error.start + len(mark):,})" if isinstance(error, UnicodeDecodeError) else ""
        raise DataError(
            f"{name} is not {encoding}{at}, which it says or should be; convert it: iconv -f ITS-ENCODING -t UTF-8 {name}"
        ) from None
    if not same:  # stateful encodings can say one text in two ways, and would not come back to the byte
        raise DataError(f"{name} is in {encoding}, which cannot be kept to the byte; convert it to UTF-8 first")
    return Document(name, data, text, encoding, mark, kind in _MARKED, is_over)


def _guess(data: bytes, kind: str) -> str:
    if kind == "html" and data.isascii():  # nobody says how the page is read, so it stays ASCII, with &#228; for ä
        return "ascii"
    if kind in ("json", "xcstrings") and data.isascii() and b"\\u" in data:  # so it is meant to be ASCII
        return "ascii"
    if kind == "properties":  # Java has read them as Latin-1 for long, and as UTF-8 since; what is ASCII is read by both
        return "ascii" if data.isascii() else "utf-8" if _fits(data, "utf-8") else "latin-1"
    return "utf-8" if kind not in _GUESSED or _fits(data, "utf-8") else _windows(data)


def _find_declared(name: str, data: bytes, kind: str) -> str | None:
    """The encoding that the document names, as Python calls it."""
    for pattern in _DECLARED.get(kind, ()):
        found = pattern.search(data[:_HEAD])
        if found and found[1] != b"CHARSET":  # stands in templates that nobody has filled in
            label = found[1].decode().lower()
            if kind == "html" and label in ("iso-8859-1", "latin1", "latin-1", "us-ascii", "ascii", "windows-1252"):
                return _windows(data)  # as browsers do
            if label.startswith("utf-16"):  # without a byte order mark and zero bytes: it says what is not so
                return "utf-8"
            if not keeps_ascii(label):
                raise DataError(f"{name} says that its encoding is {label!r}, which is not known; convert it to UTF-8")
            return label
    return None


def _windows(data: bytes) -> str:
    """windows-1252 has no character for five bytes; browsers take those as Latin-1 does."""
    return "windows-1252" if _fits(data, "windows-1252") else "latin-1"


def _fits(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
