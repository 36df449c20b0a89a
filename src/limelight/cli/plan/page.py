"""The page of a plan shows its lines, pictures, the sizes that were weighed, and all assumptions. It is one HTML file without scripts, and
loads nothing from elsewhere.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from limelight.cli.plan import pictures
from limelight.cli.plan.lines import Line
from limelight.errors import ConfigError
from limelight.files import write_whole
from limelight.planning.options import count_of
from limelight.reporting.blocks import Cell, Code, Listing, Paragraph, Pictures, Points, Section, Strong, Table, Tiles
from limelight.reporting.formats import write_html
from limelight.reporting.units import THIN_SPACE, Figure, duration, money, percent, short, size
from limelight.training.forecast.forecast import curves

if TYPE_CHECKING:
    from limelight.planning.options import CostCurve, Option
    from limelight.training.forecast.forecast import Forecast


def write(path: Path, outlook: "Forecast", lines: Sequence[Line], start: str) -> None:
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--html {path}: there is no folder {path.absolute().parent}; make it first")
    if path.is_dir():
        raise ConfigError(f"--html {path} is a folder; name a file, such as {path}/plan.html")
    write_whole(path, html(outlook, lines, start).encode())


def html(outlook: "Forecast", lines: Sequence[Line], start: str) -> str:
    o = outlook
    found = curves(o.question)
    shown = pictures.draw_pictures(o, found)
    where = f"{o.question.count:,} x {o.question.device.title}" if o.question.count > 1 else o.question.device.title
    title = f"A plan: {o.chosen.name}, {duration(o.seconds)} on {where}"
    numbers = [
        ("parameters", short(sum(o.parameters.values()))),
        ("memory" + (" each" if o.question.count > 1 else ""), size(o.peak.total)),
        ("time", duration(o.seconds)),
        ("cost", "not known" if o.chosen.cost is None else money(o.chosen.cost)),
        ("expected loss", f"{o.chosen.expected.loss:.2f}"),
    ]
    plan = [[line.name, _bind_units(line.value), _bind_units(line.why)] for line in lines]
    sections = [
        *([Section("Pictures", [Pictures(shown)])] if shown else []),
        Section("Sizes", [_sizes(o)]),
        *([Section("Devices", [_devices(found)])] if len(found.devices) > 1 else []),
        Section("Assumptions", [Points(_assumptions(o))]),
    ]
    missing = "" if shown else "Pictures need matplotlib: pip install 'limelight[pictures]'."
    table, listing = Table("The plan, and why", ("", "", "why"), plan), [Listing(start)] if start else []
    return write_html(title, [Paragraph([missing], first=True), Tiles(numbers), table, *listing], sections)


def _bind_units(text: str) -> str:
    return re.sub(r"(?<=\d) (?=%|(?:[kMGTP]?B|[kMG]|min|ms|s|h|USD)\b)", THIN_SPACE, text)


def _sizes(o: "Forecast") -> Table:
    rows = [_size(each, each is o.chosen) for each in (o.chosen, *o.others)]
    head = ("size", "parameters", "memory", "steps", "epochs", "time", "cost", "expected loss", "")
    return Table("What was weighed, the chosen one first", head, rows)


def _size(option: "Option", chosen: bool) -> list[Cell]:
    why = option.explain("size", "passes")
    figures = (
        short(count_of(option.config)), size(option.memory), f"{option.steps:,}", f"{option.epochs:.3g}", duration(option.seconds),
        "-" if option.cost is None else money(option.cost), f"{option.expected.loss:.2f}",
    )  # fmt: skip
    why = why if option.fits else "; ".join(["does not fit", *([why] if why else [])])
    return [Strong(option.name) if chosen else option.name, *(Figure(each) for each in figures), why]


def _devices(curve: "CostCurve") -> Table:
    rows = [
        [
            Figure(f"{point.count:,}"), point.option.name, point.option.parallel.described, Figure(duration(point.option.seconds)),
            Figure("-" if point.option.cost is None else money(point.option.cost)),
            "does not fit" if not point.option.fits else "" if point.helps else "hardly faster than half as many",
        ]
        for point in curve.devices
    ]  # fmt: skip
    return Table("Without a limit of time, on more and more devices", ("devices", "size", "shared as", "time", "cost", ""), rows)


def _assumptions(o: "Forecast") -> list[list[Cell]]:
    device = o.question.device
    made: list[list[Cell]] = [[Strong(device.title), f": {device.source}."]]
    if o.question.timing is None:
        shares = f"{percent(device.achieved, 0)} of the peak in the products of a step, {percent(device.wires, 0)} of the wires"
        made.append([f"Speed: nothing was measured, but assumed: {shares}."])
    else:
        made.append(["Speed: measured here, by steps of other models, and computed for this one."])
    if device.price is not None:
        made.append([f"Price: {device.price:g} USD for one and an hour, of a list; ", Code("--devices FILE"), " takes yours."])
    made += [[note[0].upper() + note[1:] + "."] for note in o.chosen.expected.notes]
    made.append(["Memory, bytes sent and arithmetic follow from the shape of the model; how, says docs/scale.md."])
    return made
