"""A `Budget` is devices and time as a person writes them."""

import re
from dataclasses import dataclass
from typing import Final

from limelight.errors import ConfigError
from limelight.planning.time.devices import split_count

UNITS: Final = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
NUMBER: Final = r"\d+(?:\.\d+)?"
TIME: Final = re.compile("".join(rf"(?:(?P<{unit}>{NUMBER})\s*{unit}\s*)?" for unit in UNITS))  # "4090 24h" is no time


@dataclass(frozen=True)
class Budget:
    count: int | None  # None: that was not said
    device: str | None  # None: this machine
    seconds: float | None  # None: as long as it takes


def budget_seconds(text: str) -> float:
    """budget_seconds("1h30m") -> 5400.0; also 90s, 1.5h, 2d. A number alone could be minutes or hours, and is refused."""
    written = text.strip().lower()
    if re.fullmatch(NUMBER, written):
        raise ConfigError(f"--budget {text} has no unit; write {written}m for minutes, {written}h for hours")
    match = TIME.fullmatch(written)
    if not match or not written:
        raise ConfigError(f"--budget {text} is no time; write it as 30m, 2h, 90s or 1h30m")
    seconds = sum(float(match[unit] or 0) * length for unit, length in UNITS.items())
    if seconds <= 0:
        raise ConfigError(f"--budget {text} leaves no time to train; a small corpus needs some minutes, such as 10m")
    return seconds


def parse_budget(text: str) -> Budget:
    """Devices, time or both: "8xH100 24h", "2 x L4 90m", "H100 1h30m", "30m", "8xH100"."""
    words = text.split()
    first = next((n for n in range(len(words)) if TIME.fullmatch(" ".join(words[n:]).lower())), len(words))
    named, time = " ".join(words[:first]), " ".join(words[first:])
    alone = re.fullmatch(NUMBER, words[-1]) if words else None
    if not words or (alone and len(words) == 1):
        budget_seconds(text)  # says what is missing
    if alone and len(words) > 1:
        raise ConfigError(
            f"--budget {text}: {words[-1]} has no unit; write {words[-1]}h for hours, as in {' '.join(words[:-1])} {words[-1]}h"
        )
    count, device = split_count(named) if named else (None, None)
    if count == 0:
        raise ConfigError(f"--budget {text}: that is no device; write 1x{device} or more")
    if device is not None and not re.search(r"[a-zA-Z]|\d{4}", re.sub(r"^\d*\s*[x*]$", "", device)):
        raise ConfigError(f"--budget {text}: {device} names no device; write it as 8xH100 24h, or 30m for this machine")
    return Budget(count, device, budget_seconds(time) if time else None)
