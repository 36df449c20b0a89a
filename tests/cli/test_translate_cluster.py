"""`limelight translate --cluster ray` writes what one process writes, keeps what is done, and counts what is lost. Here a stand-in of Ray
runs the tasks in this process and gives the last one back first; tests/cli/test_cluster_nodes.py has real nodes."""

import json
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_translate_command import BUNDLE, Done, number_lines, run

from limelight.files import try_lock

pytestmark = [pytest.mark.slow, pytest.mark.process]  # Ray is imported, and asks for a socket

LINES = [*number_lines(9), "", "one two three " * 40, "x", *number_lines(9, 2)]  # empty, and more than the model takes at once
TEXT = "".join(f"{line}\n" for line in LINES).encode()


class StandInRay:
    """A task is run when its result is asked for, in another order than it was sent. `lose` says which tries end with a lost process."""

    def __init__(self, cores: int = 2) -> None:
        import ray.exceptions

        self.exceptions, self.util = ray.exceptions, SimpleNamespace(get_node_ip_address=lambda: "10.0.0.3")
        self.cores, self.sent, self.open, self.most_open = cores, list[int](), list[Any](), 0
        self.lose: Callable[[int, int], bool] = lambda first, nth: False

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": float(self.cores)}}, {"Alive": False, "Resources": {"CPU": 64.0}}]

    def remote(self, function: Callable[..., bytes]) -> Any:
        def send(*given: Any) -> object:
            self.sent.append(given[1].first)
            task = SimpleNamespace(run=lambda: function(*pickle.loads(pickle.dumps(given[:3])), given[3]), first=given[1].first)
            self.open.append(key := Task(task, self.sent.count(task.first)))
            self.most_open = max(self.most_open, len(self.open))
            return key

        return SimpleNamespace(options=lambda **wanted: SimpleNamespace(remote=send, **wanted))

    def wait(self, tasks: list["Task"]) -> tuple[list["Task"], list["Task"]]:
        return tasks[-1:], tasks[:-1]

    def get(self, task: "Task") -> bytes:
        self.open.remove(task)
        if self.lose(task.work.first, task.nth):
            raise self.exceptions.WorkerCrashedError()
        return bytes(task.work.run())


class Task:
    def __init__(self, work: Any, nth: int) -> None:
        self.work, self.nth = work, nth


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInRay]:
    with pytest.MonkeyPatch.context() as patch:
        import limelight.cli.translate.cluster as cluster

        stand_in = StandInRay()
        patch.setattr(cluster, "ray", stand_in)
        patch.setattr(cluster, "LINES", 2)
        patch.setattr(cluster, "join_cluster", lambda: None)
        patch.setattr(cluster, "count_beats", mock.MagicMock)
        patch.setattr(cluster, "end_if_lost", lambda rows, *_: rows)
        cluster.open_engine.cache_clear()
        yield stand_in


def on_cluster(place: Path, *more: object, text: bytes = TEXT, bundle: Path = BUNDLE) -> Done:
    return run(text, "-o", place, "--cluster", "ray", "--threads", 1, *more, bundle=bundle)


def told(done: Done) -> list[bytes]:
    return [line for line in done.stderr.split(b"\n") if line.startswith(b"warning")]


@pytest.mark.parametrize("more", [(), ("--nbest", 2, "--scores")], ids=["lines", "nbest"])
def test_the_lines_and_warnings_are_those_of_one_process(ray: StandInRay, tmp_path: Path, more: tuple[object, ...]) -> None:
    one = run(TEXT, "-o", tmp_path / "one", "--threads", 1, *more)
    done = on_cluster(tmp_path / "many", *more)
    assert (one.code, done.code) == (0, 0)
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes() != b""
    assert told(done) == told(one) != [] and b"21 lines" in done.stderr
    assert not (tmp_path / "many.shards").exists()
    assert len(ray.sent) == 11 and ray.most_open == 4, "two for each core, however long the text"


