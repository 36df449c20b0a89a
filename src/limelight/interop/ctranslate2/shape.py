"""A `Shape` is the kind of Transformer that a CTranslate2 model is, read off its tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from limelight.errors import ConfigError
from limelight.interop.ctranslate2.file import EngineModel
from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids

PLAIN, GATED = {0: "relu", 2: "silu", 3: "gelu"}, {0: "reglu", 2: "swiglu", 3: "geglu"}  # by the engine's numbers
HEADS = {"TransformerBase": 8, "TransformerBig": 16}  # old specifications name the size and not the heads
OLD_POSITIONS = 500  # of the table that the engine computes by itself
OFF = ("alibi", "alibi_use_positive_positions", "scale_alibi", "start_from_zero_embedding", "scale_outputs")
UNKNOWN = "<unk>"


class Shape:
    def __init__(self, model: EngineModel) -> None:
        self.spec, self.variables = model.spec, model.variables
        self.encoder, self.decoder = (_embedding(model.variables, side) for side in ("encoder", "decoder"))

    def flag(self, name: str, default: int, side: str = "encoder") -> int:
        value = self.variables.get(f"{side}/{name}", self.variables.get(name))
        return default if value is None or value.numel() != 1 else int(value)

    def has(self, name: str) -> bool:
        return name in self.variables

    @property
    def activation(self) -> str | None:
        gated = self.has("encoder/layer_0/ffn/linear_0_noact/weight")
        return (GATED if gated else PLAIN).get(self.flag("activation", 0))

    @property
    def tie(self) -> str:
        output = self.variables.get("decoder/projection/weight")
        if output is not None and not _same(output, self.decoder):
            return "none"
        return "all" if _same(self.encoder, self.decoder) else "decoder"

    def problems(self, source: Sequence[str], target: Sequence[str]) -> list[str]:
        if self.encoder is None or self.decoder is None:
            return [f"model.bin: {self.spec} has no embeddings of an encoder and a decoder; it is no translator"]
        found = [
            f"model.bin: the {side} has {len(rows)} embeddings for {len(pieces)} pieces"
            for side, rows, pieces in (("encoder", self.encoder, source), ("decoder", self.decoder, target))
            if len(rows) != len(pieces)
        ]
        if self.activation is None:
            found.append(f"model.bin: activation {self.flag('activation', 0)} of the engine is not known here")
        for name, default in (("activation", 0), ("pre_norm", 1), ("scale_embeddings", 1)):
            if self.flag(name, default) != self.flag(name, default, "decoder"):
                found.append(f"model.bin: {name} differs between encoder and decoder")
        found += self._rotary_problems()
        on = [f"{side}/{name}" for side in ("encoder", "decoder") for name in OFF if self.flag(name, 0, side)]
        return found + [f"model.bin: {name} is on, which Limelight has not" for name in on]

    def _rotary_problems(self) -> list[str]:
        place, found = "encoder/layer_0/self_attention", []
        if self.flag("rotary_base", 10_000, place) != 10_000:
            found.append("model.bin: rotary_base is not 10,000, the only one that Limelight has")
        heads = self.flag("num_heads", HEADS.get(self.spec, 8))
        if self.flag("rotary_dim", 0, place) not in (0, self.flag("head_dim", 0, place) or self.decoder.shape[1] // max(heads, 1)):
            found.append("model.bin: rotary_dim turns a part of each head, and Limelight turns all of it")
        return found


def config_of(model: EngineModel, facts: Mapping[str, Any], source: Sequence[str], target: Sequence[str]) -> ModelConfig:
    """Our model of this kind, or a ConfigError with every reason why there is none."""
    shape = Shape(model)
    if problems := shape.problems(source, target) or _side_problems(facts, source, target):
        raise ConfigError("", problems)
    d_model, tie = shape.decoder.shape[1], shape.tie
    try:
        return ModelConfig(
            vocab_size=len(target),
            source_vocab_size=None if tie == "all" else len(source),
            encoder_layers=_layers(shape.variables, "encoder"),
            decoder_layers=_layers(shape.variables, "decoder"),
            d_model=d_model,
            d_ff=len(shape.variables["encoder/layer_0/ffn/linear_0/weight"]),
            num_heads=shape.flag("num_heads", HEADS.get(model.spec, 8)),
            num_kv_heads=shape.flag("num_heads_kv", 0, "encoder/layer_0/self_attention") or None,
            head_width=shape.flag("head_dim", 0, "encoder/layer_0/self_attention") or None,
            norm_order="pre" if shape.flag("pre_norm", 1) else "post",
            norm="layer" if shape.has("encoder/layer_0/ffn/layer_norm/beta") else "rms",
            norm_eps=facts.get("layer_norm_epsilon") or 1e-5,
            activation=shape.activation,
            bias=shape.has("encoder/layer_0/ffn/linear_0/bias"),
            tie=tie,
            scale_embeddings=bool(shape.flag("scale_embeddings", 1)),
            output_bias=shape.has("decoder/projection/bias"),
            **_tokens(facts, target),
            **_positions(shape.variables, d_model),
        )
    except ConfigError as error:
        raise ConfigError("", [f"model.bin: does not fit together ({one[:300]})" for one in error.problems]) from None


def _tokens(facts: Mapping[str, Any], target: Sequence[str]) -> dict[str, int]:
    place = {piece: number for number, piece in enumerate(target)}
    start, end = facts.get("decoder_start_token", "<s>"), facts.get("eos_token", "</s>")
    # The engine needs no padding piece; the start serves, which stands in no text either.
    blank = next((piece for piece in ("<blank>", "<pad>", start) if piece in place and piece != end), None)
    if missing := [piece for piece in (start, end) if piece not in place]:
        raise ValueError(f"{' and '.join(missing)} not among the pieces of the target")
    if blank is None:
        raise ValueError("no piece that can serve as padding")
    return {"pad_token": place[blank], "start_token": place[start], "end_token": place[end]}


def _side_problems(facts: Mapping[str, Any], source: Sequence[str], target: Sequence[str]) -> list[str]:
    """A bundle has one padding, one end and one unknown piece for both sides; the engine may have two."""
    if facts.get("add_source_bos"):
        return ["config.json: add_source_bos is on, and Limelight begins sources with no start piece"]
    tokens, unknown = _tokens(facts, target), facts.get("unk_token", UNKNOWN)
    problems = [
        f"{name} is piece {number} of the target, {target[number]!r}, and the source has {source[number : number + 1]} there"
        for name, number in tokens.items()
        if name != "start_token" and source[number : number + 1] != target[number : number + 1]
    ]
    return problems if unknown in source else [*problems, f"the source has no piece {unknown!r}"]


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a, b)


def _positions(variables: Mapping[str, Tensor], d_model: int) -> dict[str, Any]:
    """Without a table the engine computes tensor2tensor's, from position 1 on."""
    rotary = variables.get("encoder/layer_0/self_attention/rotary_dim")
    if rotary is not None:
        turns = variables.get("encoder/layer_0/self_attention/rotary_interleave", torch.ones(1))
        return {"positions": "rotary", "position_layout": "interleaved" if bool(turns) else "halves"}
    table = variables.get("encoder/position_encodings/encodings")
    if table is None:
        known = {"position_layout": "tensor2tensor", "position_offset": 1}
        return {"positions": "sinusoidal", "max_length": OLD_POSITIONS, **known}
    if table.dim() != 2 or table.shape[1] != d_model:
        raise ValueError(f"positions of shape {tuple(table.shape)} for d_model={d_model}")
    within = 1e-5 if table.dtype == torch.float32 else 5e-3  # what 16 bits lose
    for layout in ("interleaved", "halves", "tensor2tensor"):
        for offset in (0, 1, 2):
            computed = sinusoids(len(table), d_model, layout, offset).float()
            if torch.allclose(computed, table.float(), rtol=0, atol=within):
                known = {"position_layout": layout, "position_offset": offset}
                return {"positions": "sinusoidal", "max_length": len(table), **known}
    return {"positions": "learned", "max_length": len(table)}


def _embedding(variables: Mapping[str, Tensor], side: str) -> Any:
    for name in (f"{side}/embeddings/weight", f"{side}/embeddings_0/weight"):
        if name in variables and variables[name].dim() == 2:
            return variables[name]
    return None


def _layers(variables: Mapping[str, Tensor], side: str) -> int:
    count = 0
    while f"{side}/layer_{count}/ffn/linear_0/weight" in variables:
        count += 1
    return count
