"""Translating on a cluster whose nodes die: the lines of one process, or an error that names the node. The raylets are real."""

import subprocess
import sys
from pathlib import Path

import pytest

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
# In a process of its own: a test may have begun a cluster here already. The head has no core, so all work is on nodes that can be lost.
CLUSTER = """
import contextlib, sys
from pathlib import Path
import psutil, ray
from ray.cluster_utils import Cluster
import limelight.cluster, limelight.cli.translate.cluster as translating
from limelight.cli.main import main
from limelight.files import write_whole

bundle, folder = sys.argv[1], Path(sys.argv[2])
limelight.cluster.POLL_SECONDS, limelight.cluster.LOST_SECONDS, translating.LINES = 0.5, 3.0, 4
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
nodes = [cluster.add_node(num_cpus=1), cluster.add_node(num_cpus=1)]
ray.init(address=cluster.address, log_to_driver=False)

def lose_after_a_shard(path, content):
    write_whole(path, content)
    if to_lose:
        node = to_lose.pop()
        workers = psutil.Process(node.all_processes["raylet"][0].process.pid).children(recursive=True)
        cluster.remove_node(node, allow_graceful=False)
        for worker in workers:  # whom the driver talks to without the raylet: a machine that is lost loses them, too
            with contextlib.suppress(psutil.NoSuchProcess):
                worker.kill()

translating.write_whole = lose_after_a_shard

def translate(name, *options):
    sys.argv = ["limelight", "translate", bundle, "-i", f"{folder}/in.txt", "-o", f"{folder}/{name}", "--threads", "1", *options]
    try:
        main()
    except SystemExit as stopped:
        return stopped.code

to_lose = []
translate("one.txt", "--quiet")
to_lose = nodes[:1]
translate("recovered.txt", "--cluster", "ray", "--quiet")
to_lose = nodes[1:]
print("lost", translate("lost.txt", "--cluster", "ray", "--quiet"), (folder / "lost.txt").exists(), flush=True)
cluster.add_node(num_cpus=1)
translate("lost.txt", "--cluster", "ray")
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.process
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_lost_node_costs_time_and_the_last_one_an_error_after_which_the_command_goes_on(tmp_path: Path) -> None:
    words = ("three", "four", "five", "six", "seven", "eight") * 8
    (tmp_path / "in.txt").write_text("".join(f"one two {word}\n" for word in words), "utf-8")
    done = subprocess.run([sys.executable, "-c", CLUSTER, str(BUNDLE), str(tmp_path)], capture_output=True, timeout=890, check=False)
    assert done.returncode == 0, done.stderr.decode()
    one, recovered, lost = ((tmp_path / f"{name}.txt").read_bytes() for name in ("one", "recovered", "lost"))
    assert one.count(b"\n") == 48 and one == recovered == lost
    assert b"lost 70 False" in done.stdout
    assert b"the cluster lost " in done.stderr and b"nothing was begun for" in done.stderr and b"ray status" in done.stderr
    assert b" of 12 shards were there already" in done.stderr
    assert not list(tmp_path.glob("*.shards"))
