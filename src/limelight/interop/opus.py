"""OPUS (Tiedemann 2012) gives parallel corpora by name: opus:Tatoeba/de-en, or opus:Tatoeba/v2023-04-12/de-en of a certain version.

Its API tells the address of an archive of two line files; the archive's directory, read first, tells the licence and what it unpacks to.
OPUS_API and the usual variables of proxies (HTTPS_PROXY, NO_PROXY) lead elsewhere.
"""

import http.client
import io
import json
import lzma
import os
import re
import shutil
import ssl
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode
from zipfile import BadZipFile, ZipFile, ZipInfo

from limelight.errors import ConfigError, DataError
from limelight.files import cache_folder
from limelight.interop.offers import PublishedOffer, Tell

API: Final = "https://opus.nlpl.eu/opusapi/"
_CODE = r"[A-Za-z]{2,8}(?:_[A-Za-z0-9]{2,8})*"
_NAME = re.compile(rf"opus:([A-Za-z0-9][\w.-]{{0,63}})/(?:(v[\w.-]{{1,31}})/)?({_CODE})-({_CODE})", re.ASCII)
SECONDS: Final = 60.0  # without a byte
ANSWER: Final = 1 << 20  # bytes of what the API says
BLOCK: Final = 1 << 20
DIRECTORY: Final = 1 << 24  # bytes of an archive that are read before anybody agreed
ROUNDED: Final = 1 << 10  # the API tells sizes in units of this
TIGHTEST: Final = 100  # text packs to a tenth at best; what unpacks to more than this was made to fill a disk
LICENSE: Final = "LICENSE"
UNTOLD: Final = "not told before; the archive may hold it"


def find_corpus(name: str) -> "tuple[list[str], PublishedOffer | None]":
    """The two line files in the order of the name, and the offer to be taken before they are there; None if they are."""
    if (asked := _NAME.fullmatch(name)) is None:
        raise ConfigError(f"{name[:99]} is no name of a corpus; write opus:CORPUS/SOURCE-TARGET, such as opus:Tatoeba/de-en")
    corpus, version, source, target = asked.groups()
    pair = "-".join(sorted((source, target)))
    folder = cache_folder() / "opus" / (version or "latest") / pair / corpus
    files = [str(folder / f"{corpus}.{pair}.{code}") for code in (source, target)]
    return files, None if folder.is_dir() else _ask(name, corpus, version, pair, folder)


