"""A cluster that loses its nodes ends in recovery or in an error that names them; it never waits for ever. The raylets are real."""

import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own: a test may have begun a cluster here already. The head has no core, so all work is on the node that is lost.
CLUSTER = """
import sys, time, threading
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
import limelight.cluster
import limelight.corpus.exchange.engine_ray as engine_ray

limelight.cluster.POLL_SECONDS, limelight.cluster.LOST_SECONDS = 0.5, 120.0 if sys.argv[2] == "back" else 3.0
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
node = cluster.add_node(num_cpus=1)
ray.init(address=cluster.address, log_to_driver=False)
engine = engine_ray.RayEngine()
began, comes_back = Path(sys.argv[1]), sys.argv[2] == "back"

def work(job):
    began.touch()
    time.sleep(0.2)
    return {"job": job}

def lose():
    while not began.exists():
        time.sleep(0.1)
    cluster.remove_node(node, allow_graceful=False)
    if comes_back:
        cluster.add_node(num_cpus=1)

threading.Thread(target=lose, daemon=True).start()
try:
    print("done", [each["job"] for each in engine.each(range(12), work, lambda progress: None)], flush=True)
except limelight.cluster.LimelightError as error:
    print("error", error, flush=True)
ray.shutdown()
cluster.shutdown()
"""


def run(tmp_path: Path, then: str) -> str:
    command = [sys.executable, "-c", CLUSTER, str(tmp_path / "began"), then]
    return subprocess.run(command, capture_output=True, timeout=240, check=True).stdout.decode().strip().split("\n")[-1]


@pytest.mark.process
@pytest.mark.slow
def test_all_nodes_with_cores_lost_is_an_error_that_names_them(tmp_path: Path) -> None:
    said = run(tmp_path, "away")
    assert said.startswith("error the cluster lost ") and "and nothing was begun for" in said and "ray status" in said


@pytest.mark.process
@pytest.mark.long
def test_a_node_that_is_replaced_costs_nothing_but_time(tmp_path: Path) -> None:
    assert run(tmp_path, "back") == f"done {list(range(12))}"
