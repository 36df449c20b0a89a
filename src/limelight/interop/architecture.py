"""An `Architecture` of Hugging Face turns its config.json into our ModelConfig and back, or says why it cannot."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, Field

from limelight.config import Settings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig, PositionLayout

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "silu": "silu", "swish": "silu"}  # theirs to ours
NORM_EPS = 1e-5  # theirs cannot be changed


class Published(Settings):
    """Published has the keys of config.json that decide what a model computes. An architecture has its own defaults for some of them."""

    model_config = ConfigDict(extra="ignore")

    vocab_size: int
    decoder_vocab_size: int | None = Field(default=None, ge=1, le=10_000_000)
    d_model: int = Field(default=1024, ge=1, le=1_000_000)
    encoder_layers: int = Field(default=12, ge=1, le=1000)
    decoder_layers: int = Field(default=12, ge=1, le=1000)
    encoder_attention_heads: int = Field(default=16, ge=1, le=10_000)
    decoder_attention_heads: int = Field(default=16, ge=1, le=10_000)
    encoder_ffn_dim: int = Field(default=4096, ge=1, le=4_000_000)
    decoder_ffn_dim: int = Field(default=4096, ge=1, le=4_000_000)
    max_position_embeddings: int = Field(default=1024, ge=2, le=10_000_000)
    activation_function: str = Field(default="gelu", max_length=100)
    scale_embedding: bool = False
    tie_word_embeddings: bool = True
    share_encoder_decoder_embeddings: bool = True
    pad_token_id: int
    eos_token_id: int
    decoder_start_token_id: int
    dropout: float = Field(default=0.1, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    activation_dropout: float = Field(default=0.0, ge=0, lt=1)


@dataclass(frozen=True)
class Architecture:
    model_type: str  # as config.json names it
    model_class: str
    usual: Mapping[str, Any]  # keys of config.json that may be left out
    norm_order: Literal["pre", "post"]
    layout: PositionLayout = "halves"
    bias: bool = True  # a bias per piece on the logits?
    separate: bool = False  # may source and target have their own vocabularies?
    tables: bool = False  # are the positions stored?

    def offset(self, pad_token: int) -> int:
        """The position of the first piece. In fairseq's it is that after the id of the padding."""
        return pad_token + 1 if self.layout == "tensor2tensor" else 0

    @property
    def fixed(self) -> dict[str, bool]:
        """Keys of old files that are computed in one way only."""
        first = self.norm_order == "pre"
        every = {"normalize_before": first, "normalize_embedding": False, "add_final_layer_norm": first}
        of_marian = {"add_bias_logits": False, "static_position_embeddings": True}
        return every if self.layout == "tensor2tensor" else every | of_marian

    def read(self, config: Mapping[str, Any]) -> tuple[ModelConfig, list[str]]:
        """The model of a config.json, without its output bias, and every problem; with a problem the model is of no use."""
        try:
            p = Published(**{**self.usual, **config})
        except ConfigError as error:
            raise ConfigError("", [f"config.json: {problem[:300]}" for problem in error.problems]) from None
        problems = [
            f"config.json: has {name}={str(config[name])[:99]}, and {self.model_class} computes {name}={value} only"
            for name, value in self.fixed.items()
            if config.get(name, value) != value
        ]
        for what in ("attention_heads", "ffn_dim"):
            encoder, decoder = (getattr(p, f"{side}_{what}") for side in ("encoder", "decoder"))
            if encoder != decoder:
                problems.append(f"config.json: has encoder_{what}={encoder} and decoder_{what}={decoder}; Limelight has one for both")
        if p.activation_function not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            problems.append(f"config.json: has activation_function={p.activation_function!r}; known are {known}")
        try:
            model = ModelConfig(**self._model(p))
        except ConfigError as error:
            raise ConfigError("", [*problems, *(f"config.json: {problem[:300]}" for problem in error.problems)]) from None
        if problems:
            raise ConfigError("", problems)
        lost = [f"{name}={config[name]}" for name in ("encoder_layerdrop", "decoder_layerdrop") if config.get(name)]
        return model, [f"not used when it is trained on: {', '.join(lost)}"] if lost else []

    def _model(self, p: Published) -> dict[str, Any]:
        shared = p.share_encoder_decoder_embeddings or not self.separate
        target = p.vocab_size if shared else p.decoder_vocab_size or p.vocab_size
        return {
            "vocab_size": target,
            "source_vocab_size": p.vocab_size if p.vocab_size != target else None,
            "encoder_layers": p.encoder_layers,
            "decoder_layers": p.decoder_layers,
            "d_model": p.d_model,
            "d_ff": p.encoder_ffn_dim,
            "num_heads": p.encoder_attention_heads,
            "norm_order": self.norm_order,
            "norm_eps": NORM_EPS,
            "activation": ACTIVATIONS.get(p.activation_function, "relu"),
            "position_layout": self.layout,
            "position_offset": self.offset(p.pad_token_id),
            "max_length": p.max_position_embeddings,
            "tie": "none" if not p.tie_word_embeddings else "all" if shared else "decoder",
            "scale_embeddings": p.scale_embedding,
            "pad_token": p.pad_token_id,
            "start_token": p.decoder_start_token_id,
            "end_token": p.eos_token_id,
            "dropout": p.dropout,
            "attention_dropout": p.attention_dropout,
            "activation_dropout": p.activation_dropout,
        }

    def misfits(self, c: ModelConfig) -> list[str]:
        """Why the architecture cannot hold a model; empty when it can."""
        problems = []
        if c.norm_order != self.norm_order:
            problems.append(f"norm_order={c.norm_order}")
        # In turns is in halves with the stream in another order (names.py).
        if c.position_layout != self.layout and (self.layout, c.position_layout) != ("halves", "interleaved"):
            problems.append(f"position_layout={c.position_layout}")
        if c.position_offset != self.offset(c.pad_token):
            problems.append(f"position_offset={c.position_offset}")
        if c.output_bias and not self.bias:
            problems.append("output_bias=true")
        if c.source_vocab != c.vocab_size and not self.separate:
            problems.append(f"a vocabulary for each side ({c.source_vocab:,} and {c.vocab_size:,} pieces)")
        return problems

    def write(self, c: ModelConfig) -> dict[str, Any]:
        """The keys of config.json. The inverse of `read`, but for the layout of positions and the tying, which the file cannot say."""
        shared = c.tie == "all"
        theirs = {ours: name for name, ours in ACTIVATIONS.items()}
        separate = {"decoder_vocab_size": c.vocab_size, "share_encoder_decoder_embeddings": shared}
        return {
            "architectures": [self.model_class],
            "model_type": self.model_type,
            "is_encoder_decoder": True,
            "vocab_size": c.source_vocab,
            **(separate if self.separate else {}),
            "d_model": c.d_model,
            **{f"{side}_layers": getattr(c, f"{side}_layers") for side in ("encoder", "decoder")},
            **{f"{side}_attention_heads": c.num_heads for side in ("encoder", "decoder")},
            **{f"{side}_ffn_dim": c.d_ff for side in ("encoder", "decoder")},
            **{f"{side}_layerdrop": 0.0 for side in ("encoder", "decoder")},
            "max_position_embeddings": c.max_length,
            "activation_function": theirs[c.activation],
            "scale_embedding": c.scale_embeddings,
            "tie_word_embeddings": shared or (self.separate and c.tie == "decoder"),
            "pad_token_id": c.pad_token,
            "eos_token_id": c.end_token,
            "decoder_start_token_id": c.start_token,
            "bos_token_id": None,
            "forced_eos_token_id": None,
            "dropout": c.dropout,
            "attention_dropout": c.attention_dropout,
            "activation_dropout": c.activation_dropout,
        }


