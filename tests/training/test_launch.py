"""Ranks on one machine: started, started again when one dies, and never left behind. Real processes, small ones."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch
from launched_workers import CODES, Starting, everywhere, gone_within

from limelight.cli.train import launch
from limelight.errors import ConfigError
from limelight.runtime import choose_threads
from limelight.training.processes.supervisor import find_last_step, find_saved_step
from limelight.training.processes.world import World
from limelight.training.run_folder import read_status

pytestmark = pytest.mark.process


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starting]:
    with closing(Starting(tmp_path)) as starting:
        yield starting


class TestStart:
    def test_ranks_know_what_torchrun_would_tell_them(self, start: Starting, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        made = start({}, size=3)
        assert made.finish() == 0
        seen = [made.words(0, rank)[0]["variables"] for rank in range(3)]
        for rank, variables in enumerate(seen):
            assert (variables["RANK"], variables["LOCAL_RANK"]) == (str(rank), str(rank))
            assert (variables["WORLD_SIZE"], variables["LOCAL_WORLD_SIZE"]) == ("3", "3")
            assert (variables["MASTER_ADDR"], variables["GLOO_SOCKET_IFNAME"]) == ("127.0.0.1", "lo")
            assert variables["TORCHELASTIC_USE_AGENT_STORE"] == "True"
            assert int(variables["OMP_NUM_THREADS"]) == max(1, len(os.sched_getaffinity(0)) // 3)
        assert len({variables["MASTER_PORT"] for variables in seen}) == 1

    def test_only_the_main_rank_speaks(self, start: Starting) -> None:
        made = start({}, size=3)
        assert made.finish() == 0
        assert made.err == b"rank 0 prints\n"
        assert made.told == []

    def test_what_the_ranks_started_ends_with_them(self, start: Starting) -> None:
        made = start({})
        assert made.finish() == 0
        assert len(made.numbers) == 4
        assert gone_within(10, made.numbers)

    def test_cores_are_shared_by_the_ranks_of_a_machine(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = torch.get_num_threads()
        monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(8)))
        monkeypatch.setattr("limelight.runtime.read_core_limit", lambda: None)
        told = {}
        for size in ("1", "3", "20"):
            monkeypatch.setenv("LOCAL_WORLD_SIZE", size)
            told[size] = str(choose_threads())
            assert choose_threads(5).value == 5
        torch.set_num_threads(before)
        assert told["1"] == "8 (one for each core this process may use)"
        assert told["3"] == "2 (8 cores for 3 processes)"
        assert told["20"] == "1 (8 cores for 20 processes)"


class TestDeath:
    @pytest.mark.parametrize("name", [name for name in CODES if name not in ("internal", "fault")])
    def test_what_would_happen_again_ends_the_run_at_once(self, start: Starting, name: str) -> None:
        made = start({name: [(0, 1)], "waits": [(0, 0)]})
        assert made.finish() == CODES[name]
        assert made.words(1, 0) == []
        assert "rank 1: error: rank 1 has a reason" in made.told
        assert gone_within(10, made.numbers)

    def test_a_reason_that_the_main_rank_gave_is_not_given_twice(self, start: Starting) -> None:
        made = start({"data": everywhere()}, settle=20.0)
        assert made.finish() == 65
        assert made.told == [] and b"rank 0 has a reason" in made.err

    def test_a_rank_that_is_killed_is_named_and_the_run_goes_on(self, start: Starting) -> None:
        made = start({"killed": [(0, 1)], "waits": [(0, 0), (0, 2)]}, size=3)
        assert made.finish() == 0
        [line] = [line for line in made.told if not line.startswith("rank 1: ")]
        assert line == ("rank 1 was ended by SIGKILL after step 5; all ranks are started again and go on from step 4 (restart 1 of 3)")
        ports = [made.words(attempt, 0)[0]["variables"]["MASTER_PORT"] for attempt in (0, 1)]
        assert made.words(2, 0) == [] and ports[0] != ports[1]
        assert gone_within(10, made.numbers)

    def test_the_last_words_of_a_rank_are_shown(self, start: Starting) -> None:
        made = start({"fault": [(0, 1)], "waits": [(0, 0)]})
        assert made.finish() == 0
        assert made.told[:2] == ["rank 1: rank 1 prints", "rank 1: error: rank 1 has a reason"]
        assert made.told[2].startswith("rank 1 ended with code 1 after step 5; ")

    def test_a_rank_that_is_stopped_is_named_and_not_waited_for(self, start: Starting) -> None:
        """Others notice that it is silent, and give up; SIGTERM would reach it only when it is continued."""
        began = time.monotonic()
        made = start({"stopped": [(0, 1)], "internal": [(0, 0)]}, shutdown=100.0, settle=100.0)
        assert made.finish() == 0
        assert time.monotonic() - began < 60
        assert made.told[-1].startswith("rank 1 was stopped and did not answer, rank 0 ended with code 70 after step 5; ")
        assert gone_within(10, made.numbers)

    def test_a_rank_that_does_not_hear_sigterm_is_killed(self, start: Starting) -> None:
        made = start({"killed": [(0, 1)], "deaf": [(0, 0)]})
        assert made.finish() == 0
        assert made.words(0, 0)[-1] == f"heard {int(signal.SIGTERM)}"
        assert gone_within(10, made.numbers)

    def test_a_run_that_gets_nowhere_ends_after_so_many_restarts(self, start: Starting) -> None:
        made = start({"killed": everywhere(attempts=9)}, restarts=2, saves=False)
        assert made.finish() == 70
        assert [bool(made.words(attempt, 0)) for attempt in range(4)] == [True, True, True, False]
        assert "(restart 1 of 2)" in made.told[-3] and "(restart 2 of 2)" in made.told[-2]
        assert made.told[-1].endswith("it was started again 2 times since then; with the same command they go on from step 4")
        assert read_status(made.run) == {"state": "failed", "step": 4, "steps": 99}

    def test_restarts_are_counted_anew_when_there_is_a_new_checkpoint(self, start: Starting) -> None:
        made = start(
            {"killed": [(attempt, 1) for attempt in range(4)], "waits": [(attempt, 0) for attempt in range(4)]},
            restarts=1,
        )
        assert made.finish() == 0
        assert [line[-16:] for line in made.told if "restart" in line] == ["(restart 1 of 1)"] * 4

    def test_without_restarts_the_first_death_is_the_end(self, start: Starting) -> None:
        made = start({"killed": [(0, 1)], "waits": [(0, 0)]}, restarts=0)
        assert made.finish() == 70
        assert made.told[-1] == "rank 1 was ended by SIGKILL after step 5; with the same command they go on from step 4"

    def test_a_run_that_diverged_is_not_tried_again(self, start: Starting) -> None:
        made = start({"diverged": everywhere()})
        assert made.finish() == 70
        assert made.words(1, 0) == []
        assert read_status(made.run)["state"] == "diverged"

    def test_the_run_is_done_when_the_main_rank_is(self, start: Starting) -> None:
        made = start({"waits": [(0, 1)]})
        assert made.finish() == 0
        assert gone_within(10, made.numbers)


class TestRefusals:
    def test_a_launcher_within_a_launcher_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("WORLD_SIZE", "4")
        with pytest.raises(ConfigError, match="leave out --nproc under torchrun"):
            launch.refuse_second_launcher(2)

    def test_more_processes_than_gpus_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
        with pytest.raises(ConfigError, match=r"more than the 2 GPUs of this machine.*--nproc 2, or --device cpu"):
            launch.refuse_more_than_gpus(3, None)
        launch.refuse_more_than_gpus(2, None)
        launch.refuse_more_than_gpus(3, "cpu")
        with pytest.raises(ConfigError, match="every process on one GPU; give --device cuda"):
            launch.refuse_more_than_gpus(2, "cuda:1")

    def test_a_process_takes_its_gpu_among_those_that_it_sees(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for seen, taken in ((4, 3), (1, 0)):  # a scheduler may show each its own alone
            monkeypatch.setattr("torch.cuda.device_count", lambda seen=seen: seen)
            assert World(3, 8, 3, 4).device("cuda") == torch.device("cuda", taken)
        assert World(3, 8, 3, 4).device("cpu") == torch.device("cpu")


def test_steps_are_read_from_whatever_is_there(tmp_path: Path) -> None:
    assert (find_saved_step(tmp_path), find_last_step(tmp_path)) == (0, 0)
    for name in ("step-0000005", "step-12000000", ".step-0000099.part", "other"):
        (tmp_path / "checkpoints" / name).mkdir(parents=True)
    (tmp_path / "metrics.jsonl").write_bytes(b'{"step": 6}\n{"step": 7}\n{"no": 1}\n{"st')
    assert (find_saved_step(tmp_path), find_last_step(tmp_path)) == (12_000_000, 7)
