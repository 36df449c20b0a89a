"""The door for looking and dimming: what a look sees and may replace, what a gate does, and that neither leaves a trace."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from limelight.errors import ConfigError
from limelight.model import ModelConfig, multi_head
from limelight.model.attention import Visible
from limelight.model.transformer import Transformer
from strategies import EXACT, Case, cases, few, normal, random_ids, tiny_case

STAGES = ["q", "k", "v", "scores", "scaled", "masked", "weights", "heads"]
Key = tuple[str, int, str]  # kind, layer, stage


def capture(model: Transformer) -> tuple[dict[Key, Tensor], Counter[Key]]:
    """Put a look on every spotlight. Returns what the looks will have seen last, and how often."""
    seen: dict[Key, Tensor] = {}
    times: Counter[Key] = Counter()
    for light in model.spotlights():

        def look(stage: str, value: Tensor, kind: str = light.kind, layer: int = light.layer) -> None:
            seen[kind, layer, stage] = value
            times[kind, layer, stage] += 1

        light.attention.looks.append(look)
    return seen, times


def dim(model: Transformer, gate: Tensor | None, kinds: tuple[str, ...] = ("encoder", "decoder", "cross")) -> None:
    for light in model.spotlights():
        if light.kind in kinds:
            light.attention.gate = gate


def run(case: Case) -> Tensor:
    return case.model(case.batch.source, case.batch.target_in)


def test_spotlights_list_every_attention_with_its_kind_and_layer():
    model = tiny_case(encoder_layers=3, decoder_layers=2).model
    lights = model.spotlights()
    expected = [("encoder", i) for i in range(3)] + [("decoder", i) for i in range(2)] + [("cross", i) for i in range(2)]
    assert [(light.kind, light.layer) for light in lights] == expected
    assert [light.attention for light in lights] == [
        *(block.attention for block in model.encoder.blocks),
        *(block.attention for block in model.decoder.blocks),
        *(block.cross_attention for block in model.decoder.blocks),
    ]


@pytest.mark.slow
@few
@given(cases())
def test_gates_of_one_are_no_gates(case: Case):
    before_BTV = run(case)
    dim(case.model, torch.ones(case.config.num_heads))
    torch.testing.assert_close(run(case), before_BTV, rtol=0, atol=1e-12)


@pytest.mark.slow
@few
@given(cases())
def test_muting_every_cross_head_makes_the_output_independent_of_the_source(case: Case):
    other_source = random_ids(len(case.batch.source), 7).clamp_max(case.config.source_vocab - 1)
    assert not torch.equal(case.model(other_source, case.batch.target_in), run(case))
    dim(case.model, torch.zeros(case.config.num_heads), ("cross",))
    muted_BTV = run(case)
    assert torch.equal(case.model(other_source, case.batch.target_in), muted_BTV)
    other_target = case.batch.target_in.clone()
    other_target[:, 0] = 1
    assert not torch.equal(case.model(case.batch.source, other_target)[:, -1], muted_BTV[:, -1])  # the others still shine


def test_a_gate_scales_its_own_head_before_the_output_projection():
    case = tiny_case()
    light = case.model.decoder.blocks[0].cross_attention
    seen, _ = capture(case.model)
    outputs: list[Tensor] = []
    light.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    light.gate = torch.tensor([0.25, 1.0, 0.0])
    run(case)
    head_0_BTK, head_1_BTK, head_2_BTK = seen["cross", 0, "heads"].unbind(1)
    concat_BTD = torch.cat([0.25 * head_0_BTK, head_1_BTK, torch.zeros_like(head_2_BTK)], dim=-1)
    torch.testing.assert_close(outputs[0], light.out(concat_BTD), **EXACT)


def test_a_gate_of_other_heads_is_refused_by_name() -> None:
    model = Transformer(ModelConfig.preset("toy", 14))
    model.spotlights()[-1].attention.gate = torch.ones(model.config.num_heads + 1)
    with pytest.raises(ConfigError, match=f"here are {model.config.num_heads}"):
        model(torch.tensor([[5, 3]]), torch.tensor([[2, 5]]))


@pytest.mark.slow
@few
@given(cases(), st.integers(0, 99), st.booleans())
def test_a_gate_per_row_equals_running_each_row_with_its_own_gate(case: Case, seed: int, looked_at: bool):
    if looked_at:
        capture(case.model)
    gate_BH = normal(len(case.batch.source), case.config.num_heads, seed=seed).sigmoid()
    dim(case.model, gate_BH)
    together_BTV = run(case)
    packed_loss = case.model.loss(case.packed()).total
    losses = []
    for row, gate_H in enumerate(gate_BH):
        dim(case.model, gate_H)
        alone = case.row(row)
        alone_TV = case.model(alone.source, alone.target_in)[0]
        torch.testing.assert_close(together_BTV[row, : len(alone_TV)], alone_TV, **EXACT)
        losses.append(case.model.loss(alone).total)
    torch.testing.assert_close(packed_loss, torch.stack(losses).sum(), **EXACT)


@few
@given(cases())
def test_capturing_leaves_the_output_unchanged(case: Case):
    before_BTV = run(case)
    capture(case.model)
    torch.testing.assert_close(run(case), before_BTV, **EXACT)


def test_a_look_takes_the_staged_path_and_removing_it_restores_the_fast_one(monkeypatch: pytest.MonkeyPatch):
    fast_calls, attend = [], multi_head.attend
    monkeypatch.setattr(multi_head, "attend", lambda *inputs: fast_calls.append(1) or attend(*inputs))
    case = tiny_case()
    lights = case.model.spotlights()
    before_BTV = run(case)
    assert len(fast_calls) == len(lights)
    capture(case.model)
    run(case)
    assert len(fast_calls) == len(lights)
    for light in lights:
        light.attention.looks.clear()
    assert torch.equal(run(case), before_BTV)
    assert len(fast_calls) == 2 * len(lights)


@few
@given(cases())
def test_every_spotlight_shows_every_stage_once_and_in_its_shape(case: Case):
    seen, times = capture(case.model)
    run(case)
    expected = {(light.kind, light.layer, stage) for light in case.model.spotlights() for stage in STAGES}
    assert times == Counter(expected)
    (B, S), T, H, K = case.batch.source.shape, case.batch.target_in.shape[1], case.config.num_heads, case.config.d_head
    for (kind, _, stage), value in seen.items():
        queries, keys = {"encoder": (S, S), "decoder": (T, T), "cross": (T, S)}[kind]
        rows_and_columns = {"q": (queries, K), "k": (keys, K), "v": (keys, K), "heads": (queries, K)}
        assert value.shape == (B, H, *rows_and_columns.get(stage, (queries, keys)))


@few
@given(cases())
def test_the_stages_are_those_of_equation_1(case: Case):
    seen, _ = capture(case.model)
    run(case)
    pieces_BS, T = case.batch.source != case.config.pad_token, case.batch.target_in.shape[1]
    past_TT = torch.ones(T, T, dtype=torch.bool).tril()
    for light in case.model.spotlights():
        q, k, v, scores, scaled, masked, weights, heads = (seen[light.kind, light.layer, stage] for stage in STAGES)
        visible = (past_TT if light.kind == "decoder" else pieces_BS[:, None, None, :]).expand_as(scores)
        torch.testing.assert_close(scores, torch.einsum("bhtk,bhsk->bhts", q, k), **EXACT)
        torch.testing.assert_close(scaled, scores / math.sqrt(case.config.d_head), **EXACT)
        assert torch.equal(masked[visible], scaled[visible])
        assert torch.all(masked[~visible] == -torch.inf)
        torch.testing.assert_close(weights, masked.exp() / masked.exp().sum(-1, keepdim=True), **EXACT)
        torch.testing.assert_close(heads, torch.einsum("bhts,bhsk->bhtk", weights, v), **EXACT)


def test_decoding_step_by_step_shows_the_rows_of_the_whole():
    case = tiny_case(positions="rotary", num_kv_heads=1)
    seen, _ = capture(case.model)
    run(case)
    whole = {key: seen[key].clone() for key in seen if key[0] != "encoder"}
    state = case.model.start(case.batch.source)
    for t, token in enumerate(case.batch.target_in.T):
        case.model.step(token, state)
        for (kind, layer, stage), value in whole.items():
            if stage == "weights":
                now_BHS = seen[kind, layer, stage][:, :, 0]
                torch.testing.assert_close(now_BHS, value[:, :, t, : now_BHS.shape[-1]], **EXACT)


@pytest.mark.parametrize("place", [0, 2])
def test_pinning_attention_to_one_source_piece_equals_seeing_that_piece_only(place: int):
    case = tiny_case(num_kv_heads=1)
    before_BTV, memory = run(case), case.model.encode(case.batch.source)

    def pin(stage: str, value: Tensor) -> Tensor | None:
        return torch.eye(value.shape[-1], dtype=value.dtype)[place].expand_as(value) if stage == "weights" else None

    for light in case.model.spotlights():
        if light.kind == "cross":
            light.attention.looks.append(pin)
    pinned_BTV = run(case)
    for light in case.model.spotlights():
        light.attention.looks.clear()

    only_BS = (torch.arange(case.batch.source.shape[1]) == place).expand_as(case.batch.source)
    b, model = case.batch, case.model
    x_BTD = model.target_embedding(b.target_in, model.target_positions, b.target_grid.columns(memory.device))
    decoded_BTD = model.decoder(x_BTD, b.target_grid, memory, Visible(keys=only_BS), b.source_grid)
    torch.testing.assert_close(pinned_BTV, model.logits(decoded_BTD), **EXACT)
    assert not torch.allclose(pinned_BTV, before_BTV)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_any_stage_can_be_replaced_and_the_next_look_sees_the_replacement(kind: str, stage: str):
    case = tiny_case()
    before_BTV = run(case)
    light = next(light for light in case.model.spotlights() if light.kind == kind)
    light.attention.looks.append(lambda name, value: value * 0.5 if name == stage else None)
    replaced_BTV = run(case)
    assert not torch.allclose(replaced_BTV, before_BTV)

    seen, _ = capture(case.model)
    torch.testing.assert_close(run(case), replaced_BTV, **EXACT)
    seen_after = seen[light.kind, light.layer, stage].clone()
    light.attention.looks.pop(0)
    run(case)
    torch.testing.assert_close(seen_after, seen[light.kind, light.layer, stage] * 0.5, **EXACT)
