"""At depth 24 the stream and its gradients start at a healthy scale. The bounds were measured first, then stated with a margin."""

from dataclasses import dataclass
from functools import cache

import pytest
import torch
from torch import Tensor, nn

from limelight.model.config import ModelConfig
from limelight.model.positions import sinusoids
from limelight.model.transformer import Batch, Transformer

DEPTH, VOCABULARY = 24, 1000


@dataclass(frozen=True)
class Start:
    """An untrained model: the RMS of the stream after each block, its logits, and the gradient's norm of every parameter."""

    rms: dict[str, list[float]]
    logits: Tensor
    gradient_norms: dict[str, float]


def deep_model(norm_order: str, norm: str) -> Transformer:
    torch.manual_seed(0)
    shape = {"encoder_layers": DEPTH, "decoder_layers": DEPTH, "d_model": 128, "d_ff": 512, "num_heads": 4}
    return Transformer(ModelConfig(vocab_size=VOCABULARY, **shape, norm_order=norm_order, norm=norm, dropout=0.0))


def measure(model: Transformer) -> Start:
    rms: dict[str, list[float]] = {"encoder": [], "decoder": []}
    for name, stack in [("encoder", model.encoder), ("decoder", model.decoder)]:
        for block in stack.blocks:
            block.register_forward_hook(lambda m, i, x, name=name: rms[name].append(x.square().mean().sqrt().item()))
    source, target_in, target_out = (torch.randint(4, VOCABULARY, (3, length)) for length in (9, 8, 8))
    batch = Batch.padded(source, target_in, target_out)
    decoded = model.decode(batch, model.encode(source))
    measured = {name: list(values) for name, values in rms.items()}
    model.loss(batch).mean.backward()
    norms = {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}
    return Start(measured, model.logits(decoded).detach(), norms)


@cache
def start_of(norm_order: str, norm: str) -> Start:
    return measure(deep_model(norm_order, norm))


both_orders = pytest.mark.parametrize("norm_order", ["pre", "post"])
both_norms = pytest.mark.parametrize("norm", ["layer", "rms"])


@pytest.mark.slow
@both_norms
def test_the_pre_norm_stream_grows_only_a_little_over_24_blocks(norm: str):
    """Measured: 1.23 after the first block, 1.37 after the encoder's and 1.44 after the decoder's last."""
    for values in start_of("pre", norm).rms.values():
        assert len(values) == DEPTH
        assert all(0.9 < value < 1.6 for value in values)


@pytest.mark.slow
@both_norms
def test_the_post_norm_stream_has_unit_scale_after_every_block(norm: str):
    for values in start_of("post", norm).rms.values():
        assert len(values) == DEPTH
        assert values == pytest.approx([1.0] * DEPTH, abs=1e-3)


@pytest.mark.slow
@both_norms
def test_without_the_division_by_the_number_of_writers_the_pre_norm_stream_leaves_its_bounds(norm: str):
    """The control. Measured: 5.8 after the encoder and 7.3 after the decoder."""
    model = deep_model("pre", norm)
    with torch.no_grad():
        for stack, writers in [(model.encoder, 2 * DEPTH), (model.decoder, 3 * DEPTH)]:
            for name, module in stack.named_modules():
                if name.endswith((".out", ".down")):
                    module.weight.mul_(writers**0.5)
    for values in measure(model).rms.values():
        assert values[-1] > 4.5


@pytest.mark.slow
@both_orders
@both_norms
def test_logits_start_with_order_one(norm_order: str, norm: str):
    """Measured: a standard deviation of 1.04 to 1.05."""
    assert 0.8 < start_of(norm_order, norm).logits.std().item() < 1.25


@both_orders
@both_norms
def test_every_parameter_starts_with_a_finite_gradient(norm_order: str, norm: str):
    norms = torch.tensor(list(start_of(norm_order, norm).gradient_norms.values()))
    assert norms.isfinite().all()
    assert torch.count_nonzero(norms) == len(norms)


@both_norms
@pytest.mark.parametrize("stack", ["encoder", "decoder"])
@pytest.mark.parametrize("weight", ["attention.qkv.weight", "attention.out.weight"])
def test_pre_norm_gives_the_first_block_a_gradient_like_the_last(stack: str, weight: str, norm: str):
    """Measured: first / last is 1.02 to 1.25."""
    norms = start_of("pre", norm).gradient_norms
    ratio = norms[f"{stack}.blocks.0.{weight}"] / norms[f"{stack}.blocks.{DEPTH - 1}.{weight}"]
    assert 0.5 < ratio < 2


@both_norms
def test_post_norm_starves_the_first_blocks_of_a_deep_decoder(norm: str):
    """Why the deep presets are pre-norm (Xiong et al. 2020). Measured: first / last is 1/185 and 1/291; it was 1/6000 with 1 / fan-in."""
    norms = start_of("post", norm).gradient_norms
    first, last = (norms[f"decoder.blocks.{i}.attention.qkv.weight"] for i in (0, DEPTH - 1))
    assert first / last < 0.02


@pytest.mark.parametrize("changes", [{}, {"norm_order": "pre"}, {"tie": "none"}, {"num_kv_heads": 2, "norm_order": "pre"}])
def test_each_projection_has_the_standard_deviation_it_should(changes: dict[str, object]):
    config = ModelConfig(vocab_size=VOCABULARY, encoder_layers=2, decoder_layers=3, d_model=128, d_ff=512, **changes)
    torch.manual_seed(0)
    model = Transformer(config)
    writers = {"encoder": 4, "decoder": 9}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear):
            first, last = name.split(".")[0], name.split(".")[-1]
            if config.norm_order == "pre" or last == "output":
                expected = (module.in_features * (writers[first] if last in ("out", "down") else 1)) ** -0.5
            else:  # Xavier's, and half of its variance for q, k and v, each by itself
                expected = {"qkv": 256, "q": 256, "kv": 256, "out": 128, "up": 320, "down": 320}[last] ** -0.5
            assert module.weight.std().item() == pytest.approx(expected, rel=0.03), name
            assert module.bias is None or not module.bias.any()
        elif isinstance(module, nn.LayerNorm):
            assert torch.all(module.weight == 1)
            assert not module.bias.any()
    assert model.target_embedding.weight.std().item() == pytest.approx(128**-0.5, rel=0.03)


def test_embeddings_enter_the_stream_level_with_the_sinusoids():
    """RMS 1 for the pieces, sqrt(1/2) for the positions."""
    model = deep_model("post", "layer")
    x_SD = model.target_embedding.weight.detach() * model.target_embedding.scale
    assert x_SD.square().mean().sqrt().item() == pytest.approx(1.0, rel=0.03)
    assert sinusoids(50, 128).square().mean().sqrt().item() == pytest.approx(0.5**0.5, rel=1e-6)
