"""An `ObjectStore` reads and writes the objects under an address, each whole or absent, and some only if nobody else was faster:

    store = ObjectStore("s3://models/en-de")
    store.put_new("manifest.json", b"...")      None: there was one already
    store.get("config.json", most=1 << 20)      None: there is none

Endpoint, region and credentials come from the ordinary variables of the environment (AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID ...).
Answers that fail in passing (5xx, connections that are cut) are asked for again for a time.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from limelight.errors import ConfigError, MissingExtraError, ModelFileError, StorageError

ADDRESS: Final = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.=-]+)+/?", re.ASCII)
REQUEST_SECONDS: Final = 60  # for one request: so long may a server be silent
RETRY_SECONDS: Final = 20  # for all tries of one
RUN_SECONDS: Final = 120  # of one of a run, which may be days old
BLOCK: Final = 16 << 20  # bytes of an object that are fetched or sent with one request


def is_address(text: str) -> bool:
    """is_address("s3://models/en-de") -> True; what another library may know, such as gs://, is none."""
    return text.startswith("s3://")


def find_endpoint() -> str:
    """The server that addresses are of, as the environment names it; nothing where it is Amazon's."""
    return next(filter(None, map(os.environ.get, ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"))), "")


def client_settings(patience: float = RETRY_SECONDS) -> dict[str, Any]:
    """What every request follows. An endpoint without TLS must be meant: it is, where the address of the endpoint says so."""
    endpoint = find_endpoint()
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    bounds = {"timeout": timedelta(seconds=REQUEST_SECONDS), "connect_timeout": timedelta(seconds=10)}
    return {
        "config": {"region": region, **({"endpoint": endpoint} if endpoint else {})},
        "client_options": {"allow_http": endpoint.startswith("http://"), **bounds},
        # By time and not by number: a server that starts again refuses eight tries within two seconds.
        "retry_config": {
            "max_retries": 1000,
            "retry_timeout": timedelta(seconds=patience),
            "backoff": {"init_backoff": timedelta(seconds=0.1), "max_backoff": timedelta(seconds=5), "base": 2},
        },
    }


def open_bucket(address: str, filesystem: bool = False, patience: float = RETRY_SECONDS) -> Any:
    """The bucket and folder of an address, by obstore; or all buckets as fsspec has them, for what reads files wherever they are."""
    try:
        from obstore.fsspec import FsspecStore
        from obstore.store import from_url
    except ModuleNotFoundError:
        raise MissingExtraError("obstore", address, "s3", ", or copy it to a folder first") from None
    settings = client_settings(patience)
    return FsspecStore("s3", **settings) if filesystem else from_url(address, **settings)


@contextmanager
def tell_errors(where: str) -> Iterator[None]:
    """The errors of the library become ours. Its message goes on as a line: servers answer with pages."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    try:
        yield
    except (BaseError, OSError) as error:
        if isinstance(error, FileNotFoundError) or getattr(error, "errno", None) is not None:  # a file of this machine
            raise
        if isinstance(error, PermissionDeniedError | UnauthenticatedError):
            raise ConfigError(f"{where}: access is denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ask its owner") from None
        why = re.sub(r"\s+", " ", str(error))[:300]
        raise StorageError(f"{where} cannot be reached ({why}); look at AWS_ENDPOINT_URL and the network, then try again") from None


class ObjectStore:
    """Names are relative to the address. Whatever goes wrong on the way is a StorageError, or a ConfigError where asking again is vain."""

    def __init__(self, address: str, bucket: Any = None, patience: float = RETRY_SECONDS) -> None:
        """`bucket`: another store of obstore, as a test has in memory. `patience`: seconds for which a request is tried again."""
        self.address = address.rstrip("/")
        if not ADDRESS.fullmatch(address) or "/.." in address or "/./" in address + "/":
            raise ConfigError(f"{address[:200]} is no address; one is s3://BUCKET/NAME, of letters, digits, dots, - and _")
        self._bucket = open_bucket(self.address, patience=patience) if bucket is None else bucket

    def get(self, name: str, most: int = 64 << 20) -> bytes | None:
        """A small object, or None if there is none. One of more than `most` bytes is refused."""
        found = self.get_versioned(name, most)
        return found and found[0]

    def get_versioned(self, name: str, most: int = 64 << 20) -> tuple[bytes, str] | None:
        """Also which version it is, by its ETag."""
        with self._asking(name):
            try:
                found = self._bucket.get(name)
                if found.meta["size"] <= most:
                    return bytes(found.bytes()), str(found.meta["e_tag"])
            except FileNotFoundError:
                return None
        raise ModelFileError(f"{self.address}/{name} has {found.meta['size']:,} bytes, and none of its kind has more than {most:,}")

    def fetch(self, name: str, path: Path, size: int, sha256: str) -> None:
        """An object as a file, in blocks. Another size or content than was written is a ModelFileError, and there is no file."""
        from obstore.exceptions import BaseError

        digest, written = hashlib.sha256(), 0
        try:
            with self._asking(name), path.open("xb") as file:
                for start in range(0, size, BLOCK):
                    try:
                        block = bytes(self._bucket.get_range(name, start=start, end=min(size, start + BLOCK)))
                    except BaseError:
                        if self._bucket.head(name)["size"] > start:
                            raise
                        break  # it ends before this block
                    digest.update(block)
                    written += file.write(block)
            if written != size or digest.hexdigest() != sha256:
                raise ModelFileError(f"{self.address}/{name} is not what its manifest says; publish it again, or wait until that is done")
        except BaseException as error:
            path.unlink(missing_ok=True)
            if isinstance(error, FileNotFoundError):
                raise ModelFileError(f"{self.address}/{name} is listed and not there; publish it again") from None
            raise

    def put(self, name: str, content: bytes | Path) -> None:
        """The object appears when all of it has arrived; what was there is replaced."""
        with self._asking(name, writes=True):
            self._bucket.put(name, content, chunk_size=BLOCK, max_concurrency=2)

    def put_new(self, name: str, content: bytes) -> str | None:
        """The version, if the object is now this one, which nobody else writes: of all who try at once, one. Else None."""
        return self._put_if(name, content, "create")

    def replace(self, name: str, content: bytes, version: str) -> str | None:
        """The new version, if what stood there was still this version; else None, and nothing has changed."""
        new = self._put_if(name, content, {"e_tag": version})
        if new is None and self._stands(name, version):  # Ceph, and what is built on it, compares an ETag without its quotes
            new = self._put_if(name, content, {"e_tag": version.strip('"')})
            if new is None and self._stands(name, version):
                raise ConfigError(f"{self.address}: this server cannot replace an object on a condition (If-Match); use one that can")
        return new

    def _stands(self, name: str, version: str) -> bool:
        found = self.get_versioned(name)
        return found is not None and found[1] == version

    def _put_if(self, name: str, content: bytes, mode: Any) -> str | None:
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        with self._asking(name, writes=True):
            try:
                return str(self._bucket.put(name, content, mode=mode, use_multipart=False)["e_tag"])
            except BaseError as error:  # also of a try that did arrive, and whose answer did not
                found = self.get_versioned(name)
                if found is not None and found[0] == content:
                    return found[1]
                if isinstance(error, AlreadyExistsError | PreconditionError):
                    return None
                raise

    def names(self, prefix: str = "") -> Iterator[str]:
        """All under the address, or under a folder in it."""
        with self._asking(prefix):
            for chunk in self._bucket.list(prefix or None):
                yield from (each["path"] for each in chunk)

    def delete(self, names: Iterable[str]) -> None:
        for name in names:
            with self._asking(name), suppress(FileNotFoundError):
                self._bucket.delete(name)

    @contextmanager
    def _asking(self, name: str, writes: bool = False) -> Iterator[None]:
        try:
            with tell_errors(f"{self.address}/{name}".rstrip("/")):
                yield
        except FileNotFoundError:
            if writes:
                raise ConfigError(f"{self.address}: there is no such bucket; make it first, or name another") from None
            raise
