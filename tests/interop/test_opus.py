"""Corpora of OPUS by name, against a small OPUS on this machine."""

import io
import json
import re
import socket
import sys
import threading
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import nullcontext
from email.message import Message
from http.client import HTTPException
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from small_opus import TEXT, SmallOpus, pack

from limelight.errors import ConfigError, DataError
from limelight.interop.offers import FACTS
from limelight.interop.opus import SafeRedirects, find_corpus

pytestmark = pytest.mark.process
NAME, KEY = "opus:Tatoeba/de-en", ("Tatoeba", "v2023-04-12", "de-en")


@pytest.fixture
def opus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallOpus]:
    made = SmallOpus()
    monkeypatch.setenv("OPUS_API", f"{made.address}/opusapi/")
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "cache"))
    yield made
    made.close()


def whole_archives(opus: SmallOpus) -> list[str]:
    return [asked for asked in opus.asked if asked.startswith("GET") and asked.endswith(".zip")]


def fetch(name: str = NAME) -> list[Path]:
    files, offer = find_corpus(name)
    if offer is not None:
        offer.take()
    return [Path(file) for file in files]


def test_an_offer_tells_address_size_and_licence_and_the_archive_is_not_fetched(opus: SmallOpus) -> None:
    files, offer = find_corpus(NAME)
    assert offer is not None and not Path(files[0]).exists()
    assert offer.size == len(opus.archives[KEY])
    assert f"{opus.address}/Tatoeba/v2023-04-12/de-en.zip, " in offer.describe() and "licence: CC-BY 2.0 FR;" in offer.describe()
    assert offer.room == offer.size + sum(map(len, TEXT.values()))
    assert not whole_archives(opus)


@pytest.mark.parametrize("name", [NAME, "opus:Tatoeba/en-de", "opus:Tatoeba/v2023-04-12/de-en"])
def test_the_files_come_in_the_order_of_the_name(name: str, opus: SmallOpus) -> None:
    codes = name.rpartition("/")[2].split("-")
    files = fetch(name)
    assert [file.read_bytes() for file in files] == [TEXT[f"Tatoeba.de-en.{code}"] for code in codes]
    folder = files[0].parent
    assert {path.name for path in folder.iterdir()} == {*TEXT, FACTS}
    assert json.loads((folder / FACTS).read_bytes())["license"] == "CC-BY 2.0 FR"
    assert [path.name for path in folder.parent.iterdir() if not path.name.endswith(".lock")] == ["Tatoeba"]  # nothing is left beside


def test_what_is_there_is_used_without_a_network(opus: SmallOpus) -> None:
    files = fetch()
    opus.asked.clear()
    assert find_corpus(NAME) == ([str(file) for file in files], None)
    assert not opus.asked


def test_two_processes_that_want_the_same_fetch_it_once(opus: SmallOpus) -> None:
    offers = [find_corpus(NAME)[1] for _ in range(3)]
    threads = [threading.Thread(target=offer.take) for offer in offers if offer is not None]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(whole_archives(opus)) == 1
    assert fetch()[0].read_bytes() == TEXT["Tatoeba.de-en.de"]


@pytest.mark.parametrize("how", ["no-parts", "no-size"])
def test_a_server_that_sends_no_parts_or_tells_no_size_serves_too(how: str, opus: SmallOpus) -> None:
    opus.how = how
    _, offer = find_corpus(NAME)
    assert offer is not None and "licence: not told before" in offer.describe()
    assert fetch()[1].read_bytes() == TEXT["Tatoeba.de-en.en"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("less", "sent less than the"),
        ("more", "sent more than the"),
        ("hang-up", "sent less than the|cannot be reached"),
        ("fail", "answers 503"),
        ("away", "file:///etc/passwd|cannot be reached"),
    ],
)
def test_an_archive_that_does_not_come_whole_leaves_nothing(how: str, said: str, opus: SmallOpus) -> None:
    files, offer = find_corpus(NAME)
    assert offer is not None
    opus.how = how
    with pytest.raises(DataError, match=said):
        offer.take()
    folder = Path(files[0]).parent
    assert not folder.exists() and not list(folder.parent.rglob("*.de"))
    opus.how = ""
    fetch()


def bomb() -> bytes:
    return pack({**TEXT, "Tatoeba.de-en.de": b"\n" * 4_000_000})


def encrypted() -> bytes:
    made = bytearray(pack(TEXT))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        for found in re.finditer(re.escape(signature), bytes(made)):
            made[found.start() + at] |= 1
    return bytes(made)


