"""Devices that a plan can be made for are listed, with what their makers say of them and what we assume.

Nothing here was measured but what `this_machine` is told. `achieved` and `wires` are assumptions, `price` is of a day.
"""

import difflib
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

from limelight.errors import ConfigError

OURS = Path(__file__).with_name("devices.toml")
MEASURED = "measured"  # source of a speed that was not assumed
SHARES = frozenset({"achieved", "wires"})
MAY_BE_ZERO = frozenset({"price", "hop_inside", "hop_between"})
USUAL: dict[str, Any] = {"kind": "accelerator", "price": None, "source": "given by you"}

# Measured on 2 cores of a Xeon without bfloat16 instructions; where no calibration was made, the arithmetic of a core with AVX-512.
CORE = "CPU-AVX512"


@dataclass(frozen=True, kw_only=True)
class Device:
    """A device is one accelerator; of a CPU, what one process has of it. The comments of devices.toml say what each number is."""

    name: str
    title: str
    memory: float
    peak: float
    peak_float32: float
    bandwidth: float
    per_host: int
    inside: float
    between: float
    wires: float
    hop_inside: float
    hop_between: float
    achieved: float
    price: float | None
    source: str
    kind: Literal["accelerator", "cpu"]

    def rate(self, precision: str) -> float:
        return self.achieved * (self.peak_float32 if precision == "float32" else self.peak)

    def cost(self, count: int, seconds: float) -> float | None:
        """USD for so many of them and so long; None where nobody knows a price."""
        return None if self.price is None else self.price * count * seconds / 3_600


def catalogue(extra: Path | None = None) -> dict[str, Device]:
    tables = _read(OURS)
    if extra is not None:
        for name, table in _read(extra).items():
            known = next((each for each in tables if _plain(each) == _plain(name)), None)
            tables[known or name] = {**(tables[known] if known else {}), **table}
    problems: list[str] = []
    found = {name: _device(name, table, problems) for name, table in tables.items()}
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise ConfigError(f"{extra or OURS} does not describe devices:\n{listed}\nSee the comments of {OURS}.")
    return {name: device for name, device in found.items() if device is not None}


def device(name: str, extra: Path | None = None) -> Device:
    """By any spelling that can mean one device only: "h100", "a100 80gb", "8xH100", "4090"."""
    known = catalogue(extra)
    _, asked = split_count(name)
    if found := _closest(asked, known):
        return known[found]
    near = difflib.get_close_matches(_plain(asked), [_plain(each) for each in known], n=1, cutoff=0.6)
    meant = [each for each in known if near and _plain(each) == near[0]]
    hint = f"; did you mean {meant[0]}?" if meant else ""
    raise ConfigError(
        f"no device is called {asked!r}{hint} Known are {', '.join(known)}. To plan for another one, describe it in a file, "
        f"a table like those in {OURS}, and give it with --devices FILE"
    )


def split_count(asked: str) -> tuple[int | None, str]:
    """("8xH100") -> (8, "H100");  ("H100") -> (None, "H100")."""
    found = re.fullmatch(r"\s*(\d[\d,_]*)\s*(?:[xX*]\s*|\s)(\D.*|\d.*)", asked)
    if not found:
        return None, asked.strip()
    return int(re.sub(r"[,_]", "", found[1])), found[2].strip()


def this_machine(memory: float, cores: int = 1, flops_per_second: float | None = None) -> Device:
    """The CPU we run on, as one device with all its cores. `flops_per_second`: as calibrated; else assumed."""
    core = device(CORE)
    rate = core.peak * core.achieved * cores if flops_per_second is None else flops_per_second
    return replace(
        core,
        name="this machine",
        title=f"this machine, {cores} core{'s' if cores > 1 else ''}",
        memory=memory,
        peak=rate,
        peak_float32=rate,
        bandwidth=core.bandwidth * cores,
        per_host=1,
        achieved=1.0,
        price=None,
        source=MEASURED if flops_per_second is not None else f"not measured: {cores} x {core.title}",
    )


@cache
def _text(path: Path, changed: float) -> str:
    return path.read_bytes().decode()


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = tomllib.loads(_text(path, path.stat().st_mtime))
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there; it should hold tables like those in {OURS}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}; see {OURS} for the form") from None
    plain = [name for name, table in found.items() if not isinstance(table, dict)]
    if plain:
        raise ConfigError(f"{path}: {', '.join(plain)} stands in no table; write [NAME] above what belongs to a device")
    return found


def _device(name: str, table: Mapping[str, Any], problems: list[str]) -> Device | None:
    values = {"name": name, "title": name, **USUAL, **table}
    wanted = {field.name for field in fields(Device)}
    before = len(problems)
    for key in values.keys() - wanted:
        near = difflib.get_close_matches(key, wanted, n=1)
        problems.append(f"{name}: {key} is unknown" + (f"; did you mean {near[0]}?" if near else ""))
    problems += [f"{name}: {key} is missing" for key in sorted(wanted - values.keys())]
    for key in sorted(wanted & values.keys() - {"name", "title", "source", "kind"}):
        if (trouble := _find_problem(key, values[key])) is not None:
            problems.append(f"{name}: {key} = {values[key]!r} {trouble}")
    if values["kind"] not in ("accelerator", "cpu"):
        problems.append(f"{name}: kind = {values['kind']!r} should be accelerator or cpu")
    return Device(**values) if len(problems) == before else None


def _find_problem(key: str, value: Any) -> str | None:
    if value is None and key == "price":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return "should be a number"
    if key == "per_host" and (value < 1 or value != int(value)):
        return "should be a whole number from 1 on"
    if value < 0 or (value == 0 and key not in MAY_BE_ZERO):
        return "should be above 0"
    if key in SHARES and value > 1:
        return "is a share, at most 1"
    return None


def _plain(name: str) -> str:
    return re.sub(r"nvidia|amd|geforce|instinct|tesla|sxm\d?|hbm\d\w?|pcie|nvl\b|gb\b|[^a-z0-9]", "", name.lower())


def _closest(name: str, known: Mapping[str, Any]) -> str | None:
    """The name that is meant: the same but for case, signs and the memory that a driver adds, or the only one that ends like it; of A100
    the larger. An H20 is no H200."""
    asked = _plain(name)
    for written in (asked, _plain(re.sub(r"\b\d{1,4}\s?gb\b", "", name.lower()))):
        if same := [each for each in known if written and _plain(each) == written]:
            return same[0]
    long = len(asked) >= 3 and not re.fullmatch(r"\d{3}", asked)
    parts = [each for each in known if long and (_plain(each).endswith(asked) or (asked == "a100" and asked in _plain(each)))]
    alike = {_plain(each).rstrip("0123456789") for each in parts}
    return parts[-1] if len(parts) == 1 or (asked == "a100" and len(alike) == 1) else None
