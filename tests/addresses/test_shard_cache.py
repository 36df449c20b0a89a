"""Shards at an address are read through a cache: the same batches as from a disk, within its bound, verified, and fetched ahead."""

import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from obstore.store import MemoryStore

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from prepared_corpora import fingerprint, global_batches, make
from stores import Faulty

from limelight.addresses.folders import publish
from limelight.addresses.object_store import ObjectStore
from limelight.cli.train.request import parse_train_request
from limelight.corpus.feeding.augment import AugmentSettings
from limelight.corpus.feeding.batches import Batcher, BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shard_cache import BOUND, GIGABYTE, ShardCache
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.manifest import NAME, CorpusManifest
from limelight.corpus.remote import find_prepared, list_prepared, place_prepared
from limelight.errors import ConfigError, DataError, ModelFileError, StorageError
from limelight.training.recipe.text_stats import frequencies_in

ADDRESS, SHARDS = "s3://bucket/place", 12
GROUPED = BatchSettings(budget=400, window=40, shards_at_once=1)
CHANGING = GROUPED.changed(augment=AugmentSettings(protect=0, copied=0, terms=0, merged=0.5))


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make(tmp_path_factory.mktemp("cache") / "prepared", [[30, 5]] * SHARDS, (1.0, 2.5), ("law", "news"))
    corpora = [{"name": name, "paths": [f"{name}.en", f"{name}.de"]} for name in ("law", "news")]
    manifest = CorpusManifest.load(folder)
    manifest.changed(settings={"languages": ("en", "de"), "corpora": corpora}).save(folder)
    return folder


