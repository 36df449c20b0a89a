"""A `CostCurve` is what more devices and more money buy, as points to draw.

curve(text, device("H100"), "masters").devices      how long the same run takes on 1, 2, 4 ... devices
curve(text, device("H100"), "masters").frontier     the best that can be had for a cost
"""

from dataclasses import dataclass
from typing import Final

from limelight.planning.cost.parallel import Precision
from limelight.planning.options import Option, recommend
from limelight.planning.rules import TextStats
from limelight.planning.time.devices import Device
from limelight.planning.time.planned_step import Timing

MOST: Final = 1_024
HELPS: Final = 1.2  # times as fast as half as many: else the other half does not help
HOURS: Final = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 24, 48, 96, 168)


@dataclass(frozen=True)
class DevicePoint:
    count: int
    option: Option  # the same text, seen as often, on `count` devices
    helps: bool  # against half as many


@dataclass(frozen=True)
class CostPoint:
    budget: float  # seconds
    option: Option
    better: bool  # than all that cost less


@dataclass(frozen=True)
class CostCurve:
    devices: tuple[DevicePoint, ...]
    frontier: tuple[CostPoint, ...]

    @property
    def useful(self) -> int:
        """The most devices of which the last half still helps."""
        return max((point.count for point in self.devices if point.helps), default=1)


def curve(
    text: TextStats,
    device: Device,
    precision: Precision,
    *,
    count: int = 1,
    most: int = MOST,
    vocab_size: int | None = None,
    timing: Timing | None = None,
) -> CostCurve:
    """`count`: devices of the frontier, over times from minutes to a week. `timing` is of any number of devices."""
    devices: list[DevicePoint] = []
    number = 1
    while number <= most:
        made = recommend(text, device, number, None, precision, vocab_size, timing)
        before = devices[-1].option.seconds if devices else float("inf")
        devices.append(
            DevicePoint(
                number,
                made,
                made.fits and (not devices or before > HELPS * made.seconds or not devices[-1].option.fits),
            )
        )
        number *= 2
    points: list[CostPoint] = []
    for hours in HOURS:
        made = recommend(text, device, count, 3_600 * hours, precision, vocab_size, timing)
        lowest = min((point.option.expected.loss for point in points), default=float("inf"))
        points.append(CostPoint(3_600 * hours, made, made.expected.loss < 0.999 * lowest))
        if made.seconds < 0.5 * 3_600 * hours:
            break  # the text is learnt: more time buys nothing
    return CostCurve(tuple(devices), tuple(points))
