"""The options of `limelight inspect` are parsed into heads, interventions and cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.inspection.head_names import Head
    from limelight.inspection.interventions import Changes
    from limelight.inspection.trace import Trace

LETTERS = {"e": "enc", "d": "dec", "c": "cross"}
_SHORT = re.compile(r"(enc|dec|cross|[edc])\.?(\*|\d{1,4})\.(\*|\d{1,5})")


@dataclass(frozen=True)
class InterventionOptions:
    mute: Sequence[str] = ()
    solo: Sequence[str] = ()
    dim: Sequence[str] = ()
    hide: Sequence[int] = ()
    positions: str = "normal"
    temperature: float = 1.0
    mean: bool = False


def head_name(text: str) -> str:
    """c5.2 -> cross.5.2; e0.* -> enc.0.*; * is every head. The long names stay as they are."""
    if text == "*":
        return text
    match = _SHORT.fullmatch(text)
    if match is None:
        raise ConfigError(
            f"{text!r} names no head; write c5.2 or cross.5.2: kind (e, d, c for encoder, decoder, cross), layer, head, from 0; * for all"
        )
    return f"{LETTERS[match[1][0]]}.{match[2]}.{match[3]}"


def changes_of(turned: InterventionOptions) -> "Changes":
    """Mutes and dimmers first, then solo, which darkens all others of its kind, as on the desk."""
    from limelight.inspection.interventions import Changes

    gates = {head_name(each): 0.0 for each in turned.mute}
    for each in turned.dim:
        name, sign, value = each.partition("=")
        if not sign or not re.fullmatch(r"0?\.\d+|[01](\.0*)?", value):
            raise ConfigError(f"--dim {each} is no dimmer; write a head and a number from 0 to 1, such as --dim c5.2=0.4")
        gates.pop(head_name(name), None)  # what is said later comes later
        gates[head_name(name)] = float(value)
    alone = [head_name(each) for each in turned.solo]
    for kind in dict.fromkeys(name.split(".")[0] for name in alone if name != "*"):
        gates.pop(f"{kind}.*.*", None)
        gates[f"{kind}.*.*"] = 0.0
    for name in alone:
        gates.pop(name, None)  # so that it comes after what darkened it
        gates[name] = 1.0
    return Changes(
        gates=gates,
        gate_mode="mean" if turned.mean else "zero",
        mask_source=tuple(turned.hide),
        positions=turned.positions,
        attention_temperature=turned.temperature,
    )


def head_of(trace: "Trace", asked: str, kind: str | None) -> "Head":
    """The head to show: the one named; else the one that aligns, or of a kind the one that knows best where to look."""
    from limelight.inspection.head_names import Head

    if asked != "auto":
        name = head_name(asked)
        if "*" in name:
            raise ConfigError(f"--head {asked} names many heads, and one is shown; write one, or --all to see every head")
        head = Head.parse(name)
        if kind is not None and kind != head.kind:
            raise ConfigError(f"--head {asked} is of the kind {head.kind}, and --kind says {kind}; leave out one of them")
        layers, heads = trace.attention[head.kind].shape[:2]
        if head.layer >= layers or head.head >= heads:
            raise ConfigError(
                f"there is no head {name}: {head.kind} has {layers} layers of {heads} heads, {head.kind}.0.0 to "
                f"{head.kind}.{layers - 1}.{heads - 1}; --all lists them"
            )
        return head
    if kind in (None, "cross"):
        return Head.parse(trace.align.head)
    return Head.parse(min((each for each in trace.heads if each.id.startswith(f"{kind}.")), key=lambda each: each.entropy).id)


def cell_of(text: str) -> tuple[str, int, int, int]:
    """c2.5:3,4 -> ("cross.2", 5, 3, 4): attention, head, row, column."""
    head, _, cell = text.partition(":")
    match = re.fullmatch(r"(\d{1,4}),(\d{1,4})", cell.replace(" ", ""))
    name = head_name(head)
    if match is None or "*" in name:
        raise ConfigError(f"--explain {text} is no cell; write a head, a row and a column, such as --explain c2.5:3,4")
    attention, number = name.rsplit(".", 1)
    return attention, int(number), int(match[1]), int(match[2])