@pytest.fixture
def bucket(on_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """The corpus in memory, which is what any address leads to, and an empty cache."""
    made = MemoryStore()
    monkeypatch.setenv("LIMELIGHT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("limelight.addresses.object_store.open_bucket", lambda address, patience: made)
    publish(ObjectStore(ADDRESS), on_disk, list_prepared(on_disk))
    yield made


@pytest.fixture
def report(on_disk: Path) -> Iterator[None]:
    (on_disk / "report.html").write_bytes(b"what was dropped")
    yield
    (on_disk / "report.html").unlink()


@pytest.fixture
def placed(bucket: MemoryStore, tmp_path: Path) -> Path:
    place_prepared(ADDRESS, tmp_path / "run" / "prepared")
    return tmp_path / "run" / "prepared"


def shard_sizes(folder: Path, text: bool = False) -> list[int]:
    shards = CorpusManifest.load(folder).splits["train"]
    return sorted((shard.ids.bytes + text * shard.text.bytes for shard in shards), reverse=True)


def allow(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setenv(BOUND, repr(most / GIGABYTE))


class HeldBytes:
    """What the cache held, after each file that came, and how often each came."""

    def __init__(self, cache: ShardCache, monkeypatch: pytest.MonkeyPatch) -> None:
        self.most, self.fetched, fetch = 0, list[str](), ObjectStore.fetch

        def fetch_and_count(store: ObjectStore, name: str, path: Path, size: int, sha256: str) -> None:
            fetch(store, name, path, size, sha256)
            self.fetched.append(name)
            self.most = max(self.most, sum(each.stat().st_size for each in cache._place.iterdir()))

        monkeypatch.setattr(ObjectStore, "fetch", fetch_and_count)


def test_a_run_has_all_but_the_shards_of_training(report: None, placed: Path) -> None:
    assert sorted(path.name for path in placed.rglob("*") if path.is_file()) == ["address", NAME, "pieces.model", "report.html"]


@pytest.mark.process  # a lock is waited for
@pytest.mark.parametrize("settings", [GROUPED, CHANGING], ids=["pieces", "text"])
def test_batches_are_those_of_the_disk_and_the_cache_keeps_its_bound(
    on_disk: Path, placed: Path, settings: BatchSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = shard_sizes(placed, text=settings is CHANGING)
    allow(monkeypatch, bound := sum(sizes[:2]))
    prepared = PreparedCorpus.open(placed)
    assert prepared.cache is not None
    held, count = HeldBytes(prepared.cache, monkeypatch), 130
    expected = [fingerprint(batch) for batch in itertools.islice(Loader(PreparedCorpus.open(on_disk), settings), count)]
    found = list(itertools.islice(Loader(prepared, settings), count))
    assert [fingerprint(batch) for batch in found] == expected and found[-1].epoch >= 1
    assert 0 < held.most <= bound < sum(sizes) / 5
    assert len(set(held.fetched)) == SHARDS * (1 + (settings is CHANGING))
    after = itertools.islice(Loader(prepared, settings, state=found[40].state), 5)  # at any sample, with whatever the cache has
    assert [fingerprint(batch) for batch in after] == expected[41:46]


def test_the_next_group_is_there_before_it_is_asked_for(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = PreparedCorpus.open(placed)
    cache, batches = prepared.cache, Batcher(prepared.split("train"), GROUPED)
    assert cache is not None
    batches.window(0, 0)
    cache._ahead.join()
    first, second = (batches.pairs.shards[int(group[0])].ids.sha256 for group in batches.order(0).groups[:2])
    assert {path.name for path in cache._place.iterdir()} == {".lock", first, second}
    monkeypatch.setattr(ObjectStore, "fetch", None)  # nothing is left to fetch for it
    monkeypatch.setattr(cache, "_bring_ahead", lambda files: None)
    batches.window(0, 1)


@pytest.mark.process  # a lock is waited for
def test_without_groups_all_shards_are_fetched_and_must_fit(on_disk: Path, placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = GROUPED.changed(shards_at_once=0)
    expected = [fingerprint(batch) for batch in itertools.islice(Loader(PreparedCorpus.open(on_disk), whole), 10)]
    assert [fingerprint(batch) for batch in itertools.islice(Loader(PreparedCorpus.open(placed), whole), 10)] == expected
    sizes = shard_sizes(placed)
    allow(monkeypatch, sum(sizes) - 1)
    with pytest.raises(ConfigError, match=r"all shards: batch.shards_at_once is not set\), but .*; set LIMELIGHT_CACHE_GB=.*, or .*=5$"):
        Loader(PreparedCorpus.open(placed), whole)


@pytest.mark.parametrize(
    ("allowed", "fix"), [(5, "batch.shards_at_once=2"), (1, "prepare it in smaller shards: limelight prepare ... shard_megabytes=1")]
)
def test_a_bound_that_is_too_small_is_refused_with_what_would_do(
    placed: Path, allowed: int, fix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = shard_sizes(placed)
    allow(monkeypatch, sum(sizes[:allowed]))
    with pytest.raises(ConfigError, match=rf"reads {sum(sizes[:8]):,} bytes of it at a time \(2 groups of 4 shards\).*, or {fix}$"):
        Loader(PreparedCorpus.open(placed), GROUPED.changed(shards_at_once=4))


def test_workers_that_build_ahead_need_room_for_another_group(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow(monkeypatch, sum(shard_sizes(placed)[:2]))
    Loader(PreparedCorpus.open(placed), GROUPED)
    with pytest.raises(ConfigError, match="3 groups of 1 shards"):
        Loader(PreparedCorpus.open(placed), GROUPED.changed(window=400), workers=1)


@pytest.mark.parametrize("given", ["0", "-1", "nan", "10GB", "much"])
def test_a_bound_that_is_no_size_is_refused(placed: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BOUND, given)
    with pytest.raises(ConfigError, match=f"LIMELIGHT_CACHE_GB={given} is no size; give a number of gigabytes"):
        PreparedCorpus.open(placed)


def test_an_object_that_is_damaged_is_named_and_not_kept(placed: Path, bucket: MemoryStore) -> None:
    prepared = PreparedCorpus.open(placed)
    shard = prepared.manifest.splits["train"][3].ids
    content = bytes(bucket.get(shard.path).bytes())
    bucket.put(shard.path, content[:-1] + bytes([content[-1] ^ 1]))
    assert prepared.cache is not None
    with pytest.raises(ModelFileError, match=f"{shard.path} is not what its manifest says"):
        prepared.cache.find(shard)
    assert [path.name for path in prepared.cache._place.iterdir()] == [".lock"]


def test_a_cached_file_that_is_damaged_is_fetched_again_at_the_next_start(placed: Path) -> None:
    prepared = PreparedCorpus.open(placed)
    shard = prepared.manifest.splits["train"][3].ids
    assert prepared.cache is not None
    path, content = prepared.cache.find(shard), prepared.cache.find(shard).read_bytes()
    path.write_bytes(b"\0" * len(content))
    again = PreparedCorpus.open(placed)
    assert not path.exists() and again.cache is not None
    assert again.cache.find(shard).read_bytes() == content


def test_what_a_killed_process_left_makes_room(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = PreparedCorpus.open(placed)
    assert prepared.cache is not None
    left = prepared.cache._place / f".{'0' * 64}.12ab34cd.part"
    left.write_bytes(b"half of it")
    prepared.cache.find(prepared.manifest.splits["train"][0].ids)
    assert not left.exists()


def test_what_was_used_last_stays(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [shard.ids for shard in CorpusManifest.load(placed).splits["train"]]
    allow(monkeypatch, 3 * max(file.bytes for file in files))
    cache = ShardCache(ADDRESS)
    for number, file in enumerate(files[:3]):
        os.utime(cache.find(file), (number, number))
    cache.bring(files[:1])  # is used now
    cache.bring(files[3:4])
    assert {path.name for path in cache._place.iterdir()} == {".lock", *(files[at].sha256 for at in (0, 2, 3))}


def test_a_file_that_another_process_removes_in_between_is_fetched_again(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs, find, lost = PreparedCorpus.open(placed).split("train"), ShardCache.find, []

    def find_and_lose(cache: ShardCache, file: object) -> Path:
        path = find(cache, file)  # type: ignore[arg-type]
        if not lost:
            lost.append(path.unlink())
        return path

    monkeypatch.setattr(ShardCache, "find", find_and_lose)
    assert len(pairs._ids_of(0)[0].offsets) == 36 and lost


@pytest.mark.process  # a lock is waited for
def test_processes_that_want_the_same_fetch_it_once(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.files.time.sleep", lambda seconds: None)
    files, caches = [shard.ids for shard in CorpusManifest.load(placed).splits["train"]], [ShardCache(ADDRESS) for _ in range(3)]
    held = HeldBytes(caches[0], monkeypatch)
    threads = [threading.Thread(target=cache.bring, args=(files,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held.fetched) == sorted(file.path for file in files)


@pytest.mark.process  # a lock is waited for
def test_ranks_that_share_the_cache_get_their_shares_of_the_same_batches(
    on_disk: Path, placed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow(monkeypatch, sum(shard_sizes(placed)[:2]))
    held = HeldBytes(ShardCache(ADDRESS), monkeypatch)
    assert global_batches(placed, GROUPED, world=3, workers=0, batches=40) == global_batches(on_disk, GROUPED, 1, 0, 40)
    assert len(held.fetched) < 2 * SHARDS  # not once for each of them


def test_a_storage_that_is_away_is_told_when_the_shard_is_needed(
    placed: Path, bucket: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = Faulty(bucket, arrives=False)
    monkeypatch.setattr("limelight.addresses.object_store.open_bucket", lambda address, patience: away)
    prepared = PreparedCorpus.open(placed)
    batches = Batcher(prepared.split("train"), GROUPED)
    assert prepared.cache is not None
    batches.window(0, 0)
    prepared.cache._ahead.join()
    away.lost = 1000
    last = batches.windows(0) - 1
    with pytest.raises(StorageError, match=r"s3://bucket/place/shards/train-.* cannot be reached"):
        batches.window(0, last)
    away.lost = 0
    batches.window(0, last)


def test_a_report_fetches_nothing(placed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no validation set here, which is told as nothing; and no object is asked for."""
    monkeypatch.setattr(ObjectStore, "fetch", None)
    assert frequencies_in(placed) is None


def test_a_manifest_without_real_hashes_is_refused(bucket: MemoryStore, on_disk: Path, tmp_path: Path) -> None:
    manifest = json.loads((on_disk / NAME).read_bytes())
    manifest["splits"]["train"][0]["ids"]["sha256"] = "../../../outside"
    bucket.put(NAME, json.dumps(manifest).encode())
    with pytest.raises(DataError, match=r"manifest.json is damaged"):
        place_prepared(ADDRESS, tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()


def test_a_prepared_folder_is_taken_with_all_its_files(on_disk: Path, tmp_path: Path) -> None:
    place_prepared(str(on_disk), tmp_path / "prepared")
    PreparedCorpus.open(tmp_path / "prepared")
    shard = "shards/train-00000.ids.arrow"
    assert (tmp_path / "prepared" / shard).samefile(on_disk / shard)


def test_train_takes_prepared_text_in_place_of_corpora(bucket: MemoryStore, on_disk: Path) -> None:
    for place in (ADDRESS, str(on_disk)):
        asked, folder = parse_train_request([place, "batch.shards_at_once=2"], text={})
        assert (asked.prepared, str(folder)) == (place, "en-de")
        assert asked.data is not None and asked.data.languages == ("en", "de") and asked.changes["batch"] == {"shards_at_once": 2}
        assert asked.fingerprint()["prepared"] == place
    with pytest.raises(ConfigError) as refused:
        parse_train_request(
            [ADDRESS, "data.seed=3"], text={"source": "de", "valid": ("a.en", "a.de")}, bundle=Path("old-run"), preset="tiny"
        )
    assert [problem.split(":")[0] for problem in refused.value.problems] == ["--source", "--valid", "--from", "data.seed=3"]


@pytest.mark.process
def test_a_process_that_ends_waits_for_one_file_at_most(placed: Path) -> None:
    """And not for a group; nor is it torn out of the library that fetches, which a daemon would be."""
    program = f"""if True:
        import sys, time
        from pathlib import Path
        from limelight.addresses.object_store import ObjectStore
        from limelight.corpus.feeding.shard_cache import ShardCache
        from limelight.corpus.manifest import CorpusManifest
        def fetch(store, name, path, size, sha256):
            print(name, flush=True)
            time.sleep(0.5)
            path.write_bytes(b"")
        ObjectStore.fetch = fetch
        files = [shard.ids for shard in CorpusManifest.load(Path({str(placed)!r})).splits["train"]]
        ShardCache("s3://bucket/other").follow([], files)
        """
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True)
    assert len(done.stdout.split()) in (0, 1, 2)


def test_what_is_no_prepared_text_is_none(bucket: MemoryStore, tmp_path: Path) -> None:
    assert find_prepared(str(tmp_path)) is None and find_prepared("s3://bucket/*.tsv") is None
    bucket.delete([NAME])
    assert find_prepared(ADDRESS) is None
    bucket.put(NAME, b'{"format": 7}')
    with pytest.raises(DataError, match=r"s3://bucket/place/manifest.json has format 7"):
        find_prepared(ADDRESS)