def test_objects_are_those_of_one_process_but_for_the_last_bits_of_numbers(ray: StandInRay, tmp_path: Path) -> None:
    """Which depend on what else is in a batch, in one process too."""
    assert run(TEXT, "-o", tmp_path / "one", "--threads", 1, "--jsonl").code == on_cluster(tmp_path / "many", "--jsonl").code == 0
    one, many = ([json.loads(line) for line in (tmp_path / name).read_bytes().split(b"\n")[:-1]] for name in ("one", "many"))
    assert [each["text"] for each in many] == [each["text"] for each in one]
    assert [each["score"] for each in many] == pytest.approx([each["score"] for each in one], abs=1e-5)


def test_what_is_lost_is_sent_again(ray: StandInRay, tmp_path: Path) -> None:
    ray.lose = lambda first, nth: first in (3, 9) and nth <= 3
    assert on_cluster(tmp_path / "many").code == 0
    assert ray.sent.count(3) == ray.sent.count(9) == 4 and len(ray.sent) == 11 + 6
    assert (tmp_path / "many").read_bytes() == run(TEXT, "--threads", 1).stdout


def test_a_shard_that_ends_every_process_is_an_error_and_the_same_command_goes_on(ray: StandInRay, tmp_path: Path) -> None:
    ray.lose = lambda first, nth: first == 21
    done = on_cluster(tmp_path / "many")
    assert done.code == 70 and b"lines 21 to 21 were sent 4 times" in done.stderr and b"WorkerCrashedError" in done.stderr
    assert not (tmp_path / "many").exists()
    kept = len(list((tmp_path / "many.shards").glob("0*")))
    ray.lose, ray.sent = lambda first, nth: False, []
    done = on_cluster(tmp_path / "many")
    assert done.code == 0 and len(ray.sent) == 11 - kept < 11 and f"{kept} of 11 shards were there already".encode() in done.stderr
    assert (tmp_path / "many").read_bytes() == run(TEXT, "--threads", 1).stdout


CHANGES = [("nothing", 0), ("--yes", 0), ("a line", 1), ("an option", 11), ("a damaged shard", 1)]


@pytest.mark.parametrize(("change", "sent"), CHANGES)
def test_only_what_would_be_otherwise_is_made_again(
    ray: StandInRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, sent: int
) -> None:
    import limelight.cli.translate.cluster as cluster

    with monkeypatch.context() as patch:  # ended when all shards are there, before they go
        patch.setattr(cluster, "drop_shards", lambda folder: None)
        assert on_cluster(tmp_path / "many").code == 0
    ray.sent = []
    if change == "a damaged shard":
        (tmp_path / "many.shards" / "0000004").write_bytes(b'{"digest')
    text = TEXT.replace(b"\nx\n", b"\nnine\n") if change == "a line" else TEXT
    more = {"an option": ("--beam", 1), "--yes": ("--yes",)}.get(change, ())
    assert on_cluster(tmp_path / "many", *more, text=text).code == 0
    assert len(ray.sent) == sent and not (tmp_path / "many.shards").exists()
    assert (tmp_path / "many").read_bytes() == run(text, "--threads", 1, *more).stdout


def test_a_line_that_is_no_text_is_the_error_of_one_process(ray: StandInRay, tmp_path: Path) -> None:
    text = TEXT + b"\xff\n"
    one, done = run(text, "-o", tmp_path / "one", "-q"), on_cluster(tmp_path / "many", "-q", text=text)
    assert one.code == done.code == 65 and one.stderr.split(b"\n")[-2:] == done.stderr.split(b"\n")[-2:]
    assert not (tmp_path / "many").exists()


def test_no_lines_are_an_empty_file(ray: StandInRay, tmp_path: Path) -> None:
    assert on_cluster(tmp_path / "many", text=b"").code == 0
    assert (tmp_path / "many").read_bytes() == b"" and not ray.sent


