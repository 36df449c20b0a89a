"""Every gradient that we or a kernel write by hand equals a finite difference in float64, and a planted wrong one does not."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck

from limelight.model.attention import Visible, attend, attend_fused, attend_in_stages
from limelight.model.config import ModelConfig
from limelight.model.grid import Grid
from limelight.model.layers import make_norm
from limelight.model.loss import smoothed_loss
from limelight.model.positions import RotaryPositions, rotate

Function = Callable[..., Tensor]

PADDED = Visible(keys=torch.tensor([[True, True, True, False, False], [True, False, True, True, True]]))
BOTH = Visible(keys=PADDED.keys, causal=True)


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(1000 * seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64).requires_grad_()


def right(function: Function, *inputs: Tensor) -> bool:
    """Whether autograd agrees with finite differences, in every input."""
    return gradcheck(function, inputs, eps=1e-6, atol=1e-5, raise_exception=False)


def planted(value: Function, gradient: Function) -> Function:
    """A function with the value of one and the gradient of another."""

    def function(*inputs: Tensor) -> Tensor:
        wrong = gradient(*inputs)
        return wrong + (value(*inputs) - wrong).detach()

    return function


def queries_keys_values(queries: int = 4, heads: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """B=2, T=4, S=5, K=3, and one head of k and v, since finite differences take a step per number."""
    return draw(2, heads, queries, 3), draw(2, 1, 5, 3, seed=1), draw(2, 1, 5, 3, seed=2)


@pytest.mark.parametrize("attention", [attend_in_stages, attend_fused])
@pytest.mark.parametrize(
    "visible, queries",
    [(Visible(), 4), (PADDED, 4), (Visible(causal=True), 5), (BOTH, 4), (BOTH, 5)],
    ids=["everything", "padding", "look-ahead", "both", "both-square"],
)
def test_gradient_of_attention_equals_finite_differences(attention: Function, visible: Visible, queries: int) -> None:
    assert right(partial(attention, visible=visible), *queries_keys_values(queries))


def test_gradient_of_grouped_queries_equals_finite_differences() -> None:
    assert right(partial(attend, visible=BOTH), *queries_keys_values(heads=6))


@pytest.mark.parametrize("attention", [attend_in_stages, attend_fused])
def test_a_wrong_gradient_of_attention_is_noticed(attention: Function) -> None:
    value, inputs = partial(attention, visible=BOTH), queries_keys_values()
    assert not right(planted(value, lambda q, k, v: value(q * math.sqrt(3), k, v)), *inputs)
    assert not right(planted(value, partial(attention, visible=PADDED)), *inputs)
    assert not right(planted(value, lambda q, k, v: value(q, k.detach(), v)), *inputs)


def norm_of(kind: str) -> tuple[Function, list[Tensor]]:
    """The norm as a function of x and its own parameters."""
    module = make_norm(ModelConfig(vocab_size=13, d_model=6, num_heads=3, norm=kind)).double()
    names = [name for name, _ in module.named_parameters()]

    def function(x: Tensor, *parameters: Tensor) -> Tensor:
        return torch.func.functional_call(module, dict(zip(names, parameters, strict=True)), x)

    return function, [draw(2, 5, 6), *(draw(6, seed=1 + i) for i in range(len(names)))]


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_gradient_of_a_norm_equals_finite_differences(kind: str) -> None:
    function, inputs = norm_of(kind)
    assert right(function, *inputs)


@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_a_gradient_that_takes_the_scale_of_a_norm_for_constant_is_noticed(kind: str) -> None:
    function, (x, *parameters) = norm_of(kind)

    def constant_scale(x: Tensor, *parameters: Tensor) -> Tensor:
        x = x - x.mean(-1, keepdim=True) if kind == "layer" else x
        scale = (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt().detach()
        return sum(parameters[1:], x * scale * parameters[0])

    assert torch.allclose(constant_scale(x, *parameters), function(x, *parameters))
    assert not right(constant_scale, x, *parameters)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_gradient_of_rotary_turns_back_and_one_that_turns_on_is_noticed(layout: str) -> None:
    config = {"vocab_size": 13, "d_model": 18, "num_heads": 3, "positions": "rotary", "position_layout": layout}
    cosines, sines = RotaryPositions(ModelConfig(**config)).double()(4)
    value, other_way = (partial(rotate, rotation=(cosines, y), layout=layout) for y in (sines, -sines))
    assert right(value, draw(2, 3, 4, 6))
    assert not right(planted(value, other_way), draw(2, 3, 4, 6))


PIECES_BT = torch.tensor([[True, True, True, False], [True, False, False, False], [True, True, True, True]])


def spread_pieces(grid: Grid) -> Function:
    """Cells of padding hold what no one may use, so they are left out."""
    return lambda x: grid.spread(x)[PIECES_BT]


def collect_pieces(grid: Grid) -> Function:
    """Filler gets no gradient, by the promise of Grid, so it is left out."""
    return lambda x: grid.collect(x)[: grid.pieces]


def test_gradient_of_the_packed_grid_equals_finite_differences() -> None:
    grid = Grid.packed(PIECES_BT)
    stream, cells = draw(len(grid.cells), 2), draw(*PIECES_BT.shape, 2)
    assert right(spread_pieces(grid), stream)
    assert right(collect_pieces(grid), cells)
    assert right(lambda x: collect_pieces(grid)(grid.spread(x).sin()), stream)


@pytest.mark.parametrize("move", ["spread", "collect"])
def test_a_gradient_of_the_packed_grid_one_place_aside_is_noticed(move: str) -> None:
    grid = Grid.packed(PIECES_BT)
    if move == "spread":
        aside = dataclasses.replace(grid, cells=grid.cells.roll(1))
        assert torch.equal(spread_pieces(aside)(stream := draw(len(grid.cells), 2)), spread_pieces(grid)(stream))
        assert not right(spread_pieces(aside), stream)
    else:
        aside = dataclasses.replace(grid, places=grid.places.roll(1))
        assert torch.equal(collect_pieces(aside)(cells := draw(*PIECES_BT.shape, 2)), collect_pieces(grid)(cells))
        assert not right(collect_pieces(aside), cells)


def loss_of(smoothing: float, chunk: int | None = 3) -> tuple[Function, list[Tensor]]:
    """N=7 of which 5 are counted, D=4, V=6: as a function of x, weight and perhaps a bias."""
    target, counted = torch.tensor([5, 0, 2, 2, 1, 0, 4]), torch.tensor([True, False, True, True, True, False, True])

    def function(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return smoothed_loss(x, weight, bias, target, counted, smoothing, chunk).total

    return function, [draw(7, 4), draw(6, 4), draw(6)]


@pytest.mark.slow
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [3, None])
@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no-bias"])
def test_gradient_of_the_loss_equals_finite_differences(smoothing: float, chunk: int | None, bias: bool) -> None:
    function, inputs = loss_of(smoothing, chunk)
    assert right(function, *inputs[: 3 if bias else 2])
    assert right(lambda *inputs: function(*inputs).square(), *inputs[: 3 if bias else 2])  # a scale from further on


@pytest.mark.slow
def test_a_wrong_gradient_of_the_loss_is_noticed() -> None:
    (value, inputs), (unsmoothed, _) = loss_of(0.1), loss_of(0.0)
    assert right(planted(value, value), *inputs)
    assert not right(planted(value, unsmoothed), *inputs)
    assert not right(planted(value, lambda *inputs: 1.01 * value(*inputs)), *inputs)
    assert not right(planted(value, lambda x, weight, bias: value(x, weight, bias.detach())), *inputs)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("seed", range(8))
def test_loss_equals_cross_entropy_of_torch_in_value_and_gradients(smoothing: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    N, D, V, chunk = (int(torch.randint(1, most, (), generator=generator)) for most in (40, 9, 30, 12))
    target, counted = torch.randint(V, (N,), generator=generator), torch.rand(N, generator=generator) < 0.7
    x, weight, bias = inputs = draw(N, D, seed=seed), draw(V, D, seed=seed), draw(V, seed=seed)
    logits = F.linear(x, weight, bias)[counted]

    expected = F.cross_entropy(logits, target[counted], label_smoothing=smoothing, reduction="sum")
    loss = smoothed_loss(x, weight, bias, target, counted, smoothing, chunk)
    exact = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-10)
    exact(loss.total, expected)
    exact(torch.autograd.grad(loss.total, inputs), torch.autograd.grad(expected, inputs, retain_graph=True))
    exact(loss.nll, F.cross_entropy(logits, target[counted], reduction="sum").detach())
    assert loss.pieces == counted.sum()
