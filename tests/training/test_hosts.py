"""Several hosts for real: network namespaces with addresses of their own, of which one is cut off or dies while a run trains on them."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from small_runs import Small, make_corpus, recipe

import hosts
from hosts_torchrun import RENDEZVOUS, Job, compared

REASON = hosts.available()
pytestmark = [pytest.mark.process, pytest.mark.skipif(REASON is not None, reason=str(REASON))]

STEPS = 60
CHANGES = {
    "model": {"dropout": 0.0},  # whose noise depends on the size of the world
    "schedule": {"steps": STEPS, "warmup": 10},
    "validation": {"every": STEPS},
    "checkpoints": {"every_seconds": 1.0},
    "probes": {"sentences": 0},
}
LISTEN = """
import socket
server = socket.create_server(("", 5000))
print("up", flush=True)
while True:
    server.accept()[0].close()
"""
CALL = """
import socket
try:
    socket.create_connection(("host0", 5000), timeout=0.5).close()
    print(socket.gethostname(), "heard")
except OSError as error:
    print(type(error).__name__)
"""
LEAVE = """
import hosts, os, signal
made = hosts.hosts(2)
lan = made.__enter__()
lan.run(1, ["sleep", "1000"])
os.kill(os.getpid(), signal.SIGKILL)
"""


def call(lan: hosts.Lan, host: int) -> str:
    process = lan.run(host, [sys.executable, "-c", CALL], stdout=subprocess.PIPE)
    return process.communicate(timeout=30)[0].decode().strip()


def test_a_host_that_is_cut_off_hears_nobody_until_it_is_mended_and_one_that_is_killed_refuses() -> None:
    with hosts.hosts(3) as lan:
        listener = lan.run(0, [sys.executable, "-c", LISTEN], stdout=subprocess.PIPE)
        assert listener.stdout is not None
        with listener.stdout:
            assert listener.stdout.readline() == b"up\n"
        told = [call(lan, 1)]
        lan.cut(1)
        told += [call(lan, 1), call(lan, 2)]
        lan.mend(1)
        told += [call(lan, 1)]
        assert lan.kill(0) == 1 and listener.wait(10) == -9
        told += [call(lan, 1)]
    assert told == ["host1 heard", "TimeoutError", "host2 heard", "host1 heard", "ConnectionRefusedError"]


def test_nothing_is_left_of_hosts_also_when_the_process_that_made_them_was_killed() -> None:
    with hosts.hosts(1) as lan:
        [name] = lan.names
        asleep = lan.run(0, ["sleep", "1000"])
    assert asleep.returncode == -9 and not Path(f"/run/netns/{name}").exists()
    left = subprocess.Popen([sys.executable, "-c", LEAVE], cwd=Path(hosts.__file__).parent)
    assert left.wait(30) == -9
    assert Path(f"/run/netns/limelight-{left.pid}-0-host1").exists()
    assert len(hosts.sweep()) >= 3  # its two hosts and their bridge
    assert not [path for path in Path("/run/netns").iterdir() if f"-{left.pid}-" in path.name]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def straight(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody disturbed, in one process."""
    run = Small(corpus, tmp_path_factory.mktemp("runs") / "straight", CHANGES)
    assert run.live() == 0
    return run.run


@pytest.fixture
def lan() -> Iterator[hosts.Lan]:
    with hosts.hosts(3) as lan:  # two that compute, and one that keeps the rendezvous
        yield lan


def begin(lan: hosts.Lan, corpus: Path, folder: Path, nodes: str, conf: str = RENDEZVOUS) -> Job:
    run = Small(corpus, folder / "run", CHANGES)
    path = folder / "recipe.toml"
    recipe(corpus, **CHANGES).save(path)
    job = Job(lan, path, run.run, nodes, conf=conf)
    for host in range(2):
        job.start(host)
    job.wait_for(15)
    return job


@pytest.mark.long
def test_a_run_goes_on_without_a_host_that_dies_and_with_it_when_it_is_back(
    lan: hosts.Lan, corpus: Path, straight: Path, tmp_path: Path
) -> None:
    job = begin(lan, corpus, tmp_path, "1:2")
    assert lan.kill(1) > 0
    alone = job.recovers({0})
    job.start(1)
    together = job.recovers({0})
    assert job.ends() == {0: 0, 1: 0}
    assert (alone.worlds, together.worlds) == ((2, 1), (1, 2))
    assert together.lost == 0  # who is told that another comes saves first
    assert compared(job.run, straight).none


@pytest.mark.long
def test_a_run_that_needs_both_hosts_waits_for_the_one_that_is_cut_off_and_is_not_done_before(
    lan: hosts.Lan, corpus: Path, straight: Path, tmp_path: Path
) -> None:
    patient = RENDEZVOUS.replace("read_timeout=10", "read_timeout=60")  # a torchrun that is cut off for longer gives up
    job = begin(lan, corpus, tmp_path, "2", patient)
    lan.cut(1)
    time.sleep(12)  # twice as long as a process may be silent
    assert not any(job.ranks(host) for host in range(2)) and job.step < STEPS  # the control: it cannot be done
    assert not compared(job.run, straight).none
    lan.mend(1)
    assert job.ends() == {0: 0, 1: 0}
    assert compared(job.run, straight).none


def test_a_curve_of_another_seed_is_told_from_the_undisturbed_one(corpus: Path, straight: Path, tmp_path: Path) -> None:
    run = Small(corpus, tmp_path / "other", {**CHANGES, "seed": 2})
    assert run.live() == 0
    assert not compared(run.run, straight).none
