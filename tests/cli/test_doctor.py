"""The doctor: what it finds on a healthy machine, on broken ones, and what it does not tell."""

import getpass
import json
import resource
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from packaging.requirements import Requirement

from limelight.cli.doctor import self_tests
from limelight.cli.doctor.findings import MEND, DoctorReport, Finding, findings, fits
from limelight.cli.doctor.lines import TITLES, as_lines, as_markdown
from limelight.cli.doctor.machine import PURPOSE, facts, requirements
from limelight.cli.doctor.self_test_process import SelfTestResult, private, read_lines, run_self_tests

ROOT = Path(__file__).parents[2]
GB = 10**9
WHOLE = 5.0  # seconds that the project promises; counted is what the processor does, and a slow machine is given three times as much


def healthy() -> dict[str, Any]:
    """Facts with nothing wrong in them, whatever this machine is like."""
    return {
        **facts({}),
        "limelight": {"version": "1.0", "editable": False, "page": True},
        "cpu": {"name": "A CPU", "flags": ["avx2"], "cores": 4, "affinity": 4, "load": 0.1},
        "memory": {"total": 16 * GB, "free": 8 * GB, "container_limit": None},
        "gpu_driver": None,
        "disk": {name: {"free": 100 * GB, "writable": True} for name in ("here", "temporary")},
        "variables": {},
        "needs": {"numpy": {"asked": ">=1.26", "has": "2.4.6"}},
        "extras": {
            "serve": {"fastapi": {"asked": ">=0.116", "has": "0.162.4"}},
            "hub": {"huggingface-hub": {"asked": ">=0.27", "has": None}},
        },
        "torch": {
            "version": "2.13.0",
            "build": "CPU",
            "cpu_capability": "AVX2",
            "device": "cpu",
            "numbers": "float32",
            "threads": 4,
            "accelerators": [],
            "bfloat16_units": [],
        },
    }


GOOD = [SelfTestResult(name, True, 0.1, "fine") for name in self_tests.PARTS]


@pytest.fixture(scope="module")
def ran(starts_process: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[bytes], float]:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "limelight", "doctor", "--json"],
        capture_output=True,
        cwd=tmp_path_factory.mktemp("empty"),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_every_part_works_in_our_own_environment(ran: tuple[subprocess.CompletedProcess[bytes], float]) -> None:
    done, seconds = ran
    told = json.loads(done.stdout)
    assert done.returncode == 0, told["problems"]
    assert told["works"]
    assert {part["name"]: part["works"] for part in told["parts"]} == dict.fromkeys(self_tests.PARTS, True)
    assert told["facts"]["torch"]["version"].startswith("2.")
    assert "float32" in told["facts"]["ctranslate2"]["compute_types"]["cpu"]
    assert seconds < 3 * WHOLE


def test_it_tells_nothing_of_who_runs_it_and_where(ran: tuple[subprocess.CompletedProcess[bytes], float]) -> None:
    text = ran[0].stdout.decode()
    for secret in (str(Path.home()) + "/", sys.prefix, socket.gethostname(), str(ROOT)):
        assert secret not in text
    assert getpass.getuser() not in json.dumps(json.loads(text)["facts"]["variables"])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("cannot open /opt/ada/secret/libtorch.so: no such file", "cannot open .../libtorch.so: no such file"),
        ("File '/home/ada/x.py', line 3", "File '.../x.py', line 3"),
        ("see https://pytorch.org/get-started/locally", "see https://pytorch.org/get-started/locally"),
        ("1/2 of float32/bfloat16", "1/2 of float32/bfloat16"),
        (f"in {Path.cwd()}/weights.safetensors", "in .../weights.safetensors"),
        (r"C:\Users\ada\x.dll is missing", ".../x.dll is missing"),
    ],
)
def test_errors_are_shown_without_folders(said: str, shown: str) -> None:
    assert private(said) == shown


