"""The devices a plan may be made for: what is known of them, found by many spellings, and changed by a file."""

from pathlib import Path

import pytest

from limelight.errors import ConfigError
from limelight.planning.time.devices import OURS, catalogue, device, split_count, this_machine

WANTED = ["A100-40", "A100-80", "H100", "H200", "B200", "L4", "L40S", "T4", "RTX-4090", "RTX-3090", "MI300X"]


def test_the_catalogue_has_the_devices_that_people_rent_each_with_a_source() -> None:
    known = catalogue()
    assert set(WANTED) <= known.keys()
    assert sum(each.kind == "cpu" for each in known.values()) >= 3
    for each in known.values():
        assert each.source and each.peak >= each.peak_float32 and each.between <= each.inside


def test_peaks_are_dense_ones_by_the_data_sheets() -> None:
    """Marketing doubles them by counting zeros that are skipped."""
    known = catalogue()
    dense = {"A100-80": 312, "H100": 989, "L4": 121, "L40S": 362, "MI300X": 1307}
    assert {name: round(known[name].peak / 1e12) for name in dense} == dense


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("h100", "H100"),
        ("8xH100", "H100"),
        ("1,024 x h200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100-80"),
        ("a100", "A100-80"),
        ("a100 40gb", "A100-40"),
        ("RTX 4090", "RTX-4090"),
        ("4090", "RTX-4090"),
        ("2x4090", "RTX-4090"),
        ("mi300x", "MI300X"),
        ("l4", "L4"),
        ("l40s", "L40S"),
        ("cpu-avx512", "CPU-AVX512"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100"),
        ("Tesla T4", "T4"),
        ("NVIDIA A100-PCIE-40GB", "A100-40"),
        ("NVIDIA A100 80GB PCIe", "A100-80"),
        ("NVIDIA GeForce RTX 3090", "RTX-3090"),
    ],
)
def test_a_device_is_found_by_many_spellings(asked: str, meant: str) -> None:
    assert device(asked).name == meant


def test_a_number_before_a_name_is_how_many() -> None:
    assert split_count("8xH100") == (8, "H100")
    assert split_count("1_024 x H100") == (1024, "H100")
    assert split_count("2 L4") == (2, "L4")
    assert split_count("H100") == (None, "H100")
    assert split_count("4090") == (None, "4090")


@pytest.mark.parametrize("asked", ["H1000", "cpu", "", "rtx", "A", "100", "NVIDIA H20", "L40", "B20"])
def test_an_unknown_or_ambiguous_name_is_refused_with_the_names_and_how_to_add_one(asked: str) -> None:
    with pytest.raises(ConfigError) as refused:
        device(asked)
    assert "RTX-4090" in str(refused.value) and "--devices" in str(refused.value)


def test_a_near_miss_is_pointed_out() -> None:
    with pytest.raises(ConfigError, match="did you mean H100"):
        device("H10O")


def test_a_file_lays_over_the_catalogue_key_by_key_and_adds_devices(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    ours = catalogue()["H100"]
    new = OURS.read_text().split("[L4]\n")[1].split("\n\n")[0]
    mine.write_text(f"[h100]\nprice = 1.25\n\n[X1]\n{new}\n")
    known = catalogue(mine)
    assert known["H100"].price == 1.25 and known["H100"].memory == ours.memory
    assert known["X1"].peak == ours.peak * 121 / 989
    assert device("x1", mine).name == "X1"
    assert catalogue()["H100"] == ours


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text('[H100]\nmemmory = 1\nachieved = 40\npeak = -1\nper_host = 2.5\nkind = "gpu"\n\n[New]\nmemory = 8e9\n')
    with pytest.raises(ConfigError) as refused:
        catalogue(mine)
    said = str(refused.value)
    for problem in (
        "did you mean memory",
        "achieved = 40",
        "peak = -1",
        "per_host = 2.5",
        "kind = 'gpu'",
        "New: peak is",
    ):
        assert problem in said


@pytest.mark.parametrize("text", ["peak = 3\n", "[H100\n"])
def test_a_file_that_is_no_list_of_devices_is_refused(tmp_path: Path, text: str) -> None:
    mine = tmp_path / "mine.toml"
    mine.write_text(text)
    with pytest.raises(ConfigError, match=r"mine\.toml"):
        catalogue(mine)
    with pytest.raises(ConfigError, match="is not there"):
        catalogue(tmp_path / "none.toml")


def test_this_machine_has_the_rate_that_was_measured_or_that_of_its_cores() -> None:
    measured = this_machine(24e9, 2, 1.5e11)
    assert measured.rate("float32") == measured.rate("masters") == 1.5e11
    assert (measured.memory, measured.kind, measured.price) == (24e9, "cpu", None)
    assumed, core = this_machine(24e9, 2), device("CPU-AVX512")
    assert assumed.rate("float32") == pytest.approx(2 * core.rate("float32"))
    assert "not measured" in assumed.source