# Marian, which OPUS-MT uses, is the paper's Transformer with norms after the sub-layers: the first piece has position 0, sine and cosine
# stand in two halves, the logits have a bias, and a translation starts with the padding. Both sides may have vocabularies of their own.
MARIAN = Architecture(
    "marian",
    "MarianMTModel",
    {"vocab_size": 58101, "pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100},
    norm_order="post",
    separate=True,
)
# Pegasus is Marian with norms before the sub-layers, one more at the end of each stack, and one vocabulary. It was made for summaries, but
# it is a plain Transformer whose bias may be left out: `limelight train` makes it (docs/decisions/0022-pegasus-for-export.md).
PEGASUS = Architecture(
    "pegasus",
    "PegasusForConditionalGeneration",
    {"vocab_size": 50265, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    norm_order="pre",
    tables=True,
)
# M2M100, and with other languages NLLB, has norms before the sub-layers and many languages in one vocabulary. Positions are those
# of tensor2tensor and begin after the id of the padding. A source begins with its language; a translation starts with the end and goes on
# with its language.
M2M100 = Architecture(
    "m2m_100",
    "M2M100ForConditionalGeneration",
    {"vocab_size": 128112, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    | {"activation_function": "relu", "scale_embedding": True, "attention_dropout": 0.1},
    norm_order="pre",
    layout="tensor2tensor",
    bias=False,
)
ARCHITECTURES = {one.model_type: one for one in (MARIAN, PEGASUS, M2M100)}


def unlike_all(c: ModelConfig) -> list[str]:
    problems = []
    for name, wanted in (("positions", "sinusoidal"), ("norm", "layer"), ("bias", True), ("norm_eps", NORM_EPS)):
        if getattr(c, name) != wanted:
            problems.append(f"{name}={getattr(c, name)}; theirs is {wanted}")
    if c.activation not in ACTIVATIONS.values():
        problems.append(f"activation={c.activation}; theirs are {', '.join(dict.fromkeys(ACTIVATIONS.values()))}")
    if c.kv_heads != c.num_heads:
        problems.append(f"num_kv_heads={c.kv_heads}; theirs have as many as num_heads={c.num_heads}")
    if c.heads_width != c.d_model:
        problems.append(f"pruned heads, {c.num_heads} of width {c.d_head}; theirs fill d_model={c.d_model}")
    return problems