def test_a_healthy_machine_has_no_findings() -> None:
    assert findings(healthy(), GOOD) == []


@pytest.mark.parametrize(
    ("place", "value", "what", "stops"),
    [
        (("needs", "numpy", "has"), None, "numpy is missing", True),
        (("needs", "numpy", "has"), "1.25.9", "numpy 1.25.9", True),
        (("extras", "serve", "fastapi", "has"), "0.1", "limelight[serve]", False),
        (("disk", "temporary", "writable"), False, "temporary files cannot be written", True),
        (("disk", "here", "writable"), False, "this folder cannot be written", False),
        (("disk", "here", "free"), GB, "1.0 GB left", False),
        (("memory", "free"), GB // 2, "0.5 GB of memory", False),
        (("memory", "container_limit"), GB // 2, "0.5 GB of memory", False),
        (("gpu_driver",), "NVIDIA", "torch is built for CPUs", False),
        (("cpu", "load"), 9.0, "load 9.0", False),
        (("variables",), {"OMP_NUM_THREADS": "64"}, "OMP_NUM_THREADS is 64", False),
        (("limelight", "page"), False, "no page", False),
    ],
)
def test_what_is_wrong_is_found_with_a_fix(place: tuple[str, ...], value: object, what: str, stops: bool) -> None:
    known = healthy()
    inner = known
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    [finding] = findings(known, GOOD)
    assert what in finding.what
    assert finding.fix
    assert finding.stops is stops


@pytest.mark.parametrize("name", self_tests.PARTS)
def test_a_part_that_fails_is_a_finding_and_only_the_fast_engine_can_be_done_without(name: str) -> None:
    parts = [part if part.name != name else SelfTestResult(name, False, 0.0, "broken") for part in GOOD]
    [finding] = findings(healthy(), parts)
    assert "broken" in finding.what
    assert finding.stops is (name != "ctranslate2")


def test_problems_come_first_and_decide_whether_it_works() -> None:
    known = healthy()
    known["cpu"]["load"] = 9.0
    found = findings(known, [SelfTestResult("step", False, 0.0, "broken")])
    assert [finding.stops for finding in found] == [True, False]
    report = DoctorReport(found, known, GOOD, 1.0)
    assert not report.works
    assert as_lines(report)[2].startswith("PROBLEM")
    assert as_markdown(report)[4].startswith("- **problem**")
    assert DoctorReport([Finding("slow", "wait", False)], known, GOOD, 1.0).works


@pytest.mark.process
def test_a_process_that_is_killed_is_told_with_the_part_that_killed_it() -> None:
    code = (
        "import json, os, signal\n"
        "print(json.dumps({'name': 'pieces', 'works': True, 'seconds': 0.1, 'said': 'fine'}))\n"
        "print(json.dumps({'begin': 'step'}), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGILL)"
    )
    parts = {part.name: part for part in run_self_tests((sys.executable, "-c", code)).parts}
    assert "SIGILL" in parts["step"].said
    assert not parts["step"].works
    assert parts["pieces"].works
    assert "not tried" in parts["corpus"].said
    assert not parts["corpus"].works


@pytest.mark.process
def test_a_process_that_hangs_is_ended() -> None:
    outcome = run_self_tests((sys.executable, "-c", "import time; time.sleep(60)"), patience=0.5)
    assert "said nothing" in outcome.parts[0].said


@pytest.mark.process
def test_a_process_that_hangs_is_ended_though_one_that_it_started_goes_on() -> None:
    code = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(10)']); time.sleep(60)"
    began = time.monotonic()
    outcome = run_self_tests((sys.executable, "-c", code), patience=1.0)
    assert "said nothing" in outcome.parts[0].said and time.monotonic() - began < 5


@pytest.mark.process
def test_a_library_that_cannot_be_loaded_does_not_hide_the_rest(tmp_path: Path) -> None:
    """A torch that raises when it is imported: the pieces and Parquet are tried all the same."""
    (tmp_path / "torch.py").write_bytes(b"raise ImportError('libtorch_cpu.so: cannot open shared object file')\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from limelight.cli.doctor.self_tests import main; main()"
    outcome = run_self_tests((sys.executable, "-c", code))
    works = {part.name: part.works for part in outcome.parts}
    assert works["pieces"]
    assert works["corpus"]
    assert not works["import torch"]
    assert not works["step"]
    assert "ctranslate2" in outcome.facts or not works["import ctranslate2"]
    found = findings(healthy(), outcome.parts)
    assert any("libtorch_cpu.so" in finding.what and "pip install" in finding.fix for finding in found)


def test_lines_that_were_cut_off_are_left_out() -> None:
    outcome = read_lines(b'{"facts": {"torch": {}}}\n{"name": "pie', "was killed by SIGKILL")
    assert outcome.facts == {"torch": {}}
    assert "SIGKILL" in outcome.parts[0].said


@pytest.mark.parametrize(
    ("has", "asked", "expected"),
    [("2.13.0+cpu", ">=2.13", True), ("2.12.9", ">=2.13", False), ("0.54.3", ">=0.54,<0.55", True), ("0.55.0", ">=0.54,<0.55", False),
     ("26.0.1", ">=19", True), ("2.10", ">=2.9", True), (None, ">=1", False), ("1.0", "", True)],
)  # fmt: skip
def test_versions_are_compared_as_numbers(has: str | None, asked: str, expected: bool) -> None:
    assert fits(has, asked) is expected


def test_requirements_are_those_of_the_project_each_under_its_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_bytes().decode())["project"]
    lines = [*project["dependencies"]]
    lines += [
        f"{line}{' and' if ';' in line else ';'} extra == '{extra}'"
        for extra, each in project["optional-dependencies"].items()
        for line in each
    ]
    found = requirements(lines)
    assert list(found["needs"]) == [Requirement(line).name for line in project["dependencies"]]
    assert set(found["extras"]) == set(PURPOSE)
    for extra, packages in found["extras"].items():
        every = [Requirement(line) for line in project["optional-dependencies"][extra]]
        wanted = [each for each in every if each.name != "limelight"]  # an extra may bring others
        assert {name: each["asked"] for name, each in packages.items()} == {w.name: str(w.specifier) for w in wanted}


def test_every_extra_has_a_purpose_and_every_part_a_title_and_a_fix() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_bytes().decode())["project"]
    assert set(PURPOSE) == set(project["optional-dependencies"]) - {"all", "dev", "docs"}
    assert set(TITLES) == set(self_tests.PARTS)
    assert set(MEND) >= {*self_tests.PARTS, *self_tests.FACTS, "start"}


def test_an_extra_that_is_missing_is_shown_with_the_line_that_adds_it() -> None:
    text = "\n".join(as_lines(DoctorReport([], healthy(), GOOD, 1.0)))
    assert "pip install 'limelight[hub]'" in text
    assert "pip install 'limelight[serve]'" not in text


def test_accelerators_are_told_with_their_memory() -> None:
    cuda = SimpleNamespace(
        get_device_properties=lambda number: SimpleNamespace(name=f"GPU {number}", total_memory=80 * GB),
        mem_get_info=lambda number: (70 * GB, 80 * GB),
    )
    torch = SimpleNamespace(
        accelerator=SimpleNamespace(current_accelerator=lambda check_available: SimpleNamespace(type="cuda"), device_count=lambda: 2),
        cuda=cuda,
    )
    told = list(self_tests.accelerators(torch))
    assert told == [{"name": f"GPU {number}", "memory": 80 * GB, "free": 70 * GB} for number in (0, 1)]


def test_a_step_that_learns_nothing_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(self_tests, "RATE", 0.0)
    with pytest.raises(ArithmeticError, match="went from"):
        self_tests.try_step()
