"""The model equals torch.nn.Transformer with the same weights, in float32: logits, and the gradient of every parameter.

Ours trains by its own way, `Transformer.loss` on packed or padded batches; theirs by F.cross_entropy on whole logits.
"""

import math
import random
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import oracle
from limelight.model import attention
from limelight.model.attention import Visible
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer

LOGITS_TOLERANCE = 1e-5
GRADIENT_TOLERANCE = 1e-4
PAD, SMOOTHING = 0, 0.1

NAMES = {  # ours, theirs
    "attention.out": "self_attn.out_proj",
    "cross_attention.out": "multihead_attn.out_proj",
    "feed_forward.up": "linear1",
    "feed_forward.down": "linear2",
}
NORMS = {
    "encoder": {"attention_norm": "norm1", "feed_forward_norm": "norm2"},
    "decoder": {"attention_norm": "norm1", "cross_attention_norm": "norm2", "feed_forward_norm": "norm3"},
}


class TorchTranslator(nn.Module):
    """torch.nn.Transformer with the paper's embeddings, positions and tied output around it."""

    def __init__(self, c: ModelConfig) -> None:
        super().__init__()
        common = {
            "dropout": 0.0,
            "batch_first": True,
            "norm_first": c.norm_order == "pre",
            "layer_norm_eps": c.norm_eps,
        }
        shape = (c.d_model, c.num_heads, c.d_ff)
        encoder_layer = nn.TransformerEncoderLayer(*shape, activation=c.activation, **common)
        decoder_layer = nn.TransformerDecoderLayer(*shape, activation=c.activation, **common)
        # By itself nn.Transformer puts a norm more at the end of post-norm stacks, which the paper does not have.
        norms = [nn.LayerNorm(c.d_model, c.norm_eps) if c.norm_order == "pre" else None for _ in range(2)]
        self.core = nn.Transformer(
            c.d_model,
            c.num_heads,
            custom_encoder=nn.TransformerEncoder(encoder_layer, c.encoder_layers, norms[0], enable_nested_tensor=False),
            custom_decoder=nn.TransformerDecoder(decoder_layer, c.decoder_layers, norms[1]),
            batch_first=True,
        )
        self.embedding = nn.Parameter(torch.empty(c.vocab_size, c.d_model))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.3 if parameter.dim() == 1 else parameter.shape[1] ** -0.5)
        for module in self.modules():
            if isinstance(module, nn.LayerNorm):
                nn.init.uniform_(module.weight, 0.5, 1.5)

    def forward(self, source: Tensor, target: Tensor, target_hidden: Tensor) -> Tensor:
        T = target.shape[1]
        x, y = (self.embed(ids) for ids in (source, target))
        ahead_TT = torch.ones(T, T, dtype=torch.bool).triu(1)
        hidden = {"src_key_padding_mask": source == PAD, "memory_key_padding_mask": source == PAD}
        decoded = self.core(x, y, tgt_mask=ahead_TT, tgt_key_padding_mask=target_hidden, **hidden)
        return decoded @ self.embedding.T

    def embed(self, ids: Tensor) -> Tensor:
        d_model = self.embedding.shape[1]
        positions = torch.from_numpy(oracle.sinusoidal_positions(ids.shape[1], d_model)).float()
        return F.embedding(ids, self.embedding) * math.sqrt(d_model) + positions


def ours_from_theirs(theirs: dict[str, Tensor], config: ModelConfig) -> dict[str, Tensor]:
    """Their weights, or gradients, by our names: each one goes to exactly one place."""
    ours = {"target_embedding.weight": theirs.pop("embedding")}
    theirs = {name.removeprefix("core."): tensor for name, tensor in theirs.items()}

    def move(name: str, other: str) -> None:
        ours.update({f"{name}.{kind}": theirs.pop(f"{other}.{kind}") for kind in ("weight", "bias")})

    for side, layers in {"encoder": config.encoder_layers, "decoder": config.decoder_layers}.items():
        for i in range(layers):
            names = {name: other for name, other in NAMES.items() if side == "decoder" or "cross" not in name}
            for name, other in {**names, **NORMS[side]}.items():
                move(f"{side}.blocks.{i}.{name}", f"{side}.layers.{i}.{other}")
            for kind in ("weight", "bias"):
                qkv = theirs.pop(f"{side}.layers.{i}.self_attn.in_proj_{kind}")
                ours[f"{side}.blocks.{i}.attention.qkv.{kind}"] = by_head(qkv, 3, config)
                if side == "decoder":
                    q, kv = theirs.pop(f"{side}.layers.{i}.multihead_attn.in_proj_{kind}").tensor_split([config.d_model])
                    ours[f"{side}.blocks.{i}.cross_attention.q.{kind}"] = q
                    ours[f"{side}.blocks.{i}.cross_attention.kv.{kind}"] = by_head(kv, 2, config)
        if config.norm_order == "pre":
            move(f"{side}.norm", f"{side}.norm")
    assert not theirs
    return ours


