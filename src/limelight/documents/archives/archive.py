"""`find_archive` finds the texts of DOCX, PPTX, ODT and EPUB in the members that hold them. All other members stay as they are."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, replace
from functools import partial
from itertools import count

from limelight.documents.archives.runs import find_runs
from limelight.documents.encodings import Document, decode
from limelight.documents.formats.html import collapse, find_html
from limelight.documents.formats.xml_elements import Element
from limelight.documents.formats.xml_texts import TextTable, find_xml_texts
from limelight.documents.splices import Splice
from limelight.documents.translating import DocumentCounts, FoundUnits, GivenText, Known, TranslatedDocument
from limelight.documents.units import DocumentUnit, ExtractionResult, Remark
from limelight.errors import DataError

MOST_MEMBERS = 20_000
_ENCRYPTED, _SIZES_FOLLOW = 0x1, 0x8
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")
_SIGNATURES = re.compile(r"_xmlsignatures/.+|META-INF/(?:document|macro)?signatures\.xml")
_ODT_SINGLES = "s note frame annotation annotation-end soft-page-break ruby-text g custom-shape"
_ODT = TextTable(
    None, ("p", "h"), lambda element: [element], collapse, singles=frozenset(_ODT_SINGLES.split()), cuts=frozenset(("tab", "line-break"))
)  # fmt: skip
_AUTHOR = re.compile(r"<(?:\w+:)?docAuthor\b[^<>]*>\s*\Z")
_NAMES = TextTable(None, ("title", "description", "text"), lambda element: [] if _names_author(element) else [element], collapse)
Finder = Callable[[Document, tuple[str, str], bool], ExtractionResult]


class ZipMembers:
    """Reads members of an archive, each only as far as is allowed, and puts others in place of some; all else stays to the byte."""

    def __init__(self, name: str, data: bytes, most: int) -> None:
        """`most`: bytes that all members that are read may have together."""
        self.name, self.data, self.left = name, data, most
        try:
            archive = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error) as error:
            raise DataError(f"{name} is no ZIP archive as this kind of document is ({error}); check its name") from None
        self.infos = {info.filename: info for info in archive.infolist()}
        end = data.rfind(b"PK\5\6")
        self.start, self.end = _END.unpack_from(data, end)[6] if end + _END.size <= len(data) else -1, end
        starts = [info.header_offset for info in archive.infolist()]
        if not (starts == sorted(set(starts)) and starts[-1:] < [self.start] == [archive.start_dir]) or len(starts) > MOST_MEMBERS:
            raise DataError(f"{name} is a ZIP archive with members in odd places, or too many; save it anew with the program that made it")
        at = self.start
        for _ in starts:
            at += _CENTRAL.size + sum(_CENTRAL.unpack_from(data, at)[10:13])
        if at > self.end:  # zipfile lets the last entry reach beyond the directory
            raise DataError(f"{name} has a damaged list of its members; save it anew with the program that made it")
        self.ends = dict(zip(self.infos, [*starts[1:], self.start], strict=False))
        if len(self.infos) != len(starts) or any(info.flag_bits & _ENCRYPTED for info in self.infos.values()):
            raise DataError(f"{name} is encrypted, or has two members of one name; save it without a password")

    def unpack(self, member: str, most: int) -> bytes | None:
        """The beginning of a member; None where it cannot be unpacked."""
        info = self.infos[member]
        try:
            start = info.header_offset + _LOCAL.size + sum(_LOCAL.unpack_from(self.data, info.header_offset)[9:11])
            if start + info.compress_size > self.ends[member]:  # else each could claim all that follows
                return None
            packed = self.data[start : start + info.compress_size]
            unpacked = {0: lambda: packed[:most], 8: lambda: zlib.decompressobj(-15).decompress(packed, most)}
            return unpacked[info.compress_type]()
        except (zlib.error, struct.error, KeyError):
            return None

    def read(self, member: str) -> bytes:
        data = self.unpack(member, self.left + 1)
        if data is None or (zlib.crc32(data) != self.infos[member].CRC and len(data) <= self.left):
            raise DataError(f"{self.name}: {member} is damaged, or packed in a way that is not known; save the document anew")
        self.left -= len(data)
        if self.left < 0:
            raise DataError(f"{self.name}: its text unpacks to more than is taken at once; part it")
        return data

    def replace(self, new: Mapping[str, bytes]) -> bytes:
        made, directory, at = bytearray(), bytearray(), self.start
        for member, info in self.infos.items():
            entry = list(_CENTRAL.unpack_from(self.data, at))
            size = _CENTRAL.size + sum(entry[10:13])
            entry[16] = len(made)
            if member in new:
                packed, entry[3] = _pack(new[member], info.compress_type), entry[3] & ~_SIZES_FOLLOW
                entry[7:10] = zlib.crc32(new[member]), len(packed), len(new[member])
                local = list(_LOCAL.unpack_from(self.data, info.header_offset))
                names = info.header_offset + _LOCAL.size
                local[2], local[6:9] = entry[3], entry[7:10]
                made += _LOCAL.pack(*local) + self.data[names : names + sum(local[9:11])] + packed
            else:
                made += self.data[info.header_offset : self.ends[member]]
            directory += _CENTRAL.pack(*entry) + self.data[at + _CENTRAL.size : at + size]
            at += size
        end = list(_END.unpack_from(self.data, self.end))
        end[5:7] = len(directory), len(made)
        return bytes(made + directory + _END.pack(*end) + self.data[self.end + _END.size :])


def _pack(data: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return data
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _find_odt(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    """Paragraphs, and those of notes and boxes inside them: theirs are small splices, since a note moves with its place in a sentence."""
    found = find_xml_texts(_ODT, document, languages, again)
    inner = find_xml_texts(_ODT._replace(texts=_list_inner), document, languages, again)
    return ExtractionResult([*found.units, *map(_make_small, inner.units)])


def _list_inner(element: Element) -> list[Element]:
    """The paragraphs of notes and boxes. One that stands in another directly is of the other's sentence."""
    found, waiting = list[Element](), [(child, False) for child in reversed(element.children)]
    while waiting:
        child, is_apart = waiting.pop()
        is_own = is_apart and child.name in _ODT.wanted
        found += [child] if is_own else []
        is_apart = not is_own and (is_apart or child.name in _ODT.singles)
        waiting += [(each, is_apart) for each in reversed(child.children)]
    return found


