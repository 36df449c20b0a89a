"""The loader: one list of batches for any world size and any workers, gone on with at the very sample."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from prepared_corpora import digest_of, fingerprint, global_batches, interleaved, make, stops_that_differ

from limelight.corpus.feeding import loader as loader_module
from limelight.corpus.feeding.batches import Batcher, BatchSettings, PairBatch, SamplingSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.loader_state import Position
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.errors import ConfigError, DataError, LimelightError

SETTINGS = BatchSettings(budget=180, window=160, longest=40)
SAMPLING = SETTINGS.changed(sampling=SamplingSettings(alpha=0.3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("loader") / "prepared")


@pytest.fixture(scope="module")
def prepared(folder: Path) -> PreparedCorpus:
    return PreparedCorpus.open(folder)


@pytest.mark.process
def test_any_world_size_and_workers_give_the_same_global_batches(folder: Path) -> None:
    sizes = ((1, 0), (1, 2), (2, 1), (4, 0))
    digests = {(w, n): digest_of(global_batches(folder, SETTINGS, w, n, 120)) for w, n in sizes}
    assert len(digests) == len(sizes)
    assert len(set(digests.values())) == 1
    assert digest_of(global_batches(folder, SETTINGS.changed(seed=2), 1, 0, 120)) not in digests.values()


def epoch_in_three_parts(prepared: PreparedCorpus) -> list[int]:
    """137 batches at world size 2, 20 at 1, the rest at 2: all samples of epoch 0 in the order in which they came."""
    state: dict[str, object] | None = None
    seen: list[int] = []
    for world, batches in ((2, 137), (1, 20), (2, None)):
        ranks = [Loader(prepared, SETTINGS, rank=rank, world=world, state=state) for rank in range(world)]
        for shares in itertools.islice(zip(*(rank.epoch(0) for rank in ranks), strict=True), batches):
            seen += interleaved([share.samples for share in shares])
        state = json.loads(json.dumps(shares[0].state))
        assert all(share.state == shares[0].state for share in shares)
    return seen


def test_resuming_at_other_world_sizes_repeats_and_loses_nothing(prepared: PreparedCorpus) -> None:
    straight = [int(sample) for batch in Loader(prepared, SETTINGS).epoch(0) for sample in batch.samples]
    assert len(list(Loader(prepared, SETTINGS).epoch(0))) > 137 + 20
    assert epoch_in_three_parts(prepared) == straight


@pytest.mark.parametrize("lost", ["window", "batch"])
def test_a_loader_that_forgets_a_part_of_its_place_is_caught(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch, lost: str) -> None:
    """The control of the tests above and below: what they compare does change when the place is lost."""
    honest = loader_module.position_in

    def forgetful(state: dict[str, object], identity: dict[str, object]) -> Position:
        return honest({**state, lost: 0}, identity)

    straight = [int(sample) for batch in Loader(prepared, SETTINGS).epoch(0) for sample in batch.samples]
    monkeypatch.setattr(loader_module, "position_in", forgetful)
    assert epoch_in_three_parts(prepared) != straight


@pytest.mark.process
@pytest.mark.parametrize("settings", [SETTINGS, SAMPLING], ids=["stored", "sampled"])
def test_a_new_process_goes_on_at_the_very_sample(folder: Path, settings: BatchSettings) -> None:
    """Random stops, and those around the ends of windows and of the epoch, with three weighted corpora and buckets."""
    batches = list(itertools.islice(Loader(PreparedCorpus.open(folder), settings), 230))
    edges = [i for i in range(1, 229) if batches[i].batch == 0]
    assert batches[-1].epoch >= 1
    stops = [*edges, *(edge + 1 for edge in edges), *random.Random(4).sample(range(1, 229), 20)]
    assert stops_that_differ(folder, settings, stops, last=230, per_process=len(stops)) == []


@pytest.mark.process
def test_a_process_that_ignores_the_state_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Loader, "state", {**Loader(PreparedCorpus.open(folder), SETTINGS).state})
    assert stops_that_differ(folder, SETTINGS, [3, 50], last=60, per_process=2) == [3, 50]


@pytest.mark.process
def test_workers_change_nothing_that_training_could_notice(prepared: PreparedCorpus) -> None:
    alone = [fingerprint(batch) for batch in itertools.islice(Loader(prepared, SAMPLING), 60)]
    with Loader(prepared, SAMPLING, workers=2) as loader:
        assert [fingerprint(batch) for batch in itertools.islice(loader, 60)] == alone


@pytest.mark.process
def test_the_state_is_that_of_the_last_batch_handed_out(prepared: PreparedCorpus) -> None:
    """However far the workers are ahead; and a loader closed in between goes on there."""
    alone = list(itertools.islice(Loader(prepared, SETTINGS), 50))
    with Loader(prepared, SETTINGS, workers=1) as loader:
        some = list(itertools.islice(loader, 20))
        time.sleep(0.2)
        assert loader.state == some[-1].state == alone[19].state
        loader.close()
        some += itertools.islice(loader, 30)
    assert [fingerprint(batch) for batch in some] == [fingerprint(batch) for batch in alone]
    assert [batch.state for batch in some] == [batch.state for batch in alone]


def test_a_worker_plans_the_next_window_while_this_one_is_used(prepared: PreparedCorpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """To change or sample the text of a window takes seconds, in which a single worker would else keep training waiting."""
    batcher = Batcher(prepared.split("train"), SETTINGS)
    planned: list[int] = []
    plan = batcher.window
    monkeypatch.setattr(batcher, "window", lambda epoch, number: (planned.append(number), plan(epoch, number))[1])
    ahead = loader_module.build_ahead(batcher, iter([Position(window=number) for number in range(3)]))
    assert next(ahead)[0].number == 0
    deadline = time.monotonic() + 60
    while len(planned) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert planned == [0, 1]
    ahead.close()


def test_the_state_is_small_json(prepared: PreparedCorpus) -> None:
    state = next(Loader(prepared, SETTINGS)).state
    assert json.loads(json.dumps(state)) == state
    assert len(json.dumps(state)) < 500


def test_epochs_follow_each_other_and_can_be_asked_for(prepared: PreparedCorpus) -> None:
    loader = Loader(prepared, SETTINGS)
    one = list(loader.epoch(1))
    assert {batch.epoch for batch in one} == {1}
    assert [batch.number for batch in one] == list(range(len(one)))
    endless = list(itertools.islice(Loader(prepared, SETTINGS), 400))
    assert [fingerprint(b) for b in endless if b.epoch == 1] == [fingerprint(b) for b in one]
    assert next(loader).epoch == 2


def test_what_was_skipped_is_counted_also_across_a_stop(prepared: PreparedCorpus, caplog: pytest.LogCaptureFixture) -> None:
    straight = list(Loader(prepared, SETTINGS).epoch(0))
    assert "pairs were longer than allowed and were skipped" in caplog.text
    total = caplog.records[0].args
    caplog.clear()
    list(Loader(prepared, SETTINGS, state=straight[80].state).epoch(0))
    assert caplog.records[0].args == total
    rows = Batcher(prepared.split("train"), SETTINGS).order(0).rows
    assert total == (0, rows - sum(batch.rows for batch in straight), rows)


def test_a_state_for_another_corpus_or_other_settings_is_refused_with_all_that_differs(prepared: PreparedCorpus, tmp_path: Path) -> None:
    state = next(Loader(prepared, SETTINGS)).state
    other = PreparedCorpus.open(make(tmp_path / "p", seed=2))
    with pytest.raises(ConfigError) as refused:
        Loader(other, SETTINGS.changed(budget=181, seed=9), state=state)
    keys = [problem.split()[0] for problem in refused.value.problems]
    assert keys == ["prepared", "budget", "seed"]
    assert "budget was 180, now 181" in str(refused.value)
    reweighted = PreparedCorpus.open(make(tmp_path / "q", weights=(1.0, 2.5, 0.0)))
    with pytest.raises(ConfigError, match="corpora was"):
        Loader(reweighted, SETTINGS, state=state)


@pytest.mark.parametrize("change", [{"batch": -1}, {"epoch": None}, {"window": "2"}, {"format": 2}, {"settings": None}])
def test_a_damaged_state_is_refused(prepared: PreparedCorpus, change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change)) if "settings" not in change else "budget"):
        Loader(prepared, SETTINGS, state={**Loader(prepared, SETTINGS).state, **change})


def test_nothing_to_load_is_an_error_not_an_endless_search(tmp_path: Path, prepared: PreparedCorpus) -> None:
    with pytest.raises(DataError, match="nothing to load"):
        Loader(PreparedCorpus.open(make(tmp_path / "p", weights=(0.0, 0.0, 1.0))), SETTINGS)
    with pytest.raises(DataError, match=r"none of the .* pairs fits"):
        next(Loader(prepared, SETTINGS.changed(budget=2)))
    with pytest.raises(ConfigError, match="rank=2"):
        Loader(prepared, SETTINGS, rank=2, world=2)


def test_an_epoch_without_rows_is_passed_over(tmp_path: Path) -> None:
    """One pair with weight a third is seen in every third epoch."""
    prepared = PreparedCorpus.open(make(tmp_path / "p", rows=[[1]], weights=[1 / 4], names=["one"]))
    assert [batch.epoch for batch in itertools.islice(Loader(prepared, SETTINGS), 3)] == [3, 7, 11]
    assert list(Loader(prepared, SETTINGS).epoch(0)) == []


@pytest.mark.process
def test_a_failure_in_a_worker_is_raised_here_with_its_text(tmp_path: Path) -> None:
    folder = make(tmp_path / "p")
    prepared = PreparedCorpus.open(folder)
    loader = Loader(prepared, SETTINGS, workers=1)
    (folder / "shards" / "train-00000.ids.arrow").write_bytes(b"nonsense")
    with pytest.raises(DataError, match=r"train-00000.ids.arrow cannot be read"):
        next(loader)


@pytest.mark.process
def test_a_killed_worker_is_an_error_and_not_a_hang(prepared: PreparedCorpus) -> None:
    with Loader(prepared, SETTINGS, workers=1) as loader:
        next(loader)
        assert loader._team is not None
        os.kill(loader._team.processes[0].pid or 0, signal.SIGKILL)
        with pytest.raises(LimelightError, match="loader worker 0 stopped with code -9"):
            list(itertools.islice(loader, 500))
        assert loader._team is None


PARENT = """
import itertools, signal, sys, time
from pathlib import Path
from limelight.corpus.feeding.batches import BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.shards import PreparedCorpus
loader = Loader(PreparedCorpus.open(Path(sys.argv[1])), BatchSettings(budget=300, window=400), workers=2)
list(itertools.islice(loader, 3))
print(*(process.pid for process in loader._team.processes), flush=True)
"""


@pytest.mark.process
@pytest.mark.parametrize("ending", ["killed", "returned", "terminated group"])
def test_no_worker_outlives_its_parent(folder: Path, ending: str) -> None:
    """`terminated group`: workers leave SIGTERM to the parent, which gets all the batches it still wants."""
    last = {
        "killed": "time.sleep(60)",
        "returned": "",
        "terminated group": "signal.signal(15, lambda *_: None); print(flush=True); signal.pause(); "
        "print(len(list(itertools.islice(loader, 300))))",
    }[ending]
    command = [sys.executable, "-c", PARENT + last, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        assert parent.stdout is not None
        workers = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(workers) == 2
        if ending == "killed":
            parent.kill()
        if ending == "terminated group":
            parent.stdout.readline()
            time.sleep(0.2)
            os.killpg(parent.pid, signal.SIGTERM)
            assert parent.stdout.readline() == "300\n"
        parent.wait(20)
    until = time.monotonic() + 10
    while any(map(alive, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(alive, workers))


def alive(pid: int) -> bool:
    """A zombie that nobody in this container collects has ended too."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_batch_is_a_value(prepared: PreparedCorpus) -> None:
    batch = next(Loader(prepared, SETTINGS))
    assert isinstance(batch, PairBatch)
    with pytest.raises(AttributeError):
        batch.number = 3  # type: ignore[misc]
    arrays = (batch.samples, batch.source, batch.target, batch.target_in)
    assert {array.dtype for array in arrays} == {np.dtype(np.int64)}