def damaged(method: int = zipfile.ZIP_DEFLATED) -> bytes:
    made = bytearray(pack(TEXT, method))
    made[60] ^= 1  # in the packed text
    return bytes(made)


@pytest.mark.parametrize(
    ("archive", "said"),
    [
        (bomb, "more than 100 times its size"),
        (encrypted, "more than 100 times its size, or is encrypted"),
        (damaged, "the archive is damaged|is damaged"),
        (lambda: damaged(zipfile.ZIP_BZIP2), "the archive is damaged"),
        (lambda: damaged(zipfile.ZIP_LZMA), "the archive is damaged"),
        (lambda: pack(TEXT)[:-30], "the archive is damaged"),
        (lambda: b"<html>not here</html>" * 99, "the archive is damaged"),
        (lambda: pack({"LICENSE": b"", "../Tatoeba.de-en.de": b"x", "/Tatoeba.de-en.en": b"x"}), "has no Tatoeba.de-en.de and no"),
    ],
)
@pytest.mark.parametrize("how", ["", "no-parts"])
def test_an_archive_that_is_not_one_is_refused(archive: object, said: str, how: str, opus: SmallOpus, tmp_path: Path) -> None:
    opus.archives[KEY], opus.how = archive(), how  # type: ignore[operator]
    with pytest.raises(DataError, match=said):
        fetch()
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size > 100_000]
    assert not (tmp_path / "cache" / "opus" / "latest" / "de-en" / "Tatoeba").exists()


def test_a_directory_that_is_too_large_is_not_fetched(opus: SmallOpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.interop.opus.DIRECTORY", 99)
    with pytest.raises(DataError, match="its directory is too large"):
        find_corpus(NAME)


@pytest.mark.parametrize(("a", "b", "safe"), [("https", "https", True), ("http", "https", True), ("https", "http", False)])
def test_no_step_leads_to_a_less_safe_address(a: str, b: str, safe: bool) -> None:
    with nullcontext() if safe else pytest.raises(HTTPException, match="is not safe"):
        request = urllib.request.Request(f"{a}://here.invalid/")
        SafeRedirects().redirect_request(request, io.BytesIO(), 302, "Found", Message(), f"{b}://there.invalid/")


def test_members_that_would_leave_the_folder_are_not_unpacked(opus: SmallOpus, tmp_path: Path) -> None:
    opus.archives[KEY] = pack({**TEXT, "../../evil.txt": b"x", "/tmp/evil.txt": b"x", "sub/evil.txt": b"x"})
    fetch()
    assert not list(tmp_path.rglob("evil.txt"))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("opus:Tatoeba/de-xx", "OPUS has no Tatoeba of de and xx"),
        ("opus:NoSuch/de-en", "OPUS has no NoSuch of de and en"),
        ("opus:Tatoeba/v1/de-en", "OPUS has no Tatoeba in the version v1 of de and en"),
    ],
)
def test_a_corpus_that_is_not_there_is_said(name: str, said: str, opus: SmallOpus) -> None:
    with pytest.raises(DataError, match=said):
        find_corpus(name)


@pytest.mark.parametrize(
    "name", ["opus:Tatoeba", "opus:../x/de-en", "opus:a/b/c/de-en", "opus:Tatoeba/de", "opus:T/de-en\n", "opus:T/d e-en"]
)
def test_a_name_that_is_none_asks_nobody(name: str, opus: SmallOpus) -> None:
    with pytest.raises(ConfigError, match="opus:CORPUS/SOURCE-TARGET"):
        find_corpus(name)
    assert not opus.asked


@pytest.mark.parametrize(("how", "said"), [("other", "does not answer as OPUS does"), ("plain", "file:///etc.* is not safe")])
def test_an_answer_that_is_not_of_opus_is_refused(how: str, said: str, opus: SmallOpus) -> None:
    opus.how = how
    with pytest.raises(DataError, match=said):
        find_corpus(NAME)


def test_without_a_network_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OPUS_API", f"http://127.0.0.1:{unused.getsockname()[1]}/")
        monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path))
        with pytest.raises(DataError, match=r"cannot be reached .*HTTPS_PROXY"):
            find_corpus(NAME)


def test_a_proxy_of_the_environment_is_asked(opus: SmallOpus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPUS_API", "http://opus.invalid/opusapi/")
    monkeypatch.setenv("http_proxy", opus.address)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setattr(urllib.request, "_opener", None)  # it reads the environment once
    assert find_corpus(NAME)[1] is not None
    assert any("http://opus.invalid/opusapi/" in asked for asked in opus.asked)