def _ask(name: str, corpus: str, version: str | None, pair: str, folder: Path) -> PublishedOffer:
    first, second = pair.split("-")
    wanted = {"corpus": corpus, "source": first, "target": second, "preprocessing": "moses", "version": version or "latest"}
    api = os.environ.get("OPUS_API") or API
    with _explain(name), _open(f"{api}?{urlencode(wanted)}") as answer:
        said = answer.read(ANSWER)
    try:
        found: list[Any] = json.loads(said)["corpora"]
        address, size = (str(found[0]["url"]), int(found[0]["size"]) * ROUNDED) if found else ("", 0)
    except (ValueError, TypeError, KeyError, IndexError):
        raise DataError(f"{name}: {api} does not answer as OPUS does; check OPUS_API") from None
    if not found:
        of = f"in the version {version} " if version else ""
        raise DataError(f"OPUS has no {corpus} {of}of {first} and {second}; names are as on https://opus.nlpl.eu, codes as in de-en, pt_BR")
    if not address.startswith("https://" if api.startswith("https://") else ("https://", "http://")):
        raise DataError(f"{name}: OPUS names the address {address[:200]}, which is not safe to fetch; report it to OPUS")
    license, room = UNTOLD, size * (TIGHTEST // 10)
    with _explain(name):
        far = FarFile(address)
        size = far.size or size
        if far.in_parts:
            with ZipFile(io.BufferedReader(far, 1 << 16)) as archive:
                room = size + sum(each.file_size for each in _check(name, archive, corpus, pair))
                license = _license(archive) or UNTOLD
    sizes = (size, size) if far.size else (0, size + ROUNDED)
    return PublishedOffer(
        name, address, size, room, license, folder, lambda part, tell: _get(name, address, (corpus, pair), sizes, part, tell)
    )


def _get(name: str, address: str, corpus: tuple[str, str], sizes: tuple[int, int], part: Path, tell: Tell) -> None:
    """Fetch and unpack. `sizes`: bytes that must come, at least and at most."""
    packed, done, (least, most) = part / ".archive.zip", 0, sizes
    try:
        with _explain(name), _open(address) as sent, packed.open("wb") as file:
            while block := sent.read(BLOCK):
                done += len(block)
                if done > most:
                    break
                file.write(block)
                tell(done, most)
        if not least <= done <= most:
            raise DataError(f"{name}: {address} sent {'more' if done > most else 'less'} than the {most:,} bytes it told; try again")
        with _explain(name), ZipFile(packed) as archive:
            for member in _check(name, archive, *corpus):
                with ZipFile.open(archive, member) as inside, (part / member.filename).open("wb") as out:
                    while block := inside.read(BLOCK):  # ends at the size that was told; zipfile compares the checksum
                        out.write(block)
        packed.unlink()
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _check(name: str, archive: ZipFile, corpus: str, pair: str) -> list[ZipInfo]:
    """The members that are taken, by the names they must have: nothing else is unpacked, so that no path leads anywhere."""
    needed = [f"{corpus}.{pair}.{code}" for code in pair.split("-")]
    there = {each.filename: each for each in archive.infolist()}
    if missing := [each for each in needed if each not in there]:
        raise DataError(f"{name}: the archive has no {' and no '.join(missing)}; report it to OPUS")
    taken = [there[each] for each in (*needed, LICENSE, "README") if each in there]
    if any(each.flag_bits & 1 or each.file_size > TIGHTEST * (each.compress_size + 100) for each in taken):
        raise DataError(f"{name}: the archive would unpack to more than {TIGHTEST} times its size, or is encrypted; it is not used")
    return taken


def _license(archive: ZipFile) -> str | None:
    if LICENSE not in archive.namelist():
        return None
    with ZipFile.open(archive, LICENSE) as file:
        lines = file.read(4_096).decode("utf-8", "replace").split("\n")
    return next((line.strip()[:160] for line in lines if re.search(r"\w", line)), None)


class FarFile(io.RawIOBase):
    def __init__(self, address: str) -> None:
        self.address, self.at, self.asked = address, 0, 0
        with _open(address, "HEAD") as answer:
            self.size = int(answer.headers.get("Content-Length") or 0)
            self.in_parts = self.size > 0 and answer.headers.get("Accept-Ranges") == "bytes"

    def readable(self) -> bool:
        return True

    seekable = readable

    def seek(self, offset: int, whence: int = 0) -> int:
        self.at = max(0, offset + (0, self.at, self.size)[whence])
        return self.at

    def readinto(self, buffer: Any) -> int:
        end = min(self.at + len(buffer), self.size)
        if self.at >= end:
            return 0
        self.asked += end - self.at
        if self.asked > DIRECTORY:
            raise BadZipFile("its directory is too large")
        with _open(self.address, "GET", {"Range": f"bytes={self.at}-{end - 1}"}) as answer:
            if answer.status != http.client.PARTIAL_CONTENT:
                raise http.client.HTTPException("it sends no parts, though it said so")
            content = answer.read(end - self.at)
        buffer[: len(content)] = content
        self.at += len(content)
        return len(content)


class SafeRedirects(urllib.request.HTTPRedirectHandler):
    """No step leads from https to http, or to a file."""

    def redirect_request(self, req: urllib.request.Request, *rest: Any) -> urllib.request.Request | None:
        address = rest[-1]
        if not address.startswith(("https://", f"{req.full_url.partition('://')[0]}://")):
            raise http.client.HTTPException(f"it leads to {address[:200]}, which is not safe")
        return super().redirect_request(req, *rest)


def _open(address: str, method: str = "GET", headers: dict[str, str] | None = None) -> Any:
    request = urllib.request.Request(address, method=method, headers={"User-Agent": "limelight", **(headers or {})})
    ask = urllib.request.build_opener(SafeRedirects).open
    return ask(request, timeout=SECONDS)


@contextmanager
def _explain(name: str) -> Iterator[None]:
    try:
        yield
    except urllib.error.HTTPError as error:
        raise DataError(f"{name}: {error.url} answers {error.code} ({error.reason}); check the name, or try again later") from None
    except (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError, http.client.HTTPException, ValueError) as error:
        why = str(getattr(error, "reason", error))[:200]
        raise DataError(
            f"{name} cannot be fetched: OPUS cannot be reached ({why}); go online, or say by HTTPS_PROXY which proxy leads there"
        ) from None
    except (BadZipFile, NotImplementedError, EOFError, MemoryError, OSError, lzma.LZMAError, zlib.error) as error:
        if getattr(error, "errno", None) is not None:  # of the disk; bzip2's has none
            raise
        raise DataError(f"{name}: the archive is damaged ({error}); try again, and if it stays so, report it to OPUS") from None