def test_what_cannot_be_is_refused_before_anything_is_sent(ray: StandInRay, tmp_path: Path) -> None:
    assert b"--cluster needs --output FILE" in run(TEXT, "--cluster", "ray").stderr
    assert b"--cluster needs --output FILE" in on_cluster(Path("/dev/null")).stderr
    assert b"--cluster needs --output FILE" in on_cluster(Path("-")).stderr
    assert b"leave out the number" in on_cluster(tmp_path / "many", "--device", "cuda:1").stderr
    assert on_cluster(tmp_path / "many", "--to", "fr").code == 2
    ray.cores = 1
    done = run(TEXT, "-o", tmp_path / "many", "--cluster", "ray", "--threads", 2)
    assert done.code == 2 and b"no node of the cluster has 2 CPU" in done.stderr
    assert not ray.sent and not (tmp_path / "many").exists()


def test_a_folder_with_files_of_a_person_is_left_alone(ray: StandInRay, tmp_path: Path) -> None:
    (tmp_path / "many.shards").mkdir()
    (tmp_path / "many.shards" / "thesis.txt").write_bytes(b"mine")
    done = on_cluster(tmp_path / "many")
    assert done.code == 2 and b"thesis.txt" in done.stderr and not ray.sent
    assert [path.name for path in (tmp_path / "many.shards").iterdir()] == ["thesis.txt"]


def test_shards_go_while_the_folder_is_locked_and_the_output_is_there(
    ray: StandInRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import limelight.cli.translate.cluster as cluster

    def look(folder: Path) -> None:
        with (folder / ".lock").open("ab") as file:
            seen.append((try_lock(file), (tmp_path / "many").is_file()))

    seen = list[tuple[bool, bool]]()
    monkeypatch.setattr(cluster, "drop_shards", look)
    assert on_cluster(tmp_path / "many").code == 0 and seen == [(False, True)]


def test_another_export_is_another_address_unless_torch_translates(tmp_path: Path) -> None:
    from limelight.cli.translate.cluster import find_address

    (tmp_path / "ctranslate2").mkdir()
    whole = SimpleNamespace(folder=tmp_path)
    with mock.patch("limelight.cli.translate.cluster.read", lambda *_, **__: whole):
        found = dict[str | None, list[str]]()
        for content in (b"float32", b"int8"):
            (tmp_path / "ctranslate2" / "model.bin").write_bytes(content)
            for engine in (None, "torch"):
                asked = {"bundle": tmp_path, "glossary": None, "engine": engine}
                found.setdefault(engine, []).append(find_address(asked))
    assert len(set(found[None])) == 2 and len(set(found["torch"])) == 1


def test_a_slow_pipe_is_no_lost_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    import limelight.cluster as cluster
    from limelight.errors import LimelightError

    lost = [{"NodeID": "a", "NodeManagerAddress": "10.0.0.3", "Alive": False}]
    nodes = mock.Mock(side_effect=lambda: lost if nodes.call_count > 1 else [])
    monkeypatch.setattr(cluster, "ray", SimpleNamespace(nodes=nodes, get=lambda _: 0, available_resources=dict, cluster_resources=dict))
    monkeypatch.setattr(cluster, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(cluster, "LOST_SECONDS", 0.05)

    def come_late() -> Iterator[int]:
        time.sleep(0.5)
        yield 1

    assert list(cluster.end_if_lost(come_late(), mock.MagicMock(), lambda: False)) == [1]
    nodes.reset_mock()
    with pytest.raises(LimelightError, match=r"lost 10\.0\.0\.3"):
        list(cluster.end_if_lost(come_late(), mock.MagicMock()))


def test_a_node_with_another_bundle_is_named(ray: StandInRay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import limelight.cli.translate.cluster as cluster

    addresses = iter(["here", "there"])
    monkeypatch.setattr(cluster, "find_address", lambda asked: next(addresses))
    done = on_cluster(tmp_path / "many")
    assert done.code == 66 and b"on the node 10.0.0.3 is not what it is here" in done.stderr


def test_errors_travel_between_processes_as_they_are() -> None:
    from limelight.errors import ConfigError, MissingExtraError
    from limelight.translator.translation import InvalidScoresError

    for error in (ConfigError("what", ["a", "b"]), MissingExtraError("ray", "--cluster ray", "cluster"), InvalidScoresError([3, 4])):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
