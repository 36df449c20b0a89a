"""Heads and stages have names that are the same in Python, in JSON, on the page and in the docs.

cross.5.2       head 2 in layer 5 of the cross-attention; layers and heads are counted from 0
enc.0.*         all heads of layer 0 of the encoder; `cross.*.*`, and `*` for every head there is
enc.0.scores    a stage of the encoder's layer 0;  dec.0.cross.attn (or cross.0.attn) one of the decoder's
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from limelight.errors import ConfigError
from limelight.model.config import ModelConfig

Kind = Literal["enc", "dec", "cross"]
KINDS: Final[tuple[Kind, ...]] = ("enc", "dec", "cross")
KIND_OF: Final[dict[str, Kind]] = {"encoder": "enc", "decoder": "dec", "cross": "cross"}  # by the model's own words

ATTENTION_STAGES: Final = ("q", "k", "v", "scores", "scaled", "masked", "attn", "heads", "concat", "add_norm")
PATTERN: Final = r"\*|(enc|dec|cross)\.(\*|[0-9]{1,4})\.(\*|[0-9]{1,5})"
Gates = npt.NDArray[np.float32]


class Head(NamedTuple):
    """A head is Head("cross", 5, 2), written cross.5.2"""

    kind: Kind
    layer: int
    head: int

    def __str__(self) -> str:
        return f"{self.kind}.{self.layer}.{self.head}"

    @classmethod
    def parse(cls, text: str) -> "Head":
        match = re.fullmatch(PATTERN, text)
        if match is None or "*" in text:
            raise ConfigError(f"{text!r} names no head; write one as cross.5.2: kind (enc, dec, cross), layer, head")
        return cls(match[1], int(match[2]), int(match[3]))  # type: ignore[arg-type]


def layers_of(kind: Kind, config: ModelConfig) -> int:
    return config.encoder_layers if kind == "enc" else config.decoder_layers


def heads_of(config: ModelConfig) -> list[Head]:
    """All of them: encoder, decoder, cross; layer by layer."""
    return [Head(kind, *at) for kind in KINDS for at in np.ndindex(layers_of(kind, config), config.num_heads)]


def resolve_gates(gates: Mapping[str, float], config: ModelConfig) -> dict[Kind, Gates]:
    """The gate of every head (layers, heads), by kind: 1 unless a pattern names it; of several patterns the last one counts."""
    found = {kind: np.ones((layers_of(kind, config), config.num_heads), np.float32) for kind in KINDS}
    problems = []
    for pattern, gate in gates.items():
        match = re.fullmatch(PATTERN, pattern)
        if match is None:
            problems.append(f"{pattern!r} names no head; write cross.5.2, enc.0.*, cross.*.* or *")
            continue
        for kind in KINDS if pattern == "*" else (match[1],):
            layer, head = match[2] or "*", match[3] or "*"
            rows, columns = found[kind].shape  # type: ignore[index]
            if (layer != "*" and int(layer) >= rows) or (head != "*" and int(head) >= columns):
                problems.append(f"{pattern} is not there: {kind} has layers 0 to {rows - 1} and heads 0 to {columns - 1}")
                continue
            every = slice(None)
            found[kind][every if layer == "*" else int(layer), every if head == "*" else int(head)] = gate  # type: ignore[index]
    if problems:
        raise ConfigError("these gates cannot be set:", problems)
    return found


def stage_names(encoder_layers: int, decoder_layers: int) -> list[str]:
    """Every stage in the order in which it comes about (explained in docs/inspect.md)."""
    encoder = [f"enc.{layer}.{stage}" for layer in range(encoder_layers) for stage in (*ATTENTION_STAGES, "ffn", "out")]
    decoder = [
        f"dec.{layer}.{stage}"
        for layer in range(decoder_layers)
        for stage in (*(f"{part}.{s}" for part in ("self", "cross") for s in ATTENTION_STAGES), "ffn", "out")
    ]
    source, target = ["src.ids", "src.embed", "pos.enc", "enc.in"], ["tgt.ids", "tgt.embed", "pos.dec", "dec.in"]
    return [*source, *encoder, "memory", *target, *decoder, "decoded", "logits", "probs"]


def full_name(stage: str) -> str:
    """cross.2.attn -> dec.2.cross.attn; dec.2.attn -> dec.2.self.attn; any other name is its own."""
    if match := re.fullmatch(r"cross\.([0-9]+)\.([a-z_]+)", stage):
        return f"dec.{match[1]}.cross.{match[2]}"
    if (match := re.fullmatch(r"dec\.([0-9]+)\.([a-z_]+)", stage)) and match[2] in ATTENTION_STAGES:
        return f"dec.{match[1]}.self.{match[2]}"
    return stage


def attention_prefix(kind: Kind, layer: int) -> str:
    """What the stages of an attention begin with: ("cross", 2) -> dec.2.cross"""
    return {"enc": f"enc.{layer}", "dec": f"dec.{layer}.self", "cross": f"dec.{layer}.cross"}[kind]


def parse_attention(text: str) -> tuple[Kind, int]:
    """cross.2 -> ("cross", 2); so do dec.2.cross, cross.2.attn and dec.2.cross.attn."""
    match = re.fullmatch(r"(?:(enc|dec|cross)\.([0-9]{1,4})|dec\.([0-9]{1,4})\.(self|cross))(\.attn)?", text)
    if match is None:
        raise ConfigError(f"{text!r} names no attention; write one as cross.2: kind (enc, dec, cross) and layer")
    if match[1] is not None:
        return match[1], int(match[2])  # type: ignore[return-value]
    return ("cross" if match[4] == "cross" else "dec"), int(match[3])
