"""The manifests of deploy/ are valid by the schemas that Kubernetes publishes, strictly: no field that it does not know.

kubernetes-validate has the schemas of every release. KubeRay's resource is not among them: its own fields are compared with those of its
API reference (v1), and the pods in it are judged as any other pod.
"""

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed: pip install limelight[dev]")

KUBERNETES = Path(__file__).parents[1] / "deploy" / "kubernetes"
NOT_APPLIED = {"kustomization.yaml", "prometheus-adapter.yaml"}  # of kustomize and of helm
OLDEST = "1.33"
MANIFESTS = {
    f"{path.stem}-{each['kind']}-{each['metadata']['name']}": each
    for path in sorted(KUBERNETES.rglob("*.yaml"))
    if path.name not in NOT_APPLIED
    for each in yaml.safe_load_all(path.read_bytes())
}
RAY = next(each for each in MANIFESTS.values() if each["kind"] == "RayJob")
# Of ray.io/v1, by its reference.
RAY_JOB = {
    "activeDeadlineSeconds", "backoffLimit", "rayClusterSpec", "submitterPodTemplate", "metadata", "clusterSelector", "submitterConfig",
    "managedBy", "deletionStrategy", "entrypoint", "runtimeEnvYAML", "jobId", "submissionMode", "entrypointResources", "entrypointNumCpus",
    "entrypointNumGpus", "ttlSecondsAfterFinished", "shutdownAfterJobFinishes", "suspend",
}  # fmt: skip
RAY_CLUSTER = {
    "suspend", "managedBy", "autoscalerOptions", "headServiceAnnotations", "enableInTreeAutoscaling", "gcsFaultToleranceOptions",
    "headGroupSpec", "rayVersion", "workerGroupSpecs",
}  # fmt: skip
RAY_HEAD = {"template", "headService", "enableIngress", "rayStartParams", "serviceType"}
RAY_WORKERS = {
    "suspend", "groupName", "replicas", "minReplicas", "maxReplicas", "idleTimeoutSeconds", "rayStartParams", "template", "scaleStrategy",
    "numOfHosts",
}  # fmt: skip


def releases() -> list[str]:
    """The oldest that is judged, and the newest that is known."""
    newest = schemas.latest_version()
    assert tuple(map(int, newest.split(".")[:2])) >= (1, 33)
    return [OLDEST, newest]


def objections(manifest: dict[str, Any]) -> list[str]:
    """What the schemas, or KubeRay's reference, say against it."""
    if manifest["apiVersion"] != "ray.io/v1":
        return [found for release in releases() if (found := _judge(manifest, release))]
    cluster = manifest["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    known = [(manifest["spec"], RAY_JOB), (cluster, RAY_CLUSTER), (groups[0], RAY_HEAD), *((each, RAY_WORKERS) for each in groups[1:])]
    strange = [name for fields, names in known for name in fields if name not in names]
    pods = [{"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}, "template": each["template"]} for each in groups]
    return strange + [found for pod in pods for found in objections(pod)]


def _judge(manifest: dict[str, Any], release: str) -> str:
    try:
        schemas.validate(manifest, release, strict=True)
    except (schemas.ValidationError, schemas.SchemaNotFoundError) as error:
        return f"{release}: {error.message}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("name", MANIFESTS)
def test_it_is_valid(name: str) -> None:
    assert objections(MANIFESTS[name]) == []


def test_all_kinds_are_there() -> None:
    kinds = {each["kind"] for each in MANIFESTS.values()}
    assert kinds >= {"Deployment", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "Service", "Job", "RayJob"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "path", "value"), [
    ("Deployment", ("spec", "template", "spec", "containers", 0, "readinesProbe"), {}),  # misspelt
    ("Deployment", ("spec", "minReadySeconds"), "5s"),
    ("HorizontalPodAutoscaler", ("spec", "metrics", 0, "pods", "target", "avarageValue"), "500m"),
    ("PodDisruptionBudget", ("apiVersion",), "policy/v1beta1"),  # gone since 1.25
    ("Job", ("spec", "podFailurePolicy", "rules", 0, "action"), None),
    ("RayJob", ("spec", "rayClusterSpec", "workerGroupSpecs", 0, "replica"), 8),
    ("RayJob", ("spec", "rayClusterSpec", "headGroupSpec", "template", "spec", "containers", 0, "image"), 7),
])  # fmt: skip
def test_a_mistake_is_found(kind: str, path: tuple[str | int, ...], value: Any) -> None:
    """That the test above can fail."""
    place = wrong = copy.deepcopy(next(each for each in MANIFESTS.values() if each["kind"] == kind))
    for step in path[:-1]:
        place = place[step]  # type: ignore[index]
    place[path[-1]] = value  # type: ignore[index]
    assert objections(wrong)


def test_the_command_on_ray_is_one_of_ours_and_pods_have_few_rights() -> None:
    words = RAY["spec"]["entrypoint"].split()
    source = "".join(path.read_bytes().decode() for path in (KUBERNETES.parents[1] / "src/limelight/cli/translate").glob("*.py"))
    assert words[:2] == ["limelight", "translate"] and words[-2:] == ["--cluster", "ray"]
    assert all(f'"{word}"' in source for word in words if word.startswith("-"))
    cluster = RAY["spec"]["rayClusterSpec"]
    for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        [container] = pod["containers"]
        assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert container["resources"]["requests"] == container["resources"]["limits"]
    assert cluster["headGroupSpec"]["rayStartParams"] == {"num-cpus": "0"}  # it only sends and writes