def _names_author(element: Element) -> bool:
    return _AUTHOR.search(element.document, max(0, element.start - 200), element.start) is not None


def _make_small(unit: DocumentUnit) -> DocumentUnit:
    def shrink(splices: list[Splice] | None) -> list[Splice] | None:
        return None if splices is None else [splice._replace(small=True) for splice in splices]

    return unit.change_splices(shrink)


# Which members hold text, what they are, and who finds it.
_MEMBERS: dict[str, list[tuple[re.Pattern[str], str, Finder]]] = {
    "docx": [(re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml"), "xml", find_runs)],
    "pptx": [(re.compile(r"ppt/(?:slides|notesSlides|diagrams)/(?:slide|notesSlide|data)\d+\.xml"), "xml", find_runs)],
    "odt": [(re.compile(r"(?:content|styles)\.xml"), "xml", _find_odt)],
    "epub": [
        (re.compile(r"(?i)\A.+\.x?html?"), "html", partial(find_html, xhtml=True)),
        (re.compile(r"(?i)\A.+\.(?:opf|ncx)"), "xml", partial(find_xml_texts, _NAMES)),
    ],
}
ARCHIVES = frozenset(_MEMBERS)
_WITHOUT_TEXT = {"pptx": "ppt/presentation.xml"}  # a template may have no slides


def find_archive(
    data: bytes, kind: str, languages: tuple[str, str], again: bool, unsure_below: float, name: str, is_over: Callable[[], bool], most: int
) -> FoundUnits:
    """`most`: bytes of all members with text together."""
    archive, parts, numbers = ZipMembers(name, data, most), dict[str, FoundUnits](), count(1)
    for member, its_kind, find in _list_members(archive, kind):
        document = decode(f"{name}: {member}", archive.read(member), its_kind, is_over)
        found = find(document, languages, again)
        units = [replace(unit, line=number) for unit, number in zip(found.units, numbers, strict=False)]
        parts[member] = FoundUnits(document, found._replace(units=units), unsure_below)
    if not parts and _WITHOUT_TEXT.get(kind) not in archive.infos:
        raise DataError(f"{name} has none of the members that a .{kind} has; check its name")
    signed = any(map(_SIGNATURES.fullmatch, archive.infos))
    why = "the document is signed, and a translation is no longer what was signed; sign it anew"
    return FoundArchive(archive, parts, (Remark(0, "signature", why),) if signed else ())


def sample_archive(data: bytes, size: int) -> bytes:
    """The beginning of its first text, with its tags; nothing where there is none."""
    try:
        archive = ZipMembers("the document", data, size)
    except DataError:
        return b""
    found = (archive.unpack(member, size) for kind in _MEMBERS for member, _, _ in _list_members(archive, kind))
    return next(found, None) or b""


def _list_members(archive: ZipMembers, kind: str) -> Iterator[tuple[str, str, Finder]]:
    for member in archive.infos:
        for pattern, its_kind, find in _MEMBERS[kind]:
            if pattern.fullmatch(member):
                yield member, its_kind, find


class FoundArchive(FoundUnits):
    def __init__(self, archive: ZipMembers, parts: dict[str, FoundUnits], remarks: tuple[Remark, ...]) -> None:
        self.archive, self.parts, self.remarks = archive, parts, remarks

    def texts(self) -> list[str]:
        return [text for part in self.parts.values() for text in part.texts()]

    def list_sources(self) -> list[str]:
        return [source for part in self.parts.values() for source in part.list_sources()]

    def runs(self, known: Known) -> list[str]:
        return [run for part in self.parts.values() for run in part.runs(known)]

    def take_given(self, given: Mapping[str, GivenText], first: int = 0) -> int:
        for part in self.parts.values():
            first = part.take_given(given, first)
        return first

    def splice(self, known: Known) -> TranslatedDocument:
        done = {member: part.splice(known) for member, part in self.parts.items()}
        new = {member: each.data for member, each in done.items() if each.data != self.parts[member].document.data}
        counts = [sum(getattr(each.counts, field.name) for each in done.values()) for field in fields(DocumentCounts)]
        warnings = (*self.remarks, *(warning for each in done.values() for warning in each.warnings))
        units = tuple(unit for each in done.values() for unit in each.units)
        return TranslatedDocument(self.archive.replace(new) if new else self.archive.data, DocumentCounts(*counts), warnings, units)
