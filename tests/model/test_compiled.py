"""torch.compile takes the model in one piece and computes the same. `fullgraph=True` raises at the first graph break."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from limelight.model.transformer import Batch
from strategies import Case, gradients, tiny_case

# Both come from inside torch 2.13: dynamo makes a Function to trace one, inductor imports torch.utils.mkldnn.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.autograd.function.Function.* should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning"),
]

PAPER = {"norm_order": "post", "positions": "sinusoidal"}
MODERN = {
    "norm_order": "pre",
    "norm": "rms",
    "positions": "rotary",
    "activation": "swiglu",
    "bias": False,
    "num_kv_heads": 1,
}


@pytest.fixture(autouse=True)
def forget_compiled_graphs() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def toy(**changes: object) -> Case:
    case = tiny_case(encoder_layers=1, decoder_layers=1, **changes)
    case.model.float()
    return case


def losses_and_gradients(case: Case, batch: Batch, backend: str) -> list[dict[str, Tensor]]:
    """Eager, then compiled."""

    def loss(batch: Batch) -> Tensor:
        return case.model.loss(batch, smoothing=0.1).mean

    totals = [loss(batch), torch.compile(loss, fullgraph=True, backend=backend, dynamic=False)(batch)]
    return [{"loss": total, **gradients(case.model, total)} for total in totals]


@pytest.mark.slow
def test_one_graph_of_the_forward_pass_serves_other_shapes_too():
    case, other = toy(**MODERN), toy(lengths=([6, 4, 2], [5, 1, 6])).batch
    compiled = torch.compile(case.model, fullgraph=True, backend="eager", dynamic=True)
    first_BTV = compiled(case.batch.source, case.batch.target_in)
    torch.testing.assert_close(first_BTV, case.model(case.batch.source, case.batch.target_in), rtol=1e-5, atol=1e-5)
    with torch.compiler.set_stance("fail_on_recompile"):
        second_BTV = compiled(other.source, other.target_in)
    torch.testing.assert_close(second_BTV, case.model(other.source, other.target_in), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_the_training_loss_traces_to_one_graph_with_the_gradients_of_eager():
    case = toy(**PAPER)
    eager, compiled = losses_and_gradients(case, case.batch, backend="aot_eager")
    torch.testing.assert_close(compiled, eager, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_packing_dropout_and_recomputing_activations_do_not_break_the_graph():
    case = toy(**MODERN, dropout=0.3, attention_dropout=0.2, activation_dropout=0.1)
    case.model.train()
    case.model.recompute_activations()
    torch.manual_seed(0)
    loss = torch.compile(lambda batch: case.model.loss(batch).mean, fullgraph=True, backend="eager", dynamic=False)
    found = gradients(case.model, loss(case.packed()))
    assert all(gradient.isfinite().all() for gradient in found.values())
    assert not torch.equal(loss(case.packed()), loss(case.packed()))  # the masks are drawn, not traced


@pytest.mark.long
@pytest.mark.process
@pytest.mark.reference
def test_inductor_equals_eager_in_the_forward_pass():
    case = toy(**PAPER)
    source, target = case.batch.source, case.batch.target_in
    compiled = torch.compile(case.model, fullgraph=True, backend="inductor", dynamic=False)
    torch.testing.assert_close(compiled(source, target), case.model(source, target), rtol=1e-5, atol=1e-5)


@pytest.mark.long
@pytest.mark.process
@pytest.mark.reference
def test_inductor_equals_eager_in_the_training_loss_and_its_gradients():
    case = toy(**PAPER)
    eager, compiled = losses_and_gradients(case, case.batch, backend="inductor")
    torch.testing.assert_close(compiled, eager, rtol=1e-5, atol=1e-5)