def by_head(rows: Tensor, kinds: int, config: ModelConfig) -> Tensor:
    """All q, all k, all v -> head by head [q k v]."""
    return rows.unflatten(0, (kinds, config.num_heads, config.d_head)).transpose(0, 1).flatten(0, 2)


@dataclass(frozen=True)
class Errors:
    """logits: largest difference; gradient: the same, relative to the parameter's largest gradient, of the worst parameter."""

    logits: float
    gradient: float


def draw_ids(rng: random.Random, rows: int, longest: int, vocab_size: int) -> Tensor:
    """Sentences that end in padding, one of them as long as can be, one shorter."""
    lengths = [longest, rng.randint(1, longest - 1), *(rng.randint(1, longest) for _ in range(rows - 2))]
    return torch.tensor([[rng.randrange(4, vocab_size) if s < n else PAD for s in range(longest)] for n in lengths])


def compare(seed: int, norm_order: str, spoiled: str | None = None) -> Errors:
    rng, _ = random.Random(seed), torch.manual_seed(seed)
    B, S, T, H, K = rng.sample(range(2, 9), 5)
    shape = {"vocab_size": 29, "d_model": 2 * H * K, "num_heads": H, "d_ff": rng.randint(10, 30), "max_length": 8}
    layers = {"encoder_layers": rng.randint(1, 3), "decoder_layers": rng.randint(1, 3)}
    activation = rng.choice(["relu", "gelu"])
    config = ModelConfig(**shape, **layers, norm_order=norm_order, activation=activation, dropout=0.0)
    source, target_out = (draw_ids(rng, B, longest, config.vocab_size) for longest in (S, T))
    target_in = F.pad(target_out, (1, -1), value=config.start_token)

    theirs, ours = TorchTranslator(config), Transformer(config)
    ours.load_state_dict(ours_from_theirs(theirs.state_dict(), config))
    if spoiled is not None:
        weight = ours.get_parameter(spoiled).data
        weight.copy_(weight.mT.clone())

    pieces = target_out != PAD
    expected = theirs(source, target_in, ~pieces)[pieces]
    F.cross_entropy(expected, target_out[pieces], label_smoothing=SMOOTHING).backward()
    ids = (source, target_in, target_out)
    batch = Batch.padded(*ids) if seed % 2 else Batch.packed(*ids, pad_token=PAD)
    ours.loss(batch, SMOOTHING).mean.backward()

    expected_gradients = ours_from_theirs({name: p.grad for name, p in theirs.named_parameters()}, config)
    gradients = {name: p.grad for name, p in ours.named_parameters()}
    assert gradients.keys() == expected_gradients.keys()
    relative = [(gradients[name] - e).abs().max() / e.abs().max() for name, e in expected_gradients.items()]
    difference = (ours(source, target_in)[pieces] - expected).abs().max()
    return Errors(logits=difference.item(), gradient=torch.stack(relative).max().item())


def worst(seeds: range, norm_order: str) -> Errors:
    errors = [compare(seed, norm_order) for seed in seeds]
    return Errors(logits=max(e.logits for e in errors), gradient=max(e.gradient for e in errors))


@pytest.mark.slow
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_logits_and_gradients_equal_those_of_torch_transformer(norm_order: str) -> None:
    errors = worst(range(20), norm_order)
    assert errors.logits < LOGITS_TOLERANCE and errors.gradient < GRADIENT_TOLERANCE


@pytest.mark.long
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_logits_and_gradients_equal_those_of_torch_transformer_on_200_batches(norm_order: str) -> None:
    errors = worst(range(1000, 1200), norm_order)
    assert errors.logits < LOGITS_TOLERANCE and errors.gradient < GRADIENT_TOLERANCE


def far_outside(errors: Errors) -> bool:
    return errors.logits > 100 * LOGITS_TOLERANCE and errors.gradient > 100 * GRADIENT_TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_a_transposed_weight_is_noticed(norm_order: str, side: str) -> None:
    assert all(far_outside(compare(seed, norm_order, f"{side}.blocks.0.attention.out.weight")) for seed in range(4))


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_a_missing_scale_is_noticed(norm_order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention, "math", SimpleNamespace(sqrt=lambda _: 1.0))
    assert all(far_outside(compare(seed, norm_order)) for seed in range(4))


@pytest.mark.slow
@pytest.mark.parametrize("norm_order", ["pre", "post"])
@pytest.mark.parametrize("causal", [True, False], ids=["look-ahead", "padding"])
def test_a_mask_shifted_by_one_is_noticed(norm_order: str, causal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Visible.mask

    def mask(self: Visible, *sizes: int) -> Tensor:
        return right(self, *sizes).roll(1 if self.causal == causal else 0, dims=-1)

    monkeypatch.setattr(Visible, "mask", mask)
    assert all(far_outside(compare(seed, norm_order)) for seed in range(4))
