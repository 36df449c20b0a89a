"""A `ModelConfig` is the shape of a Transformer: all that decides its parameters and its forward pass.

The defaults are the paper's base model. Presets name the sizes that people use; all but the paper's own normalize before
each sub-layer, which trains without a careful warm-up (Xiong et al. 2020).
"""

import math
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from limelight.config import SparseSettings
from limelight.errors import ConfigError

Activation = Literal["relu", "gelu", "silu", "reglu", "geglu", "swiglu"]
PositionLayout = Literal["interleaved", "halves", "tensor2tensor"]


class ModelConfig(SparseSettings):
    """ModelConfig(vocab_size=37_000) is the base model of the paper, 63 million parameters."""

    rare: ClassVar = {"head_width"}

    vocab_size: int = Field(gt=0, le=10_000_000, description="Pieces of the target, or of both sides when they share them.")
    source_vocab_size: int | None = Field(default=None, gt=0, le=10_000_000, description="Only when the source has pieces of its own.")

    encoder_layers: int = Field(default=6, ge=1, le=1000, description="The paper's N.")
    decoder_layers: int = Field(default=6, ge=1, le=1000)
    d_model: int = Field(default=512, gt=0, le=1_000_000)
    d_ff: int = Field(default=2048, gt=0, le=4_000_000)
    num_heads: int = Field(default=8, gt=0, le=10_000)
    num_kv_heads: int | None = Field(default=None, gt=0, description="Fewer heads for k and v: grouped-query attention.")
    head_width: int | None = Field(default=None, gt=0, le=1_000_000, description="Where heads were pruned. None: d_model / num_heads.")

    norm_order: Literal["pre", "post"] = Field(default="post", description="post is the paper's.")
    norm: Literal["layer", "rms"] = "layer"
    norm_eps: float = Field(default=1e-5, gt=0)
    activation: Activation = Field(default="relu", description="relu is the paper's; the last three are gated.")
    bias: bool = Field(default=True, description="Biases in the projections of attention and feed-forward.")

    positions: Literal["sinusoidal", "learned", "rotary"] = "sinusoidal"
    position_layout: PositionLayout = Field(
        default="interleaved",
        description="Where sine and cosine stand: in turns (the paper), in two halves (Marian), "
        "or in halves with the frequencies of tensor2tensor (fairseq, M2M100).",
    )
    position_offset: int = Field(default=0, ge=0, le=1024, description="Position of the first piece (M2M100: 2).")
    max_length: int = Field(default=1024, gt=0, le=100_000, description="Longest sequence, in pieces.")

    tie: Literal["all", "decoder", "none"] = Field(default="all", description="Which embeddings are one matrix with the output.")
    scale_embeddings: bool = Field(default=True, description="Multiply embeddings by sqrt(d_model) (3.4).")
    output_bias: bool = Field(default=False, description="A bias per piece on the logits (Marian).")
    pad_token: int = Field(default=0, ge=0)
    start_token: int = Field(default=2, ge=0, description="What the decoder reads first (Marian: pad_token; M2M100: end_token).")
    end_token: int = Field(default=3, ge=0)

    dropout: float = Field(default=0.1, ge=0, lt=1, description="On sub-layer outputs and on embeddings plus positions (5.4).")
    attention_dropout: float = Field(default=0.0, ge=0, lt=1, description="On attention weights. Not in the paper.")
    activation_dropout: float = Field(default=0.0, ge=0, lt=1, description="Inside the feed-forward. Not in the paper.")

    @property
    def d_head(self) -> int:
        """The paper's d_k = d_v = d_model / h; what is left of a model from which heads were pruned keeps its own."""
        return self.head_width or self.d_model // self.num_heads

    @property
    def heads_width(self) -> int:
        """All heads of an attention side by side; d_model where none was pruned."""
        return self.num_heads * self.d_head

    @property
    def kv_heads(self) -> int:
        return self.num_kv_heads or self.num_heads

    @property
    def source_vocab(self) -> int:
        return self.source_vocab_size or self.vocab_size

    @property
    def gated(self) -> bool:
        return self.activation in ("reglu", "geglu", "swiglu")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        problems = [*self._head_problems(), *self._vocabulary_problems()]
        if self.position_layout == "tensor2tensor" and self.positions != "sinusoidal":
            problems.append(f"position_layout=tensor2tensor is for sinusoidal positions, not {self.positions}; try halves")
        return self.refuse(problems)

    def _head_problems(self) -> list[str]:
        problems = []
        if self.head_width is None and self.d_model % self.num_heads:
            fits = math.gcd(self.d_model, self.num_heads)
            problems.append(f"d_model={self.d_model} does not split into num_heads={self.num_heads} equal heads; try num_heads={fits}")
        if self.num_heads % self.kv_heads:
            fits = math.gcd(self.num_heads, self.kv_heads)
            problems.append(f"num_kv_heads={self.kv_heads} does not divide num_heads={self.num_heads}; try num_kv_heads={fits}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            problems.append(f"sinusoidal positions come in pairs, d_model={self.d_model} is odd; try d_model={self.d_model + 1}")
        if self.positions == "rotary" and self.d_head % 2:
            problems.append(f"rotary positions turn pairs of numbers, d_head={self.d_head} is odd; choose num_heads so that it is even")
        return problems

    def _vocabulary_problems(self) -> list[str]:
        problems = []
        if self.tie == "all" and self.source_vocab != self.vocab_size:
            problems.append(
                f"tie=all needs one vocabulary, but source_vocab_size={self.source_vocab} and vocab_size={self.vocab_size}; try tie=decoder"
            )
        for name in ("pad_token", "start_token", "end_token"):
            if getattr(self, name) >= self.vocab_size:
                problems.append(f"{name}={getattr(self, name)} is not in a vocabulary of {self.vocab_size}; give one below it")
        return problems

    @classmethod
    def preset(cls, name: str, vocab_size: int, **changes: Any) -> Self:
        """ModelConfig.preset("small", 8_000, dropout=0.3)"""
        if name not in PRESETS:
            raise ConfigError(f"there is no preset {name!r}; the presets are {', '.join(PRESETS)}")
        return cls(**{"vocab_size": vocab_size, **PRESETS[name], **changes})


_MODERN = {
    "norm": "rms",
    "activation": "swiglu",
    "positions": "rotary",
    "bias": False,
    "num_kv_heads": 8,
    "max_length": 8192,
}


def _size(layers: tuple[int, int], d_model: int, d_ff: int, num_heads: int, **more: Any) -> dict[str, Any]:
    shape = {
        "encoder_layers": layers[0],
        "decoder_layers": layers[1],
        "d_model": d_model,
        "d_ff": d_ff,
        "num_heads": num_heads,
    }
    return {**shape, "norm_order": "pre", **more}


PRESETS: dict[str, dict[str, Any]] = {
    "toy": _size((2, 2), 64, 256, 4),
    "tiny": _size((2, 2), 128, 512, 4),
    "slim": _size((4, 4), 128, 256, 4),  # that of fairseq's `transformer_tiny`: for short text that is seen often
    "small": _size((3, 3), 256, 1024, 4),
    "student": _size((6, 2), 256, 1024, 4),  # taught by a larger one; as `deep`, and with 32,000 pieces 15 MB in int8
    "base": _size((6, 6), 512, 2048, 8, norm_order="post"),  # table 3, base
    "big": _size((6, 6), 1024, 4096, 16, norm_order="post", dropout=0.3),  # table 3, big
    "deep": _size((12, 2), 512, 2048, 8),  # deep encoder, shallow decoder: fast to decode (Kasai et al. 2021)
    "3b": _size((24, 24), 2048, 8192, 32, **_MODERN),
    "10b": _size((32, 32), 3072, 12288, 48, **_MODERN),
}
