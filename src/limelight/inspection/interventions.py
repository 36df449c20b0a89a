"""`Changes` are the dimmed heads, hidden pieces, pins, positions and temperature that a trace is made under."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, model_validator

from limelight.config import Settings
from limelight.inspection.head_names import PATTERN

Gate = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
POSITIONS = r"normal|zero|shuffle:[0-9]{1,18}|shift:[0-9]{1,7}"


class Pin(Settings):
    """At one step, all heads of the cross-attention look at one source piece: w' = (1 - strength) w + strength * onehot(source)."""

    step: int = Field(ge=0, description="The row: which target piece, counted from 0, is about to be predicted.")
    source: int = Field(ge=0, description="The column: which source piece is looked at.")
    layers: Literal["*"] | tuple[NonNegativeInt, ...] = Field(default="*", description="Of the decoder; * for all.")
    strength: Gate = Field(default=1.0, description="1: at this piece only. 0: as without the pin.")


class Changes(Settings):
    """Changes(gates={"cross.*.*": 0}) turns off all light from the source. Changes() changes nothing, to the last bit."""

    gates: dict[str, Gate] = Field(
        default={},
        max_length=10_000,
        description="By head (cross.5.2) or pattern (enc.0.*, *): 0 is dark, 1 as trained. Later patterns win.",
    )
    gate_mode: Literal["zero", "mean"] = Field(
        default="zero",
        description="What a dimmed head gives instead: nothing, or the mean of all values it may look at.",
    )
    mask_source: tuple[NonNegativeInt, ...] = Field(
        default=(), max_length=10_000, description="Source pieces that nobody looks at, as if they were padding."
    )
    pins: tuple[Pin, ...] = Field(default=(), max_length=10_000)
    positions: str = Field(default="normal", description="normal, zero, shuffle:SEED or shift:K.")
    attention_temperature: float = Field(
        default=1.0, gt=0, le=100, description="All scores are divided by it: below 1 sharpens, above 1 flattens."
    )

    @model_validator(mode="after")
    def _can_be_read(self) -> Self:
        problems = [
            f"gates: {name!r} names no head; write cross.5.2, enc.0.*, cross.*.* or *"
            for name in self.gates
            if not re.fullmatch(PATTERN, name)
        ]
        if not re.fullmatch(POSITIONS, self.positions):
            problems.append(
                f"positions: {self.positions!r} is none of normal, zero, shuffle:SEED and shift:K, such as shuffle:7 or shift:3"
            )
        for pin in self.pins:
            if pin.source in self.mask_source and pin.strength:
                problems.append(f"source piece {pin.source} is hidden and pinned at once; leave out one of the two")
        if problems:
            raise ValueError("\n".join(problems))
        return self

    def any(self) -> bool:
        """May anything be different? Gates of 1 and pins without strength are none."""
        dimmed = any(gate != 1 for gate in self.gates.values()) or any(pin.strength for pin in self.pins)
        return dimmed or bool(self.mask_source) or self.positions != "normal" or self.attention_temperature != 1
