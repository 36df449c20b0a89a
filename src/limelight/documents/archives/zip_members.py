"""`ZipMembers` reads members of an archive, and puts others in place of some. All else stays to the byte: order, names, other members.

Archives of strangers may unpack to terabytes, so a member is unpacked only as far as is allowed. Nothing is written to disk.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping

from limelight.errors import DataError

MOST_MEMBERS = 20_000
_ENCRYPTED, _SIZES_FOLLOW = 0x1, 0x8
_LOCAL, _CENTRAL, _END = struct.Struct("<4s5H3L2H"), struct.Struct("<4s6H3L5H2L"), struct.Struct("<4s4H2LH")


class ZipMembers:
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
