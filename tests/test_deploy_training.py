"""The examples of training on clusters, and the page about them, agree with the program. Nothing here needs Slurm or Kubernetes."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from limelight.training.processes.supervisor import FINAL, STOPPED
from limelight.training.run.result import EXIT_CODES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "cluster.md").read_bytes().decode()
SLURM = ROOT / "deploy" / "slurm" / "train.sbatch"
SCRIPT = SLURM.read_bytes().decode()
AT_ADDRESS = SLURM.with_name("train-at-address.sbatch")
MANIFEST = ROOT / "deploy" / "kubernetes" / "training" / "train.yaml"
MANIFESTS = {each["kind"]: each for each in yaml.safe_load_all(MANIFEST.read_bytes())}
POD = MANIFESTS["Job"]["spec"]["template"]["spec"]
[CONTAINER] = POD["containers"]
VARIABLES = {each["name"]: each["value"] for each in CONTAINER["env"]}


def options_of(verb: str) -> set[str]:
    source = (ROOT / "src" / "limelight" / "cli" / verb / f"{verb}.py").read_bytes().decode()
    return set(re.findall(r'"(--?[a-z-]+)"', source))


def torchruns_options() -> set[str]:
    from torch.distributed.run import get_args_parser

    return {option for action in get_args_parser()._actions for option in action.option_strings}


def commands() -> dict[str, list[str]]:
    """Every line that starts a training, as words: torchrun's in the script and the manifest too."""
    page = re.findall(r"^    ((?:torchrun|limelight train|srun) .*)", PAGE, flags=re.M)
    [script] = re.findall(r"^srun \S+ (torchrun .*)", SCRIPT.replace("\\\n", ""), flags=re.M)
    [lone] = re.findall(r"^srun (limelight train .*)", AT_ADDRESS.read_bytes().decode(), flags=re.M)
    scripts = {
        "slurm": shlex.split(script),
        "slurm, an address": shlex.split(lone),
        "kubernetes": [*CONTAINER["command"], *CONTAINER["args"]],
    }
    return scripts | {line: shlex.split(line) for line in page}


@pytest.mark.parametrize("words", commands().values(), ids=[name[:20] for name in commands()])
def test_options_exist(words: list[str]) -> None:
    at = words.index("train")
    ours = {word.partition("=")[0] for word in words[at:] if word.startswith("-")}
    assert ours <= options_of("train")
    if words[0] == "torchrun":
        theirs = {word.partition("=")[0] for word in words[:at] if word.startswith("-")}
        assert theirs <= torchruns_options()
        assert "--nproc" not in ours, "it is refused in a process that is one of several"


@pytest.mark.process
@pytest.mark.parametrize("path", [SLURM, AT_ADDRESS], ids=["shared disk", "address"])
def test_the_script_is_one_that_bash_understands(path: Path) -> None:
    assert shutil.which("bash")
    subprocess.run(["bash", "-n", path], check=True)
    script = path.read_bytes().decode()
    assert "limelight train" in script
    assert re.findall(r"^#SBATCH --signal=TERM@(\d+)", script, flags=re.M) == ["180"]


def test_a_job_at_an_address_is_queued_again_by_the_code_of_a_run_that_was_stopped() -> None:
    assert f'[ "$code" = {EXIT_CODES["preempted"]} ] && scontrol requeue' in AT_ADDRESS.read_bytes().decode()


def test_there_is_time_to_save_before_anybody_is_killed() -> None:
    shutdown = int(VARIABLES["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"])
    assert 30 < shutdown < POD["terminationGracePeriodSeconds"]
    assert f"TORCH_ELASTIC_SHUTDOWN_TIMEOUT={shutdown}" in SCRIPT and shutdown < 180


def test_pods_find_the_first_one_by_its_name() -> None:
    name = MANIFESTS["Job"]["metadata"]["name"]
    service = MANIFESTS["Service"]
    assert service["spec"]["clusterIP"] == "None" and POD["subdomain"] == service["metadata"]["name"]
    assert f"--rdzv-endpoint={name}-0.{service['metadata']['name']}:29400" in CONTAINER["args"]
    assert MANIFESTS["Job"]["spec"]["completions"] == MANIFESTS["Job"]["spec"]["parallelism"] == 2
    assert "--nnodes=2" in CONTAINER["args"]
    gpus = CONTAINER["resources"]["limits"]["nvidia.com/gpu"]
    assert f"--nproc-per-node={gpus}" in CONTAINER["args"]


def test_pods_have_few_rights_and_only_each_other() -> None:
    assert POD["securityContext"]["runAsNonRoot"] and not POD["automountServiceAccountToken"]
    assert CONTAINER["securityContext"]["readOnlyRootFilesystem"]
    assert CONTAINER["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    labels: dict[str, Any] = MANIFESTS["Job"]["spec"]["template"]["metadata"]["labels"]
    policy = MANIFESTS["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"] == labels == MANIFESTS["Service"]["spec"]["selector"]
    assert policy["ingress"] == [{"from": [{"podSelector": {"matchLabels": labels}}]}]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}


def test_codes_and_states_are_those_of_the_program() -> None:
    table = PAGE.split("## How it ended")[1].split("\n\n**")[0]
    rows = re.findall(r"^\| ([\d, ]+) \| `(\w+)`", table, flags=re.M)
    told = {(int(code), state) for codes, state in rows for code in codes.split(",")}
    assert {(code, state) for state, code in EXIT_CODES.items()} <= told
    assert {code for code, state in told if state == "failed"} == {70, *FINAL}
    assert {code: state for code, state in told if code in STOPPED} == STOPPED


def test_files_and_pages_that_it_names_exist() -> None:
    for name in re.findall(r"`?((?:deploy|benchmarks)/[\w./-]+\w)", PAGE):
        assert (ROOT / name).exists(), name
    for link in re.findall(r"\]\(([^)#:]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
