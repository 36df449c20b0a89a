"""A supervisor and its ranks: each hears of a signal once, they end together, and nobody else can join them."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import torch.distributed as dist
from launched_workers import Starting, everywhere, gone_within

from limelight.training.processes.stop_signals import Stop, Stopped
from limelight.training.run_folder import read_status

pytestmark = pytest.mark.process


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starting]:
    with closing(Starting(tmp_path)) as starting:
        yield starting


class TestSignals:
    @pytest.mark.parametrize(("number", "code", "state"), [
        (signal.SIGTERM, 75, "preempted"), (signal.SIGHUP, 75, "preempted"), (signal.SIGINT, 130, "interrupted"),
    ])  # fmt: skip
    def test_each_rank_hears_of_it_once(self, start: Starting, number: int, code: int, state: str) -> None:
        made = start({"waits": everywhere()})
        made.wait_for(0, 0, 1)
        made.process.send_signal(number)
        assert made.finish() == code
        assert [made.words(0, rank)[2:] for rank in (0, 1)] == [[f"heard {int(number)}"]] * 2
        assert made.words(1, 0) == [] and made.told == []
        assert read_status(made.run) == {"state": state, "step": 4, "steps": 99}

    def test_the_second_is_passed_on_too(self, start: Starting) -> None:
        made = start({"slow": everywhere()})
        made.wait_for(0, 0, 1)
        for count in (1, 2):
            made.process.send_signal(signal.SIGTERM)
            if count == 1:
                made.wait_for(0, 0, 1, word=f"heard {int(signal.SIGTERM)}")
        assert made.finish() == 75
        assert [len(made.words(0, rank)) for rank in (0, 1)] == [4, 4]

    def test_ranks_that_do_not_hear_are_ended_soon_after_the_second(self, start: Starting) -> None:
        made = start({"deaf": everywhere()})
        made.wait_for(0, 0, 1)
        made.process.send_signal(signal.SIGTERM)
        made.wait_for(0, 0, 1, word=f"heard {int(signal.SIGTERM)}")
        made.process.send_signal(signal.SIGTERM)
        assert made.finish() == 75
        assert gone_within(10, made.numbers)

    def test_ranks_that_do_not_listen_yet_are_preempted_all_the_same(self, start: Starting) -> None:
        made = start({"starting": everywhere()})
        made.wait_for(0, 0, 1)
        made.process.send_signal(signal.SIGTERM)
        assert made.finish() == 75
        assert read_status(made.run)["state"] == "preempted"

    def test_a_signal_while_a_dead_rank_is_mourned_stops_the_run(self, start: Starting) -> None:
        made = start({"killed": [(0, 1)], "deaf": [(0, 0)]}, shutdown=100.0)
        made.wait_for(0, 0, word=f"heard {int(signal.SIGTERM)}")
        made.process.send_signal(signal.SIGINT)
        assert made.finish() == 130
        assert made.words(1, 0) == []

    def test_a_rank_that_was_preempted_by_itself_ends_the_run_so(self, start: Starting) -> None:
        made = start({"waits": everywhere()})
        made.wait_for(0, 0, 1)
        for rank in (1, 0):
            os.kill(made.words(0, rank)[0]["processes"][0], signal.SIGTERM)
        assert made.finish() == 75
        assert made.words(1, 0) == []

    def test_ctrl_c_on_a_terminal_is_heard_once(self, start: Starting) -> None:
        """A terminal sends it to all of its foreground processes. The second would mean: at once, without saving."""
        keyboard, terminal = pty.openpty()
        made = start({"waits": everywhere()}, terminal=os.ttyname(terminal))
        made.wait_for(0, 0, 1)
        os.write(keyboard, b"\x03")
        assert made.finish() == 130
        assert [made.words(0, rank)[2:] for rank in (0, 1)] == [[f"heard {int(signal.SIGINT)}"]] * 2
        os.close(keyboard)
        os.close(terminal)

    @pytest.mark.parametrize(("size", "endings"), [("1", ["Stopped"]), ("2", ["went on", "Stopped"])])
    def test_one_of_several_takes_two_signals_at_once_for_one(self, size: str, endings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        """Of a scheduler, and of a launcher that heard the same. A process by itself is told twice only by someone who means it."""
        monkeypatch.setenv("WORLD_SIZE", size)
        seen = []
        with Stop().listening() as stop, stop.waiting_for_step():
            for pause in (0.0, stop.echo + 0.1):
                time.sleep(pause)
                try:
                    os.kill(os.getpid(), signal.SIGTERM)
                    os.kill(os.getpid(), signal.SIGTERM)
                    seen.append("went on")
                except Stopped:
                    seen.append("Stopped")
                    break
        assert seen == endings and stop.asked == "preempted"

    @pytest.mark.parametrize("behaviour", ["waits", "alone"])
    def test_ranks_end_with_a_supervisor_that_is_killed(self, start: Starting, behaviour: str) -> None:
        made = start({behaviour: everywhere()})
        made.wait_for(0, 0, 1)
        ranks = {made.words(0, rank)[0]["processes"][0] for rank in (0, 1)}
        made.process.kill()
        # The control: a rank that does not ask for it goes on for ever.
        assert gone_within(20 if behaviour == "waits" else 0.5, ranks) == (behaviour == "waits")
        for word in (made.words(0, rank)[0] for rank in (0, 1)):
            os.kill(word["processes"][1], signal.SIGKILL)  # the child, which is the business of its rank


LISTENING = """
import pathlib, sys
from limelight.training.processes.supervisor import supervise
from limelight.training.processes.world import host_store
sys.exit(supervise([sys.executable, "-c", sys.argv[1], sys.argv[2]], 2, pathlib.Path(sys.argv[2]), host_store, print, 0))
"""
TALKING = """
import os, pathlib, subprocess, sys, torch
import torch.distributed as dist
dist.init_process_group("gloo")
total = torch.ones(1)
dist.all_reduce(total)
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_bytes(str(total.item()).encode())
if dist.get_rank() == 0:
    pathlib.Path(sys.argv[1], "listeners").write_bytes(subprocess.run(["ss", "-Hltnp"], capture_output=True).stdout)
dist.barrier()  # so that all of them listen while the first one looks
"""


@pytest.mark.skipif(shutil.which("ss") is None, reason="ss tells who listens (package iproute2)")
class TestPort:
    def test_nobody_outside_of_this_machine_can_connect(self, tmp_path: Path) -> None:
        """Ranks that talk to each other."""
        with subprocess.Popen([sys.executable, "-c", LISTENING, TALKING, tmp_path]) as process:
            assert process.wait(120) == 0
        assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() == b"2.0"
        found = addresses((tmp_path / "listeners").read_bytes(), process.pid)
        assert found and all(address.startswith("127.0.0.1:") for address in found), found

    def test_with_a_store_as_torch_opens_it_anybody_could(self) -> None:
        """The control."""
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        listing = subprocess.run(["ss", "-Hltnp"], capture_output=True, check=True).stdout
        found = [address for address in addresses(listing, os.getpid()) if address.endswith(f":{store.port}")]
        assert found and all(address.startswith(("*:", "0.0.0.0:", "[::]:")) for address in found), found


def addresses(listing: bytes, process: int) -> list[str]:
    """Those at which a process listens, as ss tells."""
    lines = listing.decode().split("\n")
    return [line.split()[3] for line in lines if f"pid={process}," in line]
