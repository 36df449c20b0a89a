"""Device, dtype, threads, seed and memory: chosen when asked, with a reason."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from limelight import runtime
from limelight.errors import ConfigError, DataError, LengthError, LimelightError, RuntimeChoiceError


def test_the_choice_says_why() -> None:
    chosen = runtime.choose_device()
    assert chosen.why
    assert str(chosen.value) in str(chosen)


def test_what_was_asked_for_is_given() -> None:
    assert runtime.choose_device("cpu") == runtime.RuntimeChoice(torch.device("cpu"), "asked for")
    assert runtime.choose_dtype(torch.device("cpu"), "float64").value is torch.float64


@pytest.mark.parametrize(("units", "chosen"), [([], torch.float32), (["AMX"], torch.bfloat16)])
def test_bfloat16_is_chosen_only_where_a_cpu_multiplies_it(units: list[str], chosen: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "bfloat16_units", lambda: units)
    assert runtime.choose_dtype(torch.device("cpu")).value is chosen


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="the flags of the CPU are read from /proc, which Linux has")
def test_units_are_those_that_the_system_knows_of() -> None:
    flags = Path("/proc/cpuinfo").read_text("utf-8")
    assert bool(runtime.bfloat16_units()) == any(name in flags for name in ("amx_bf16", "avx512_bf16", " bf16"))


@pytest.mark.skipif(torch.accelerator.is_available(), reason="this machine has an accelerator")
def test_a_device_that_is_not_there_is_refused_with_a_way_out() -> None:
    with pytest.raises(RuntimeChoiceError, match="try cpu"):
        runtime.choose_device("cuda")


def test_a_number_that_no_device_has_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.accelerator.current_accelerator", lambda check_available: torch.device("cuda"))
    monkeypatch.setattr("torch.accelerator.device_count", lambda: 2)
    with pytest.raises(RuntimeChoiceError, match=r"cuda:7.*has cuda:0 to cuda:1"):
        runtime.choose_device("cuda:7")
    assert runtime.choose_device("cuda:1").value == torch.device("cuda", 1)


def test_names_that_mean_nothing_are_refused() -> None:
    with pytest.raises(RuntimeChoiceError, match="try cpu"):
        runtime.choose_device("gpu please")
    with pytest.raises(RuntimeChoiceError, match="bfloat16"):
        runtime.choose_dtype(torch.device("cpu"), "float8")
    with pytest.raises(RuntimeChoiceError, match="1 or more"):
        runtime.choose_threads(0)


@pytest.mark.process
def test_threads_are_set_and_follow_the_cores_this_process_may_use() -> None:
    code = (
        "import os, torch; from limelight import runtime\n"
        "os.sched_setaffinity(0, list(os.sched_getaffinity(0))[:1])\n"
        "chosen = runtime.choose_threads()\n"
        "assert chosen.value == 1 == torch.get_num_threads(), chosen"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_seed_repeats_what_follows() -> None:
    seed = runtime.set_seed().value
    first = torch.rand(3)
    assert runtime.set_seed(seed).why == "asked for"
    assert torch.equal(torch.rand(3), first)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_freed_memory_stays_with_the_process() -> None:
    """With the setting, a large block taken again costs far fewer page faults than without."""

    def faults(setting: str) -> int:
        code = (
            "import resource, torch; from limelight import runtime\n"
            f"{setting}\n"
            "for _ in range(30): torch.ones(10_000_000)\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
            "for _ in range(10): torch.ones(10_000_000)\n"
            "print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)"
        )
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        return int(done.stdout)

    assert faults("assert runtime.keep_freed_memory().value") < faults("pass") / 10


def test_exit_codes_are_the_published_ones() -> None:
    codes = {LimelightError: 70, ConfigError: 2, DataError: 65, LengthError: 65, RuntimeChoiceError: 69}
    assert {error: error.exit_code for error in codes} == codes


@pytest.mark.parametrize(("content", "cores"), [(b"150000 100000\n", 2), (b"50000 100000", 1), (b"max 100000\n", None), (b"", None)])
def test_a_container_has_the_cores_it_was_given(tmp_path: Path, content: bytes, cores: int | None) -> None:
    (tmp_path / "cpu.max").write_bytes(content)
    assert runtime.read_core_limit(tmp_path / "cpu.max") == cores
    assert runtime.read_core_limit(tmp_path / "absent") is None
