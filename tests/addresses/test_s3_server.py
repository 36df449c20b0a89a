"""A real server of S3 and a network with faults: moto in a process of its own, and a proxy before it that answers 503, is slow or cuts."""

import hashlib
import itertools
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from moto_process import SERVER, environment, serving_s3
from prepared_corpora import fingerprint, make
from stores import read_files, write_files
from test_object_store import race

from limelight.addresses.folders import publish
from limelight.addresses.lease import Lease
from limelight.addresses.object_store import BLOCK, ObjectStore
from limelight.addresses.snapshots import OvertakenError, Snapshots
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shard_cache import BOUND, GIGABYTE
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import CorpusManifest
from limelight.corpus.reading.finding import find
from limelight.corpus.reading.streams import content_hash, size_of
from limelight.corpus.remote import fetch_prepared, list_prepared, place_prepared
from limelight.errors import DataError, ModelFileError

pytestmark = [pytest.mark.process, pytest.mark.skipif(SERVER is None, reason="moto_server is not installed")]
REFUSAL = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Proxy:
    """Hands bytes on to the server. `faults` are for the connections to come, one each: "503", "slow", "cut" (in the middle of what is
    sent), "deaf" (the request arrives, and the connection ends before the answer)."""

    def __init__(self, port: int) -> None:
        self._server, self.faults, self.met = port, [], []  # type: tuple[int, list[str], list[str]]
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                fault = self.faults.pop(0) if self.faults else ""
                self.met.append(fault)
                threading.Thread(target=self._serve, args=(client, fault), daemon=True).start()

    def _serve(self, client: socket.socket, fault: str) -> None:
        with suppress(OSError), closing(client):
            if fault == "503":
                client.recv(1 << 16)
                client.sendall(REFUSAL)
                return
            with socket.create_connection(("127.0.0.1", self._server)) as server:
                if fault == "slow":
                    time.sleep(2)
                if fault != "deaf":
                    threading.Thread(target=_hand_on, args=(server, client), daemon=True).start()
                _hand_on(client, server, most=300_000 if fault == "cut" else None, answered=fault == "deaf")

    def close(self) -> None:
        self._listener.close()

    def restart(self, seconds: float) -> None:
        """Nobody listens for so long, as while a gateway starts again."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        back = threading.Timer(seconds, self._come_back)
        back.daemon = True
        back.start()

    def _come_back(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._accept()


def _hand_on(here: socket.socket, there: socket.socket, most: int | None = None, answered: bool = False) -> None:
    """`answered`: the end comes when the server has answered, and nobody hears what."""
    sent = 0
    with suppress(OSError):
        while (most is None or sent < most) and (data := here.recv(1 << 16)):
            there.sendall(data)
            sent += len(data)
            if answered:
                there.settimeout(1.0)
                with suppress(TimeoutError):
                    if b"100 Continue" not in there.recv(1 << 16):
                        break
    for each in (here, there):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def server(starts_process: None) -> Iterator[int]:
    with serving_s3() as port:
        yield port


@pytest.fixture
def proxy(server: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    made = Proxy(server)
    for name, value in environment(made.port).items():
        monkeypatch.setenv(name, value)
    yield made
    made.close()


@pytest.fixture
def store(proxy: Proxy, tmp_path: Path) -> ObjectStore:
    return ObjectStore(f"s3://bucket/{tmp_path.name}")


def test_a_server_that_starts_again_loses_nothing(proxy: Proxy, store: ObjectStore) -> None:
    proxy.restart(4.0)
    began = time.monotonic()
    store.put("a", b"1")
    assert time.monotonic() - began > 3
    assert store.get("a") == b"1"


def test_one_of_sixteen_creates_an_object(store: ObjectStore) -> None:
    assert race(store) == 1


@pytest.mark.parametrize("fault", ["503", "slow", "cut"])
def test_a_large_file_goes_there_and_back_whatever_the_network_does(fault: str, store: ObjectStore, proxy: Proxy, tmp_path: Path) -> None:
    content = os.urandom(1 << 20) * 20
    (tmp_path / "a").write_bytes(content)
    proxy.faults += [fault, fault]
    store.put("a", tmp_path / "a")
    proxy.faults += [fault]
    store.fetch("a", tmp_path / "b", len(content), hashlib.sha256(content).hexdigest())
    assert (tmp_path / "b").read_bytes() == content and proxy.met.count(fault) >= 2


def test_an_object_that_ends_with_a_block_is_not_a_storage_that_is_away(store: ObjectStore, tmp_path: Path) -> None:
    store.put("a", bytes(BLOCK))
    with pytest.raises(ModelFileError, match="is not what its manifest says"):
        store.fetch("a", tmp_path / "a", BLOCK + 1, "0" * 64)


def test_a_conditional_put_whose_answer_is_lost_was_ours(proxy: Proxy, tmp_path: Path) -> None:
    for number in range(3):
        proxy.faults += ["deaf"]
        store = ObjectStore(f"s3://bucket/{tmp_path.name}-{number}")  # a connection of its own
        assert store.put_new("a", b"mine") and store.get("a") == b"mine"
        assert store.put_new("a", b"another") is None
    assert proxy.met.count("deaf") == 3


def test_two_writers_never_both_write(store: ObjectStore, tmp_path: Path) -> None:
    slow, quick = Snapshots(store, "slow"), Snapshots(store, "quick")
    slow.begin(tmp_path / "slow")
    slow.commit(write_files(tmp_path / "slow", a="1"))
    lease = Lease(store, "slow", renewed=0.5, stale=2.0)
    lease.acquire()
    lease._ended.set()
    taken = Lease(store, "quick", renewed=0.5, stale=2.0)
    taken.acquire()
    quick.begin(tmp_path / "quick")
    with pytest.raises(OvertakenError):
        slow.commit(write_files(tmp_path / "slow", a="wrong"))
    assert not lease._replace(lease._version) and not taken.lost
    quick.commit(write_files(tmp_path / "quick", b="2"))
    Snapshots(store, "third").begin(tmp_path / "third")
    assert read_files(tmp_path / "third") == {"a": "1", "b": "2"}
    taken.release()


def test_a_prepared_corpus_goes_there_and_back(store: ObjectStore, tmp_path: Path) -> None:
    made = make(tmp_path / "made")
    publish(store, made, list_prepared(made))
    fetch_prepared(store, tmp_path / "copy")
    assert all((made / name).read_bytes() == (tmp_path / "copy" / name).read_bytes() for name in list_prepared(made))


def test_batches_come_through_a_network_with_faults_as_from_a_disk(
    proxy: Proxy, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a cache of two shards of eight, with workers, which fetch for themselves; and a loader that goes on with an empty cache."""
    made, settings = make(tmp_path / "made", [[30, 5, 1]] * 8), BatchSettings(budget=400, window=40, shards_at_once=1)
    publish(store, made, list_prepared(made))
    expected = [fingerprint(batch) for batch in itertools.islice(Loader(PreparedCorpus.open(made), settings), 50)]
    place_prepared(store.address, tmp_path / "run")
    sizes = [shard.ids.bytes for shard in CorpusManifest.load(made).splits["train"]]
    for number, (workers, groups) in enumerate(((0, 2), (1, 3))):
        monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / f"cache-{number}"))
        monkeypatch.setenv(BOUND, repr(groups * max(sizes) / GIGABYTE))
        proxy.faults += ["503", "slow", "", "cut"] if workers == 0 else []
        prepared = PreparedCorpus.open(tmp_path / "run")
        with Loader(prepared, settings, workers=workers) as loader:
            found = list(itertools.islice(loader, 50))
        assert [fingerprint(batch) for batch in found] == expected
        monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / f"elsewhere-{number}"))
        later = Loader(PreparedCorpus.open(tmp_path / "run"), settings, state=found[29].state)
        assert [fingerprint(batch) for batch in itertools.islice(later, 5)] == expected[30:35]
    assert proxy.met.count("503") == 1


def test_corpora_are_found_and_read_where_they_are(store: ObjectStore, tmp_path: Path) -> None:
    for name in ("text/train.en", "text/train.de", "text/deep/more.tsv"):
        store.put(name, name.encode())
    place = store.address + "/text"
    pair, table = (f"{place}/train.en", f"{place}/train.de"), (f"{place}/deep/more.tsv",)
    for given in ([place], [place + "/"], [f"{place}/train.*", *table]):
        assert sorted(part.paths for part in find(given, ("en", "de"))) == sorted([pair, table])
    assert [part.paths for part in find(list(pair), ("en", "de"))] == [pair]
    assert content_hash(pair[0]) == hashlib.sha256(b"text/train.en").hexdigest() and size_of(pair[0]) == len("text/train.en")
    with pytest.raises(DataError, match="does not exist; did you mean"):
        find([f"{place}/train.em"], ("en", "de"))
